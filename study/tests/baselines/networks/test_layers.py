"""Shared layers against loops."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from vace_study.baselines.networks import layers  # noqa: E402


def test_positions_are_sines_and_cosines():
    table = layers.positions(5, 6).numpy()
    for t in range(5):
        for pair in range(3):
            angle = t / 10_000 ** (2 * pair / 6)
            assert table[t, 2 * pair] == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[t, 2 * pair + 1] == pytest.approx(math.cos(angle), abs=1e-6)
    assert layers.positions(4, 5).shape == (4, 5)


def test_an_embedding_is_a_circular_convolution_plus_positions():
    embedding = layers.Embedding(3, 4).eval()
    x = torch.randn(2, 6, 3)
    weight = embedding.tokens.weight.detach().numpy()  # (4, 3, 3)
    place = layers.positions(6, 4).numpy()
    found = embedding(x).detach().numpy()
    for t in range(6):
        around = [x[1, (t + j - 1) % 6].numpy() for j in range(3)]
        for k in range(4):
            expected = sum(weight[k, :, j] @ around[j] for j in range(3)) + place[t, k]
            assert found[1, t, k] == pytest.approx(expected, abs=1e-5)


def test_instance_normalisation_and_back():
    x = 40 + 3 * torch.randn(2, 50, 3)
    x[:, :, 1] = 7.0
    found = layers.normalised(x)
    values = found.values.numpy()
    np.testing.assert_allclose(values.mean(axis=1), 0, atol=1e-4)
    np.testing.assert_allclose(values.std(axis=1)[:, [0, 2]], 1, atol=1e-3)
    np.testing.assert_array_equal(values[:, :, 1], 0)
    np.testing.assert_allclose(found.undo(found.values).numpy(), x.numpy(), atol=1e-4)


def test_divergence_by_loop():
    p, q = torch.tensor([0.2, 0.8]), torch.tensor([0.5, 0.5])
    expected = sum(
        a * (math.log(a + 1e-4) - math.log(b + 1e-4)) for a, b in [(0.2, 0.5), (0.8, 0.5)]
    )
    assert float(layers.divergence(p, q)) == pytest.approx(expected, abs=1e-6)
    assert float(layers.divergence(p, p)) == 0
