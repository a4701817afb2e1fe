"""TSPulse: networks of its kind alone, and scores equal to a computation by loops."""

import math

import numpy as np
import pytest
import torch

from random_weights import SMALL_TSPULSE, tspulse_tensors, write_folder
from vace_ad.errors import ConfigError, InputError, ModelFileError, NotFittedError, TooShortError
from vace_study.baselines.modules.tspulse import losses
from vace_study.baselines.tspulse import TSPulse, load


@pytest.fixture
def tensors():
    found = tspulse_tensors(SMALL_TSPULSE)
    found["backbone.scaler.affine_weight"][:] = 1.3  # as near 0 it would blow up what it undoes
    return found


@pytest.fixture
def folder(tmp_path, tensors):
    return write_folder(tmp_path / "weights", SMALL_TSPULSE, tensors)


def table(rows, channels=2, seed=0):
    rng = np.random.default_rng(seed)
    rhythm = np.sin(np.arange(rows)[:, None] / (3 + np.arange(channels)))
    return rhythm + 0.3 * rng.normal(size=(rows, channels))


# ---------------------------------------------------------------------------- the loader


def test_a_head_of_another_length(folder, tensors):
    write_folder(folder, {**SMALL_TSPULSE, "prediction_length": 5}, tensors)
    with pytest.raises(ModelFileError, match=r"forecast_mapping\.3\.weight is \(2, 12\), expected"):
        load(str(folder), "cpu")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "mix_channel"),
        ("fuse_fft", False),
        ("patch_stride", 4),
        ("decoder_d_model", 8),
        ("d_model_layerwise_scale", [1, 0.5]),
        ("context_length", 63),
        ("num_layers", None),
    ],
)
def test_a_network_of_another_kind_is_refused(folder, tensors, name, value):
    write_folder(folder, {**SMALL_TSPULSE, name: value}, tensors)
    with pytest.raises(ModelFileError, match=f"has {name} = "):
        load(str(folder), "cpu")


def test_the_misspelt_mode_acts_like_the_right_one(folder, tensors):
    write_folder(folder, {**SMALL_TSPULSE, "decoder_mode": "common_channels"}, tensors)
    load(str(folder), "cpu")


def test_weights_without_a_forecast_head(folder, tensors):
    kept = {name: each for name, each in tensors.items() if "forecast_mapping" not in name}
    config = {**SMALL_TSPULSE, "fft_time_add_forecasting_pt_loss": False}
    write_folder(folder, config, kept)
    assert TSPulse(weights=str(folder)).fit(table(100)).score(table(100)).shape == (100,)
    with pytest.raises(ConfigError, match="no forecast head"):
        TSPulse(weights=str(folder), head="ensemble").fit(table(100))


# ---------------------------------------------------------------------- the network, by loops


def gelu(x):
    each = [v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x.ravel()]
    return np.array(each).reshape(x.shape)


def softmax(x):
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


class Oracle:
    """The network in NumPy, a window of one channel at a time."""

    def __init__(self, tensors):
        self.tensors = {name: each.astype(np.float64) for name, each in tensors.items()}

    def linear(self, x, name):
        return x @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def norm(self, x, name):
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
        return scaled * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]

    def mix(self, x, name):
        mixed = self.linear(gelu(self.linear(x, f"{name}.mlp.fc1")), f"{name}.mlp.fc2")
        return mixed * softmax(self.linear(mixed, f"{name}.gating_block.attn_layer"))

    def block(self, x, name, layers):
        for i in range(layers):
            patch, feature = (f"{name}.mixers.{i}.{kind}_mixer" for kind in ("patch", "feature"))
            x = x + self.mix(self.norm(x, f"{patch}.norm.norm").T, patch).T
            x = x + self.mix(self.norm(x, f"{feature}.norm.norm"), feature)
        return x

    def __call__(self, x, hidden):
        """(rows,) and (rows,) to the guesses in time, through the spectrum, and of the future."""
        t, rows = self.tensors, len(x)
        masked = np.array(
            [
                t["backbone.time_masker.mask_token"][i % 8] if hidden[i] else x[i]
                for i in range(rows)
            ]
        )
        mean, scale = x[~hidden].mean(), math.sqrt(max(x[~hidden].var(), 1e-3))
        weight = t["backbone.scaler.affine_weight"].item()
        bias = t["backbone.scaler.affine_bias"].item()
        scaled = np.where(hidden, masked, (masked - mean) / scale) * weight + bias
        frequencies = np.fft.rfft(scaled)
        real, imaginary = frequencies[:-1].real, frequencies[:-1].imag
        most = np.abs(real).max() + 1e-3, np.abs(imaginary).max() + 1e-3
        spectrum = np.concatenate([real / most[0], imaginary / most[1]])
        tokens = np.concatenate(
            [
                self.linear(scaled.reshape(-1, 8), "backbone.time_encoding.patcher"),
                self.linear(spectrum.reshape(-1, 8), "backbone.fft_encoding.patcher"),
                t["backbone.add_tokens.patch_tokens"],
            ]
        )
        tokens = self.norm(tokens.ravel(), "backbone.base_norm").reshape(tokens.shape)
        tokens = self.block(tokens, "backbone.encoder_block", 2)
        tokens = self.block(tokens, "decoder_with_head.decoder.decoder_block", 1)
        n = rows // 8
        head = "decoder_with_head.{}_head.base_reconstruction_block"
        time = self.linear(tokens[:n], head.format("time")).ravel()
        parts = self.linear(tokens[n : 2 * n], head.format("fft")).ravel()
        inner = parts[: rows // 2] * most[0] + 1j * parts[rows // 2 :] * most[1]
        through = np.fft.irfft(np.append(inner, frequencies[-1]), n=rows)
        name = "decoder_with_head.forecast_mapping"
        registers = self.block(tokens[2 * n :], f"{name}.0", 1).ravel()
        forecast = self.linear(self.norm(registers, f"{name}.2"), f"{name}.3")
        return [(each - bias) / weight * scale + mean for each in (time, through, forecast)]


def expected_scores(series, tensors, head):
    """Windows of 64, all of whose eight patches are hidden in turn; loops only."""
    oracle = Oracle(tensors)
    scaled = (series - series.mean(axis=0)) / series.std(axis=0)
    rows, channels = scaled.shape
    errors = np.zeros((3, rows - 64))
    for i in range(rows - 64):
        for channel in range(channels):
            window = scaled[i : i + 64, channel]
            for patch in range(8):
                hidden = np.zeros(64, bool)
                hidden[8 * patch : 8 * patch + 8] = True
                time, through, _ = oracle(window, hidden)
                errors[0, i] += np.sum((time - window)[hidden] ** 2) / 64 / channels
                errors[1, i] += np.sum((through - window)[hidden] ** 2) / 64 / channels
            forecast = oracle(window, np.zeros(64, bool))[2]
            errors[2, i] += (forecast[0] - scaled[i + 64, channel]) ** 2 / channels
    placed = []
    for each, (before, after) in zip(errors, [(32, 32), (32, 32), (64, 0)], strict=True):
        padded = np.array([each[0]] * before + list(each) + [each[-1]] * after)
        placed.append((padded - padded.min()) / (padded.max() - padded.min()))
    chosen = {"time": placed[0], "fft": placed[1], "forecast": placed[2]}.get(
        head, np.max(placed, axis=0)
    )
    smooth = np.zeros(rows)
    for i in range(rows):  # numpy's "same": four rows before, this one and three after
        smooth[i] = sum(chosen[j] for j in range(i - 4, i + 4) if 0 <= j < rows) / 8
    return smooth / smooth.max()


@pytest.mark.parametrize("head", ["time", "fft", "forecast", "ensemble"])
def test_scores_equal_a_computation_by_loops(folder, tensors, head):
    series = table(71, seed=1)
    detector = TSPulse(weights=str(folder), head=head).fit(table(100))
    expected = expected_scores(series, tensors, head)
    np.testing.assert_allclose(detector.score(series), expected, atol=2e-4)


def test_the_losses_equal_a_computation_by_loops(folder, tensors):
    module, oracle = load(str(folder), "cpu"), Oracle(tensors)
    series = table(64, 3)
    x, hidden = torch.from_numpy(series.T.astype(np.float32)), torch.zeros(3, 64, dtype=torch.bool)
    hidden[:, 40:48] = True
    with torch.no_grad():
        output = module(x, hidden)
        found = losses(output, x, hidden, module.sizes, 3).numpy()
    time, through, spectrum, entropy = [], [], [], 0.0
    for channel in range(3):
        values = series[:, channel]
        guesses = oracle(values, hidden[channel].numpy())
        time.append((guesses[0] - values)[40:48] ** 2)
        through.append((guesses[1] - values)[40:48] ** 2)
        frequencies = np.fft.rfft((values - values.mean()) / math.sqrt(values.var() + 1e-3))
        real, imaginary = frequencies[:-1].real, frequencies[:-1].imag
        truth = np.concatenate(
            [real / (np.abs(real).max() + 1e-3), imaginary / (np.abs(imaginary).max() + 1e-3)]
        )
        spectrum.append((output.spectrum[channel].numpy() - truth) ** 2)
        guess = softmax(output.logits[channel].double().numpy())
        entropy -= np.sum(softmax(np.abs(frequencies[1:33])) * np.log(guess)) / 32
    expected = [np.mean(time), np.mean(spectrum), np.mean(through), entropy]
    np.testing.assert_allclose(found, expected, rtol=1e-3)


# ------------------------------------------------------------------------- strides and edges


def test_a_stride_keeps_the_windows_it_scores(folder):
    series = table(164)
    every = TSPulse(weights=str(folder), smoothing=1).fit(series).score(series)
    fourth = TSPulse(weights=str(folder), smoothing=1, score_stride=4).fit(series).score(series)
    kept = np.arange(32, 132, 4)  # the middles of windows 0, 4, ...
    low, high = np.polyfit(fourth[kept], every[kept], 1), np.corrcoef(fourth[kept], every[kept])
    assert high[0, 1] > 1 - 1e-6, low  # equal up to the min-max over other windows


def test_a_short_series_is_padded_in_front_by_its_first_row(folder):
    series = table(64)
    detector = TSPulse(weights=str(folder), smoothing=1).fit(series)
    assert detector.score(series).shape == (64,)
    longer = detector.score(np.vstack([series[:1], table(65)[1:]]))
    assert longer.shape == (65,)


def test_too_short_other_channels_and_unfitted(folder):
    detector = TSPulse(weights=str(folder))
    with pytest.raises(NotFittedError, match="call fit first"):
        detector.score(table(100))
    detector.fit(table(100))
    with pytest.raises(TooShortError, match="63 rows came"):
        detector.score(table(63))
    with pytest.raises(InputError, match="3 channels came, the fit had 2"):
        detector.score(table(100, 3))
    with pytest.raises(ConfigError, match="head='space'"):
        TSPulse(weights=str(folder), head="space").fit(table(100))
    with pytest.raises(ConfigError, match="multiple of 8"):
        TSPulse(weights=str(folder), scored_rows=50).fit(table(100))


# ------------------------------------------------------------------------------ fine-tuning


def tuned(folder, rows=100, **changed):
    settings = {"epochs": 2, "max_samples": 120, "learning_rate": 1e-2, **changed}
    return TSPulse(weights=str(folder), tuned=True, **settings).fit(table(rows))


def test_fine_tuning_lowers_the_loss_and_a_seed_decides(folder):
    series = table(120, seed=1)
    first, again, other = (tuned(folder, random_state=seed) for seed in (0, 0, 1))
    assert len(first.history_) == 2
    assert first.history_[-1][0] < first.history_[0][0]
    np.testing.assert_array_equal(first.score(series), again.score(series))
    assert not np.array_equal(first.score(series), other.score(series))


def test_fine_tuning_with_few_channels_a_step(folder):
    detector = TSPulse(
        weights=str(folder), tuned=True, epochs=1, max_samples=120, max_channels=2
    ).fit(table(300, 5))
    assert np.isfinite(detector.score(table(100, 5))).all()


@pytest.mark.parametrize("rows", [50, 70])  # no window; 7 windows of 8 patches, below 100 samples
def test_too_little_to_tune_on_leaves_the_weights(folder, rows):
    detector = tuned(folder, rows)
    assert detector.history_ == []
    plain = TSPulse(weights=str(folder)).fit(table(rows))
    np.testing.assert_array_equal(detector.score(table(90)), plain.score(table(90)))


def test_at_most_five_epochs_below_3000_rows(folder):
    detector = tuned(folder, epochs=8, learning_rate=1e-4)
    assert len(detector.history_) == 5


def test_what_is_left_out_is_told(folder):
    detector = TSPulse(
        weights=str(folder), tuned=True, epochs=1, max_samples=120, max_channels=2, score_stride=3
    ).fit(table(100, 5))
    detector.score(table(90, 5))
    assert detector.notes_[1:] == (
        "capped: 120 of 296 samples",  # 37 windows of 8 patches
        "capped: 2 of 5 channels a training step",
        "capped: one of 3 windows scored",
    )
    (weights,) = TSPulse(weights=str(folder)).fit(table(100)).notes_
    assert weights == detector.notes_[0]


def test_500_channels(folder):
    detector = TSPulse(weights=str(folder), score_stride=64).fit(table(60, 500))
    assert np.isfinite(detector.score(table(80, 500, seed=1))).all()
