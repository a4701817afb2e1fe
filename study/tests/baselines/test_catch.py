"""CATCH: the network against loops, masks, the stuck schedule, and scores."""

import math

import numpy as np
import pytest
import torch

from vace_ad.errors import ConfigError, TooShortError
from vace_study.baselines import catch, resolve
from vace_study.baselines.catch import CATCH
from vace_study.baselines.modules.catch import CATCHModule, Sizes, contrast, frequency_score

SMALL = {
    "window": 24,
    "patch": 8,
    "patch_stride": 4,
    "cf_dim": 6,
    "d_model": 3,
    "layers": 2,
    "head_dim": 4,
    "d_ff": 10,
    "score_patch": 6,
    "batch_size": 32,
}
SIZES = Sizes(24, 8, 4, 6, 3, 2, 2, 4, 10, 0.2, 0.07, 0.5)


def table(rows, channels=3, seed=0):
    rng = np.random.default_rng(seed)
    rhythm = np.sin(np.arange(rows)[:, None] / (2 + np.arange(channels)))
    return rhythm + 0.05 * rng.normal(size=(rows, channels))


def test_the_published_sizes_have_211_million_weights():
    with torch.device("meta"):
        published, small = (resolve(name).make(0)._module(38) for name in ("catch", "catch-small"))
    millions = [sum(each.numel() for each in m.parameters()) / 1e6 for m in (published, small)]
    # 210.7 here; the release is listed with 210.9, what makes the rest is not known.
    assert millions[0] == pytest.approx(210.9, abs=0.25)
    assert millions[1] < millions[0] / 14
    assert published.sizes.n_patches == 23
    assert [layer.in_features for layer in published.heads[0].square] == [5_888] * 3
    assert small.heads[0].square[0].in_features == 1_472


# ---------------------------------------------------------------------- the network, by loops


def linear(x, state, name):
    bias = state.get(f"{name}.bias", 0)
    return x @ state[f"{name}.weight"].T + bias


def norm(x, state, name):
    scaled = (x - x.mean()) / math.sqrt(x.var() + 1e-5)
    return scaled * state[f"{name}.weight"] + state[f"{name}.bias"]


def gelu(x):
    return np.array([v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x])


def attention(tokens, mask, state, block):
    """Two heads of four, across channels; also the mean cosine of queries and keys."""
    entered = np.array([norm(token, state, f"{block}.norms.0") for token in tokens])
    q, k, v = (linear(entered, state, f"{block}.{name}") for name in ("query", "key", "value"))
    n = len(tokens)
    joined, cosine = np.zeros((n, 8)), np.zeros((n, n))
    for head in range(2):
        part = slice(4 * head, 4 * head + 4)
        for i in range(n):
            dots = np.array([q[i, part] @ k[j, part] for j in range(n)])
            lengths = [np.linalg.norm(q[i, part]) * np.linalg.norm(k[j, part]) for j in range(n)]
            cosine[i] += dots / lengths / 2
            scores = np.where(mask[i] == 1, dots, -math.log(1e10)) / 2
            weights = np.exp(scores - scores.max())
            joined[i, part] = weights / weights.sum() @ v[:, part]
    return linear(joined, state, f"{block}.out.0"), cosine


def by_loops(x, masks, state):
    """One window (24, channels) under the masks of its five patches."""
    mean, scale = x.mean(axis=0), np.sqrt(x.var(axis=0) + 1e-5)
    spectrum = np.fft.fft((x - mean) / scale, axis=0).T  # (channels, 24)
    channels, wide, contrasts = len(spectrum), [], np.zeros(2)
    for p, mask in enumerate(masks):
        cut = spectrum[:, 4 * p : 4 * p + 8]
        tokens = linear(np.hstack([cut.real, cut.imag]), state, "embed")
        for i in range(2):
            block = f"blocks.{i}"
            attended, cosine = attention(tokens, mask, state, block)
            tokens = tokens + attended
            for c in range(channels):
                entered = norm(tokens[c], state, f"{block}.norms.1")
                inner = gelu(linear(entered, state, f"{block}.dense.0"))
                tokens[c] = tokens[c] + linear(inner, state, f"{block}.dense.3")
            alike = np.exp(cosine / 0.07)
            likely = (alike * mask).sum(axis=1) / alike.sum(axis=1)
            off = np.abs(np.eye(channels) - mask).sum() / (channels * (channels - 1))
            contrasts[i] += (-np.log(likely).mean() + 0.5 * off) / len(masks)
        wide.append(linear(tokens, state, "widen"))
    parts = []
    for branch in range(2):
        rows = []
        for c in range(channels):
            flat = np.concatenate([linear(w[c], state, f"split.{branch}") for w in wide])
            for layer in range(3):
                flat = flat + np.maximum(linear(flat, state, f"heads.{branch}.square.{layer}"), 0)
            rows.append(linear(flat, state, f"heads.{branch}.last"))
        parts.append(np.array(rows))
    predicted = parts[0] + 1j * parts[1]
    back = np.fft.ifft(predicted, axis=1)
    values = linear(np.hstack([back.real, back.imag]), state, "join").T
    error = np.abs(predicted - spectrum).mean()
    return values * scale + mean, error, contrasts.mean()


def test_the_network_equals_loops(monkeypatch):
    torch.manual_seed(0)
    module = CATCHModule(3, SIZES).eval()
    state = {name: each.double().numpy() for name, each in module.state_dict().items()}
    x = table(48).reshape(2, 24, 3)
    masks = np.random.default_rng(1).integers(0, 2, (2, 5, 3, 3))
    masks = np.maximum(masks, np.eye(3, dtype=int))
    drawn = torch.from_numpy(masks.reshape(10, 3, 3).astype(np.float32))
    monkeypatch.setattr(module, "_mask", lambda tokens: drawn)
    with torch.no_grad():
        found = module(torch.from_numpy(x.astype(np.float32)))
    expected = [by_loops(window, mask, state) for window, mask in zip(x, masks, strict=True)]
    np.testing.assert_allclose(found.values, [each[0] for each in expected], atol=1e-5)
    assert found.frequency_error.item() == pytest.approx(
        np.mean([each[1] for each in expected]), rel=1e-4
    )
    assert found.contrast.item() == pytest.approx(np.mean([each[2] for each in expected]), rel=1e-3)


def test_masks_are_drawn_anew_and_always_show_a_channel_itself():
    torch.manual_seed(0)
    module = CATCHModule(4, SIZES).eval()
    masks = module._mask(torch.randn(500, 4, 16))
    assert set(masks.unique().tolist()) == {0.0, 1.0}
    assert (masks.diagonal(dim1=1, dim2=2) == 1).all()
    off = masks[:, ~torch.eye(4, dtype=torch.bool)]
    assert 0.45 < off.mean().item() < 0.55  # a generator of zeros shows half of the pairs
    assert not torch.equal(masks, module._mask(torch.randn(500, 4, 16)))


def test_the_contrast_of_one_channel_is_zero():
    assert contrast(torch.ones(2, 1, 1), torch.ones(2, 1, 1), SIZES).item() == 0


def test_the_frequency_score_equals_loops():
    error = np.random.default_rng(0).normal(size=(2, 9, 3))
    found = frequency_score(torch.from_numpy(error), 4)
    for b in range(2):
        patches = [
            np.mean([np.abs(np.fft.fft(error[b, i : i + 4, c])) for c in range(3)])
            for i in range(6)
        ]
        for row in range(9):
            cover = [patches[i] for i in range(6) if i <= row < i + 4]
            assert found[b, row].item() == pytest.approx(np.mean(cover))


# ------------------------------------------------------------------------ training and scores


def test_the_stuck_schedule_and_the_halved_one():
    stuck, halved = CATCH(), CATCH(schedule="halved")
    assert [stuck._rate(epoch) for epoch in (1, 2, 3)] == pytest.approx([4e-6, 1e-4, 5e-5])
    assert [stuck._rate_of_masks(e) for e in (1, 2, 3)] == pytest.approx([4e-7, 1e-4, 5e-5])
    assert [halved._rate(epoch) for epoch in (1, 2, 3)] == pytest.approx([1e-4, 5e-5, 2.5e-5])
    assert [halved._rate_of_masks(e) for e in (1, 2)] == pytest.approx([1e-5, 5e-6])
    betas = [
        [each.param_groups[0]["betas"][0] for each in system._optimisers(CATCHModule(2, SIZES))]
        for system in (stuck, halved)
    ]
    assert betas == [[0.95, 0.95], [0.9, 0.9]]


def test_the_optimiser_of_the_masks_steps_on_what_it_has_gathered():
    detector = CATCH(**{**SMALL, "batch_size": 2}, epochs=1, max_train_windows=60)
    detector._train_starts(200)
    assert detector._every == 3  # a tenth of 30 batches
    torch.manual_seed(0)
    module = detector._module(3)
    network, masks = detector._optimisers(module)
    step = detector._step(module, (network, masks))
    batch = torch.from_numpy(table(48).reshape(2, 24, 3).astype(np.float32))
    moved = []
    for i in range(6):
        before = module.mask_generator.weight.clone()
        step(batch, type("At", (), {"epoch": 1, "batch": i}))
        moved.append(not torch.equal(before, module.mask_generator.weight))
    assert moved == [False, False, True, False, False, True]


def test_few_batches_step_the_masks_every_time():
    detector = CATCH(**SMALL)
    detector._train_starts(60)
    assert detector._every == 1


def test_scores_are_errors_of_rows_and_their_spectra(monkeypatch):
    train, series = table(100), table(60, seed=1)
    detector = CATCH(**SMALL, epochs=1).fit(train)
    monkeypatch.setattr(detector.module_, "_mask", lambda tokens: torch.ones(len(tokens), 3, 3))
    part = train[:80]  # the first 80 % scale everything
    scaled = (series - part.mean(axis=0)) / part.std(axis=0)
    state = {name: each.double().numpy() for name, each in detector.module_.state_dict().items()}
    expected = np.zeros(60)
    for start in (0, 24, 36):
        window = scaled[start : start + 24]
        error = by_loops(window, np.ones((5, 3, 3)), state)[0] - window
        patches = [np.abs(np.fft.fft(error[i : i + 6], axis=0)).mean() for i in range(19)]
        for row in range(start if start < 36 else 48, start + 24):
            cover = [patches[i] for i in range(19) if i <= row - start < i + 6]
            expected[row] = np.mean(error[row - start] ** 2) + 0.05 * np.mean(cover)
    np.testing.assert_allclose(detector.score(series), expected, rtol=1e-3, atol=1e-6)


def test_parts_that_fit_into_memory_change_no_gradient(monkeypatch):
    detector = CATCH(**SMALL, dropout=0.0)
    torch.manual_seed(0)
    module = detector._module(3)
    monkeypatch.setattr(module, "_mask", lambda tokens: torch.ones(len(tokens), 3, 3))
    batch = torch.from_numpy(table(96).reshape(4, 24, 3).astype(np.float32))
    slopes = []
    for pairs in (10**9, 1):  # all windows at once, then one by one
        monkeypatch.setattr(catch, "_PAIRS", pairs)
        assert len(detector._pieces(batch)) == (1 if pairs > 1 else 4)
        module.zero_grad()
        for loss in detector._loss_parts(module, batch):
            loss.backward()
        slopes.append(
            torch.cat([p.grad.ravel() for p in module.parameters() if p.grad is not None])
        )
    torch.testing.assert_close(slopes[0], slopes[1], rtol=1e-3, atol=1e-6)


def test_a_planted_anomaly_is_found():
    train, series = table(300), table(240, seed=1)
    series[150:156] += 5 * np.array([1, -1, 1, -1, 1, -1])[:, None]
    detector = CATCH(**SMALL, epochs=6, learning_rate=3e-3, patience=6).fit(train)
    scores = detector.score(series)
    assert 144 <= scores.argmax() <= 162


def test_short_tables_and_a_stride():
    detector = CATCH(**SMALL, epochs=1).fit(table(100))
    with pytest.raises(TooShortError, match="23 rows came"):
        detector.score(table(23))
    detector.score_stride = 2
    with pytest.raises(ConfigError, match="do not overlap"):
        detector.score(table(60))


def test_500_channels():
    detector = CATCH(**SMALL, epochs=1, max_train_windows=2).fit(table(60, 500))
    assert np.isfinite(detector.score(table(24, 500, seed=1))).all()
