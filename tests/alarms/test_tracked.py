"""An event of two channels: relation 0 1, change 2 3, jump 4 5, stuck 6 7, score."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from vace_ad.alarms.constants import MOST_MARGIN
from vace_ad.alarms.tracked import MOST_TIMES, Member, Tracked, joined

RELATION, OTHER_RELATION, CHANGE, JUMP, STUCK, SCORE = 0, 1, 3, 4, 6, 8


def event(
    lines: dict[int, Member], alarm: int = 6, running=(90, 10), shares=(40, 60), **more
) -> Tracked:
    return Tracked(alarm, 4, np.array(running), np.array(shares), lines, **more)


@pytest.mark.parametrize(
    ("lines", "alarm", "rows"),
    [
        ({JUMP: Member(5, 9, 100)}, 6, (5, 9)),
        ({JUMP: Member(5, 9, 100)}, 8, (5, 9)),
        ({JUMP: Member(5, 9, 100)}, 9, (5, 10)),  # as far as its alarm at least
        ({JUMP: Member(5, 9, 100), CHANGE: Member(2, 20, 99)}, 6, (5, 9)),  # the highest
        ({JUMP: Member(5, 9, 100), CHANGE: Member(2, 20, 101)}, 6, (5, 20)),
        ({SCORE: Member(3, 50, 999), JUMP: Member(5, 9, 1)}, 6, (3, 9)),  # others tell its end
        ({SCORE: Member(3, 50, 999)}, 6, (3, 50)),
        ({JUMP: Member(5, 9, 100), STUCK: Member(5, 30, 1), 7: Member(5, 25, 1)}, 6, (5, 30)),
    ],
)
def test_rows_go_from_what_raised_it_to_its_highest_line(lines, alarm, rows) -> None:
    assert event(lines, alarm).rows == rows


def test_it_was_last_seen_in_what_its_main_channels_should_be_by_others() -> None:
    lines = {SCORE: Member(0, 80, 9), CHANGE: Member(0, 60, 9), OTHER_RELATION: Member(0, 40, 9),
             RELATION: Member(0, 30, 9)}  # fmt: skip
    assert event(lines, running=(90, 10)).last_seen == 40
    assert event(lines, running=(91, 9)).last_seen == 30  # the other has less than a tenth
    assert event(lines | {STUCK: Member(0, 35, 1)}, running=(91, 9)).last_seen == 35
    assert event({line: lines[line] for line in (SCORE, CHANGE)}).last_seen == 60
    assert event({SCORE: lines[SCORE]}, end=77).last_seen == 77


def test_suspicion_is_of_the_largest_margin_and_the_mean_contribution() -> None:
    margins = {RELATION: 0.5, 2: 1.5, JUMP: -2.0, OTHER_RELATION: MOST_MARGIN + 5, SCORE: 9.0}
    none = event({RELATION: Member(0, 1, 1)}, margins=margins, shares=(0, 0))
    np.testing.assert_allclose(none.suspicion(5), np.log([2.5, 1 + MOST_MARGIN]))
    assert replace(none, margins={JUMP: -2.0}).suspicion(5).tolist() == [0, 0]
    assert (none.margin, none.strongest) == (9.0, SCORE)


@pytest.mark.parametrize(("end", "n"), [(5, 3), (7, 3), (20, 16), (900, 512)])
def test_a_contribution_counts_in_degrees_of_freedom_up_to_a_limit(end: int, n: int) -> None:
    """Rows 4 to 6, its alarm, at least; one counts half as much as that 32 rows before it."""
    weight = sum(round(1024 * 0.5 ** (k / 32)) for k in range(n))
    shares = 10 * 1024 * weight, 1_000_000 * 1024 * weight
    found = event({}, end=end, margins={JUMP: 0.0}, shares=shares)
    np.testing.assert_allclose(found.suspicion(5), np.log([1 + 10 / 5, 1 + MOST_TIMES]))
    np.testing.assert_allclose(found.suspicion(1)[0], np.log(1 + 10))


def test_a_line_that_rises_again_spans_both_rises() -> None:
    assert joined(Member(5, 9, 100), Member(7, 8, 200)) == Member(5, 9, 200)
    assert joined(Member(7, 8, 200), Member(5, 9, 100)) == Member(5, 9, 200)


def test_an_event_is_restored_from_plain_values() -> None:
    lines = {JUMP: Member(5, 9, 100), CHANGE: Member(2, 20, 99)}
    told = {"reported": 1.5, "resting": True, "lasting": True, "confirmed": True}
    one = event(lines, open={CHANGE}, end=20, over={JUMP: 0.25}, **told)
    again = Tracked.restored(json.loads(json.dumps(one.plain())))
    for name, value in vars(one).items():
        if isinstance(value, np.ndarray):
            assert getattr(again, name).dtype == np.int64
            assert getattr(again, name).tolist() == value.tolist()
        else:
            assert getattr(again, name) == value
            assert type(getattr(again, name)) is type(value)
    for name in ("resting", "lasting", "confirmed"):
        other = replace(one, **{name: False})
        assert not getattr(Tracked.restored(other.plain()), name)


def test_an_event_that_opens_has_not_been_reported_and_neither_rests_nor_lasts() -> None:
    one = Tracked(6, 4, np.zeros(2, np.int64), np.zeros(2, np.int64))
    assert (one.end, one.reported, one.resting, one.lasting) == (0, 0.0, False, False)
    assert (one.lines, one.open, one.over, one.margins) == ({}, set(), {}, {})
