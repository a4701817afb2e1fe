import numpy as np

from vace_ad.metrics import forewarning

TIME = np.datetime64("2026-01-01", "ns") + np.arange(24 * 14) * np.timedelta64(1, "h")


def test_faults_alarms_and_the_time_between_them() -> None:
    found = forewarning(
        TIME, [(40, 60), (80, 90), (100, 110)], [(45, 70, 48), (100, 130, 112), (10, 12, 11)],
        codes=["F1", "F2", "F3"],
    )  # fmt: skip
    assert [one.code for one in found.faults if one.alarm is None] == ["F2"]
    assert found.found == 2
    assert found.false_alarms == 1
    assert found.median_seconds == 11 * 3600  # the alarm of F3 came after the failure
    assert found.false_alarms_per_week == 1 / ((24 * 14 - 40) / 168)
    plain = found.to_plain()
    assert plain["missed"] == 1
    assert plain["faults"][2]["forewarning_seconds"] is None
    assert plain["faults"][2]["found"]


def test_faults_that_were_not_judged_do_not_count() -> None:
    judged = np.arange(len(TIME)) >= 100
    found = forewarning(TIME, [(40, 60), (300, 300)], [], judged=judged)
    assert found.faults == ()
    assert found.median_seconds is None


def test_no_time_without_a_fault() -> None:
    assert forewarning(TIME, [(0, len(TIME))], []).false_alarms_per_week is None
