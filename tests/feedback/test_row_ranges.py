from __future__ import annotations

import numpy as np
import pytest

from vace_ad.alarms.suppression import Stretch
from vace_ad.config import VACEConfig
from vace_ad.errors import FeedbackError
from vace_ad.feedback import Verdict, merge_matches, rows_of, split_by_feedback
from vace_ad.feedback.row_ranges import digest
from vace_ad.frames.table import Table

TIME = np.datetime64("2026-01-01", "ns") + np.arange(1000) * np.timedelta64(60 * 10**9, "ns")


def table(time: bool = True, first: int = 0) -> Table:
    values = np.random.default_rng(0).normal(size=(1000, 2))[first:]
    return Table(values, ("a", "b"), TIME[first:] if time else None)


def test_rows_are_found_by_time_in_any_table() -> None:
    line = Verdict.new("fault", start=TIME[300], end=TIME[349])
    assert rows_of(line, table()) == (300, 350)
    assert rows_of(line, table(first=320)) == (0, 30)
    assert rows_of(line, table(first=400)) is None


def test_rows_without_time_are_found_by_what_they_hold() -> None:
    whole = table(time=False)
    line = Verdict.new("fault", rows=(300, 350), digest=digest(whole.values[300:350]))
    assert rows_of(line, whole) == (300, 350)
    assert rows_of(line, table(time=False, first=120)) == (180, 230)
    assert rows_of(line, table(time=False, first=320)) is None


def test_faults_are_cut_out_and_accepted_rows_come_with_their_surroundings() -> None:
    lines = [
        Verdict.new("fault", start=TIME[300], end=TIME[349]),
        Verdict.new("normal", start=TIME[600], end=TIME[619]),
        Verdict.new("normal", start=TIME[320], end=TIME[330]),  # inside the fault: the fault wins
    ]
    config = VACEConfig(patch_length=24)
    normal, accepted = split_by_feedback([table()], lines, config)
    assert [len(part) for part in normal] == [300, 650]
    assert len(accepted) == 1
    assert accepted[0].time[0] <= TIME[600 - 24]
    assert accepted[0].time[-1] >= TIME[620]


def test_a_named_stretch_and_the_same_recognised_are_one() -> None:
    found = [Stretch("x", 10, 30, ("a",), 2.0), Stretch("x", 90, 99, ("a",), 2.0)]
    named = [Stretch("x", 12, 35, ("a",), 2.0, named=True)]
    both = sorted(merge_matches(found, named), key=lambda one: one.start)
    assert [(one.start, one.end) for one in both] == [(10, 35), (90, 99)]


def test_what_it_is_about_must_be_there() -> None:
    from vace_ad.feedback import make_verdict

    for what, rows in [((3, 2000), table()), (("x", "y"), table()), (3, table()), ((3, 9), None)]:
        with pytest.raises(FeedbackError):
            make_verdict(what, rows, "fault", None)
    with pytest.raises(FeedbackError, match="must be 'normal' or 'fault'"):
        make_verdict((3, 9), table(), "perhaps", None)
