import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from live.naive_align import naive_rows
from vace_ad.live.align import Aligner, Row
from vace_ad.live.records import Record
from vace_ad.live.sections import Align

STEP = 10


def record(time, **values):
    return Record("pump", time, values)


def run(rule, records, **more):
    counts = Counter()
    aligner = Aligner(rule)
    rows = [row for one in records for row in aligner.add(one, counts, **more)]
    return rows, counts, aligner


@st.composite
def disturbed(draw):
    """Readings in order, and the same readings late by up to the lateness, some of them twice."""
    lateness = draw(st.integers(0, 40))
    times = sorted(draw(st.lists(st.integers(0, 300), min_size=1, max_size=40)))
    readings = [(time, draw(st.sampled_from("ab")), draw(st.floats(-1e6, 1e6))) for time in times]
    readings = list(
        {(time, channel): (time, channel, value) for time, channel, value in readings}.values()
    )
    # a delay d ≤ lateness: whatever came before has a time of at most t + d
    late = sorted(
        (time + draw(st.integers(0, lateness)), i) for i, (time, _, _) in enumerate(readings)
    )
    order = [readings[i] for _, i in late]
    again = draw(st.lists(st.sampled_from(range(len(order))), max_size=5))
    for i in sorted(again, reverse=True):
        order.insert(i + 1, order[i])
    return lateness, readings, order


@given(disturbed(), st.sampled_from(["mean", "last"]))
def test_the_same_rows_whatever_the_order_within_the_lateness(case, combine):
    lateness, readings, order = case
    rule = Align(step=STEP, lateness=lateness, combine=combine)
    rows, counts, aligner = run(rule, [record(t, **{c: v}) for t, c, v in order])
    rows += aligner.finish()
    assert [(row.time, row.values) for row in rows] == naive_rows(readings, STEP, combine)
    assert counts["late"] == 0 or lateness == 0
    assert counts["twice"] + counts["late"] == len(order) - len(readings)


@given(disturbed(), st.integers(0, 39))
def test_state_in_the_middle_changes_nothing(case, cut):
    lateness, _, order = case
    rule = Align(step=STEP, lateness=lateness, fill="hold", hold=25)
    records = [record(t, **{c: v}) for t, c, v in order]
    whole, counts, aligner = run(rule, records)
    whole += aligner.finish()
    first, counted, aligner = run(rule, records[:cut])
    kept, aligner = json.loads(json.dumps(aligner.state())), Aligner(rule)
    aligner.restore(kept)
    rest = [row for one in records[cut:] for row in aligner.add(one, counted)]
    assert first + rest + aligner.finish() == whole
    assert counted == counts


def test_every_case_has_its_counter():
    rule = Align(step=STEP, lateness=20, future=1000)
    came = [
        record(5, a=1.0),
        record(42, a=4.0),  # passes 22: the step of 0 closes, and 10 to 20 after it
        record(31, a=3.0),  # late, but in place
        record(8, a=9.0),  # too late
        record(42, a=4.5),  # twice
        record(5000, a=7.0),  # from the future
        record(43, a=float("nan")),  # an empty cell
        record(75, a=5.0),
    ]
    rows, counts, _ = run(rule, came, now=100)
    assert [(row.time, row.values) for row in rows] == [
        (0, {"a": 1.0}), (10, {}), (20, {}), (30, {"a": 3.0}), (40, {"a": 4.0}),
    ]  # fmt: skip
    assert counts == {
        "readings": 4, "late": 1, "twice": 1, "future": 1, "empty": 1, "reordered": 1,
    }  # fmt: skip


def test_a_value_is_held_for_so_long_and_no_longer():
    rule = Align(step=STEP, fill="hold", hold=20)
    rows, _, _ = run(
        rule, [record(t, a=1.0 * t, **({"b": 7.0} if t == 0 else {})) for t in range(0, 60, 10)]
    )
    assert [row.values.get("b") for row in rows] == [7.0, 7.0, 7.0, None, None]


def test_a_long_gap_is_a_jump():
    rows, _, _ = run(
        Align(step=STEP, gap=3), [record(0, a=1.0), record(1000, a=2.0), record(1015, a=3.0)]
    )
    assert [row.time for row in rows] == [0, 1000]


@pytest.mark.parametrize("lateness", [0, 50])
def test_without_a_step_every_time_is_a_row(lateness):
    rule = Align(step=None, lateness=lateness)
    came = [
        record(1000, a=1.0, b=2.0),
        record(1070, a=3.0),
        record(1070, a=3.0),
        record(1030, b=1.0),
    ]
    rows, counts, aligner = run(rule, came)
    rows += aligner.finish()
    assert counts["twice"] == 1
    if lateness:
        assert [row.time for row in rows] == [1000, 1030, 1070]
    else:
        assert rows == [Row(1000, {"a": 1.0, "b": 2.0}, ("a", "b")), Row(1070, {"a": 3.0}, ("a",))]
        assert counts["late"] == 1
