"""The n-th failure, for every n: each call by which a file comes to be fails once, or is the last.

`python -m faults.nth nth-failure.csv` (from tests) counts them by file and kind of failure.
"""

from __future__ import annotations

import argparse
import json
import runpy
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, cast

from faults.strace import Outcome, faulted, starved
from vace_ad import VACE
from vace_ad.app.results import RUN, results_folder
from vace_ad.app.retraining import Versions
from vace_ad.atomic import whole_file
from vace_ad.executors.store import LineStore, read_lines
from vace_ad.feedback import Feedback, Verdict
from vace_ad.fleet.entities import MachineRow
from vace_ad.live.alarms import Alarm
from vace_ad.live.database import JournalRow, Pending
from vace_ad.live.store import Store
from vace_ad.tensor_file import write

# The calls by which a file comes to be; the rest is Python's own memory and threads.
CALLS = (
    "openat", "write", "pwrite64", "fsync", "fdatasync", "rename", "renameat2", "ftruncate",
    "chmod", "close", "unlink", "mkdir", "rmdir", "unlinkat", "flock", "lseek", "fstat", "ioctl",
    "fcntl",
)  # fmt: skip
REFUSED = (
    "openat", "write", "pwrite64", "fsync", "fdatasync", "rename", "renameat2", "ftruncate",
    "mkdir",
)  # fmt: skip
_RECORD = Path(__file__).parents[2] / "benchmarks" / "record.py"
KILLED = "signal=SIGKILL"
NO_MEMORY = "no memory"
FAILURES = (KILLED, "error=EIO", "error=ENOSPC", NO_MEMORY)
MOST = 90  # of one call in one writing
SOME = (1, 2, 3, 5, 13, 34)  # of them, where time is short
ALLOCATIONS = tuple(sorted({round(1.4**k) for k in range(36)}))  # 1 to 130,000


class Case(NamedTuple):
    """A file or folder that is there, another one that comes in its place, and a reader."""

    name: str
    write: Callable[[Path, str], None]  # "old" or "new" into a folder
    read: Callable[[Path], object]
    drafts: bool = True  # whether what a failure leaves behind is a draft, to be removed


class Fault(NamedTuple):
    """One failure and what was there afterwards."""

    call: str
    outcome: Outcome
    found: object


def faults(case: Case, failure: str, *, every: bool = True) -> Iterator[Fault]:
    """Write the new one over the old one with the n-th call failing, for every n or some.

    Raises AssertionError where neither the old one nor the new one is whole afterwards, where a
    success was reported and the new one is not there, and where drafts are left.
    """
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        old = _written(case, top / "old", "old")
        new = _written(case, top / "new", "old", "new")
        assert old != new
        names = sorted(each.name for each in (top / "old").iterdir())
        for call in _calls(failure, every):
            for n in _numbers(failure, every):
                folder = top / f"{call} {n}"
                _written(case, folder, "old")
                outcome = _failing(partial(case.write, folder, "new"), call, failure, n)
                if not outcome.met and failure != NO_MEMORY:
                    break
                found, where = case.read(folder), f"{case.name}, {call} {n}, {failure}, {outcome}"
                assert found in (old, new), f"{where}: {found!r}"
                assert outcome.status or found == new, f"{where}: no error, and not written"
                if outcome.status != 1 or failure == NO_MEMORY:
                    assert _written(case, folder, "new") == new, where  # removes what was left
                if case.drafts:
                    left = sorted(each.name for each in folder.iterdir())
                    assert left == names, f"{where}: {left}"
                if outcome.met:
                    yield Fault(call, outcome, found)
            else:
                assert failure == NO_MEMORY or not every, f"{call} never came to its end"


def _calls(failure: str, every: bool) -> Sequence[str]:
    if failure == NO_MEMORY:
        return ("allocation",)
    if failure == KILLED:  # between two calls that change something, a kill is a kill
        return CALLS if every else (*REFUSED, "unlink", "unlinkat", "rmdir")
    return REFUSED


def _numbers(failure: str, every: bool) -> Sequence[int]:
    if failure == NO_MEMORY:
        return ALLOCATIONS if every else ALLOCATIONS[::3]
    return range(1, MOST + 1) if every else SOME


def _written(case: Case, folder: Path, *words: str) -> object:
    folder.mkdir(exist_ok=True)
    for word in words:
        case.write(folder, word)
    return case.read(folder)


def _failing(action: Callable[[], None], call: str, failure: str, n: int) -> Outcome:
    if failure == NO_MEMORY:
        return starved(action, n)
    return faulted(action, f"inject=?{call}:{failure}:when={n}")


# ------------------------------------------------------------------------------ the files


def _write_results(folder: Path, words: str) -> None:
    with results_folder(folder / "results") as place:
        (place / RUN).write_text(words)
        (place / "events.csv").write_text(words)


def _write_scores(folder: Path, words: str) -> None:
    with whole_file(folder / "s.csv") as draft:
        draft.write_text(words * 5000)


def _write_feedback(folder: Path, words: str) -> None:
    place = {"old": (0, 5), "new": (10, 15)}[words]
    feedback = Feedback.beside(folder / "m.vace")
    if place not in [line.rows for line in feedback.lines]:
        feedback.add(Verdict({"old": "0" * 8, "new": "1" * 8}[words], "fault", rows=place))


def _write_rows(folder: Path, words: str) -> None:
    with LineStore(folder, MachineRow.from_json) as store:
        store.append([MachineRow(words, "ok"), MachineRow(f"{words} 2", "ok")], replace=True)


def _read_rows(folder: Path) -> object:
    with LineStore(folder, MachineRow.from_json) as store:  # as the next run finds them
        assert list(store.rows.values()) == (read_lines(folder, MachineRow.from_json) or [])
        return sorted(store.rows)


def _write_state(folder: Path, words: str) -> None:
    n = {"old": 1, "new": 2}[words]
    store = Store(folder / "state", alone=True)
    try:
        if (store.position or {"at": 0})["at"] >= n:
            return
        alarm = Alarm("a", "p", "anomaly", "", 5)
        text = {"what": "open", "alarm": f"a{n}"}
        store.commit(Pending(
            position={"at": n}, entities={"p": (n, "watching", json.dumps({"n": n}))},
            journal=[JournalRow("p", n, n, b"x" * 3000)],
            snapshots={"p": (n, "m", b"y" * 9000 * n)},
            alarms=[(alarm, {"n": n})], sent={"hook": n - 1}, outbox=[("hook", text, n)],
        ))  # fmt: skip
    finally:
        store.close()


def _read_state(folder: Path) -> object:
    store = Store(folder / "state")
    try:
        return (
            store.position, store.roster(), store.entity("p"), store.snapshot("p"),
            store.journal("p"), store.alarms(), store.queued("hook"),
        )  # fmt: skip
    finally:
        store.close()


def _adopt_version(folder: Path, words: str) -> None:
    content = words.encode() * 3000
    (folder / "m.vace").touch()
    if (folder / "m.vace").read_bytes() != content:
        model = SimpleNamespace(digest=words, save=lambda path: write(path, content))
        detector = SimpleNamespace(model_=model, facts_={"rows": 1})
        Versions(folder / "m.vace").adopt(cast(VACE, detector))


def _read_version(folder: Path) -> object:
    versions = Versions(folder / "m.vace")
    digests = [one.digest for one in versions.every if one.number == versions.active]
    return (folder / "m.vace").read_bytes(), digests


CASES = (
    Case(
        "results folder",
        _write_results,
        lambda folder: [one.read_text() for one in sorted((folder / "results").iterdir())],
    ),
    Case("scores file", _write_scores, lambda folder: (folder / "s.csv").read_text()),
    Case(
        "feedback journal", _write_feedback, lambda folder: Feedback.beside(folder / "m.vace").lines
    ),
    Case("fleet rows", _write_rows, _read_rows, drafts=False),
    Case("model versions", _adopt_version, _read_version),
    Case("watch state", _write_state, _read_state, drafts=False),
)


def model_case() -> Case:
    """Two models, fitted here; a fit is not free."""
    from test_detector import SMALL, waves
    from vace_ad import load

    made = {
        words: VACE(**SMALL, random_state=seed).fit(waves())
        for seed, words in enumerate(("old", "new"))
    }
    return Case(
        "model",
        lambda folder, words: made[words].save(folder / "m.vace"),
        lambda folder: load(folder / "m.vace").model_.digest,
    )


def main() -> None:
    """Count the failures of every kind, by file; a line is appended as soon as it is known."""
    parser = argparse.ArgumentParser(prog="faults.nth", description=__doc__)
    parser.add_argument("out", type=Path, help="CSV file to append to")
    parser.add_argument("--only", help="a file, by its name here: 'watch state'")
    chosen = parser.parse_args()
    append = runpy.run_path(str(_RECORD))["append"]
    cases = [case for case in CASES if chosen.only in (None, case.name)]
    for case in [*cases, *([model_case()] if chosen.only in (None, "model") else [])]:
        for failure in FAILURES:
            met = list(faults(case, failure))
            calls = Counter(fault.call for fault in met)
            line = {
                "file": case.name, "failure": failure.split("=")[-1], "failures": len(met),
                "reported": sum(fault.outcome.status != 0 for fault in met), "broken": 0,
                "by_call": " ".join(f"{call}:{n}" for call, n in calls.items()),
            }  # fmt: skip
            append([line], chosen.out)
            print(line, flush=True)


if __name__ == "__main__":
    main()
