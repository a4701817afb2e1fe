from __future__ import annotations

import random
from pathlib import Path

import pytest

from frames.shapes import wide
from vace_ad.app.loading import without_panic_words
from vace_ad.errors import TableReadError
from vace_ad.frames.read import read_table


@pytest.mark.parametrize("kind", ["parquet", "ipc", "ipc_stream"])
def test_damaged_files_end_in_one_sentence(
    tmp_path: Path, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t"
    getattr(wide(), f"write_{kind}")(path)
    whole = path.read_bytes()
    dice = random.Random(0)
    messages = []
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(dice.choice([1, 3, 30])):
            damaged[dice.randrange(8, len(damaged))] = dice.randrange(256)
        path.write_bytes(bytes(damaged[: dice.choice([len(whole), dice.randrange(8, len(whole))])]))
        try:
            with without_panic_words():
                read_table(path)
        except TableReadError as error:
            messages.append(str(error))
    assert len(messages) > 50
    assert not any("\n" in message for message in messages)
    assert capfd.readouterr().err == ""
