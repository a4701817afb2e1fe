"""DADA: its own ways of storing weights, and scores equal to a computation by loops."""

import math

import numpy as np
import pytest
import torch

from random_weights import DADA as CONFIG
from random_weights import SMALL_DADA, dada_shapes, dada_tensors, write_folder
from vace_ad.errors import InputError, ModelFileError, NotFittedError, TooShortError
from vace_study.baselines.dada import DADA, load


@pytest.fixture
def tensors():
    return dada_tensors(SMALL_DADA)


@pytest.fixture
def folder(tmp_path, tensors):
    return write_folder(tmp_path / "weights", SMALL_DADA, tensors)


def table(rows, channels=2, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, channels)).cumsum(axis=0)


def test_the_released_tensors_are_the_weights_and_two_buffers():
    shapes = dada_shapes(CONFIG)
    assert sum(math.prod(shape) for shape in shapes.values()) == 1_844_714 + 2


# ---------------------------------------------------------------------------- the loader


def test_a_configuration_that_says_nonsense(folder, tensors):
    write_folder(folder, {**SMALL_DADA, "depth": "ten"}, tensors)
    with pytest.raises(ModelFileError, match="depth = 'ten'"):
        load(str(folder), "cpu")
    write_folder(folder, {**SMALL_DADA, "k": 9}, tensors)
    with pytest.raises(ModelFileError, match="k 9 and 4 bottlenecks"):
        load(str(folder), "cpu")


def test_numbers_stored_as_one_element_lists(folder, tensors):
    listed = {name: [value] for name, value in SMALL_DADA.items()}
    expected = DADA(weights=str(folder)).fit(table(150)).score(table(150))
    write_folder(folder, listed, tensors)
    found = DADA(weights=str(folder)).fit(table(150)).score(table(150))
    np.testing.assert_array_equal(found, expected)


def test_a_bin_file_of_tensors_is_read_and_one_of_code_refused(folder, tensors):
    expected = DADA(weights=str(folder)).fit(table(150)).score(table(150))
    (folder / "model.safetensors").unlink()
    state = {name: torch.from_numpy(array) for name, array in tensors.items()}
    torch.save(state, folder / "pytorch_model.bin")
    found = DADA(weights=str(folder)).fit(table(150)).score(table(150))
    np.testing.assert_array_equal(found, expected)
    torch.save({"model": Harmful()}, folder / "pytorch_model.bin")
    with pytest.raises(ModelFileError, match="cannot be read"):
        load(str(folder), "cpu")


class Harmful:
    def __reduce__(self):
        return (exec, ("raise SystemExit",))


# ---------------------------------------------------------------------------- the scores


def gelu(x):
    each = [v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x.ravel()]
    return np.array(each).reshape(x.shape)


def convolve(x, weight, bias):
    """(rows, n_in) to (rows, n_out), zeros beyond the ends."""
    size = weight.shape[2]
    padded = np.pad(x, ((size // 2, size // 2), (0, 0)))
    out = np.zeros((len(x), len(weight)))
    for row in range(len(x)):
        for o in range(len(weight)):
            out[row, o] = np.sum(padded[row : row + size].T * weight[o]) + bias[o]
    return out


def reconstruct(window, shown, config, tensors):
    """One window of one channel under one mask, by loops."""

    def linear(x, name):
        return x @ tensors[f"model.{name}.weight"].T + tensors[f"model.{name}.bias"]

    def conv(x, name):
        return convolve(x, tensors[f"model.{name}.weight"], tensors[f"model.{name}.bias"])

    x = linear(window.reshape(-1, config["patch_len"]), "input_embed") * shown[:, None]
    for i in range(config["depth"] + 1):
        name = f"encoder.feature_extractor.net.{i}"
        kept = conv(x, f"{name}.projector") if i == config["depth"] else x
        x = conv(gelu(conv(gelu(x), f"{name}.conv1.conv")), f"{name}.conv2.conv") + kept
    logits = x.ravel() @ tensors["model.adaptive_bottleneck.w_gate"]
    best = np.argsort(-logits)[: config["k"]]
    shares = np.exp(logits[best] - logits[best].max())
    mixed = np.zeros_like(x)
    for j, share in zip(best, shares / shares.sum(), strict=True):
        name = f"adaptive_bottleneck.bottlenecks.{j}.net"
        inner = linear(gelu(linear(gelu(linear(x, f"{name}.0")), f"{name}.2")), f"{name}.5")
        mixed += share * (inner + x)
    for layer in (1, 3, 5):
        mixed = linear(gelu(mixed), f"decoder.net.{layer}")
    return mixed.ravel()


def test_scores_equal_a_computation_by_loops(folder, tensors):
    train, series = table(120, 2), table(230, 2, seed=1)  # two windows and a tail of 30
    scores = DADA(weights=str(folder), random_state=3).fit(train).score(series)
    scaled = (series - train.mean(axis=0)) / train.std(axis=0)
    rng = np.random.default_rng(3)
    spread = np.zeros((3, 100))
    for i, start in enumerate((0, 100, 130)):
        for channel in range(2):
            masks = rng.random((5, 20)) < 0.5
            copies = [
                reconstruct(scaled[start : start + 100, channel], shown, SMALL_DADA, tensors)
                for shown in [*masks, *~masks]
            ]
            spread[i] += np.var(copies, axis=0, ddof=1) / 2
    expected = np.concatenate([spread[0], spread[1], spread[2, 70:]])
    np.testing.assert_allclose(scores, expected, rtol=2e-3, atol=1e-7)


def test_short_narrow_and_unfitted(folder):
    detector = DADA(weights=str(folder))
    with pytest.raises(NotFittedError, match="call fit first"):
        detector.score(table(100))
    detector.fit(table(200))
    with pytest.raises(TooShortError, match="99 rows came"):
        detector.score(table(99))
    with pytest.raises(InputError, match="3 channels came, the fit had 2"):
        detector.score(table(200, 3))


def test_500_channels(folder):
    detector = DADA(weights=str(folder)).fit(table(60, 500))
    assert np.isfinite(detector.score(table(100, 500, seed=1))).all()
