from __future__ import annotations

import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from vace_ad.errors import TableReadError
from vace_ad.frames.limits import zstd_bytes
from vace_ad.frames.read import read_table

pytestmark = pytest.mark.skipif(
    shutil.which("zstd") is None, reason="the zstd command is not installed"
)


def packed(data: bytes, *options: str) -> bytes:
    """As a stream, so that the frame does not know its size."""
    done = subprocess.run(["zstd", "-qc", *options], input=data, capture_output=True, check=True)
    return done.stdout


def test_a_frame_that_says_its_size(tmp_path: Path) -> None:
    for n in (1, 50, 100, 70_000, 3_000_000):
        (tmp_path / "t.csv").write_bytes(b"1,2\n" * n)
        subprocess.run(["zstd", "-qf", tmp_path / "t.csv"], check=True)
        assert zstd_bytes(tmp_path / "t.csv.zst") == 4 * n
        assert zstd_bytes((tmp_path / "t.csv.zst").read_bytes()) == 4 * n


@pytest.mark.parametrize("options", [[], ["--no-check"], ["-19"], ["--fast=5"]])
def test_a_stream_is_bounded_by_its_blocks(options: list[str]) -> None:
    for n in (10, 70_000, 3_000_000):
        data = b"".join(b"%d,2\n" % (i * 7919 % 1009) for i in range(1000)) * (n // 1000 or 1)
        bound = zstd_bytes(packed(data, *options))
        assert len(data) <= bound <= len(data) + 2 * 128 * 1024


def test_several_frames_and_frames_to_skip() -> None:
    one, many = packed(b"1,2\n"), packed(b"3,4\n" * 10**6)
    skipped = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    assert zstd_bytes(one + skipped + many) == zstd_bytes(one) + zstd_bytes(many) >= 4 * 10**6


def test_what_is_damaged_ends_the_count() -> None:
    whole = packed(b"1,2\n" * 10**6)
    for cut in range(0, len(whole), 7):
        assert 0 <= zstd_bytes(whole[:cut]) <= zstd_bytes(whole)
    assert zstd_bytes(b"\x28\xb5\x2f\xfd") == 0


@pytest.mark.parametrize("first", [b"", b"a,b\n"], ids=["one frame", "after a small frame"])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, first: bytes) -> None:
    path = tmp_path / "bomb.csv.zst"
    path.write_bytes((packed(first) if first else b"") + packed(b"0,0\n" * 50_000_000))
    assert path.stat().st_size < 100_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TableReadError, match=r"more than 5 MB; .*max_size='1GB' lifts"):
        read_table(path, max_size="5MB")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000  # kB


def test_a_stream_within_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.zst"
    path.write_bytes(packed(b"a,b\n" + b"1,2\n" * 1000))
    assert read_table(path, max_size="1MB")[0].height == 1000
