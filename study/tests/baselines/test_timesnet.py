import numpy as np
import pytest

from baselines.planted import contrast, planted

torch = pytest.importorskip("torch")

from vace_study.baselines import resolve  # noqa: E402
from vace_study.baselines.modules.timesnet import Inception, TimesBlock  # noqa: E402
from vace_study.baselines.timesnet import TimesNet  # noqa: E402


def test_weights():
    """74,670 are reported; 40 of them embed time stamps, which are never given."""
    module = TimesNet()._module(38)
    assert sum(p.numel() for p in module.parameters()) == 74_670 - 40


def block_by_loop(block, x):
    """The block with every step spelled out, sample by sample."""
    batch, rows, width = x.shape
    spectrum = np.abs(np.fft.rfft(x.numpy(), axis=1))  # (batch, frequencies, width)
    common = spectrum.mean(axis=(0, 2))
    common[0] = 0
    chosen = sorted(range(len(common)), key=lambda f: -common[f])[:3]
    found = []
    for sample in range(batch):
        own = np.array([spectrum[sample, f].mean() for f in chosen])
        weights = np.exp(own - own.max()) / np.exp(own - own.max()).sum()
        total = x[sample].clone()
        for f, weight in zip(chosen, weights, strict=True):
            period = rows // f
            lines = -(-rows // period)
            grid = torch.zeros(width, lines, period)
            for t in range(rows):
                grid[:, t // period, t % period] = x[sample, t]
            out = block.second(torch.nn.functional.gelu(block.first(grid[None])))[0]
            for t in range(rows):
                total[t] += weight * out[:, t // period, t % period]
        found.append(total)
    return torch.stack(found)


def test_a_block_by_loop():
    torch.manual_seed(0)
    block, x = TimesBlock(4, 5, 3), torch.randn(2, 30, 4)
    with torch.no_grad():
        np.testing.assert_allclose(block(x), block_by_loop(block, x), atol=1e-5)


@pytest.mark.parametrize("grid", [(1, 96), (2, 48), (4, 7), (48, 2), (96, 1), (12, 13), (1, 1)])
def test_one_kernel_does_what_the_six_do(grid):
    torch.manual_seed(0)
    inception, x = Inception(3, 5).double(), torch.randn(2, 3, *grid, dtype=torch.float64)
    for branch in inception.branches:
        torch.nn.init.normal_(branch.bias)
    found, expected = (
        inception(x),
        torch.stack([branch(x) for branch in inception.branches]).mean(dim=0),
    )
    torch.testing.assert_close(found, expected)
    slopes = [
        torch.autograd.grad(out.square().sum(), inception.parameters()) for out in (found, expected)
    ]
    for short, long in zip(*slopes, strict=True):
        torch.testing.assert_close(short, long)


def test_nothing_that_varies_is_no_error():
    assert torch.isfinite(TimesNet()._module(2)(torch.full((2, 96, 2), 3.0))).all()


def test_the_rate_is_halved_after_every_epoch():
    assert [TimesNet()._rate(epoch) for epoch in (1, 2, 3)] == [1e-4, 5e-5, 2.5e-5]


@pytest.mark.parametrize(("name", "early"), [("timesnet", 23), ("timesnet-fixed", 0)])
def test_a_planted_anomaly_is_found(name, early):
    train, table = planted()
    detector = resolve(name).make(0)
    detector.window, detector.epochs, detector.learning_rate = 24, 5, 1e-2
    assert contrast(detector.fit(train).score(table), early) > 3


def test_five_hundred_channels():
    train, table = planted(channels=500)
    detector = TimesNet(epochs=1, max_train_windows=32, score_stride=20, placement="own row")
    assert contrast(detector.fit(train).score(table)) > 1
