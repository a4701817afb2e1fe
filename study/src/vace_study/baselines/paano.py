"""PaAno (2026): patch embeddings by a small CNN with shared kernels, and a memory bank.

Written from the paper's description. The encoder learns from two tasks: a triplet of projections
(a patch, one 1 or 2 rows away, the farthest of the batch) and a guess whether another patch lies
exactly one patch length earlier. Two releases exist, and both are here:

- `february`: a slip of masking makes the triplet loss exactly 0, so only the guess trains, and as
  its weight ends at iteration 20 of 200, nothing changes after that; we stop there.
- `may`: the triplet works, with margin 0.1, divided by 10; 100 iterations.

Not said in the description and chosen here: triplet distances are cosine distances, and the random
negatives of the guess come from the batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.engine import choose_engine
from vace_ad.engine.encoder import Encoder, Stage, StageShape, init_stages
from vace_ad.engine.patches import PatchSet
from vace_ad.engine.trajectory import embed
from vace_ad.engine.workers import workers
from vace_ad.errors import NotFittedError, TooShortError
from vace_ad.gradients.adamw import AdamW
from vace_ad.gradients.backprop import Batch, Gradients, TrainingPass
from vace_ad.gradients.batch_norm import with_running_statistics
from vace_study.baselines.contract import Method
from vace_study.baselines.memory import MemoryBank
from vace_study.baselines.windows import covering_means

Array = NDArray[np.float64]
Release = Literal["february", "may"]

_PATCH = 96  # rows
_WIDTHS = (128, 256, 128, 64)  # of the four convolutions
_TAPS = (7, 5, 3, 3)
_BATCH = 512  # anchors an iteration
_PRETEXT_ITERATIONS = 20  # the guess's weight falls from 1 to 0 over these
_ITERATIONS: dict[Release, int] = {"february": 200, "may": 100}
_NEGATIVES = 5  # random patches beside the true one
_RATES = (1e-4, 1e-5)  # learning rate, first and last
_DECAY = 1e-4
_MARGIN, _TRIPLET_WEIGHT = 0.1, 0.1  # of the release of May


@dataclass
class PaAno:
    """Mean cosine distance of a row's patches to the nearest training patches."""

    release: Release = "february"
    random_state: int = 0

    def fit(self, table: NDArray[np.float64]) -> PaAno:
        """Train the encoder and fill the memory bank."""
        rng = np.random.default_rng(self.random_state)
        patches = _patches(table)
        encoder = init_stages(_shapes(table.shape[1]), rng)
        if len(patches) > _PATCH:  # else no patch has another a length earlier
            encoder = _train(encoder, patches, self.release, rng)
        self._engine = choose_engine([encoder], table.shape[1], _PATCH)
        self._bank = MemoryBank.fit(self._embed(patches), self.random_state)
        return self

    def score(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score every row by the patches that cover it."""
        if not hasattr(self, "_bank"):
            raise NotFittedError("this PaAno has learned nothing yet; call fit first")
        return covering_means(self._bank.score(self._embed(_patches(table))), _PATCH)

    def _embed(self, patches: PatchSet) -> NDArray[np.float32]:
        """Embeddings of all patches, (n_patches, 64)."""
        blocks = embed(self._engine, patches, np.arange(len(patches)))
        return np.concatenate([block[:, 0] for block in blocks])


def _shapes(n_channels: int) -> list[StageShape]:
    """Four convolutions with kernels that all channels share."""
    entering = (n_channels, *_WIDTHS)
    return [
        StageShape(n_out, n_in, taps, 1)
        for n_in, n_out, taps in zip(entering, _WIDTHS, _TAPS, strict=False)
    ]


def _patches(table: NDArray[np.float64]) -> PatchSet:
    if len(table) < _PATCH:
        raise TooShortError(f"{len(table)} rows came; PaAno needs at least {_PATCH}, one patch")
    values = np.asarray(table, dtype=np.float64)
    return PatchSet([values], _PATCH, np.ones(values.shape[1]))


def _train(
    encoder: Encoder, patches: PatchSet, release: Release, rng: np.random.Generator
) -> Encoder:
    """The encoder as it was when the loss was lowest."""
    lowest, kept, iterations = math.inf, encoder, _ITERATIONS[release]
    with workers() as executor:
        capacity = min(3 * _BATCH, len(patches))
        forth_and_back = TrainingPass(encoder, _PATCH, capacity, executor)
        heads = _heads(rng)
        optimisers = AdamW(_DECAY), AdamW(_DECAY)  # of the encoder, of the heads
        for t in range(iterations):
            weight = max(0.0, 1 - t / _PRETEXT_ITERATIONS)
            rows = _batch(len(patches), release == "may", rng)  # (2 or 3, n)
            batch = Batch.of(rows, patches.gather)
            z = forth_and_back.forward(encoder, batch.patches, batch.counts)
            found = _loss(z[batch.where].astype(np.float64), heads, weight, rng)
            if found.value > 0:
                total = np.zeros(z.shape)
                np.add.at(total, batch.where, found.slopes)
                gradients = forth_and_back.backward(total.astype(np.float32))
                cosine = (1 + math.cos(math.pi * t / iterations)) / 2
                rate = _RATES[1] + (_RATES[0] - _RATES[1]) * cosine
                encoder = optimisers[0].step(encoder, gradients, rate)
                heads = optimisers[1].step(heads, found.gradients, rate)
            encoder = with_running_statistics(encoder, forth_and_back.norms)
            if found.value < lowest:
                lowest, kept = found.value, encoder
            if release == "february" and weight == 0:
                break  # the loss is 0 from here on, so these are the weights kept
    return kept


def _batch(n_patches: int, triplet: bool, rng: np.random.Generator) -> NDArray[np.intp]:
    """Anchors, the patches a length earlier and, for the triplet, those 1 or 2 rows away."""
    n = min(_BATCH, n_patches - _PATCH)
    anchors = _PATCH + rng.choice(n_patches - _PATCH, n, replace=False)
    rows = [anchors, anchors - _PATCH]
    if triplet:
        near = anchors + rng.choice([-2, -1, 1, 2], n)
        rows.append(np.minimum(near, n_patches - 1))
    return np.stack(rows)


# ------------------------------------------------------- the two losses and their gradients


class _Loss(NamedTuple):
    """A loss, its gradient in the embeddings (groups, n, 64), and in the heads."""

    value: float
    slopes: Array
    gradients: list[Gradients]


def _heads(rng: np.random.Generator) -> Encoder:
    """A guess 128 → 1 and a projection 64 → 256 → 256; the last input of each is 1, its bias."""
    shapes = ((1, 129), (256, 65), (256, 257))
    return tuple(
        Stage(rng.uniform(-1, 1, (n_out, n_in, 1)).astype(np.float32) / np.sqrt(n_in), 1, None)
        for n_out, n_in in shapes
    )


def _loss(z: Array, heads: Encoder, weight: float, rng: np.random.Generator) -> _Loss:
    """The guess, by its weight, and the triplet where there are near patches."""
    guess, first, second = (stage.kernel[:, :, 0].astype(np.float64) for stage in heads)
    value, slopes = 0.0, np.zeros(z.shape)
    gradients = [np.zeros_like(guess), np.zeros_like(first), np.zeros_like(second)]
    if weight > 0:
        others = rng.integers(z.shape[1], size=(z.shape[1], _NEGATIVES))
        part, slope, gradients[0] = guess_loss(z[:2], guess, others)
        value += weight * part
        slopes[:2] += weight * slope
        gradients[0] *= weight
    if len(z) == 3:
        part, slope, gradients[1:] = triplet_loss(z[[0, 2]], first, second)
        value += _TRIPLET_WEIGHT * part
        slopes[[0, 2]] += _TRIPLET_WEIGHT * slope
        gradients[1:] = [_TRIPLET_WEIGHT * each for each in gradients[1:]]
    kernels = [each[:, :, None].astype(np.float32) for each in gradients]
    return _Loss(value, slopes, [Gradients(each, None, None) for each in kernels])


def guess_loss(
    z: Array,  # (2, n, 64): anchors, and the patches a length earlier
    head: Array,  # (1, 129)
    others: NDArray[np.intp],  # (n, negatives), places of anchors
) -> tuple[float, Array, Array]:
    """Binary cross-entropy of telling the earlier patch from others; gradients in z and head."""
    n, negatives = others.shape
    left = np.concatenate([np.arange(n), np.repeat(np.arange(n), negatives)])  # of each pair
    right = np.concatenate([z[1], z[0][others.ravel()]])  # (n · (1 + negatives), 64)
    pairs = np.hstack([z[0][left], right, np.ones((len(left), 1))])
    truth = (np.arange(len(left)) < n).astype(np.float64)
    logits = pairs @ head[0]
    loss = float(np.mean(np.logaddexp(0, logits) - truth * logits))
    error = (1 / (1 + np.exp(-logits)) - truth) / len(left)
    slopes = np.zeros(z.shape)
    size = z.shape[2]
    np.add.at(slopes[0], left, error[:, None] * head[:, :size])
    np.add.at(slopes[0], others.ravel(), error[n:, None] * head[:, size : 2 * size])
    slopes[1] = error[:n, None] * head[:, size : 2 * size]
    return loss, slopes, (error @ pairs)[None]


def triplet_loss(
    z: Array,  # (2, n, 64): anchors, and patches near them
    first: Array,  # (256, 65)
    second: Array,  # (256, 257)
) -> tuple[float, Array, list[Array]]:
    """Near patches nearer, by a margin, than the farthest of the batch; gradients."""
    n = z.shape[1]
    ones = np.ones((2 * n, 1))
    entered = np.hstack([z.reshape(2 * n, -1), ones])
    hidden = entered @ first.T
    active = np.hstack([np.maximum(hidden, 0), ones])
    projected = active @ second.T  # (2n, 256)
    length = np.maximum(np.linalg.norm(projected, axis=1, keepdims=True), 1e-12)
    unit = projected / length
    anchor, near = unit[:n], unit[n:]
    cosine = anchor @ anchor.T
    farthest = cosine.argmin(axis=1)
    excess = cosine[np.arange(n), farthest] - (anchor * near).sum(axis=1) + _MARGIN
    counts = (excess > 0).astype(np.float64)[:, None] / n
    slope = np.zeros_like(unit)
    slope[:n] = counts * (anchor[farthest] - near)
    np.add.at(slope, farthest, counts * anchor)
    slope[n:] = -counts * anchor
    slope = (slope - unit * (unit * slope).sum(axis=1, keepdims=True)) / length
    to_second = slope.T @ active
    slope = (slope @ second[:, :-1]) * (hidden > 0)
    to_z = (slope @ first[:, :-1]).reshape(z.shape)
    return float(np.maximum(excess, 0).mean()), to_z, [slope.T @ entered, to_second]


def _method(name: str, release: Release) -> Method:
    settings = {
        "release": release,
        "patch_length": _PATCH,
        "widths": _WIDTHS,
        "batch_size": _BATCH,
    }
    return Method(name, lambda seed: PaAno(release, seed), settings, category="Self-Supervised")


METHODS = (_method("paano", "february"), _method("paano-may", "may"))
