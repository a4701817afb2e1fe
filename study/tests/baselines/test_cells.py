"""The cell model as a method of the benchmark."""

import numpy as np
import pytest

from vace_ad.errors import NotFittedError, TooShortError
from vace_ad.signals.cell_fit import learn
from vace_study.baselines.cells import METHODS, Cells


def rows(seed: int = 0, n: int = 600) -> np.ndarray:
    rng = np.random.default_rng(seed)
    common = np.cumsum(rng.normal(size=(n, 1)) * 0.1, axis=0)
    return common @ [[1.0, -2.0, 0.5]] + 0.1 * rng.normal(size=(n, 3))


def test_the_score_is_the_largest_share_of_the_model():
    train, test = rows(), rows(1)
    found = Cells().fit(train)
    share = learn([train]).model.begin().add(test).share
    np.testing.assert_array_equal(found.score(test), share.max(axis=1))


def test_a_channel_that_leaves_the_others_stands_out_and_is_blamed():
    test = rows(1)
    test[300:320, 1] += 2
    found = Cells().fit(rows())
    assert found.score(test)[300:320].mean() > 10 * found.score(test)[:300].mean()
    assert found.explain(test, 300, 320).top(1)[0][0] == "1"


def test_the_average_is_one_of_the_past_alone():
    train, test = rows(), rows(1)
    single, averaged = Cells().fit(train), Cells(weight=0.2).fit(train)
    shares = single.contributions(test)
    level, expected = np.zeros(3), []
    for row in shares:
        level = 0.8 * level + 0.2 * row
        expected.append(level)
    np.testing.assert_allclose(averaged.contributions(test), expected)


def test_a_constant_channel_has_no_share():
    train, test = rows(), rows(1)
    train[:, 2] = test[:, 2] = 5.0
    test[100] = [0, 0, 9]
    assert (Cells().fit(train).contributions(test)[:, 2] == 0).all()


def test_too_few_rows_and_no_fit_are_said():
    with pytest.raises(TooShortError, match="got 5 training rows"):
        Cells().fit(rows(n=5))
    with pytest.raises(NotFittedError, match="call fit first"):
        Cells().score(rows())


def test_rows_of_another_model_are_not_taken_for_this_one():
    """Where this fails, raise `_VERSION`, put the new scores here, and run stage 2 anew."""
    test = rows(1)
    test[300:320, 1] += 2
    scores = Cells().fit(rows()).score(test)[[0, 100, 300, 319, 320, 599]]
    of_version_2 = [299.7399, 6.1296773, 190.16235, 455.0123, 426.55482, 9.4713076]
    assert {method.version for method in METHODS} == {2}
    np.testing.assert_allclose(scores, of_version_2, rtol=1e-5)
