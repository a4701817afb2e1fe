"""Accepted once, recognised again: on a table and on a stream; other faults are seen as ever."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from feedback.maintenance import (
    LENGTH,
    SERVICES,
    TIME,
    TRAIN,
    frame,
    near,
    plant,
    service,
    serviced,
)
from vace_ad import VACE, load
from vace_ad.errors import FeedbackError, VaceWarning


@pytest.fixture(scope="module")
def fitted() -> VACE:
    return VACE(patch_length=24, encoders=1).fit(frame(plant()[:TRAIN]))


@pytest.fixture(scope="module")
def kept(fitted: VACE, tmp_path_factory) -> Path:
    """The file of a model that has the first maintenance accepted."""
    path = tmp_path_factory.mktemp("accepting") / "pump.vace"
    fitted.save(path)
    when = str(TIME[SERVICES[0]]), str(TIME[SERVICES[0] + LENGTH])
    load(path).accept(when, frame(serviced(), TRAIN), note="service")
    return path


@pytest.fixture(scope="module")
def detector(kept: Path) -> VACE:
    """To be read only."""
    return load(kept)


@pytest.fixture
def own(kept: Path, tmp_path) -> Path:
    """A copy that a test may change."""
    return Path(copytree(kept.parent, tmp_path / "own")) / kept.name


def live(detector: VACE, values: np.ndarray, chunk: int = 37):
    stream, changes = detector.stream(), []
    for a in range(TRAIN, len(values), chunk):
        rows = values[a : a + chunk]
        changes += stream.add(rows, TIME[a : a + len(rows)]).changes
    changes += stream.finish().changes
    return changes


def opened(changes):
    return [change.event for change in changes if change.what == "open"]


def test_a_maintenance_alarms_until_it_is_accepted(fitted: VACE, detector: VACE) -> None:
    table = frame(serviced(), TRAIN)
    before, after = fitted.detect(table), detector.detect(table)
    assert all(near(before.events, row) for row in SERVICES)
    assert not before.accepted
    assert not any(near(after.events, row) for row in SERVICES)
    assert all(near(after.accepted, row) for row in SERVICES)  # not silently dropped
    assert {event.kind for event in after.accepted} == {"accepted"}
    assert {event.like for event in after.accepted} == {detector.feedback.active[0].id}


def test_a_stream_gives_the_same_answer(fitted: VACE, detector: VACE) -> None:
    later = SERVICES[1:]
    values = serviced()
    assert all(near(opened(live(fitted, values)), row, LENGTH + 20) for row in later)
    changes = live(detector, values)
    assert not any(near(opened(changes), row, LENGTH + 20) for row in later)
    told = [change.event for change in changes if change.what == "accepted"]
    assert all(near(told, row) for row in later)


def test_chunks_do_not_matter(detector: VACE) -> None:
    values = serviced()[: SERVICES[1] + 200]

    def accepted(chunk: int) -> list[tuple[int, int]]:
        changes = live(detector, values, chunk)
        return [(c.event.start, c.event.end) for c in changes if c.what == "accepted"]

    assert len(accepted(37)) >= 2
    assert accepted(1) == accepted(8) == accepted(500) == accepted(37)


def spoil(kind: str) -> tuple[np.ndarray, int]:
    """Rows with a fault about the third maintenance, and the row where it begins."""
    values, row = serviced(), SERVICES[2]
    spread = values[:TRAIN].std(axis=0)
    if kind == "another channel":
        values[row + 5 : row + 35, 3] += 6 * spread[3]
    elif kind == "twice the size":
        values[row : row + 60] = plant()[row : row + 60]
        service(values, row, LENGTH, 2.0)
    elif kind == "does not end":
        values[row + 20 : row + 200] = plant()[row + 20 : row + 200]
        values[row + 20 : row + 200, 1] -= 6 * spread[1]
        values[row + 20 : row + 200, 2] -= 5 * spread[2]
    elif kind == "one channel of two":
        values[row : row + 60, 2] = plant()[row : row + 60, 2]
    elif kind == "other way":
        values[row : row + 60] = plant()[row : row + 60]
        service(values, row, LENGTH, -1.0)
    return values, row


FAULTS = ["another channel", "twice the size", "does not end", "one channel of two", "other way"]


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_about_an_accepted_pattern_still_alarms(detector: VACE, kind: str) -> None:
    values, row = spoil(kind)
    rows = 200 if kind == "does not end" else LENGTH + 10
    assert near(detector.detect(frame(values, TRAIN)).events, row, rows)
    assert near(opened(live(detector, values)), row, rows)


def test_blame_of_a_fault_on_top_names_its_own_channel(detector: VACE) -> None:
    values, row = spoil("another channel")
    events = detector.detect(frame(values, TRAIN)).events
    on_top = [e for e in events if near([e], row)]
    assert "heat" in [name for name, _ in on_top[0].shares[:2]]


def test_undo_brings_the_alarm_back_and_outlives_a_restart(own: Path) -> None:
    table = frame(serviced(), TRAIN)
    again = load(own)
    assert not near(again.detect(table).events, SERVICES[2])
    again.undo(again.feedback.active[0].id)
    assert near(again.detect(table).events, SERVICES[2])
    assert near(load(own).detect(table).events, SERVICES[2])
    with pytest.raises(FeedbackError, match="no feedback has the id"):
        again.undo("ffffffff")


def test_scores_do_not_change_by_feedback(fitted: VACE, detector: VACE) -> None:
    table = frame(serviced(), TRAIN)
    np.testing.assert_array_equal(fitted.score(table), detector.score(table))


def test_a_state_goes_on_in_the_middle_of_a_pattern(detector: VACE) -> None:
    from vace_ad import Stream

    values, at = serviced(), SERVICES[1] + 15
    whole, part = detector.stream(), detector.stream()
    first = list(whole.add(values[TRAIN:at], TIME[TRAIN:at]).changes)
    assert first == list(part.add(values[TRAIN:at], TIME[TRAIN:at]).changes)
    part = Stream.from_bytes(part.to_bytes(), detector)
    rest = slice(at, at + 385)
    one, two = (stream.add(values[rest], TIME[rest]) for stream in (whole, part))
    assert one.changes == two.changes
    np.testing.assert_array_equal(one.provisional, two.provisional)
    assert any(change.what == "accepted" for change in two.changes)


def test_an_open_alarm_that_is_called_normal_says_no_more(fitted: VACE) -> None:
    values, at = serviced(), SERVICES[1] + 15
    stream = fitted.stream()
    stream.add(values[TRAIN:at], TIME[TRAIN:at])
    stream.accept((), suppress=True)
    changes = stream.add(values[at : at + 300], TIME[at : at + 300]).changes
    ended = [change for change in changes if change.what == "accepted"]
    assert len(ended) == 1
    assert ended[0].pattern is not None
    assert not [c for c in changes if c.what == "resolve" and near([c.event], SERVICES[1])]


def test_what_left_no_level_is_kept_and_said_to_come_again(own: Path) -> None:
    detector, table = load(own), frame(plant(), TRAIN)
    with pytest.warns(VaceWarning, match="cannot be recognised"):
        line = detector.accept((100, 140), table)
    assert line.pattern is None
    assert line in detector.feedback.active
