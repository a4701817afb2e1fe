from __future__ import annotations

import json

import numpy as np
import pytest

from alarms.feeds import line_of
from vace_ad.alarms.constants import (
    DOUBT,
    LOW_PRICE,
    MIDDLE_PRICE,
    MOST_MARGIN,
    REST,
    SCORE_PRICE,
)
from vace_ad.alarms.evidence import UNIT, whole
from vace_ad.alarms.scan import Limits, Tails, describe
from vace_ad.alarms.tracked import KEPT, Notice
from vace_ad.alarms.tracker import REPORT_AGAIN, SLAB, Tracker

D = 3
LINES = 4 * D + 1
N = 1500
RATE = 0.5e-4
STUCK = slice(3 * D, 4 * D)


def noise(n: int, seed: int) -> np.ndarray:
    nats = whole(np.random.default_rng(seed).exponential(size=(n, LINES)))
    nats[:, STUCK], nats[:, -1] = 0, -UNIT  # no value is repeated, the score is at its level
    return nats


@pytest.fixture(scope="module")
def tails() -> Tails:
    return Tails.fit([noise(10_000, 0)], np.zeros(LINES, bool), D)


def planted(*faults: tuple[str, int, int, int, float], n: int = N, seed: int = 1) -> np.ndarray:
    """Noise with so many nats more in rows [start, end) of the line of a kind and channel."""
    nats = noise(n, seed)
    for kind, channel, start, end, more in faults:
        nats[start:end, line_of(kind, channel, D)] += int(more * UNIT)
    return nats


def shares_of(nats: np.ndarray) -> np.ndarray:
    return nats[:, :D].copy()


def run(tracker: Tracker, nats: np.ndarray, size: int | None = None) -> tuple[list[Notice], list]:
    """Everything notices of rows that come in chunks, and the ratios."""
    notices, ratios = [], []
    at = 0
    while at < len(nats):
        part = nats[at : at + (size or len(nats))]
        more, ratio = tracker.add(part, shares_of(part))
        notices += more
        ratios += ratio.tolist()
        tracker.lasted = []
        at += len(ratio)
    return notices, ratios


def facts(notices: list[Notice]) -> list[tuple]:
    return [
        (one.what, one.row, one.event.rows, one.event.alarm, one.event.shares.tolist(),
         one.event.margins, one.event.lasting)
        for one in notices
    ]  # fmt: skip


def ended(notices: list[Notice]) -> list:
    return [one.event for one in notices if one.what == "resolve"]


FAULT = ("relation", 1, 700, 740, 3.0)


def test_noise_alone_alarms_no_more_than_its_budget(tails: Tails) -> None:
    notices, ratios = run(Tracker(tails, D, 1e-3), noise(30_000, 5))
    assert 1 <= len(ended(notices)) <= 30 + 3 * 30**0.5
    assert len(ratios) == 30_000


@pytest.mark.parametrize(
    ("fault", "slow"),
    [(FAULT, 30), (("relation", 1, 700, 703, 19.0), 3), (("change", 0, 700, 780, 2.5), 40),
     (("jump", 2, 700, 702, 19.0), 2), (("stuck", 1, 700, 730, 5.0), 12)],
)  # fmt: skip
def test_one_stretch_of_evidence_is_one_event(tails: Tails, fault, slow: int) -> None:
    kind, channel, start, end, _ = fault
    notices, ratios = run(Tracker(tails, D, RATE), planted(fault))
    (event,) = ended(notices)
    assert abs(event.rows[0] - start) <= 6
    assert -6 <= event.rows[1] - end <= 10  # noise may lift the scan a little more
    assert start <= event.alarm < min(end, start + slow)
    found = describe(event.strongest, D)
    assert found.kind == kind
    assert found.channel == channel
    assert [one.what for one in notices if one.what != "update"] == ["open", "resolve"]
    assert notices[0].row == event.alarm
    assert ratios[event.alarm] > 1


def test_evidence_above_its_limit_is_an_alarm(tails: Tails) -> None:
    notices, ratios = run(Tracker(tails, D, RATE), planted(("change", 0, 700, 780, 2.5)))
    (event,) = ended(notices)
    assert ratios[event.alarm] > 1 >= max(ratios[: event.alarm])


def fading(rows: list[int]) -> int:
    """The sum of rows that count half as much every 32 rows, in 1024ths, for 512 rows."""
    return sum(value * round(1024 * 0.5 ** (k / 32)) for k, value in enumerate(rows[:512]))


@pytest.mark.parametrize(("end", "more"), [(740, 3.0), (1400, 0.8)])
def test_shares_are_summed_from_the_first_row_of_the_event_to_its_last(
    tails: Tails, end: int, more: float
) -> None:
    """The first ones count most."""
    nats = planted(("relation", 1, 700, end, more))
    (event,) = ended(run(Tracker(tails, D, RATE), nats)[0])
    assert len(event.lines) == 1
    start, stop = event.rows
    assert (stop - start > KEPT) == (end == 1400)
    assert event.shares.tolist() == [fading(nats[start:stop, i].tolist()) for i in range(D)]


def test_an_alarm_long_after_the_start_of_its_excursion_has_the_last_rows(tails: Tails) -> None:
    nats = np.zeros((900, LINES), np.int64)
    slow = line_of("relation", 1, D)
    nats[100:, slow] = whole(LOW_PRICE + 0.035)  # above its limit after more rows than are kept
    shares = np.arange(900)[:, None] + np.ones(D, np.int64)
    notices, _ = Tracker(tails, D, RATE).add(nats, shares)
    opened = notices[0].event
    assert opened.alarm - 100 > KEPT
    rows = shares[opened.alarm - KEPT : opened.alarm, 1].tolist()
    assert opened.shares.tolist() == [fading(rows)] * D


def test_faults_apart_are_events_of_their_own(tails: Tails) -> None:
    nats = planted(FAULT, ("change", 2, 1000, 1040, 3.0))
    first, second = ended(run(Tracker(tails, D, RATE), nats)[0])
    assert describe(first.strongest, D) == ("relation", 1)
    assert describe(second.strongest, D) == ("change", 2)
    assert abs(first.rows[0] - 700) <= 6
    assert abs(second.rows[0] - 1000) <= 6


def test_rows_of_an_event_make_no_other(tails: Tails) -> None:
    """What began in an event, and rises above its limit long after it, is dated after it."""
    nats, line = planted(FAULT), line_of("stuck", 2, D)
    nats[710:940, line] = 3 * UNIT  # the price: it neither rises nor falls
    nats[710, line] += UNIT // 2
    nats[900:940, line] = 5 * UNIT
    first, second = ended(run(Tracker(tails, D, RATE), nats)[0])
    assert describe(second.strongest, D) == ("stuck", 2)
    assert second.rows[0] >= first.end


def test_lines_that_rise_together_are_one_event(tails: Tails) -> None:
    nats = planted(FAULT, ("change", 2, 705, 745, 3.0))
    (event,) = ended(run(Tracker(tails, D, RATE), nats)[0])
    assert {describe(line, D) for line in event.lines} == {("relation", 1), ("change", 2)}
    assert abs(event.rows[1] - 745) <= 6


@pytest.mark.parametrize(("join", "n_events"), [(0, 2), (30, 1)])
def test_events_closer_than_the_join_are_one(tails: Tails, join: int, n_events: int) -> None:
    nats = planted(("stuck", 0, 700, 720, 5.0), ("stuck", 0, 735, 755, 5.0))
    found = ended(run(Tracker(tails, D, RATE, join=join), nats)[0])
    assert len(found) == n_events
    assert found[-1].rows[1] == 755


def test_a_line_that_rises_again_keeps_its_first_start(tails: Tails) -> None:
    nats = planted(("stuck", 0, 700, 720, 5.0), ("stuck", 0, 735, 755, 5.0))
    (event,) = ended(run(Tracker(tails, D, RATE, join=30), nats)[0])
    assert event.rows == (700, 755)


@pytest.mark.parametrize(
    ("size", "how"),
    [(size, how) for size in (7, 100) for how in ({}, {"longest": 60}, {"join": 20})]
    + [(1, {}), (1, {"join": 20}), (1, {"follow": False}), (1, {"longest": 60})],
)
def test_the_same_in_chunks(tails: Tails, size: int, how: dict) -> None:
    nats = planted(FAULT, ("change", 2, 1000, 1140, 3.0), ("jump", 0, 1100, 1130, 9.0))
    notices, ratios = run(Tracker(tails, D, 1e-3, **how), nats)
    again, same = run(Tracker(tails, D, 1e-3, **how), nats, size)
    assert facts(again) == facts(notices)
    assert same == ratios


@pytest.mark.parametrize("size", [1, 100])
def test_an_excursion_longer_than_what_is_kept_has_the_same_shares_in_chunks(
    tails: Tails, size: int
) -> None:
    nats = noise(2 * KEPT, 2)
    nats[200:, line_of("relation", 0, D)] = int((LOW_PRICE + 0.02) * UNIT)  # rises slowly
    notices, _ = run(Tracker(tails, D, 5e-4), nats)
    assert notices[0].row - notices[0].event.rows[0] > KEPT
    assert facts(run(Tracker(tails, D, 5e-4), nats, size)[0]) == facts(notices)


@pytest.mark.parametrize("at", [10, 256, 715, 741, 860, 1030, 1400])
def test_a_tracker_resumes_in_the_middle_of_an_event(tails: Tails, at: int) -> None:
    nats = planted(FAULT, ("change", 2, 725, 900, 3.0), ("change", 0, 1000, 1140, 3.0))
    tracker, other = Tracker(tails, D, RATE), Tracker(tails, D, RATE)
    notices, _ = run(tracker, nats[:at])
    state = {name: array.copy() for name, array in tracker.state().items()}
    other.resume(state, json.loads(json.dumps(tracker.description())))
    later, ratios = run(other, nats[at:])
    expected, all_ratios = run(Tracker(tails, D, RATE), nats)
    assert facts(notices + later) == facts(expected)
    assert ratios == all_ratios[at:]


def test_a_state_of_another_model_is_refused(tails: Tails) -> None:
    wide = Tails.fit([np.zeros((10, LINES + 4), np.int64)], np.zeros(LINES + 4, bool), D + 1)
    with pytest.raises(ValueError, match=r"lines have the shape \(8, 17\)"):
        Tracker(tails, D, RATE).resume(Tracker(wide, D + 1, RATE).state(), [])


def test_skipped_rows_end_events_and_are_counted(tails: Tails) -> None:
    nats = planted(("relation", 1, 700, 900, 3.0))
    tracker = Tracker(tails, D, RATE)
    run(tracker, nats[:750])
    (event,) = ended(tracker.skip(300))
    assert abs(event.rows[1] - 750) <= 6
    assert tracker.events == []
    assert tracker.n_rows == 1050
    notices, ratios = run(tracker, noise(400, 8))
    assert ended(notices) == []
    assert max(ratios[:3]) < 1  # nothing reaches across


def test_an_event_right_after_skipped_rows_begins_after_them(tails: Tails) -> None:
    """Also where the first row after them comes alone, with evidence."""
    nats = planted(("relation", 1, 500, 560, 4.0))
    tracker = Tracker(tails, D, RATE)
    run(tracker, nats[:400])
    tracker.skip(100)
    notices, _ = run(tracker, nats[500:700], size=1)
    assert [event.rows[0] for event in ended(notices)] == [500]


def test_the_end_of_a_stream_ends_events(tails: Tails) -> None:
    tracker = Tracker(tails, D, RATE)
    notices, _ = run(tracker, planted(FAULT)[:730])
    assert ended(notices) == []
    last = tracker.finish()
    assert [notice.row for notice in last] == [729]
    (event,) = ended(last)
    assert abs(event.rows[1] - 730) <= 6
    assert tracker.finish() == []


def test_what_lasts_is_over_and_names_its_line(tails: Tails) -> None:
    nats = planted(("relation", 1, 700, 1400, 3.0))
    tracker = Tracker(tails, D, RATE, longest=100)
    notices, ratio = tracker.add(nats, shares_of(nats))
    assert abs(len(ratio) - 800) <= 6  # the rows after it wait for the new baseline
    assert tracker.lasted == [line_of("relation", 1, D)]
    tracker.lasted = []
    notices += tracker.add(noise(400, 3), shares_of(noise(400, 3)))[0]
    (event,) = ended(notices)
    assert event.lasting
    assert event.rows[1] == len(ratio)


def test_limits_learn_from_what_comes_again_and_again_unless_told_not_to(tails: Tails) -> None:
    """The same excursion again and again alarms less; with limits that do not follow, each time."""
    faults = [("relation", 1, at, at + 8, 3.0) for at in range(100, 6000, 100)]
    nats = planted(*faults, n=6100)
    follows = ended(run(Tracker(tails, D, RATE), nats)[0])
    stays = ended(run(Tracker(tails, D, RATE, follow=False), nats)[0])
    assert len(stays) > 3 * len(follows) >= 3


def test_a_long_fault_is_told_again_as_it_grows_and_is_over_soon_after(tails: Tails) -> None:
    notices, _ = run(Tracker(tails, D, RATE), planted(("relation", 1, 700, 1300, 9.0)))
    margins = [one.event.margin for one in notices]
    assert "update" in {one.what for one in notices}
    assert margins == sorted(margins)
    assert 1300 <= notices[-1].row <= 1300 + REST + 6


def test_an_event_rests_while_only_the_score_rises_and_wakes_with_new_evidence(
    tails: Tails,
) -> None:
    nats = planted(
        ("change", 1, 400, 420, 8), ("score", 0, 402, 560, 8), ("relation", 0, 470, 510, 3.0)
    )
    for size in (None, 7):
        tracker = Tracker(tails, D, RATE)
        tracker.rest = 10
        notices = run(tracker, nats, size)[0]
        calls = [one.what for one in notices if one.what != "update"]
        assert calls[:4] == ["open", "rest", "wake", "rest"]
        assert calls[-1] == "resolve"
        rows = {one.what: one.row for one in reversed(notices)}
        assert 425 <= rows["rest"] < 440
        assert 470 <= rows["wake"] < 490
        assert tracker.events == []
    plain = run(Tracker(tails, D, RATE), nats)[0]
    assert facts(plain)[-1] == facts(notices)[-1]  # the event is the same without it


# ------------------------------------------------------------------------- by hand

ONE = np.ones(5)
# Lines of one channel, all alike: so many rows that those of a stream do not count.
ALIKE = Tails(2 * UNIT * ONE.astype(np.int64), 1.0 * UNIT * ONE, 1e10 * ONE, 0.5 * ONE, 10**12)
LIMITS = Limits(ALIKE, RATE)
RELATION, REPEATED, SCORE = 0, 3, 4
PRICE = {RELATION: LOW_PRICE, REPEATED: MIDDLE_PRICE, SCORE: SCORE_PRICE}
LIMIT = int(LIMITS.limit[REPEATED])  # 28 nats and a bit


def steps(n: int, *rises: tuple[int, int, int, float]) -> np.ndarray:
    """No evidence in n rows, but in rows [start, end) of a line that makes W step by so many."""
    nats = np.zeros((n, 5), np.int64)
    for line, start, end, step in rises:
        nats[start:end, line] = int((PRICE[line] + step) * UNIT)
    return nats


def taken(tracker: Tracker, nats: np.ndarray) -> tuple[list[Notice], np.ndarray]:
    return tracker.add(nats, np.arange(len(nats))[:, None] + 1)


def told(notices: list[Notice]) -> list[tuple[str, int, tuple[int, int]]]:
    return [(one.what, one.row, one.event.rows) for one in notices]


def test_a_fall_by_the_limit_ends_an_event() -> None:
    """W rises by 10 nats a row from row 100 on, above 28 at 102, to 100; then falls by 3 a row."""
    assert 28 * UNIT < LIMIT < 29 * UNIT
    tracker = Tracker(ALIKE, 1, RATE)
    notices, ratios = taken(tracker, steps(200, (REPEATED, 100, 110, 10)))
    assert told(notices) == [("open", 102, (100, 103)), ("resolve", 119, (100, 110))]
    w = [0] * 100 + [10 * k for k in range(1, 11)] + [100 - 3 * k for k in range(1, 11)] + [0] * 80
    np.testing.assert_allclose(ratios, np.array(w) * UNIT / LIMIT)  # over 30 nats below the top
    event = notices[-1].event
    assert event.alarm == 102
    assert event.lines == {REPEATED: (100, 110, 100 * UNIT)}
    assert event.open == set()
    assert event.shares.tolist() == [fading(list(range(101, 111)))]
    margin = LIMITS.margin(REPEATED, 100 * UNIT, 0)
    assert event.margins == {REPEATED: pytest.approx(margin, abs=1e-6)}
    assert notices[0].event.margins == {
        REPEATED: pytest.approx(LIMITS.margin(REPEATED, 30 * UNIT, 0), abs=1e-6)
    }
    learned = tracker.state()["learned"]
    assert learned[:, REPEATED].tolist() == [1, LIMIT - 2 * UNIT]
    assert not np.delete(learned, REPEATED, axis=1).any()


def test_a_line_that_no_longer_rises_is_over_after_a_while() -> None:
    nats = steps(300, (REPEATED, 100, 110, 10), (REPEATED, 110, 300, 0))
    notices, ratios = taken(Tracker(ALIKE, 1, RATE), nats)
    assert told(notices)[-1] == ("resolve", 109 + REST, (100, 110))
    assert ratios[109 + REST] == pytest.approx(100 * UNIT / LIMIT)
    assert ratios[110 + REST] == 0


def test_an_excursion_below_the_limit_teaches_but_alarms_not() -> None:
    tracker = Tracker(ALIKE, 1, RATE)
    notices, ratios = taken(tracker, steps(60, (REPEATED, 10, 12, 10)))
    assert notices == []
    w = [0] * 10 + [10, 20, 17, 14, 11, 8, 5, 2] + [0] * 42
    np.testing.assert_allclose(ratios, np.array(w) * UNIT / LIMIT)
    assert tracker.state()["learned"][:, REPEATED].tolist() == [1, 18 * UNIT]
    still = Tracker(ALIKE, 1, RATE, follow=False)
    taken(still, steps(60, (REPEATED, 10, 12, 10)))
    assert not still.state()["learned"].any()


@pytest.mark.parametrize("longest", [20, 10])
def test_a_line_lasts_from_its_first_row_on(longest: int) -> None:
    tracker = Tracker(ALIKE, 1, RATE, longest=longest)
    notices, ratios = taken(tracker, steps(200, (REPEATED, 100, 200, 10)))
    assert len(ratios) == tracker.n_rows == 100 + longest
    assert ratios[-1] == pytest.approx(10 * longest * UNIT / LIMIT)
    assert tracker.lasted == [REPEATED]
    assert told(notices)[-1] == ("resolve", 99 + longest, (100, 100 + longest))
    assert notices[-1].event.lasting
    assert not notices[0].event.lasting


@pytest.mark.parametrize(("start", "joins"), [(111, True), (139, True), (140, False)])
def test_a_line_that_begins_within_the_join_belongs_to_the_event(start: int, joins: bool) -> None:
    """The first event ends at row 110; for 30 rows more, what begins is the same event."""
    tracker = Tracker(ALIKE, 1, RATE, join=30)
    rise = (RELATION, start, start + 5, 60)
    assert LIMITS.margin(REPEATED, 100 * UNIT, 0) < MOST_MARGIN  # weak: the next is asked for more
    notices, _ = taken(tracker, steps(250, (REPEATED, 100, 110, 10), rise))
    notices = [one for one in notices if one.what != "update"]
    kinds = [one.what for one in notices]
    assert kinds == (["open", "resolve"] if joins else ["open", "resolve"] * 2)
    first, last = ended(notices)[0], ended(notices)[-1]
    assert set(first.lines) == ({RELATION, REPEATED} if joins else {REPEATED})
    assert last.lines[RELATION] == (start, start + 5, 300 * UNIT)
    assert last.end == start + 5
    if not joins:
        assert [one.row for one in notices] == [102, 139, 143, 174]  # asked for 60 to 80 nats
        assert last.rows == (140, 145)


WEAK = (REPEATED, 100, 110, 10)  # 100 nats, a margin below MOST_MARGIN


def after_weak(*rises: tuple[int, int, int, float], **how: bool) -> Tracker:
    """A tracker after an alarm of 100 nats and 200 rows."""
    tracker = Tracker(ALIKE, 1, RATE, **how)
    notices, _ = taken(tracker, steps(200, WEAK, *rises))
    assert [one.what for one in notices] == ["open", "resolve"]
    return tracker


def opened_by(tracker: Tracker, *rises: tuple[int, int, int, float]) -> bool:
    """Whether rows 200 to 250 raise an alarm."""
    notices, ratios = taken(tracker, steps(50, *rises))
    assert (max(ratios) > 1) == bool(notices)
    return bool(notices)


def test_a_weak_alarm_that_nothing_confirmed_asks_more_of_the_next() -> None:
    """Of a height that is rarer than the budget needs, by more or less than `DOUBT` nats."""
    asked = float(LIMITS.needed[REPEATED] + DOUBT)
    heights = np.arange(2, 1000, 0.01)  # of which a share of (1 + 0.5 (h - 2)) ** -2 is as high
    rarity = 2 * np.log1p(0.5 * (heights - 2)) + np.log(10**12 / 1e10)
    height = heights[np.searchsorted(rarity, asked)]
    assert height > LIMIT / UNIT
    for step, opens in ((height * 0.98, False), (height * 1.02, True)):
        assert opened_by(after_weak(), (REPEATED, 20, 21, step)) == opens
        assert opened_by(Tracker(ALIKE, 1, RATE), (REPEATED, 20, 21, step))
        assert opened_by(after_weak(follow=False), (REPEATED, 20, 21, step))


def test_what_the_score_confirms_is_not_doubted() -> None:
    between = (REPEATED, 20, 21, 1.2 * LIMIT / UNIT)
    assert not opened_by(after_weak(), between)
    score = (SCORE, 105, 107, 2)  # above its level of 2 nats, far below its limit
    assert opened_by(after_weak(score), between)  # the weak alarm was confirmed
    assert opened_by(after_weak(), between, (SCORE, 20, 22, 2))  # the next one is
    late = (REPEATED, 20, 21, 1.3 * LIMIT / UNIT)
    tracker = after_weak()
    notices, _ = taken(tracker, steps(50, late, (SCORE, 22, 24, 3)))
    assert [(one.row, one.event.rows[0]) for one in notices if one.what == "open"] == [(222, 220)]


def test_a_strong_alarm_is_no_reason_for_doubt() -> None:
    strong = (REPEATED, 100, 110, 100)
    assert LIMITS.margin(REPEATED, 1000 * UNIT, 0) > MOST_MARGIN
    tracker = Tracker(ALIKE, 1, RATE)
    taken(tracker, steps(600, strong))
    assert tracker.state()["doubt"] == 0
    assert after_weak().state()["doubt"] == DOUBT


def test_doubt_fades_at_the_pace_of_the_budget() -> None:
    """Weak alarms as rare as the budget allows leave no doubt; limits fall back with it."""
    tracker = after_weak()
    for _ in range(2):
        taken(tracker, steps(SLAB))
    assert tracker.state()["doubt"] == pytest.approx(DOUBT - 2 * RATE * SLAB)
    taken(tracker, steps(int(DOUBT / RATE)))
    assert tracker.state()["doubt"] == 0
    np.testing.assert_array_equal(tracker.state()["lines"][7], tracker.state()["lines"][6])


def test_doubt_ends_where_alarms_are_no_longer_weak() -> None:
    """So nothing that is `MOST_MARGIN` nats and an alarm's doubt beyond the budget is missed."""
    tracker = Tracker(ALIKE, 1, RATE)
    for height in np.geomspace(30, 3000, 40):
        taken(tracker, steps(200, (REPEATED, 100, 101, height)))
    assert MOST_MARGIN < float(tracker.state()["doubt"][0]) <= MOST_MARGIN + DOUBT


def test_events_wait_for_lines_that_rose_with_them() -> None:
    """The other line began in the event and is below its limit when the event would be over."""
    other = (RELATION, 105, 150, 1)  # above 28 nats at row 133
    notices, _ = taken(Tracker(ALIKE, 1, RATE), steps(300, (REPEATED, 100, 110, 10), other))
    (event,) = ended(notices)
    assert event.lines == {
        REPEATED: (100, 110, 100 * UNIT), RELATION: (105, 150, 45 * UNIT)
    }  # fmt: skip
    assert event.end == 150
    assert notices[-1].row == 168  # 45 nats less 1.5 a row: more than 28 below after 19 rows


def test_of_two_that_cross_at_once_the_latest_raised_it() -> None:
    rises = (REPEATED, 100, 110, 10), (RELATION, 92, 110, 2.75)
    notices, _ = taken(Tracker(ALIKE, 1, RATE), steps(200, *rises))
    assert len(ended(notices)) == 1
    assert list(notices[-1].event.lines) == [REPEATED, RELATION]
    assert notices[-1].event.rows[0] == 100


@pytest.mark.parametrize("rest", [3, 20])
def test_an_event_rests_at_the_last_of_so_many_rows_without_new_evidence(tails, rest: int) -> None:
    tracker = Tracker(tails, D, RATE)
    tracker.rest = rest
    notices, _ = run(tracker, planted(("relation", 1, 400, 420, 9.0)))
    first = next(one for one in notices if one.what == "rest")
    assert first.row + 1 - first.event.last_seen == rest


def test_an_event_is_told_again_when_its_margin_has_doubled() -> None:
    """W rises by 1 nat a row: above 28 at row 118, looked at again every 64 rows."""
    notices, _ = taken(Tracker(ALIKE, 1, RATE), steps(900, (REPEATED, 90, 900, 1)))
    expected, reported = [("open", 118)], LIMITS.margin(REPEATED, 29 * UNIT, 0)
    for row in range(2 * REPORT_AGAIN, 900, REPORT_AGAIN):
        margin = LIMITS.margin(REPEATED, (row - 89) * UNIT, 0)
        if margin > 2 * reported:
            expected.append(("update", row))
            reported = margin
    assert len(expected) == 4
    assert [(one.what, one.row) for one in notices] == expected


def test_rows_are_counted_from_the_first() -> None:
    nats = steps(700, (REPEATED, 100, 110, 10), (REPEATED, 300, 600, 1))
    plain, ratios = taken(Tracker(ALIKE, 1, RATE), nats)
    tracker = Tracker(ALIKE, 1, RATE, first=1000)
    later, same = taken(tracker, nats)
    assert [(what, row - 1000, (a - 1000, b - 1000)) for what, row, (a, b) in told(later)] == (
        told(plain)
    )
    np.testing.assert_array_equal(same, ratios)
    assert [one.event.shares.tolist() for one in later] == [
        one.event.shares.tolist() for one in plain
    ]
    assert tracker.n_rows == 1700


def test_calm_rows_lower_the_limits_at_every_slab() -> None:
    few = Tails(ALIKE.level, ALIKE.excess, 10 * ONE, ALIKE.shape, 1000)
    _, ratios = taken(Tracker(few, 1, RATE), steps(3 * SLAB, *(
        (REPEATED, at, at + 1, 1) for at in (0, SLAB - 1, SLAB + 1, 2 * SLAB, 3 * SLAB - 1)
    )))  # fmt: skip
    limits = Limits(few, RATE)
    for row in (0, SLAB - 1, SLAB + 1, 2 * SLAB, 3 * SLAB - 1):
        limits.set(row // SLAB * SLAB)
        assert ratios[row] == UNIT / limits.limit[REPEATED]
    tracker = Tracker(few, 1, RATE)
    tracker.skip(2 * SLAB - 5)
    _, ratios = taken(tracker, steps(10, (REPEATED, 0, 1, 1), (REPEATED, 6, 7, 1)))
    for row, seen in ((0, SLAB), (6, 2 * SLAB)):
        limits.set(seen)
        assert ratios[row] == UNIT / limits.limit[REPEATED]
