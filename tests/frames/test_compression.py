from __future__ import annotations

import gzip
import io
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from vace_ad.errors import TableReadError
from vace_ad.frames.compression import gunzip, zstd_bytes
from vace_ad.frames.read import RawFile, read_table


def test_gzip_of_several_members_and_with_padding(tmp_path: Path) -> None:
    data = gzip.compress(b"a" * 3_000_000) + gzip.compress(b"b" * 5) + b"\0" * 9
    assert gunzip(RawFile("t", 10**7, data)).data == b"a" * 3_000_000 + b"b" * 5
    (tmp_path / "t.gz").write_bytes(data)
    assert gunzip(RawFile("t", 10**7, tmp_path / "t.gz")).data == b"a" * 3_000_000 + b"b" * 5
    with pytest.raises(TableReadError, match="begins like gzip"):
        gunzip(RawFile("t", 10**7, data[:-30]))


zstd = pytest.mark.skipif(shutil.which("zstd") is None, reason="the zstd command is not installed")


def packed(data: bytes, *options: str) -> bytes:
    """As a stream, so that the frame does not know its size."""
    done = subprocess.run(["zstd", "-qc", *options], input=data, capture_output=True, check=True)
    return done.stdout


def bound_of(data: bytes) -> int:
    return zstd_bytes(io.BytesIO(data))


@zstd
def test_a_frame_that_says_its_size(tmp_path: Path) -> None:
    for n in (1, 50, 100, 70_000, 3_000_000):
        (tmp_path / "t.csv").write_bytes(b"1,2\n" * n)
        subprocess.run(["zstd", "-qf", tmp_path / "t.csv"], check=True)
        with (tmp_path / "t.csv.zst").open("rb") as file:
            assert zstd_bytes(file) == 4 * n


@zstd
@pytest.mark.parametrize("options", [[], ["--no-check"], ["-19"], ["--fast=5"]])
def test_a_stream_is_bounded_by_its_blocks(options: list[str]) -> None:
    for n in (10, 70_000, 3_000_000):
        data = b"".join(b"%d,2\n" % (i * 7919 % 1009) for i in range(1000)) * (n // 1000 or 1)
        bound = bound_of(packed(data, *options))
        assert len(data) <= bound <= len(data) + 2 * 128 * 1024


@zstd
def test_several_frames_and_frames_to_skip() -> None:
    one, many = packed(b"1,2\n"), packed(b"3,4\n" * 10**6)
    skipped = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    assert bound_of(one + skipped + many) == bound_of(one) + bound_of(many) >= 4 * 10**6


@zstd
def test_what_is_damaged_ends_the_count() -> None:
    whole = packed(b"1,2\n" * 10**6)
    for cut in range(0, len(whole), 7):
        assert 0 <= bound_of(whole[:cut]) <= bound_of(whole)
    assert bound_of(b"\x28\xb5\x2f\xfd") == 0


@zstd
@pytest.mark.parametrize("first", [b"", b"a,b\n"], ids=["one frame", "after a small frame"])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, first: bytes) -> None:
    path = tmp_path / "bomb.csv.zst"
    path.write_bytes((packed(first) if first else b"") + packed(b"0,0\n" * 50_000_000))
    assert path.stat().st_size < 100_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TableReadError, match=r"more than 5 MB; .*max_size='1GB' lifts"):
        read_table(path, max_size="5MB")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000  # kB


@zstd
def test_a_stream_within_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.zst"
    path.write_bytes(packed(b"a,b\n" + b"1,2\n" * 1000))
    assert read_table(path, max_size="1MB")[0].height == 1000
