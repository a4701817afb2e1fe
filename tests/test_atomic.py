from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from test_detector import SMALL, waves
from vace_ad import VACE, atomic, load
from vace_ad.atomic import beside, clean_up, moved_away, new_folder, whole_file

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="drafts are locked by flock")

KILLED = """
import os, signal, sys
from vace_ad import tensor_file
true = os.fsync
def fsync(handle):
    true(handle)
    os.kill(os.getpid(), signal.SIGKILL)
os.fsync = fsync
tensor_file.write(sys.argv[1], b"half")
"""


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def killed_while_writing(path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path)], env=os.environ)
    assert ended.returncode == -signal.SIGKILL


def test_the_next_save_removes_what_killed_ones_left_in_the_folder(tmp_path: Path) -> None:
    killed_while_writing(tmp_path / "a.vace")
    mine = {".a.vace.abcdefgh", ".a.vace.tmp", "a.vace-new", "table.csv"}  # of the user
    for name in mine:
        (tmp_path / name).write_text("mine")
    assert len(names(tmp_path)) == 1 + len(mine)
    VACE(**SMALL, random_state=0).fit(waves()).save(tmp_path / "b.vace")
    assert set(names(tmp_path)) == mine | {"b.vace"}
    assert load(tmp_path / "b.vace").channels_


def test_a_draft_of_a_living_process_stays(tmp_path: Path) -> None:
    with whole_file(tmp_path / "a") as one, new_folder(tmp_path / "b") as other:
        one.write_text("one")
        clean_up(tmp_path)
        with whole_file(tmp_path / "c") as third:
            third.write_text("three")
        assert one.exists()
        assert other.exists()
    assert names(tmp_path) == ["a", "c"]
    assert (tmp_path / "a").read_text() == "one"


def test_a_draft_taken_for_a_left_over_before_its_lock_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true, taken = atomic._lock, []

    def lock(path: Path, *, wait: bool) -> int | None:
        if wait and not taken:
            taken.append(path)
            monkeypatch.setattr(atomic, "_lock", true)
            clean_up(tmp_path)  # another process, between creation and lock
            path.touch()
            handle = true(path, wait=True)
            path.unlink()
            return handle
        return true(path, wait=wait)

    monkeypatch.setattr(atomic, "_lock", lock)
    with whole_file(tmp_path / "a") as draft:
        assert taken
        assert draft != taken[0]
        draft.write_text("whole")
    assert (tmp_path / "a").read_text() == "whole"
    assert names(tmp_path) == ["a"]


def test_many_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def write(words: str) -> None:
        try:
            for _ in range(50):
                with whole_file(tmp_path / "a") as draft:
                    draft.write_text(words * 1000)
        except BaseException as error:
            failed.append(error)

    writers = [threading.Thread(target=write, args=(word,)) for word in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert not failed
    assert (tmp_path / "a").read_text() in {word * 1000 for word in "abc"}
    assert names(tmp_path) == ["a"]


def test_what_was_moved_away_comes_back(tmp_path: Path) -> None:
    place = tmp_path / "out"
    place.mkdir()
    (place / "x").write_text("old")
    with pytest.raises(OSError, match="no"), moved_away(place):  # noqa: PT012
        clean_up(tmp_path)  # of another process: it leaves alone what is on its way
        assert not place.exists()
        raise OSError("no")
    place.rename(beside(place, "old"))  # as a process leaves it that is killed there
    clean_up(tmp_path)
    assert (place / "x").read_text() == "old"
    assert names(tmp_path) == ["out"]


def test_a_long_name_and_the_usual_mode(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 120 + ".vace")
    before = os.umask(0o027)
    try:
        with whole_file(path) as draft:
            draft.write_text("x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_pipe_takes_what_comes_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    VACE(**SMALL, random_state=0).fit(waves()).save(pipe)
    reader.join()
    assert got[0]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
