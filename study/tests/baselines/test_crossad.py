"""CrossAD: the network against loops, the bank of what was usual, and scores."""

import math

import numpy as np
import pytest
import torch

from vace_ad.errors import TooShortError
from vace_study.baselines import crossad
from vace_study.baselines.crossad import CrossAD
from vace_study.baselines.modules.crossad import (
    Context,
    CrossADModule,
    Sizes,
    scale_mask,
    scales_of,
    stretched,
    strongest,
)

SMALL = {
    "window": 24,
    "patch": 3,
    "kernels": (4, 2),
    "d_model": 8,
    "heads": 2,
    "d_ff": 12,
    "queries": 2,
    "bank": 3,
    "frequencies": 4,
    "batch_size": 32,
}
SIZES = Sizes(24, 3, (4, 2), 8, 2, 2, 12, 0.1, 2, 3, 0.95, 1e-5, 4)


def table(rows, channels=2, seed=0):
    rng = np.random.default_rng(seed)
    rhythm = np.sin(np.arange(rows)[:, None] / (2 + np.arange(channels)))
    return rhythm + 0.05 * rng.normal(size=(rows, channels))


def test_the_published_sizes():
    module = CrossAD()._module(38)
    assert sum(each.numel() for each in module.parameters()) / 1e6 == pytest.approx(1.33, abs=5e-3)
    assert module.sizes.tokens == (1, 2, 4, 8, 16, 32)


# ---------------------------------------------------------------------------- small parts


def test_scales_and_edges():
    x = torch.arange(7.0)[None]
    found = [scale[0].tolist() for scale in scales_of(x, (4, 2))]
    assert found == [[1.5, 5.25], [0.5, 2.5, 4.5, 6.0], [0, 1, 2, 3, 4, 5, 6]]  # 4 5 6 and 6 again


def test_masks_between_scales():
    inside = scale_mask((1, 2), coarser=False)
    assert inside.tolist() == [[False, True, True], [True, False, False], [True, False, False]]
    coarser = scale_mask((1, 2), coarser=True)
    assert coarser.tolist() == [[False, True, True], [False] * 3, [False] * 3]


def test_stretching_repeats_tokens():
    tokens = torch.tensor([[[1.0], [2.0]]])
    assert stretched(tokens, 4)[0, :, 0].tolist() == [1, 1, 2, 2]


def test_the_strongest_frequencies():
    time = torch.arange(64) / 64 * 2 * math.pi
    strong, weak = torch.sin(3 * time), 0.1 * torch.cos(7 * time)
    torch.testing.assert_close(strongest((strong + weak)[None], 1)[0], strong, atol=1e-5, rtol=0)


def test_the_bank_moves_to_the_queries_that_are_near():
    context = Context(SIZES)
    with torch.no_grad():
        context.entries.copy_(torch.tensor([0.0, 5.0, 9.0])[:, None, None].expand(3, 2, 8))
        context.sums.copy_(context.entries)
    for _ in range(2):  # in two parts, as if in one
        context._gather(torch.full((2, 2, 8), 5.5))
    context.move()
    counts = [0.95, 0.95 + 0.05 * 4, 0.95]
    assert context.counts.tolist() == pytest.approx(counts)
    expected = (0.95 * 5 + 0.05 * 4 * 5.5) / counts[1]
    assert context.entries[1].mean().item() == pytest.approx(expected, rel=1e-4)
    assert context.entries[[0, 2], 0, 0].tolist() == pytest.approx([0, 9], rel=1e-4)


def test_the_bank_moves_in_training_only_and_queries_learn_past_it():
    torch.manual_seed(0)
    module = CrossADModule(SIZES)
    x, before = torch.randn(5, 24), module.context.entries.clone()
    module.eval()
    first, again = module(x)[0][-1], module(x)[0][-1]
    torch.testing.assert_close(first, again)
    torch.testing.assert_close(module.context.entries, before)
    module.train()
    guesses, truths = module(x)
    torch.testing.assert_close(module.context.entries, before)  # until the batch is done
    sum((g - t).square().mean() for g, t in zip(guesses, truths, strict=True)).backward()
    assert module.context.queries.grad.abs().sum() > 0
    assert module.context.router.weight.grad.abs().sum() > 0
    module.context.move()
    assert not torch.equal(module.context.entries, before)


# ---------------------------------------------------------------------- the network, by loops


def norm(x, state, name):
    centred = x - x.mean(axis=1, keepdims=True)
    scaled = centred / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    return scaled * state[f"{name}.weight"] + state[f"{name}.bias"]


def gelu(x):
    each = [v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x.ravel()]
    return np.array(each).reshape(x.shape)


def attend(entered, seen, shown, state, name):
    """Two heads of four; `shown` says which of `seen` each token may look at."""
    weight, bias = state[f"{name}.in_proj_weight"], state[f"{name}.in_proj_bias"]
    q, k, v = (
        each @ weight[8 * i : 8 * i + 8].T + bias[8 * i : 8 * i + 8]
        for i, each in enumerate((entered, seen, seen))
    )
    joined = np.zeros((len(q), 8))
    for head in range(2):
        part = slice(4 * head, 4 * head + 4)
        for i in range(len(q)):
            allowed = [j for j in range(len(k)) if shown(i, j)]
            scores = np.array([q[i, part] @ k[j, part] / 2 for j in allowed])
            weights = np.exp(scores - scores.max())
            joined[i, part] = weights / weights.sum() @ v[allowed, part]
    return joined @ state[f"{name}.out_proj.weight"].T + state[f"{name}.out_proj.bias"]


def dense(x, state, name):
    inner = gelu(x @ state[f"{name}.0.weight"].T + state[f"{name}.0.bias"])
    return inner @ state[f"{name}.3.weight"].T + state[f"{name}.3.bias"]


def by_loops(x, state):
    """The predicted scales of one window of 24: lengths 12 and 24, from 2 and 4 tokens."""
    scales = [[np.mean(x[i : i + k]) for i in range(0, 24, k)] for k in (4, 2)]
    angle = [[row / 10_000 ** (2 * (c // 2) / 8) for c in range(8)] for row in range(8)]
    fine = np.array(
        [[math.cos(a) if c % 2 else math.sin(a) for c, a in enumerate(r)] for r in angle]
    )
    tokens = []
    for scale in scales:
        patches = np.array(scale).reshape(-1, 3)
        pooled = fine.reshape(len(patches), -1, 8).mean(axis=1)
        tokens.append(patches @ state["embed.weight"].T + pooled)
    x, of = np.concatenate(tokens), [0, 0, 1, 1, 1, 1]
    for i in range(2):
        name = f"encoder.{i}"
        entered = norm(norm(x, state, f"{name}.norms.0"), state, f"{name}.norms.0")
        x = x + attend(entered, entered, lambda a, b: of[a] == of[b], state, f"{name}.attentions.0")
        x = x + dense(norm(x, state, f"{name}.norms.1"), state, f"{name}.dense")
    x = norm(x, state, "encoder_norm")
    x, of = (
        np.concatenate([np.repeat(x[:2], 2, axis=0), np.repeat(x[2:], 2, axis=0)]),
        [0] * 4 + [1] * 8,
    )
    bank = state["context.entries"].reshape(-1, 8)
    for i in range(2):
        name = f"decoder.{i}"
        entered = norm(x, state, f"{name}.norms.0")
        x = x + attend(entered, entered, lambda a, b: of[b] <= of[a], state, f"{name}.attentions.0")
        entered = norm(x, state, f"{name}.norms.1")
        x = x + attend(entered, bank, lambda a, b: True, state, f"{name}.attentions.1")
        x = x + dense(norm(x, state, f"{name}.norms.2"), state, f"{name}.dense")
    said = norm(x, state, "decoder_norm") @ state["leave.weight"].T + state["leave.bias"]
    return said[:4].ravel(), said[4:].ravel()


def numbers(module):
    return {name: each.double().numpy() for name, each in module.state_dict().items()}


def test_the_network_equals_loops():
    torch.manual_seed(0)
    module = CrossADModule(SIZES).eval()
    x = table(24, 3).T
    with torch.no_grad():
        guesses, truths = module(torch.from_numpy(x.astype(np.float32)))
    for c in range(3):
        expected = by_loops(x[c], numbers(module))
        for guess, each in zip(guesses, expected, strict=True):
            np.testing.assert_allclose(guess[c], each, atol=1e-5)
        np.testing.assert_allclose(truths[0][c], x[c].reshape(-1, 2).mean(axis=1), atol=1e-6)
        np.testing.assert_allclose(truths[1][c], x[c], atol=1e-6)


def stretch(values, n):
    """Straight lines between the middles of equal pieces, as far as they reach."""
    places = [(i + 0.5) * len(values) / n - 0.5 for i in range(n)]
    return np.interp(places, np.arange(len(values)), values)


def test_scores_are_errors_of_all_scales():
    train, series = table(120), table(60, seed=1)
    detector = CrossAD(**SMALL, epochs=1).fit(train)
    scaled = (series - train.mean(axis=0)) / train.std(axis=0)
    expected = np.zeros(60)
    for start in (0, 24, 36):
        total = np.zeros(24)
        for c in range(2):
            window = scaled[start : start + 24, c]
            coarse, fine = by_loops(window, numbers(detector.module_))
            halves = window.reshape(-1, 2).mean(axis=1)
            total += (stretch((coarse - halves) ** 2, 24) + (fine - window) ** 2) / 2
        first = start if start < 36 else 48
        expected[first : start + 24] = total[first - start :]
    np.testing.assert_allclose(detector.score(series), expected, rtol=1e-3, atol=1e-5)


def test_the_rate_and_the_validation_windows():
    detector = CrossAD(**SMALL)
    assert [detector._rate(e) for e in (1, 2, 3, 4)] == pytest.approx([1e-4, 1e-4, 5e-5, 2.5e-5])
    assert detector._validation_starts(60).tolist() == [0, 24, 36]
    assert len(detector._train_starts(5_000)) == 2_000


def test_parts_that_fit_into_memory_change_nothing(monkeypatch):
    whole = CrossAD(**SMALL, epochs=1).fit(table(100, 7))
    series = table(60, 7, seed=1)
    expected = whole.score(series)
    batch = torch.from_numpy(table(48, 7).reshape(2, 24, 7).astype(np.float32))
    loss = whole._losses(whole.module_, batch, None).item()
    monkeypatch.setattr(crossad, "_AT_ONCE", 3)
    np.testing.assert_allclose(whole.score(series), expected, rtol=1e-5)
    assert whole._losses(whole.module_, batch, None).item() == pytest.approx(loss)
    parts = CrossAD(**SMALL, epochs=1).fit(table(100, 7))
    assert np.isfinite(parts.score(series)).all()


def test_a_planted_anomaly_is_found():
    train, series = table(300), table(240, seed=1)
    series[150:156] += 4 * np.array([1, -1, 1, -1, 1, -1])[:, None]
    scores = CrossAD(**SMALL, epochs=4, learning_rate=3e-3).fit(train).score(series)
    assert 148 <= scores.argmax() <= 158


def test_a_table_shorter_than_a_window():
    detector = CrossAD(**SMALL, epochs=1).fit(table(100))
    with pytest.raises(TooShortError, match="23 rows came"):
        detector.score(table(23))


def test_500_channels():
    detector = CrossAD(**SMALL, epochs=1, max_train_windows=2).fit(table(60, 500))
    assert np.isfinite(detector.score(table(24, 500, seed=1))).all()
