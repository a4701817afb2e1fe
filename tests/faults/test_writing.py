"""Killed at any system call, or refused by the disk at any: the old file, or the new one, whole."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.runs import frame
from faults.strace import faulted, needed
from test_detector import SMALL, waves
from vace_ad import VACE, load
from vace_ad.atomic import clean_up, whole_file, whole_folder

# The calls by which a file comes to be; the rest is Python's own memory and threads.
CALLS = (
    "openat", "write", "fsync", "rename", "renameat2", "chmod", "close", "unlink", "mkdir",
    "rmdir", "unlinkat", "flock", "lseek", "fstat", "ioctl", "fcntl",
)  # fmt: skip
MOST = 60  # of one of them in one writing


@pytest.fixture(autouse=True)
def quiet_forks() -> Iterator[None]:
    needed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forks of a process with threads
        yield


def every_call(
    action: Callable[[], None],
    reset: Callable[[], object],
    fault: str = "signal=SIGKILL",
    calls: Sequence[str] = CALLS,
) -> Iterator[str]:
    """Run the action with a fault at each call in turn; yields after those that felt it.

    strace counts the calls of each name by themselves.
    """
    met = 0
    for call in calls:
        for n in range(1, MOST):
            reset()
            if faulted(action, f"inject=?{call}:{fault}:when={n}") == 0:
                break
            met += 1
            yield call
        else:
            raise AssertionError(f"{call} never came to its end")
    assert met >= 4, "hardly any call was met"


class Models(NamedTuple):
    path: Path  # where the old one lies, and the new one goes
    old: VACE
    new: VACE

    def identity(self) -> str:
        return load(self.path).model_.digest


@pytest.fixture
def models(tmp_path: Path) -> Models:
    made = (VACE(**SMALL, random_state=seed).fit(waves()) for seed in (0, 1))
    return Models(tmp_path / "m.vace", *made)


def test_a_model_killed_at_any_call_is_the_old_or_the_new(models: Models) -> None:
    both = {models.old.model_.digest, models.new.model_.digest}
    models.old.save(models.path)
    before, seen = models.path.read_bytes(), set()
    for _ in every_call(
        lambda: models.new.save(models.path), lambda: models.path.write_bytes(before)
    ):
        seen.add(models.identity())
    assert len(both) == 2
    assert models.old.model_.digest in seen <= both
    models.new.save(models.path)  # removes what the killed ones left
    assert models.identity() == models.new.model_.digest
    assert [each.name for each in models.path.parent.iterdir()] == ["m.vace"]


@pytest.mark.parametrize("error", ["ENOSPC", "EIO", "EROFS"])
def test_a_model_refused_by_the_disk_leaves_the_old_one_and_nothing_else(
    models: Models, error: str
) -> None:
    models.old.save(models.path)
    before, met = models.path.read_bytes(), set()
    for call in every_call(
        lambda: models.new.save(models.path),
        lambda: models.path.write_bytes(before),
        f"error={error}",
        ("openat", "write", "fsync", "rename", "chmod"),
    ):
        met.add(call)
        assert models.path.read_bytes() == before
        assert [each.name for each in models.path.parent.iterdir()] == ["m.vace"]
    assert met >= {"openat", "write", "fsync", "rename"}


def test_a_results_folder_killed_at_any_call_is_the_old_or_the_new(tmp_path: Path) -> None:
    place = tmp_path / "results"

    def publish(words: str) -> None:
        with whole_folder(place) as folder:
            (folder / "a.txt").write_text(words)
            (folder / "b.txt").write_text(words)

    for _ in every_call(lambda: publish("new"), lambda: publish("old")):
        found = [each.read_text() for each in place.iterdir()]
        assert found in (["old"] * 2, ["new"] * 2)
        clean_up(tmp_path)
        assert [each.name for each in tmp_path.iterdir()] == ["results"]


def test_a_scores_file_killed_at_any_call_is_the_old_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"

    def write(words: str) -> None:
        with whole_file(path) as draft:
            draft.write_text(words * 5000)

    for _ in every_call(lambda: write("new"), lambda: write("old")):
        assert path.read_text() in ("old" * 5000, "new" * 5000)
    write("new")
    assert [each.name for each in tmp_path.iterdir()] == ["s.csv"]


def vace(*arguments: object, **how: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from vace_ad.cli.main import main; main()"]
    return subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, check=False, **how
    )


DETECT = ("--patch-length", "16", "--set", "encoders=1", "--set", "engine=numpy")


def test_a_full_disk_keeps_the_earlier_results(tmp_path: Path) -> None:
    import resource

    frame().write_csv(tmp_path / "t.csv")
    options = ["detect", tmp_path / "t.csv", "--out", tmp_path / "r", *DETECT]
    assert vace(*options).returncode == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "r").iterdir()}
    most = max(map(len, before.values())) // 2

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    answer = vace(*options, preexec_fn=limited)
    assert answer.returncode == 2, answer.stderr
    assert answer.stderr.count("\n") == 1
    assert {path.name: path.read_bytes() for path in (tmp_path / "r").iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r", "t.csv"]


def test_a_read_only_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    frame().write_csv(tmp_path / "t.csv")
    (tmp_path / "closed").chmod(0o555)
    obey = ["setpriv", "--bounding-set=-dac_override", "--"] if os.geteuid() == 0 else []
    command = [*obey, sys.executable, "-c", "from vace_ad.cli.main import main; main()"]
    probe = subprocess.run([*obey, "touch", tmp_path / "closed" / "x"], capture_output=True)
    if probe.returncode == 0:
        pytest.skip("this user may write to folders that are read-only")
    for more in (["detect", "--out", "closed/r"], ["fit", "--model", "closed/m.vace"]):
        line = [more[0], "t.csv", *more[1:], *DETECT]
        answer = subprocess.run(
            [*command, *line], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert answer.returncode == 2, answer.stderr
        assert answer.stderr.count("\n") == 1
        assert not list((tmp_path / "closed").iterdir())
