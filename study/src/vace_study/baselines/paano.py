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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vace_ad.engine import choose_engine
from vace_ad.engine.encoder import Encoder, StageShape, init_stages
from vace_ad.engine.patches import PatchSet, embed
from vace_ad.engine.torch import from_module, import_torch, to_module
from vace_ad.errors import NotFittedError, TooShortError
from vace_study.baselines.contract import Method
from vace_study.baselines.memory import MemoryBank
from vace_study.baselines.windows import covering_means

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
    torch = import_torch("training PaAno", "paper")
    module, heads = to_module(encoder, "cpu").train(), _heads(rng)
    optimiser = torch.optim.AdamW([*module.parameters(), *heads], weight_decay=_DECAY)
    lowest, kept, iterations = math.inf, encoder, _ITERATIONS[release]
    for t in range(iterations):
        weight = max(0.0, 1 - t / _PRETEXT_ITERATIONS)
        rows = _batch(len(patches), release == "may", rng)  # (2 or 3, n)
        z = module(torch.from_numpy(patches.gather(rows.ravel())))
        loss = _loss(z.reshape(*rows.shape, -1), heads, weight, rng)
        value = float(loss.detach())
        if value > 0:
            cosine = (1 + math.cos(math.pi * t / iterations)) / 2
            for group in optimiser.param_groups:
                group["lr"] = _RATES[1] + (_RATES[0] - _RATES[1]) * cosine
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        if value < lowest:
            lowest, kept = value, from_module(module, encoder)
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


def _heads(rng: np.random.Generator) -> list[Any]:
    """A guess 128 → 1 and a projection 64 → 256 → 256; the last input of each is 1, its bias."""
    import torch

    shapes = ((1, 129), (256, 65), (256, 257))
    arrays = [
        (rng.uniform(-1, 1, shape) / np.sqrt(shape[1])).astype(np.float32) for shape in shapes
    ]
    return [torch.nn.Parameter(torch.from_numpy(array)) for array in arrays]


def _loss(z: Any, heads: Sequence[Any], weight: float, rng: np.random.Generator) -> Any:
    """The guess, by its weight, and the triplet where there are near patches; z (2 or 3, n, 64)."""
    loss = 0.0 * z.sum()
    if weight > 0:
        others = rng.integers(z.shape[1], size=(z.shape[1], _NEGATIVES))
        loss = loss + weight * guess_loss(z[:2], heads[0], others)
    if len(z) == 3:
        loss = loss + _TRIPLET_WEIGHT * triplet_loss(z[[0, 2]], *heads[1:])
    return loss


def guess_loss(
    z: Any,  # (2, n, 64): anchors, and the patches a length earlier
    head: Any,  # (1, 129)
    others: NDArray[np.intp],  # (n, negatives), places of anchors
) -> Any:
    """Binary cross-entropy of telling the earlier patch from others."""
    from torch import cat, ones_like, zeros_like
    from torch.nn.functional import binary_cross_entropy_with_logits, linear

    anchor, earlier = z
    negatives = others.shape[1]
    left = cat([anchor, anchor.repeat_interleave(negatives, 0)])
    pairs = cat([left, cat([earlier, anchor[others.ravel()]])], dim=1)
    logits = linear(pairs, head[:, :-1], head[:, -1])[:, 0]
    truth = cat([ones_like(logits[: len(anchor)]), zeros_like(logits[len(anchor) :])])
    return binary_cross_entropy_with_logits(logits, truth)


def triplet_loss(
    z: Any,  # (2, n, 64): anchors, and patches near them
    first: Any,  # (256, 65)
    second: Any,  # (256, 257)
) -> Any:
    """Near patches nearer, by a margin, than the farthest of the batch."""
    from torch.nn.functional import linear, normalize, relu

    hidden = relu(linear(z, first[:, :-1], first[:, -1]))
    anchor, near = normalize(linear(hidden, second[:, :-1], second[:, -1]), dim=2)
    to_near = 1 - (anchor * near).sum(dim=1)
    to_far = (1 - anchor @ anchor.T).amax(dim=1)
    return (to_near - to_far + _MARGIN).clamp_min(0).mean()


def _method(name: str, release: Release) -> Method:
    settings = {
        "release": release,
        "patch_length": _PATCH,
        "widths": _WIDTHS,
        "batch_size": _BATCH,
    }
    return Method(name, lambda seed: PaAno(release, seed), settings, category="Self-Supervised")


METHODS = (_method("paano", "february"), _method("paano-may", "may"))
