import math

import numpy as np
import pytest

from baselines.planted import planted

torch = pytest.importorskip("torch")

from vace_ad.errors import ConfigError  # noqa: E402
from vace_study.baselines.dcdetector import DCDetector  # noqa: E402
from vace_study.baselines.modules.dcdetector import Attention  # noqa: E402
from vace_study.baselines.networks.layers import Embedding, normalised  # noqa: E402
from vace_study.baselines.networks.training import At  # noqa: E402


def plain_map(attention, embedding, tokens):
    """The map through the wide embeddings, as it is described."""
    embedded = embedding(tokens)
    query, key = attention.query(embedded), attention.key(embedded)
    return torch.softmax(query @ key.transpose(1, 2) / math.sqrt(query.shape[2]), dim=2)


@pytest.mark.parametrize(("n", "length"), [(35, 3), (3, 35), (1, 6), (2, 4)])
def test_the_short_way_to_a_map_is_exact(n, length):
    torch.manual_seed(0)
    attention, embedding = Attention(16).double(), Embedding(length, 16).double()
    tokens = torch.randn(4, n, length, dtype=torch.float64)
    found = attention(tokens, embedding)
    expected = plain_map(attention, embedding, tokens)
    np.testing.assert_allclose(found.detach(), expected.detach(), atol=1e-6)
    ways = [
        torch.autograd.grad(map_.square().sum(), attention.key.weight)[0]
        for map_ in (found, expected)
    ]
    np.testing.assert_allclose(*ways, atol=1e-6)


def test_maps_of_a_window_by_loop():
    torch.manual_seed(0)
    detector = DCDetector(window=6, patches=(2, 3), width=8, layers=2)
    module, x = detector._module(2), torch.randn(1, 6, 2)
    with torch.no_grad():
        maps = module(x)
        assert len(maps) == 4
        values = normalised(x).values[0]  # (6, 2)
        size, layer = 2, module.layers[1]
        across, inside = np.zeros((6, 6)), np.zeros((6, 6))
        for channel in range(2):
            column = values[:, channel]
            between = plain_map(layer, module.across[0], column.reshape(1, 3, 2))[0].numpy()
            within = plain_map(layer, module.inside[0], column.reshape(1, 2, 3))[0].numpy()
            for i in range(6):
                for j in range(6):
                    across[i, j] += between[i // size, j // size] / 2
                    inside[i, j] += within[i % size, j % size] / 2
    np.testing.assert_allclose(maps[1].across[0], across, atol=1e-6)
    np.testing.assert_allclose(maps[1].inside[0], inside, atol=1e-6)


def test_the_loss_is_always_zero_and_still_has_a_gradient():
    torch.manual_seed(0)
    detector = DCDetector(window=12, patches=(2, 3), width=8)
    module, x = detector._module(3), torch.randn(4, 12, 3)
    loss = detector._losses(module, x, At(1, 0))
    assert loss.tolist() == pytest.approx(0, abs=1e-6)
    gradient = torch.autograd.grad(loss, module.across[0].tokens.weight)[0]
    assert gradient.abs().max() > 1e-6


def test_scores_sum_to_one_in_each_window():
    train, table = planted()
    settings = {"epochs": 1, "max_train_windows": 128, "width": 16}
    scores = DCDetector(**settings).fit(train).score(table)
    assert scores.shape == (500,)
    np.testing.assert_allclose(scores[:420].reshape(4, 105).sum(axis=1), 1, rtol=1e-5)
    raw = DCDetector(**settings, evidence="disagreement").fit(train).score(table)
    assert raw[:105].sum() != pytest.approx(1)
    tile = slice(105, 210)  # high where the views agree
    assert np.corrcoef(scores[tile], -raw[tile])[0, 1] > 0


def test_a_window_that_patches_do_not_divide_is_refused(rng):
    with pytest.raises(
        ConfigError, match=r"window=100 is not a multiple of the patch sizes \[3, 7\]"
    ):
        DCDetector(window=100).fit(rng.normal(size=(200, 2)))


def test_five_hundred_channels():
    train, table = planted(channels=500)
    detector = DCDetector(epochs=1, max_train_windows=8, batch_size=4, width=16)
    assert np.isfinite(detector.fit(train).score(table[:210])).all()
