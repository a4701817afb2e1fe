"""Killed at any system call, or refused by the disk at any: the old file, or the new one, whole."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.runs import frame
from faults.nth import CASES, KILLED, NO_MEMORY, Case, faults, model_case
from faults.strace import needed
from vace_ad.executors.store import LineStore, read_lines
from vace_ad.fleet.entities import MachineRow


@pytest.fixture(autouse=True)
def quiet_forks() -> Iterator[None]:
    needed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forks of a process with threads
        yield


@pytest.fixture(scope="module")
def model() -> Case:
    return model_case()


@pytest.mark.parametrize("failure", [KILLED, "error=ENOSPC", NO_MEMORY])
def test_a_model_is_the_old_or_the_new(model: Case, failure: str) -> None:
    check(model, failure)


@pytest.mark.parametrize("failure", [KILLED, "error=EIO", NO_MEMORY])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_file_is_the_old_or_the_new(case: Case, failure: str) -> None:
    check(case, failure)


def check(case: Case, failure: str) -> None:
    met = list(faults(case, failure, every=False))
    assert len(met) >= 4, "hardly any call was met"
    assert any(fault.outcome.status for fault in met)


def test_an_action_that_writes_in_place_is_caught() -> None:
    def write(folder: Path, words: str) -> None:
        (folder / "s.csv").write_text(words * 5000)

    careless = Case("careless", write, lambda folder: (folder / "s.csv").read_text())
    with pytest.raises(AssertionError, match="careless"):
        list(faults(careless, "error=ENOSPC", every=False))


def test_rows_of_a_run_stay_readable_when_the_disk_takes_half_a_line(tmp_path: Path) -> None:
    import resource

    rows = [MachineRow(f"machine {k}", "ok") for k in range(3)]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with LineStore(tmp_path, MachineRow.from_json) as store:
        store.append(rows[:1])
        size = (tmp_path / "rows.jsonl").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
        try:
            with pytest.raises(OSError, match="too large"):
                store.append(rows[1:2])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        store.append(rows[2:])
        assert [*store.rows.values()] == [rows[0], rows[2]]
    assert read_lines(tmp_path, MachineRow.from_json) == [rows[0], rows[2]]


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
