import numpy as np

from vace_ad.alarms.conditions import Conditions

NAMES = ("flow", "ambient", "p=a", "p=b")
WATCHED = np.array([True, False, False, False])
TRAIN = np.array([[1.0, 0, 1, 0], [2, 30, 0, 1]])


def words(row):
    return Conditions.fit([TRAIN]).words(np.array([row], float), NAMES, WATCHED)


def test_what_is_outside_training_is_named_with_its_limit() -> None:
    assert words([1, 41, 1, 0]) == "ambient 41, trained to 30"
    assert words([1, -9, 1, 0]) == "ambient -9, trained from 0"
    assert words([1, 20, 0, 0]) == "p with a value never seen"


def test_watched_channels_and_a_tenth_of_the_range_are_no_conditions() -> None:
    assert words([99, 32.9, 1, 0]) == ""
    everything = np.ones(4, bool)
    assert not Conditions.fit([TRAIN]).outside(TRAIN + 99, NAMES, everything).any()


def test_new_normal_rows_widen_the_range() -> None:
    wider = Conditions.fit([TRAIN]).merged([np.array([[1.0, 41, 1, 0]])])
    assert wider.words(np.array([[1.0, 41, 1, 0]]), NAMES, WATCHED) == ""
