"""One contract for every method: shapes, finite scores, seeds, short tables, one or many channels.

The methods that train run with few patches and iterations here: the contract is the same.
"""

from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
import torch

from random_weights import (
    SMALL_DADA,
    SMALL_TSPULSE,
    dada_tensors,
    tspulse_tensors,
    write_folder,
)
from vace_ad import VACE
from vace_ad.errors import InputError, NotFittedError, TooShortError
from vace_study.baselines import Method, charts, names, paano, resolve
from vace_study.baselines.networks.detector import WindowNetwork
from vace_study.baselines.tspulse import TSPulse
from vace_study.baselines.vace import ABLATION, SENSITIVITY

STUDIES = {*ABLATION, *SENSITIVITY} - {"vace-released"}  # one class, other settings
METHODS = [name for name in names() if name not in STUDIES]
# Row by row, or with few rows before a row, so that 20 rows are enough.
BRIEF = {"pca", "iforest", "var-reduced-rank", "cells", "cells-ewma"}
BRIEF |= {method.name for method in charts.METHODS}


@pytest.fixture(autouse=True, scope="module")
def _quick(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    write_folder(folder / "dada", SMALL_DADA, dada_tensors(SMALL_DADA))
    write_folder(folder / "tspulse", SMALL_TSPULSE, tspulse_tensors(SMALL_TSPULSE))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VACE_DADA_WEIGHTS", str(folder / "dada"))
        patch.setenv("VACE_TSPULSE_WEIGHTS", str(folder / "tspulse"))
        patch.setattr(paano, "_BATCH", 8)
        patch.setattr(paano, "_PRETEXT_ITERATIONS", 2)
        patch.setattr(paano, "_ITERATIONS", {"february": 3, "may": 3})
        yield


def table(rows, channels=2, seed=0):
    rng = np.random.default_rng(seed)
    rhythm = np.sin(np.arange(rows)[:, None] / (5 + np.arange(channels)))
    return rhythm + 0.1 * rng.normal(size=(rows, channels))


TRAIN, SERIES = table(300), table(150, seed=1)


SMALL = {  # sizes of a network, where it has them
    "window": 24,
    "epochs": 2,
    "patches": (2, 3),
    "width": 8,
    "heads": 2,
    "layers": 1,
    "max_train_windows": 40,
    "cap_above": 0,
    "max_samples": 104,
    "d_model": 8,
    "score_patch": 8,
}


def small(network):
    """The same network, of a size for tests."""
    own = {field.name for field in fields(network)}
    return replace(network, **{name: size for name, size in SMALL.items() if name in own})


def quick(name):
    """The method, with its training cut short."""
    method = resolve(name)
    if isinstance(method.make(0), WindowNetwork | TSPulse):
        return replace(method, make=lambda seed: small(method.make(seed)))
    if not method.settings.get("iterations"):
        return method
    preset = name.removeprefix("vace-")

    def make(seed):
        sizes = {"iterations": 2, "batch_size": 8, "widths": (16, 16, 16, 8)}
        return VACE(preset=preset, random_state=seed, **sizes)

    return Method(name, make, method.settings)


@cache
def fitted(name, seed=0):
    detector = quick(name).make(seed)
    detector.fit(TRAIN)
    return detector


@pytest.mark.parametrize("name", METHODS)
def test_scores_are_one_finite_number_a_row(name):
    before = SERIES.copy()
    scores = fitted(name).score(SERIES)
    assert scores.shape == (150,)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(SERIES, before)


@pytest.mark.parametrize("name", METHODS)
def test_a_seed_decides(name):
    torch.manual_seed(5)
    scores = fitted(name).score(SERIES)
    again = quick(name).make(0)
    before = torch.get_rng_state()
    again.fit(TRAIN)
    np.testing.assert_array_equal(scores, again.score(SERIES))
    if resolve(name).settings.get("system"):  # a network leaves the random numbers of others alone
        assert torch.equal(torch.get_rng_state(), before)
    other = fitted(name, seed=1).score(SERIES)
    if name != "vace":  # whose encoders count only where training has a rhythm
        assert np.array_equal(scores, other) is not resolve(name).seeded


@pytest.mark.parametrize("name", METHODS)
def test_a_table_too_short_is_refused(name):
    short = table(20, seed=1)
    if name in BRIEF:
        assert fitted(name).score(short).shape == (20,)
    else:
        with pytest.raises(TooShortError, match="20 rows"):
            fitted(name).score(short)


@pytest.mark.parametrize("channels", [1, 12])
@pytest.mark.parametrize("name", METHODS)
def test_one_channel_and_many_one_of_them_constant(name, channels):
    train, series = table(300, channels), table(110, channels, seed=1)
    if channels > 1:
        train[:, 3] = series[:, 3] = 2.5
    detector = quick(name).make(0)
    detector.fit(train)
    assert np.isfinite(detector.score(series)).all()


@pytest.mark.parametrize("name", [n for n in METHODS if quick(n).settings.get("system")])
def test_a_network_refuses_what_it_cannot_use(name):
    with pytest.raises(NotFittedError, match="call fit first"):
        quick(name).make(0).score(SERIES)
    with pytest.raises(InputError, match="3 channels came, the fit had 2"):
        fitted(name).score(table(100, 3))
    with pytest.raises(TooShortError, match="20 rows came"):
        quick(name).make(0).fit(table(20))


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_a_study_setting_differs_from_the_released_preset_as_it_says(name):
    base, changed = resolve("vace-released").settings, resolve(name).settings
    differing = {key for key in base if base[key] != changed[key]}
    assert 1 <= len(differing) <= 2, differing
