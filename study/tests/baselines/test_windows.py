import numpy as np
import pytest

from vace_ad.errors import TooShortError
from vace_study.baselines.windows import centred, covering_means, windows


def test_windows_channel_by_channel():
    table = np.arange(8.0).reshape(4, 2)
    np.testing.assert_array_equal(windows(table, 3), [[0, 2, 4, 1, 3, 5], [2, 4, 6, 3, 5, 7]])
    assert windows(table, 1) is table


@pytest.mark.parametrize("length", [1, 2, 5, 6])
def test_a_score_for_every_row(length):
    rows = 20
    scores = np.arange(rows - length + 1.0)
    spread = centred(scores, length)
    assert spread.shape == (rows,)
    np.testing.assert_array_equal(spread[length // 2 : length // 2 + len(scores)], scores)


def test_too_short():
    with pytest.raises(TooShortError, match="4 rows came, a window has 5"):
        windows(np.zeros((4, 2)), 5)


def test_a_row_gets_the_mean_of_the_windows_that_cover_it(rng):
    scores, length = rng.normal(size=7), 4
    expected = [
        np.mean([scores[start] for start in range(7) if start <= row < start + length])
        for row in range(10)
    ]
    np.testing.assert_allclose(covering_means(scores, length), expected)
