from __future__ import annotations

import json

import numpy as np
import pytest

from alarms.feeds import Toy
from alarms.plants import coupled
from vace_ad.alarms.alarm_stream import Change
from vace_ad.alarms.fixed_threshold import ScoreFeed
from vace_ad.frames.segments import Rules, runs_above

TRAIN, N = 1000, 400
VALUES = coupled(TRAIN + N, 4, seed=1)
LIMIT = 2.0


@pytest.fixture(scope="module")
def toy() -> Toy:
    return Toy(VALUES[:TRAIN])


def scores() -> np.ndarray:
    scores = np.ones(N)
    scores[50:60], scores[64:70], scores[200:202], scores[390:] = 3.0, 4.0, 5.0, 3.0
    scores[100] = np.nan
    return scores


def run(toy: Toy, rules: Rules, size: int = N) -> list[Change]:
    feed, rows, score = ScoreFeed(toy, LIMIT, rules), VALUES[TRAIN:], scores()
    changes: list[Change] = []
    for at in range(0, N, size):
        changes += feed.add(rows[at : at + size], None, score[at : at + size])
    return [*changes, *feed.finish()]


@pytest.mark.parametrize(
    "rules", [Rules(), Rules(join=5), Rules(min_length=3), Rules(cooldown=150), Rules(5, 3, 150)]
)
def test_events_are_the_runs_above_the_threshold(toy: Toy, rules: Rules) -> None:
    found = [change.event for change in run(toy, rules) if change.what == "resolve"]
    expected = runs_above(scores(), LIMIT, rules).tolist()
    assert [[event.start, event.end] for event in found] == expected
    for event in found:
        assert event.score == np.nanmax(scores()[event.start : event.end]) == scores()[event.peak]
        assert event.shares


@pytest.mark.parametrize("size", [1, 7, 100])
def test_the_same_in_chunks(toy: Toy, size: int) -> None:
    rules = Rules(join=5, min_length=3)
    assert run(toy, rules, size) == run(toy, rules)


@pytest.mark.parametrize("at", [30, 52, 62, 201, 395])
def test_a_score_feed_resumes_in_an_event(toy: Toy, at: int) -> None:
    rules, rows, score = Rules(join=5), VALUES[TRAIN:], scores()
    first, second = ScoreFeed(toy, LIMIT, rules), ScoreFeed(toy, LIMIT, rules)
    changes = [*first.add(rows[:at], None, score[:at])]
    second.resume(first.state(), json.loads(json.dumps(first.description())))
    changes += [*second.add(rows[at:], None, score[at:]), *second.finish()]
    assert repr(changes) == repr(run(toy, rules))  # NaN is not equal to itself


def test_a_state_of_other_channels_is_refused(toy: Toy) -> None:
    narrow = ScoreFeed(Toy(VALUES[:TRAIN, :2]), LIMIT, None)
    with pytest.raises(ValueError, match=r"shape \(0, 2\)"):
        ScoreFeed(toy, LIMIT, None).resume(narrow.state(), None)


def test_a_hushed_event_says_no_more(toy: Toy) -> None:
    feed = ScoreFeed(toy, LIMIT, Rules())
    (opened,) = feed.add(VALUES[TRAIN : TRAIN + 55], None, scores()[:55])
    assert opened.what == "open"
    feed.suppress()
    assert feed.add(VALUES[TRAIN + 70 : TRAIN + 90], None, scores()[70:90]) == ()
    assert feed.finish() == ()


def test_a_higher_score_is_more_severe_by_the_calibration(toy: Toy) -> None:
    events = []
    for height in (2.5, 3.5, 9.0):
        one = np.ones(N)
        one[50:55] = height
        loud = ScoreFeed(toy, LIMIT, None)
        events.append([*loud.add(VALUES[TRAIN:], None, one), *loud.finish()][-1].event)
    assert [e.severity for e in events] == sorted({e.severity for e in events})
    for event, height in zip(events, (2.5, 3.5, 9.0), strict=True):
        assert event.probability == toy.calibration.tail.probability(height)
        assert event.normal_rows == toy.calibration.n_rows
