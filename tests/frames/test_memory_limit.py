from __future__ import annotations

import contextlib
import gzip
import os
import resource
import sys
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frames.shapes import wide
from vace_ad.errors import ConfigError, TableReadError
from vace_ad.frames import read
from vace_ad.frames.read import read_table
from vace_ad.frames.read_options import parse_size


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


def grown(work) -> int:
    """Megabytes by which the process grew at most."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1000


def refused(path: Path, most: str = "20MB") -> None:
    with pytest.raises(TableReadError, match="max_size="):
        read_table(path, max_size=most)


def write_arrow(path: Path, table: pa.Table, packed: str | None, stream: bool) -> None:
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    how = pa.ipc.IpcWriteOptions(compression=packed)
    with make(str(path), table.schema, options=how) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("packed", ["zstd", "lz4", None])
def test_an_arrow_file_is_held_to_what_it_unpacks_to(tmp_path, packed, stream) -> None:
    path = tmp_path / "t"
    table = pa.table({"a": np.arange(3000) % 7 * 1.0, "b": np.zeros(3000), "w": ["x"] * 3000})
    write_arrow(path, table, packed, stream)
    frame, report = read_table(path, max_size="1MB")
    assert frame["a"].to_list() == table["a"].to_pylist()
    assert report.format == "Arrow"
    write_arrow(path, pa.table({"a": np.zeros(5_000_000)}), packed, stream)
    assert grown(lambda: refused(path)) < 60


@pytest.mark.parametrize("stream", [False, True])
def test_an_arrow_buffer_that_claims_a_terabyte(tmp_path, stream) -> None:
    path = tmp_path / "t"
    write_arrow(path, pa.table({"a": np.zeros(3000)}), "zstd", stream)
    data = path.read_bytes()
    said = (24_000).to_bytes(8, "little")
    assert data.count(said) >= 1
    path.write_bytes(data.replace(said, (10**12).to_bytes(8, "little")))
    refused(path)


def test_dictionaries_of_arrow_are_counted(tmp_path) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 300, pa.int32()), pa.array(["x" * 10**5]))
    write_arrow(tmp_path / "t", pa.table({"w": words, "a": range(300)}), "zstd", False)
    assert grown(lambda: refused(tmp_path / "t", "5MB")) < 60
    assert read_table(tmp_path / "t", max_size="100MB")[0].height == 300


def test_damaged_arrow_files_end_in_one_sentence(tmp_path) -> None:
    path = tmp_path / "t"
    write_arrow(path, pa.table({"a": np.zeros(300)}), "zstd", False)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        for at in rng.integers(8, len(whole), 3):
            damaged[at] = rng.integers(256)
        path.write_bytes(bytes(damaged))
        with contextlib.suppress(TableReadError):
            read_table(path, max_size="5MB")


def test_words_that_a_parquet_file_repeats(tmp_path) -> None:
    words = pa.DictionaryArray.from_arrays(
        pa.array([0] * 9000, pa.int32()), pa.array(["x" * 10**5])
    )
    pq.write_table(pa.table({"w": words}), tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < 200_000
    assert grown(lambda: refused(tmp_path / "t.parquet")) < 100


@pytest.mark.parametrize("kind", ["parquet", "ipc", "ipc_stream"])
def test_lists_are_never_unpacked(tmp_path, kind) -> None:
    lists = pl.Series("l", [[0] * 2_000_000] * 8, dtype=pl.List(pl.Int8))
    frame = pl.DataFrame([pl.Series("a", np.arange(8.0)), lists])
    frame = frame.with_columns(s=pl.struct("a"), b=pl.lit(b"x"))
    getattr(frame, f"write_{kind}")(tmp_path / "t", compression="zstd")
    read, report = read_table(tmp_path / "t")
    assert read.columns == ["a"]
    assert report.notes == ("columns of lists, structures or bytes are not read: 'l', 's', 'b'",)


@pytest.mark.parametrize("kind", ["parquet", "ipc", "csv", "commas"])
def test_very_many_columns(tmp_path, kind) -> None:
    path = tmp_path / "t"
    if kind == "commas":
        path.write_bytes(b"1" + b",1" * 5_000_000 + b"\n")
    else:
        frame = pl.DataFrame({f"c{i}": [1.0] for i in range(50_000)})
        getattr(frame, f"write_{kind}")(path)
    with pytest.raises(TableReadError, match=r"columns, .* in memory; .*max_size="):
        read_table(path)


@pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes")
def test_a_pipe_without_a_writer_is_no_riddle(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(read, "NO_WRITER_SECONDS", 0.2)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TableReadError, match=r"pipe is a pipe without a writer \(for 0.2 s\)"):
        read_table(tmp_path / "pipe")


@pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes")
def test_a_writer_may_take_its_time(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(read, "NO_WRITER_SECONDS", 0.5)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        time.sleep(0.2)
        with pipe.open("wb") as file:
            time.sleep(0.8)  # longer than anybody waits for a writer to come
            file.write(b"a,b\n1,2\n")
            file.flush()
            time.sleep(0.3)
            file.write(b"3,4\n")

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    assert read_table(pipe)[0]["b"].to_list() == [2.0, 4.0]
    writer.join(timeout=10)
