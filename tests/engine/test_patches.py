import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from vace_ad.engine.patches import PatchSet, distinct, normalise


def patch_set(rng, lengths=(30, 45), n_channels=3, length=12):
    stretches = [rng.normal(size=(n, n_channels)) for n in lengths]
    return stretches, PatchSet(stretches, length, np.ones(n_channels))


def test_gather_equals_the_definition_across_stretches(rng):
    stretches, patches = patch_set(rng)
    every = np.concatenate([naive.patches(s, 12) for s in stretches])
    assert len(patches) == len(every) == 19 + 34
    index = rng.permutation(len(every))
    expected = np.array([naive.normalise(every[i], np.ones(3)) for i in index])
    np.testing.assert_allclose(patches.gather(index), expected, atol=1e-6)


def test_neighbours_never_cross_a_border(rng):
    _, patches = patch_set(rng)
    index = np.arange(len(patches))
    for offset in (-20, -5, 5, 20):
        moved, inside = patches.shifted(index, offset)
        for i, j, exists in zip(index, moved, inside, strict=True):
            same = 0 <= j < len(patches) and (i < 19) == (j < 19)
            assert exists == same


def test_the_grid_starts_anew_in_each_stretch(rng):
    _, patches = patch_set(rng)
    np.testing.assert_array_equal(patches.grid(8), [0, 8, 16, 19, 27, 35, 43, 51])


@pytest.mark.parametrize(
    ("offset", "spread"), [(0, 1), (1e9, 1e-3), (1e30, 1e28), (0, 1e-30), (-1e12, 1e-2)]
)
def test_normalisation_survives_extreme_values(rng, offset, spread):
    patch = offset + spread * rng.normal(size=(2, 96))
    scale = np.full(2, spread)
    got = normalise(patch[None].copy(), scale)[0]
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got, naive.normalise(patch, scale), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("level", [0, 0.1, 1e16, -1e30])
def test_a_constant_patch_is_exactly_zero(level):
    got = normalise(np.full((1, 2, 96), float(level)), np.ones(2))
    np.testing.assert_array_equal(got, 0)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_distinct_patches_in_order_of_appearance(kinds):
    patches = np.array([np.full((2, 4), kind, np.float32) for kind in kinds])
    first, same = distinct(patches)
    appearance = list(dict.fromkeys(kinds))
    assert first.tolist() == [kinds.index(kind) for kind in appearance]
    assert same.tolist() == [appearance.index(kind) for kind in kinds]
