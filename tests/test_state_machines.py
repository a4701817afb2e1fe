"""Any order of add, save, resume, accept, undo and update gives what a plain replay gives."""

from __future__ import annotations

import tempfile
from copy import deepcopy
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from vace_ad import VACE, load
from vace_ad.app.retraining import Versions
from vace_ad.executors.store import LineStore, read_lines
from vace_ad.feedback import Feedback, Verdict
from vace_ad.fleet.entities import MachineRow
from vace_ad.stream import Stream

TRAIN, N = 400, 360
TIMES = np.datetime64("2026-01-01", "ns") + np.arange(TRAIN + N) * np.timedelta64(1, "m")


def run(machine, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, derandomize=True, database=None
        ),
    )


@cache
def table() -> np.ndarray:
    """Rows of a plant whose second channel is off for a while, again and again."""
    rng = np.random.default_rng(3)
    hidden = rng.normal(size=TRAIN + N)
    rows = hidden[:, None] * [1, 2, -1] + 0.2 * rng.normal(size=(TRAIN + N, 3))
    for start in range(TRAIN + 60, TRAIN + N, 70):
        rows[start : start + 12, 1] += 9
    return rows


def frame(start: int, end: int) -> pl.DataFrame:
    columns = dict(zip("abc", table()[start:end].T, strict=True))
    return pl.DataFrame({"time": TIMES[start:end], **columns})


@cache
def fitted() -> VACE:
    return VACE(patch_length=16, encoders=1).fit(frame(0, TRAIN))


@cache
def patterns():
    """How the first two events look."""
    detector, rows = deepcopy(fitted()), frame(TRAIN, TRAIN + N)
    found = [detector.accept(each, rows).pattern for each in ((60, 72), (130, 142))]
    assert None not in found
    return found


class StreamMachine(RuleBasedStateMachine):
    """A live stream, kept and resumed at any row, against one that is never interrupted."""

    def __init__(self) -> None:
        super().__init__()
        self.stream, self.at = fitted().stream(), 0
        self.done: list[tuple] = []  # for the replay
        self.answers: list = []

    @rule(n=st.integers(1, 60))
    def add(self, n):
        rows = table()[TRAIN + self.at :][:n]
        if len(rows):
            self.answers.append(self.stream.add(rows, TIMES[TRAIN + self.at :][:n]))
            self.done.append(("add", self.at, self.at + len(rows)))
            self.at += len(rows)

    @rule(trusted=st.booleans())
    def resume(self, trusted):
        self.stream = Stream.from_bytes(self.stream.to_bytes(), fitted(), trusted=trusted)

    @rule()
    def resume_from_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            self.stream.save(Path(folder) / "s.state")
            self.stream = Stream.resume(Path(folder) / "s.state", fitted())

    @rule(which=st.sets(st.integers(0, 1)), suppress=st.booleans())
    def accept(self, which, suppress):  # none undoes it all
        self.stream.accept([patterns()[k] for k in sorted(which)], suppress=suppress)
        self.done.append(("accept", sorted(which), suppress))

    def teardown(self):
        again, answers = fitted().stream(), []
        for what, *given in self.done:
            if what == "add":
                part = slice(TRAIN + given[0], TRAIN + given[1])
                answers.append(again.add(table()[part], TIMES[part]))
            else:
                again.accept([patterns()[k] for k in given[0]], suppress=given[1])
        ends = [(*these, one.finish()) for these, one in
                ((self.answers, self.stream), (answers, again))]  # fmt: skip
        for one, other in zip(*ends, strict=True):
            assert one.first == other.first
            assert np.array_equal(one.scores, other.scores, equal_nan=True)
            assert np.array_equal(one.provisional, other.provisional, equal_nan=True)
            assert [(c.what, c.event.start, c.event.end, c.event.score) for c in one.changes] == [
                (c.what, c.event.start, c.event.end, c.event.score) for c in other.changes
            ]


def test_a_stream_that_is_kept_and_resumed() -> None:
    run(StreamMachine, 5, 8)


class DetectorMachine(RuleBasedStateMachine):
    """Verdicts and updates on a model that is saved and loaded at any time."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.detector = deepcopy(fitted())
        self.done: list[tuple] = []
        self._folder = tempfile.TemporaryDirectory()

    @rule(target=ids, start=st.sampled_from((10, 60, 130, 200)), verdict=st.sampled_from(
        ("normal", "fault")))  # fmt: skip
    def accept(self, start, verdict):
        self.done.append(("accept", start, verdict))
        return _do(self.detector, "accept", start, verdict)

    @rule(id=consumes(ids))
    def undo(self, id):
        if id in {line.id for line in self.detector.feedback.active}:
            self.done.append(("undo", id))
            _do(self.detector, "undo", id)

    @precondition(lambda self: sum(one[0] == "update" for one in self.done) < 2)
    @rule(start=st.sampled_from((0, 120, 240)))
    def update(self, start):
        self.done.append(("update", start))
        _do(self.detector, "update", start)

    @rule()
    def save_and_load(self):
        path = Path(self._folder.name) / "m.vace"
        self.detector.save(path)
        self.detector = load(path)

    def teardown(self):
        self._folder.cleanup()
        again = deepcopy(fitted())
        for what in self.done:
            _do(again, *what)
        assert self.detector.model_.digest == again.model_.digest
        active = [[line.id for line in one.feedback.active] for one in (self.detector, again)]
        assert active[0] == active[1]


def _do(detector: VACE, what: str, *given):
    if what == "accept":
        start, verdict = given
        span = str(TIMES[TRAIN + start]), str(TIMES[TRAIN + start + 11])
        return detector.accept(span, verdict=verdict).id
    if what == "undo":
        return detector.undo(given[0])
    return detector.update(frame(TRAIN + given[0], TRAIN + given[0] + 120))


def test_a_model_that_is_told_and_updated() -> None:
    run(DetectorMachine, 3, 5)


class FeedbackMachine(RuleBasedStateMachine):
    """Two people with the same file, one of whom may look at it again at any time."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.model = Path(self._folder.name) / "a.vace"
        self.hands = [Feedback.beside(self.model) for _ in range(2)]
        self.lines: list[tuple[str, str]] = []  # the verdict's id, and "add" or "undo"

    @property
    def holds(self) -> list[str]:
        active: dict[str, None] = {}
        for id, what in self.lines:
            if what == "undo":
                active.pop(id, None)
            else:
                active[id] = None
        return list(active)

    @rule(hand=st.integers(0, 1), place=st.integers(0, 4), fault=st.booleans())
    def add(self, hand, place, fault):
        line = Verdict.new("fault" if fault else "normal", rows=(place * 10, place * 10 + 5))
        self.hands[hand].add(line)
        self.lines.append((line.id, "add"))

    @precondition(lambda self: any(hand.active for hand in self.hands))
    @rule(data=st.data(), hand=st.integers(0, 1))
    def undo(self, data, hand):
        known = [line.id for line in self.hands[hand].active]
        if known:
            id = data.draw(st.sampled_from(known))
            self.hands[hand].undo(id)
            self.lines.append((id, "undo"))

    @rule(hand=st.integers(0, 1))
    def look_again(self, hand):
        self.hands[hand] = Feedback.beside(self.model)

    @rule(name=st.sampled_from(("a", "b", "c")))
    def save_elsewhere(self, name):
        """The model is saved under another name, where nothing is; both hands go along."""
        to = self.model.with_name(f"{name}.vace")
        if Feedback.beside(to).lines and to != self.model:
            return
        self.hands[0] = Feedback.beside(self.model)
        self.hands[0].move(to)
        self.model, self.hands[1] = to, Feedback.beside(to)

    @invariant()
    def the_file_holds_what_was_said(self):
        assert [line.id for line in Feedback.beside(self.model).active] == self.holds

    def teardown(self):
        self._folder.cleanup()


def test_feedback_of_two_people() -> None:
    run(FeedbackMachine, 20, 12)


class RunMachine(RuleBasedStateMachine):
    """The rows of a fleet run: written, replaced, torn by a kill, continued."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)
        self.store = LineStore(self.folder, MachineRow.from_json).__enter__()
        self.rows: dict[str, MachineRow] = {}

    @rule(names=st.lists(st.sampled_from("abcdef"), max_size=4, unique=True), n=st.integers(0, 99))
    def append(self, names, n):
        fresh = [MachineRow(name, "ok", rows=n) for name in names]
        self.store.append(fresh, replace=True)
        self.rows |= {row.machine: row for row in fresh}

    @rule(half=st.binary(min_size=1, max_size=20))
    def kill(self, half):
        """The writer dies within a line; the next one goes on."""
        self.store.__exit__(None, None, None)
        with (self.folder / "rows.jsonl").open("ab") as file:
            file.write(half.replace(b"\n", b"?"))
        self.store = LineStore(self.folder, MachineRow.from_json).__enter__()

    @invariant()
    def every_row_is_there(self):
        found = read_lines(self.folder, MachineRow.from_json) or []
        assert {row.machine: row for row in found} == self.rows == self.store.rows

    def teardown(self):
        self.store.__exit__(None, None, None)
        self._folder.cleanup()


def test_rows_of_a_run() -> None:
    run(RunMachine, 20, 12)


class VersionsMachine(RuleBasedStateMachine):
    """Versions of a model: adopted, put back, used again, fitted over; read anew at any time."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.model = Path(self._folder.name) / "m.vace"
        self.model.write_bytes(b"first")
        self.versions = Versions(self.model)
        self.kept: list[bytes] = []
        self.used = 0

    @rule(n=st.integers(0, 10**6))
    def adopt(self, n):
        content = f"{n} of {len(self.kept)}".encode()
        model = SimpleNamespace(digest=str(n), save=lambda path: Path(path).write_bytes(content))
        version = self.versions.adopt(SimpleNamespace(model_=model, facts_={"rows": n}))
        self.kept.append(content)
        self.used = len(self.kept)
        assert version.number == self.used

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def use(self, data):
        self.used = data.draw(st.integers(1, len(self.kept)))
        self.versions.use(self.used)

    @precondition(lambda self: self.used > 1)
    @rule()
    def back(self):
        self.used -= 1
        assert self.versions.back().number == self.used

    @rule()
    def fit_over_it(self):
        self.model.write_bytes(b"fitted since")
        self.used = 0

    @rule()
    def read_anew(self):
        self.versions = Versions(self.model)

    @invariant()
    def the_file_is_the_version_in_use(self):
        assert self.versions.active == self.used
        assert not self.used or self.model.read_bytes() == self.kept[self.used - 1]
        assert [one.number for one in self.versions.every] == list(range(1, len(self.kept) + 1))

    def teardown(self):
        self._folder.cleanup()


def test_versions_of_a_model() -> None:
    run(VersionsMachine, 20, 12)
