from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from alarms.feeds import Run, Toy, add, feed, run_feed
from alarms.plants import coupled
from vace_ad.alarms.budget import Budget
from vace_ad.alarms.events import plain_event, restored_event
from vace_ad.alarms.recent import READ
from vace_ad.alarms.tracked import KEPT, Member, Tracked
from vace_ad.config import VACEConfig
from vace_ad.frames.segments import Piece, Rules

TRAIN, D, N = 3000, 6, 2000
VALUES = coupled(TRAIN + N, D, seed=0)


@pytest.fixture(scope="module")
def toy() -> Toy:
    return Toy(VALUES[:TRAIN])


def broken(toy: Toy, *faults: tuple[str, int, int, int]) -> np.ndarray:
    """The rows after training with faults (kind, channel, start, end)."""
    rows = VALUES[TRAIN:].copy()
    unit = toy.alarm.cells.spread * toy.alarm.cells.scale
    for kind, channel, start, end in faults:
        if kind == "stuck":
            rows[start:end, channel] = rows[start, channel]
        else:
            rows[start:end, channel] += {"shift": 6, "spike": 15}[kind] * unit[channel]
    return rows


SHIFT, SPIKE, STUCK = ("shift", 2, 900, 960), ("spike", 4, 1300, 1302), ("stuck", 1, 1600, 1660)


@pytest.mark.parametrize("fault", [SHIFT, SPIKE, STUCK])
def test_a_fault_is_one_event_with_its_rows_and_channel(toy: Toy, fault) -> None:
    _, channel, start, end = fault
    run = run_feed(toy, broken(toy, fault))
    (event,) = run.events
    assert abs(event.start - start) <= 6
    assert abs(event.end - end) <= 6
    assert start <= event.alarm <= start + 10
    assert event.start <= event.peak < event.end
    assert event.score == run.surprise[event.peak]
    assert event.score == run.surprise[event.start : event.end].max()
    assert event.shares[0][0] == toy.channels[channel]
    assert event.ratio > 1
    assert event.probability < 1e-4
    assert not event.lasting
    assert run.evidence[event.alarm] > 1
    opened, *_, resolved = run.changes
    assert (opened.what, resolved.what) == ("open", "resolve")
    assert opened.row == opened.event.alarm == event.alarm
    assert opened.event.id == event.id
    assert resolved.row >= event.end - 1


def test_the_suspect_is_told_against_what_was_expected(toy: Toy) -> None:
    rows = broken(toy, SHIFT)
    (event,) = run_feed(toy, rows).events
    first = event.readings[0]
    assert first.channel == event.shares[0][0] == "c"
    assert first.value == rows[event.peak, 2]
    clean = broken(toy)[event.peak, 2]
    assert first.low < clean < first.high < first.value
    assert len(event.readings) == min(len(event.shares), READ)


@pytest.mark.parametrize("amount", [0.1, 1.0, 10.0])
def test_probability_and_severity_do_not_depend_on_the_budget(toy: Toy, amount: float) -> None:
    rows = broken(toy, SHIFT)
    (event,) = run_feed(toy, rows).events
    other = run_feed(toy, rows, budget=Budget(amount, "rows")).events
    (same,) = [one for one in other if one.start <= event.peak < one.end]
    assert same.probability == event.probability
    assert same.severity == event.severity
    assert same.normal_rows == event.normal_rows == toy.alarm.tails.n_rows


def test_the_latest_rows_come_with_their_evidence_and_ranges(toy: Toy) -> None:
    rows = broken(toy, SHIFT)[:940]
    alarms = feed(toy)
    alarms.expect(np.ones(len(rows), bool), None, None)
    taken = alarms.take(Piece(rows, len(rows)))
    latest = alarms.latest(100)
    np.testing.assert_array_equal(latest.values, rows[-100:])
    np.testing.assert_array_equal(latest.evidence, taken.evidence[-100:])
    inside = (latest.values > latest.lower) & (latest.values < latest.upper)
    assert inside[:50].mean() > 0.95
    assert not inside[-30:, 2].any()


def test_faults_apart_in_time_and_channel_are_events_of_their_own(toy: Toy) -> None:
    run = run_feed(toy, broken(toy, SHIFT, SPIKE, STUCK))
    assert [event.shares[0][0] for event in run.events] == ["c", "e", "b"]
    for event, (_, _, start, _) in zip(run.events, (SHIFT, SPIKE, STUCK), strict=True):
        assert abs(event.start - start) <= 6
        assert event.score == run.surprise[event.peak]


@pytest.mark.parametrize("size", [1, 7, 100])
def test_the_same_events_in_chunks(toy: Toy, size: int) -> None:
    rows = broken(toy, SHIFT, SPIKE, STUCK)[800:1800]
    whole = run_feed(toy, rows)
    chunks = run_feed(toy, rows, range(size, len(rows), size))
    assert len(whole.events) == 3
    assert chunks.changes == whole.changes
    assert [one.row for one in chunks.changes] == [one.row for one in whole.changes]
    np.testing.assert_array_equal(chunks.evidence, whole.evidence)
    np.testing.assert_array_equal(chunks.surprise, whole.surprise)


@pytest.mark.parametrize("cuts", [range(1, 1000), range(64, 1000, 64), [990]])
def test_an_event_longer_than_what_is_kept_has_the_same_suspects_in_chunks(
    toy: Toy, cuts: Sequence[int]
) -> None:
    rows = broken(toy, SHIFT, SPIKE, STUCK)[800:1800]
    whole = run_feed(toy, rows, rules=Rules(join=400))
    (event,) = whole.events
    assert event.rows > KEPT
    assert event.shares[0][0] == "c"
    assert run_feed(toy, rows, cuts, rules=Rules(join=400)).changes == whole.changes


def test_an_event_that_is_told_when_its_rows_are_gone_has_suspects(toy: Toy) -> None:
    """Its first rows are no longer kept, or not even its last ones, and nothing is known of it."""
    alarms, run = feed(toy), Run()
    add(alarms, broken(toy, SHIFT)[:1000], run)
    tracked = Tracked(905, 900, *np.full((2, D), 0), {4 * D: Member(900, 906, 1)})
    tracked.shares = np.array([0, 0, 1 << 30, 0, 0, 0])
    tracked.margins = {4 * D: 1.0}
    add(alarms, VALUES[TRAIN : TRAIN + 1100], run)
    alarms._recent.at = 2099
    for end in (906, 1700):
        tracked.lines = {4 * D: Member(900, end, 1)}
        assert alarms._shares(tracked, None)[0][0] == "c"


@pytest.mark.parametrize("at", [40, 130, 165, 600])
def test_a_feed_resumes_in_the_middle_of_an_event(toy: Toy, at: int) -> None:
    rows = broken(toy, SHIFT, SPIKE)[800:1500]
    whole, resumed = run_feed(toy, rows), Run()
    first, second = feed(toy), feed(toy)
    add(first, rows[:at], resumed)
    state = {name: array.copy() for name, array in first.state().items()}
    second.resume(state, json.loads(json.dumps(first.description())))
    add(second, rows[at:], resumed)
    resumed.changes += second.finish().changes
    assert len(whole.events) == 2
    assert resumed.changes == whole.changes
    np.testing.assert_array_equal(resumed.evidence, whole.evidence)


def test_a_state_of_other_channels_is_refused(toy: Toy) -> None:
    narrow = feed(Toy(VALUES[:500, :3]))
    add(narrow, VALUES[:100, :3], Run())
    with pytest.raises(ValueError, match="shape"):
        feed(toy).resume(narrow.state(), narrow.description())


def test_a_state_with_other_nats_is_refused(toy: Toy) -> None:
    first = feed(toy)
    add(first, VALUES[:100], Run())
    (name,) = [name for name in first.state() if name.endswith("nats")]
    for damaged in (np.zeros((99, D), np.int32), np.zeros((100, D))):
        with pytest.raises(ValueError, match="nats"):
            feed(toy).resume({**first.state(), name: damaged}, first.description())


@pytest.mark.parametrize("n", [0, 50])
def test_a_cut_or_rows_without_evidence_end_an_event(toy: Toy, n: int) -> None:
    rows = broken(toy, SHIFT, SPIKE)
    alarms, run = feed(toy), Run()
    add(alarms, rows[:930], run)
    assert [change.what for change in run.changes] == ["open"]
    alarms.expect(np.ones(n, bool), None, None)
    taken = alarms.take(Piece(None, n))
    (change,) = taken.changes
    assert change.what == "resolve"
    assert abs(change.event.end - 930) <= 1
    assert np.isnan(taken.evidence).all()
    assert len(taken.evidence) == len(taken.surprise) == n
    add(alarms, rows[1000:], run)
    (event,) = run.events
    assert abs(event.start - (1300 - 1000 + 930 + n)) <= 6


def test_rows_put_in_for_missing_ones_do_not_shift_row_numbers(toy: Toy) -> None:
    rows = broken(toy, SHIFT, SPIKE)
    came = np.ones(N, bool)
    came[[100, 101, 102, 925, 1100]] = False
    alarms, run = feed(toy), Run()
    add(alarms, rows, run, came)
    run.changes += alarms.finish().changes
    complete = run_feed(toy, rows)
    number = np.cumsum(came) - 1  # the user's number of each row
    assert len(run.events) == 2
    for event, same in zip(run.events, complete.events, strict=True):
        assert event.start == number[same.start]
        assert event.end == number[same.end - 1] + 1
        assert (event.peak, event.alarm) == (number[same.peak], number[same.alarm])
        assert event.score == run.surprise[event.peak]
    assert len(run.evidence) == came.sum()
    np.testing.assert_array_equal(run.evidence, complete.evidence[came])


def test_an_event_that_begins_with_a_missing_row_begins_at_the_next_one(toy: Toy) -> None:
    rows = broken(toy, SHIFT)
    (complete,) = run_feed(toy, rows).events
    came = np.ones(N, bool)
    came[complete.start] = False
    alarms, run = feed(toy), Run()
    add(alarms, rows, run, came)
    (event,) = run.events
    assert (event.start, event.end) == (complete.start, complete.end - 1)


def test_events_have_the_times_of_their_rows(toy: Toy) -> None:
    times = np.datetime64("2026-01-01", "ns") + np.arange(N) * np.timedelta64(60, "s")
    alarms = feed(toy)
    alarms.expect(np.ones(N, bool), times, None)
    taken = alarms.take(Piece(broken(toy, SHIFT), N))
    event = taken.changes[-1].event
    assert event.start_time == times[event.start]
    assert event.end_time == times[event.end - 1]
    assert event.peak_time == times[event.peak]
    assert event.alarm_time == times[event.alarm]
    assert restored_event(json.loads(json.dumps(plain_event(event)))) == event


def test_rules(toy: Toy) -> None:
    rows = broken(toy, SHIFT, SPIKE, STUCK)
    first, second, third = run_feed(toy, rows).events
    (joined,) = run_feed(toy, rows, rules=Rules(join=400)).events
    assert joined.id == first.id
    long = run_feed(toy, rows, rules=Rules(min_length=30))
    assert [event.id for event in long.events] == [first.id, third.id]
    assert [change.what for change in long.changes if change.what != "update"] == [
        "open", "resolve", "open", "resolve",
    ]  # fmt: skip
    cool = run_feed(toy, rows, rules=Rules(cooldown=450)).events
    assert [event.id for event in cool] == [first.id, third.id]
    assert second.start < first.end + 450 <= third.start


def test_a_joined_event_has_the_rows_of_all_that_was_joined(toy: Toy) -> None:
    rows = broken(toy, SHIFT, SPIKE, STUCK)
    first, _, third = run_feed(toy, rows).events
    (joined,) = run_feed(toy, rows, rules=Rules(join=400)).events
    assert (joined.start, joined.end) == (first.start, third.end)


def test_limits_do_not_follow_without_adapt(toy: Toy) -> None:
    spikes = [("spike", 2, at, at + 1) for at in range(200, N, 100)]
    rows = broken(toy, *spikes)
    fixed = replace(toy.config, adapt=False)
    follows, stays = run_feed(toy, rows), run_feed(Toy(VALUES[:TRAIN], fixed), rows)
    assert len(stays.events) == len(spikes)
    assert len(follows.events) < len(spikes)


@pytest.mark.parametrize("channel", [0, 2, 4])
def test_a_level_that_stays_becomes_the_new_normal(channel: int) -> None:
    toy = Toy(VALUES[:TRAIN], VACEConfig(new_normal_after=150))
    event, *more = run_feed(toy, broken(toy, ("shift", channel, 900, N))).events
    assert event.lasting
    assert all(one.ratio < 1.15 for one in more)  # the new level is learned from a few rows
    assert abs(event.start - 900) <= 15
    assert abs(event.end - event.start - 150) <= 15


def test_a_standstill_that_stays_is_told_once() -> None:
    toy = Toy(VALUES[:TRAIN], VACEConfig(new_normal_after=150))
    first, *more = run_feed(toy, broken(toy, ("stuck", 2, 900, N))).events
    assert (first.signal, first.lasting, abs(first.start - 900) <= 6) == ("stuck", True, True)
    assert "stuck" not in {event.signal for event in more}  # it no longer goes with the others


def test_a_standstill_after_one_that_became_normal_is_told_in_any_chunks() -> None:
    toy = Toy(VALUES[:TRAIN], VACEConfig(new_normal_after=150))
    rows = broken(toy, ("stuck", 2, 300, 800), ("stuck", 2, 830, 1000))[:1000]
    singly = run_feed(toy, rows, range(1, len(rows)))
    assert [event.signal for event in singly.events].count("stuck") == 2
    assert run_feed(toy, rows, [790, 835]).changes == singly.changes


def test_an_event_begins_before_its_alarm() -> None:
    toy = Toy(VALUES[:TRAIN], VACEConfig(new_normal_after=150))
    event = run_feed(toy, broken(toy, ("stuck", 4, 900, N))).events[0]
    assert event.start <= event.alarm < event.end


def test_what_stays_is_one_event_when_nothing_becomes_normal() -> None:
    toy = Toy(VALUES[:TRAIN], VACEConfig(new_normal_after=0))
    event = run_feed(toy, broken(toy, ("shift", 2, 900, N))).events[0]
    assert event.rows > 250
    assert not event.lasting


def test_a_hushed_event_ends_as_accepted(toy: Toy) -> None:
    rows = broken(toy, SHIFT)
    alarms, run = feed(toy), Run()
    add(alarms, rows[:930], run)
    alarms.suppress()
    add(alarms, rows[930:], run)
    assert [change.what for change in run.changes] == ["open", "accepted"]
    assert run.changes[1].event.kind == "accepted"
    assert abs(run.changes[1].event.end - 960) <= 6


def test_a_restart_forgets_alarms_but_not_row_numbers(toy: Toy) -> None:
    rows = broken(toy, SHIFT, SPIKE)
    alarms, run = feed(toy), Run()
    add(alarms, rows[:1200], run)
    alarms.restart()
    add(alarms, rows[1200:], run)
    assert abs(run.events[1].start - 1300) <= 6
