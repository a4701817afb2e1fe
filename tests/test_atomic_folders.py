from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from vace_ad import atomic as folders
from vace_ad.atomic import clean_up, whole_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="folders are locked by flock")


def fill(folder: Path, words: str) -> None:
    for name in ("a", "b"):
        (folder / name).write_text(words)


def read(folder: Path) -> set[str]:
    return {path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("exchange", [True, False])
def test_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    if not exchange:
        monkeypatch.setattr(folders, "_exchange", lambda one, other: False)
    out = tmp_path / "out"
    for words in ("first", "second"):
        with whole_folder(out) as folder:
            fill(folder, words)
        assert read(out) == {words}
    with pytest.raises(RuntimeError), whole_folder(out) as folder:  # noqa: PT012
        fill(folder, "third")
        raise RuntimeError
    assert read(out) == {"second"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs renameat2")
def test_there_is_no_moment_without_results(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with whole_folder(out) as folder:
        fill(folder, "0")
    missing, stop = [], threading.Event()

    def look() -> None:
        while not stop.is_set():
            if not (out / "a").exists():
                missing.append(1)

    watcher = threading.Thread(target=look)
    watcher.start()
    for i in range(100):
        with whole_folder(out) as folder:
            fill(folder, str(i))
    stop.set()
    watcher.join()
    assert not missing


def test_a_link_is_followed(tmp_path: Path) -> None:
    real = tmp_path / "disk" / "results"
    real.parent.mkdir()
    link = tmp_path / "link"
    link.symlink_to(real)
    for words in ("first", "second"):
        with whole_folder(link) as folder:
            fill(folder, words)
        assert link.is_symlink()
        assert read(real) == {words}


CRASH = """
import os, signal, sys
from pathlib import Path
from vace_ad import atomic as folders
when = sys.argv[2]
def rename(self, target, true=Path.rename):
    true(self, target)
    if when == "moving":
        os.kill(os.getpid(), signal.SIGKILL)
if when == "moving":
    folders._exchange = lambda one, other: False
    Path.rename = rename
with folders.whole_folder(Path(sys.argv[1])) as folder:
    (folder / "a").write_text("new")
    if when == "writing":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("when", ["writing", "moving"])
def test_what_a_killed_run_left_is_cleaned_up(tmp_path: Path, when: str) -> None:
    out = tmp_path / "out"
    with whole_folder(out) as folder:
        fill(folder, "old")
    ended = subprocess.run([sys.executable, "-c", CRASH, str(out), when], env=os.environ)
    assert ended.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) > 1
    clean_up(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert read(out) == {"old"}


def test_a_run_under_way_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with whole_folder(out) as folder:
        clean_up(tmp_path)
        fill(folder, "new")
    assert read(out) == {"new"}
