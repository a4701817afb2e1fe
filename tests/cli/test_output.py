from __future__ import annotations

import pytest

from vace_ad.cli.output import Output


def test_a_long_note_is_indented_under_its_word(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False, quiet=False).notes(["short", "\x1b[31mlong " * 40])
    first, second, *rest = capsys.readouterr().out.splitlines()
    assert first == "  note: short"
    assert second.startswith("  note: long long")
    assert rest
    assert all(line.startswith(" " * 8 + "long") for line in rest)
