"""Grades of training data, each for its own reason."""

import numpy as np
import pytest

from vace_ad import VACE
from vace_ad.alarms.sheet import off_condition, sheet
from vace_ad.frames.table import Table

N = 2_000
RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=N)


def graded(column, notes=(), drifting=False, missing=0.0):
    values = np.column_stack([NOISE, column, RNG.normal(size=(N, 6))]).astype(float)
    given = values.copy()
    given[: int(missing * N), 1] = np.nan
    names = tuple("abcdefgh")
    drifts = np.zeros(8, bool)
    drifts[1] = drifting
    found = sheet([Table(given, names)], [values], drifts, notes)
    return found, found.sensors[1]


def with_spike():
    column = RNG.normal(size=N)
    column[700] = 60
    return column


@pytest.mark.parametrize(
    ("column", "grade", "words"),
    [
        (RNG.normal(size=N), "good", None),
        (np.full(N, 3.0), "poor", "constant at 3"),
        (np.cumsum(np.abs(NOISE)), "poor", "only rises"),
        (NOISE, "usable", "a duplicate of a"),
        (np.where(np.arange(N) < 500, 1.0, RNG.normal(size=N)), "usable", "stuck for 25%"),
        (with_spike(), "usable", "outliers"),
        (np.where(np.arange(N) % 100 < 30, 50, 0) + NOISE / 10, "good", "several modes"),
        (np.arange(N) // 300 % 3, "good", "3 values"),
    ],
)
def test_a_sensor_gets_its_grade_for_a_reason(column, grade, words) -> None:
    _, sensor = graded(column)
    assert sensor.grade == grade
    assert words is None or any(words in one for one in sensor.found)


@pytest.mark.parametrize(("share", "grade"), [(0.02, "good"), (0.1, "usable"), (0.5, "poor")])
def test_missing_cells_count(share, grade) -> None:
    assert graded(RNG.normal(size=N), missing=share)[1].grade == grade


def test_the_whole_is_graded_with_its_reasons() -> None:
    assert graded(RNG.normal(size=N))[0].grade == "good"
    found, _ = graded(np.full(N, 3.0))
    assert (found.grade, found.why) == ("usable", "1 of 8 sensors is poor")
    assert graded(RNG.normal(size=N), notes=["short"])[0].grade == "poor"
    found, sensor = graded(RNG.normal(size=N), notes=["drift"], drifting=True)
    assert (found.grade, sensor.grade) == ("usable", "usable")


def machine(n=3_000):
    on = (np.arange(n) % 400 > 120).astype(float)
    speed = on * (50 + RNG.normal(size=n))
    return np.column_stack([RNG.normal(size=n), speed, 2 * speed + 0.1 * RNG.normal(size=n),
                            20 + speed + 0.1 * RNG.normal(size=n)])  # fmt: skip


def test_a_plain_off_state_is_recognised() -> None:
    rows = machine()
    names = ("noise", "pump speed", "flow", "heat")
    condition = off_condition([rows], names)
    assert condition is not None
    assert condition.startswith("`pump speed` < 7.")
    assert off_condition([RNG.normal(size=(3_000, 4))], names) is None
    assert (
        off_condition([np.abs(np.sin(np.arange(3_000)[:, None] / [9, 11, 13, 17]))], names) is None
    )


def test_an_off_state_is_suggested_and_then_no_more() -> None:
    rows = machine()
    facts = VACE().fit(rows).facts_
    (note,) = [one for one in facts["training"] if one["kind"] == "off"]
    assert "off='channel_1 < " in note["words"]
    assert facts["data"]["grade"] in ("good", "usable")
    told = VACE(off="channel_1 < 5").fit(rows).facts_
    assert not [one for one in told["training"] if one["kind"] == "off"]
