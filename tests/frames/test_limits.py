from __future__ import annotations

import gzip
import os
import resource
import sys
import threading
from pathlib import Path

import polars as pl
import pytest

from frames.shapes import wide
from vace_ad.errors import ConfigError, TableReadError
from vace_ad.frames.limits import gunzip, parse_size
from vace_ad.frames.read import read_table


def test_sizes() -> None:
    assert [parse_size(t) for t in ("500MB", "1.5 gb", "10", 7)] == [
        500_000_000,
        1_500_000_000,
        10,
        7,
    ]
    for text in ("", "big", "0GB", "5 XB"):
        with pytest.raises(ConfigError, match="8GB"):
            parse_size(text)


def test_gzip_of_several_members_and_with_padding(tmp_path: Path) -> None:
    data = gzip.compress(b"a" * 3_000_000) + gzip.compress(b"b" * 5) + b"\0" * 9
    assert gunzip("t", data, 10**7) == b"a" * 3_000_000 + b"b" * 5
    (tmp_path / "t.gz").write_bytes(data)
    assert gunzip("t", tmp_path / "t.gz", 10**7) == b"a" * 3_000_000 + b"b" * 5
    with pytest.raises(TableReadError, match="begins like gzip"):
        gunzip("t", data[:-30], 10**7)


def test_a_bomb_is_refused_and_the_setting_named(tmp_path: Path) -> None:
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"0,0\n" * 5_000_000))
    assert path.stat().st_size < 100_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TableReadError, match=r"more than 5 MB; .*max_size='1GB' lifts"):
        read_table(path, max_size="5MB")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000  # kB
    assert read_table(path, max_size="100MB")[0].height == 5_000_000


def test_a_parquet_file_of_too_many_cells(tmp_path: Path) -> None:
    pl.DataFrame({"a": [0.0]}).select(pl.repeat(0.0, 3_000_000).alias("a")).write_parquet(
        tmp_path / "t.parquet"
    )
    with pytest.raises(TableReadError, match=r"3,000,000 rows × 1 columns, 24 MB.*max_size="):
        read_table(tmp_path / "t.parquet", max_size="10MB")


@pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes")
@pytest.mark.parametrize("kind", ["csv", "parquet", "ndjson"])
def test_a_pipe_is_read_once(tmp_path: Path, kind: str) -> None:
    getattr(wide(), f"write_{kind}")(tmp_path / "plain")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(
        target=lambda: pipe.write_bytes((tmp_path / "plain").read_bytes()), daemon=True
    )
    writer.start()
    assert read_table(pipe)[0].height == 200
    writer.join(timeout=10)
    assert not writer.is_alive()


def test_a_column_counts_at_least_so_much(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("1," * 5000 + "1\n" + "2," * 5000 + "2\n")
    with pytest.raises(TableReadError, match=r"5,001 columns.*max_size"):
        read_table(path, max_size="300MB")


@pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes")
def test_a_pipe_that_nobody_writes_to_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr("vace_ad.frames.read._PIPE_SECONDS", 1)
    with pytest.raises(TableReadError, match=r"nothing came from it for 1 seconds; start the prog"):
        read_table(tmp_path / "pipe")
