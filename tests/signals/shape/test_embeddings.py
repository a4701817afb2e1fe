"""Position, direction, composition and geometry against their loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from vace_ad.signals.shape.embeddings import (
    Direction,
    Gaussian,
    Geometry,
    MemoryBank,
    cluster,
    mean_cosine_distance,
    unit,
)
from vace_ad.signals.shape.evidence import compose, compose_log, over_the_set


@given(seed=st.integers(0, 1000), n=st.integers(2, 40), d=st.integers(1, 8))
def test_the_gaussian_equals_loops(seed, n, d):
    rng = np.random.default_rng(seed)
    train, z = rng.normal(size=(n, d)), rng.normal(size=(5, d))
    squared = Gaussian.fit(train, 1e-3, root=False).score(z)
    np.testing.assert_allclose(squared, naive.mahalanobis(train, z, 1e-3), rtol=1e-6)
    root = Gaussian.fit(train, 1e-3, root=True).score(z)
    np.testing.assert_allclose(root**2, squared, rtol=1e-9)


def test_the_gaussian_of_constant_embeddings_is_finite():
    train = np.full((50, 4), 0.3, np.float32)
    np.testing.assert_allclose(Gaussian.fit(train, 1e-6, root=True).score(train), 0, atol=1e-3)


@given(seed=st.integers(0, 1000), k=st.integers(1, 9), near=st.integers(1, 5))
def test_direction_equals_loops(seed, k, near):
    rng = np.random.default_rng(seed)
    prototypes = unit(rng.normal(size=(k, 4)))
    moves = rng.normal(size=(6, 4))
    moves[0] = 0  # no motion has no direction: 1 from everything
    expected = [naive.direction(naive.unit(v), prototypes, near) for v in moves]
    got = Direction(prototypes, near).score(moves)
    np.testing.assert_allclose(got, expected, atol=1e-12)
    assert got[0] == 1


@pytest.mark.parametrize("method", ["minibatch", "spherical"])
def test_prototypes_are_unit_vectors_and_repeat_for_a_seed(rng, method):
    units = unit(rng.normal(size=(300, 5)))
    first, second = cluster(units, 20, 7, method), cluster(units, 20, 7, method)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1)
    assert len(first) == 20


def test_spherical_means_equal_loops(rng):
    units, rounds = unit(rng.normal(size=(60, 4))), 8
    centres = units[np.random.default_rng(3).choice(60, 9, replace=False)]
    for _ in range(rounds):
        nearest = [int(np.argmax([u @ c for c in centres])) for u in units]
        for k in range(len(centres)):
            total = sum(u for u, at in zip(units, nearest, strict=True) if at == k)
            if k in nearest:
                centres[k] = total / np.linalg.norm(total)
    np.testing.assert_allclose(cluster(units, 9, 3, "spherical"), centres, atol=1e-12)


def test_a_negative_zero_makes_no_vector_distinct():
    units = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]] * 3)
    assert len(cluster(units, 2, 0, "spherical")) == 2


def test_fewer_distinct_vectors_than_prototypes(rng):
    units = unit(np.repeat(rng.normal(size=(3, 4)), 50, axis=0))
    assert len(cluster(units, 20, 0)) == 3
    assert len(cluster(np.zeros((9, 4)), 5, 0)) == 1


def test_distances_are_the_same_in_blocks(rng):
    units, prototypes = unit(rng.normal(size=(50, 4))), unit(rng.normal(size=(9, 4)))
    whole = mean_cosine_distance(units, prototypes, 3)
    np.testing.assert_allclose(mean_cosine_distance(units, prototypes, 3, block=7), whole)


def test_the_memory_bank_keeps_real_embeddings(rng):
    train = rng.normal(size=(800, 6))
    bank = MemoryBank.fit(train, seed=0)
    reals = unit(train)
    assert all((np.abs(reals - row).sum(axis=1) < 1e-12).any() for row in bank.bank)
    assert len(bank.bank) <= 500
    far = bank.score(-10 * train.mean(axis=0, keepdims=True))
    assert far.shape == (1,)


def test_normalisations_over_the_scored_set():
    scores = np.array([1.0, 2.0, 5.0])
    np.testing.assert_allclose(over_the_set(scores, "minmax"), [0, 0.25, 1])
    z = (scores - scores.mean()) / scores.std()
    np.testing.assert_allclose(over_the_set(scores, "zscore"), z)
    for how in ("minmax", "zscore"):
        assert np.isfinite(over_the_set(np.full(3, 4.0), how)).all()


def test_composition_in_two_parts():
    p, d = np.array([1.0, 2.0]), np.array([0.0, 3.0])
    np.testing.assert_allclose(sum(compose(p, d, 0.5)), [1, 5])  # s_p · (1 + w · s_d)
    np.testing.assert_allclose(sum(compose(p, None, 0.5)), p)
    np.testing.assert_allclose(sum(compose_log(p, d, 0.5)), np.log1p([1, 5]))
    np.testing.assert_allclose(compose_log(p, d, 0.5)[0], np.log1p(p))
    np.testing.assert_allclose(sum(compose_log(p, None, 0.5)), np.log1p(p))


@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=20))
def test_geometry_equals_loops(eigenvalues):
    got = Geometry.of([np.array(eigenvalues)], "share")
    expected = naive.geometry(eigenvalues)
    found = (got.effective_rank_pr, got.effective_rank_entropy, got.top1_variance)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("spectrum", "verdict"),
    [
        ([0.0] * 8, "collapsed"),
        ([1.0] + [1e-6] * 7, "collapsed"),
        ([1.0] * 8, "isotropic"),
        ([0.5, 0.3, 0.1, 0.05, 0.02, 0.01, 0.01, 0.01], "healthy"),
    ],
)
def test_verdicts(spectrum, verdict):
    assert Geometry.of([np.array(spectrum)], "share").verdict == verdict


def test_active_dimensions_by_either_definition():
    spectrum = np.array([4.0, 2.0, 0.1, 1e-12])
    assert Geometry.of([spectrum], "share").active_dims == 0.5
    assert Geometry.of([spectrum], "eigenvalue").active_dims == 0.75
