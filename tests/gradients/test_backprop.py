"""The hand-written training pass against the plain module and automatic gradients."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch

from vace_ad.config import VACEConfig
from vace_ad.engine.encoder import Encoder, init_encoder
from vace_ad.engine.torch import to_module
from vace_ad.gradients.backprop import BLOCK, TrainingPass

SMALL = {"widths": (12, 20, 10, 6), "channel_expansion": 3, "stride": 1, "fit_stride": 1}


def make(seed: int, n_channels: int, n: int, length: int = 24, **settings):
    """An encoder and a batch in which no output is so near to zero that rounding turns its sign.

    There the slope of ReLU jumps, and every float32 program may differ from the exact gradient.
    """
    config = VACEConfig.from_preset(None, patch_length=length, **{**SMALL, **settings})
    for attempt in range(20):
        rng = np.random.default_rng([seed, attempt])
        encoder = init_encoder(config, n_channels, rng)
        patches = rng.normal(size=(n, n_channels, length)).cumsum(axis=2)
        patches -= patches.mean(2, keepdims=True)
        patches = (patches / patches.std(2, keepdims=True)).astype(np.float32)
        counts = np.sort(rng.integers(1, 4, n))
        if nearest_to_zero(encoder, patches, counts) > 5e-6:
            return encoder, patches, counts, rng
    raise AssertionError("no batch without an output near zero")


def nearest_to_zero(encoder: Encoder, patches, counts) -> float:
    """The smallest number that enters a ReLU, in float64."""
    module = to_module(encoder, "cpu").double().train()
    x = torch.from_numpy(patches[np.repeat(np.arange(len(patches)), counts)]).double()
    smallest = np.inf
    with torch.no_grad():
        for layer in module:
            if isinstance(layer, torch.nn.ReLU):
                smallest = min(smallest, float(x.abs().min()))
            x = layer(x)
    return smallest


def exact(encoder: Encoder, patches, counts, slope):
    """Embeddings, statistics and gradients in float64, each patch as often as it occurs."""
    module = to_module(encoder, "cpu").double().train()
    copies = np.repeat(np.arange(len(patches)), counts)
    z = module(torch.from_numpy(patches[copies]).double())
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    shared = torch.from_numpy((slope / counts[:, None])[copies])
    (z * shared).sum().backward()
    kernels = [m for m in module if isinstance(m, torch.nn.Conv1d)]
    norms = [m for m in module if isinstance(m, torch.nn.BatchNorm1d)]
    return z.detach().numpy()[first], kernels, norms


def run(encoder, patches, counts, slope, threads=1):
    with ThreadPoolExecutor(threads) as executor:
        training = TrainingPass(encoder, patches.shape[2], len(patches), executor)
        z = training.forward(encoder, patches, counts)
        return z, training.norms, training.backward(slope)


def relative(found, wanted) -> float:
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-12))


@pytest.mark.parametrize("n_channels", [1, 2, 7])
@pytest.mark.parametrize("n", [1, 3, BLOCK + 1, 5 * BLOCK + 3])
@pytest.mark.parametrize("encoder_kind", ["channel", "shared"])
def test_gradients_are_those_of_autograd(n_channels, n, encoder_kind):
    encoder, patches, counts, rng = make(n, n_channels, n, encoder=encoder_kind)
    slope = rng.normal(size=(n, 6))
    z, statistics, gradients = run(encoder, patches, counts, slope.astype(np.float32))
    wanted, kernels, norms = exact(encoder, patches, counts, slope)
    assert np.abs(z - wanted).max() < 1e-5
    for i, (kernel, norm) in enumerate(zip(kernels, norms, strict=True)):
        assert relative(0.1 * statistics[i].mean, norm.running_mean.numpy()) < 1e-5
        assert relative(0.9 + 0.1 * statistics[i].unbiased, norm.running_var.numpy()) < 1e-6
        assert relative(gradients[i].kernel, kernel.weight.grad.numpy()) < 2e-5
        assert relative(gradients[i].gamma, norm.weight.grad.numpy()) < 2e-5
        assert relative(gradients[i].beta, norm.bias.grad.numpy()) < 2e-5


def test_without_batch_norm():
    encoder, patches, counts, rng = make(0, 3, 20, batch_norm=False)
    slope = rng.normal(size=(20, 6))
    z, _, gradients = run(encoder, patches, counts, slope.astype(np.float32))
    wanted, kernels, _ = exact(encoder, patches, counts, slope)
    assert np.abs(z - wanted).max() < 1e-6
    for found, kernel in zip(gradients, kernels, strict=True):
        assert relative(found.kernel, kernel.weight.grad.numpy()) < 2e-5
        assert found.gamma is None
        assert found.beta is None


@pytest.mark.parametrize("length", [4, 5, 23, 97])
def test_any_patch_length(length):
    encoder, patches, counts, rng = make(length, 2, 19, length=length)
    slope = rng.normal(size=(19, 6))
    z, _, gradients = run(encoder, patches, counts, slope.astype(np.float32))
    wanted, kernels, _ = exact(encoder, patches, counts, slope)
    assert np.abs(z - wanted).max() < 1e-5
    for found, kernel in zip(gradients, kernels, strict=True):
        assert relative(found.kernel, kernel.weight.grad.numpy()) < 2e-5


def test_a_constant_channel_and_a_far_mean():
    """Nothing varies in one channel, and BatchNorm's input can lie far from zero."""
    encoder, patches, counts, rng = make(1, 3, 40)
    patches[:, 1] = 0
    patches[:, 2] += 30  # not what patch normalisation gives, but what the sums must survive
    slope = rng.normal(size=(40, 6))
    _, statistics, gradients = run(encoder, patches, counts, slope.astype(np.float32))
    _, kernels, norms = exact(encoder, patches, counts, slope)
    for i, (kernel, norm) in enumerate(zip(kernels, norms, strict=True)):
        assert relative(0.9 + 0.1 * statistics[i].unbiased, norm.running_var.numpy()) < 1e-5
        assert relative(gradients[i].kernel, kernel.weight.grad.numpy()) < 1e-4


def test_negative_and_vanishing_gains():
    """BatchNorm's gain may change its sign in training; then no kernel can take it up."""
    encoder, patches, counts, rng = make(4, 3, 30)
    stages = list(encoder)
    for i in (1, 3):
        gamma = rng.normal(size=len(stages[i].kernel)).astype(np.float32)
        gamma[0] = 0
        stages[i] = replace(stages[i], norm=replace(stages[i].norm, gamma=gamma))
    encoder = tuple(stages)
    slope = rng.normal(size=(30, 6))
    z, _, gradients = run(encoder, patches, counts, slope.astype(np.float32))
    wanted, kernels, norms = exact(encoder, patches, counts, slope)
    assert np.abs(z - wanted).max() < 1e-5
    for found, kernel, norm in zip(gradients, kernels, norms, strict=True):
        assert relative(found.kernel, kernel.weight.grad.numpy()) < 2e-5
        assert relative(found.gamma, norm.weight.grad.numpy()) < 2e-5
        assert relative(found.beta, norm.bias.grad.numpy()) < 2e-5


def test_threads_do_not_change_a_bit():
    encoder, patches, counts, rng = make(2, 5, 100)
    slope = rng.normal(size=(100, 6)).astype(np.float32)
    one, four = (run(encoder, patches, counts, slope, threads) for threads in (1, 4))
    assert np.array_equal(one[0], four[0])
    for a, b in zip(one[2], four[2], strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_buffers_carry_nothing_over():
    """A large batch, then a small one: the small one comes out as if it were alone."""
    encoder, patches, counts, rng = make(3, 4, 70)
    slope = rng.normal(size=(70, 6)).astype(np.float32)
    alone = run(encoder, patches[:9], counts[:9], slope[:9])
    with ThreadPoolExecutor(2) as executor:
        training = TrainingPass(encoder, patches.shape[2], len(patches), executor)
        training.forward(encoder, patches, counts)
        training.backward(slope)
        assert np.array_equal(training.forward(encoder, patches[:9], counts[:9]), alone[0])
        for a, b in zip(training.backward(slope[:9]), alone[2], strict=True):
            assert np.array_equal(a.kernel, b.kernel)
