"""The velocity-consistency pretext: the only gradient training.

L = mean over t of 1 − ⟨v^b_t, v^f_t⟩, times λ_t = 1 − t/T_iter, with the backward velocity
v^b_t = (z_t − z_{t−δ}) / max(ε, ‖·‖) and the forward one v^f_t = (z_{t+δ} − z_t) / max(ε, ‖·‖).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.engine.torch import from_module, import_torch, to_module
from vace_ad.method.encoder import Encoder
from vace_ad.method.patches import PatchSet
from vace_ad.method.prototypes import EPSILON
from vace_ad.progress import Progress, silent

if TYPE_CHECKING:
    import torch


class Trained(NamedTuple):
    """An encoder after its iterations."""

    encoder: Encoder
    losses: list[float]  # of each iteration, before λ; NaN where no anchor had both neighbours


def train(
    encoder: Encoder,
    patches: PatchSet,
    config: VACEConfig,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Trained:
    """Run the iterations; without the pretext, or without a triple, they only feed BatchNorm."""
    torch = import_torch("a fit with iterations > 0")
    module = to_module(encoder, config.device).train()
    optimiser = torch.optim.AdamW(
        module.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    batches = anchor_batches(patches, config, rng)
    losses: list[float] = []
    lowest, kept = math.inf, None
    for t in range(config.iterations):
        weight = loss_weight(t, config)
        anchors = next(batches)
        with torch.set_grad_enabled(weight > 0):
            loss = _triple_loss(module, patches, anchors, config)
        losses.append(float(loss))
        if weight > 0 and math.isfinite(losses[-1]):
            for group in optimiser.param_groups:
                group["lr"] = learning_rate(t, config)
            optimiser.zero_grad()
            (weight * loss).backward()
            optimiser.step()
        weighted = weight * losses[-1] if weight > 0 else 0.0
        if config.checkpoint == "lowest" and weighted < lowest:
            lowest, kept = weighted, copy.deepcopy(module)
        progress("training", t + 1, config.iterations)
    return Trained(from_module(kept or module, encoder), losses)


def loss_weight(t: int, config: VACEConfig) -> float:
    """λ_t, counted from 0 or, where the last iteration is BatchNorm's alone, from 1."""
    if not config.pretext:
        return 0.0
    return 1 - (t + (config.last_iteration == "batch_norm")) / config.iterations


def learning_rate(t: int, config: VACEConfig) -> float:
    """The cosine from the first to the final rate."""
    span = config.learning_rate - config.final_learning_rate
    return config.final_learning_rate + span * (1 + math.cos(math.pi * t / config.iterations)) / 2


def has_triples(patches: PatchSet, config: VACEConfig) -> bool:
    """Whether any patch has a neighbour on both sides."""
    return bool(_whole(patches, np.arange(len(patches)), config.training_offset).any())


def anchor_batches(
    patches: PatchSet, config: VACEConfig, rng: np.random.Generator
) -> Iterator[NDArray[np.intp]]:
    """Anchors without end: one shuffled pass after another, cut into batches."""
    pool = np.arange(len(patches))
    if config.missing_neighbour == "skip":
        whole = _whole(patches, pool, config.training_offset)
        pool = pool[whole] if whole.any() else pool
    size = min(config.batch_size, len(pool))
    while True:
        order = rng.permutation(pool)
        for a in range(0, len(order) - size + 1, size):
            yield order[a : a + size]


def _whole(patches: PatchSet, index: NDArray[np.intp], offset: int) -> NDArray[np.bool_]:
    return patches.shifted(index, -offset)[1] & patches.shifted(index, offset)[1]


def _triple_loss(
    module: torch.nn.Module, patches: PatchSet, anchors: NDArray[np.intp], config: VACEConfig
) -> torch.Tensor:
    """Mean of 1 − ⟨v^b, v^f⟩ over the anchors that have both neighbours.

    Anchors and neighbours go through the encoder together, so BatchNorm sees one batch. A
    neighbour that does not exist is a patch of zeros.
    """
    import torch

    offset = config.training_offset
    triples = [patches.shifted(anchors, step) for step in (0, -offset, offset)]
    index = np.concatenate([numbers for numbers, _ in triples])  # (3n,)
    exists = np.concatenate([inside for _, inside in triples])
    batch = patches.gather(np.where(exists, index, anchors[0]))
    batch[~exists] = 0
    z, before, after = module(torch.from_numpy(batch).to(config.device)).chunk(3)  # (n, d_z)
    cosine = (_unit(z - before) * _unit(after - z)).sum(dim=1)
    both = torch.from_numpy(exists[len(anchors) :].reshape(2, -1).all(axis=0))
    return (1 - cosine)[both.to(config.device)].mean()


def _unit(vectors: torch.Tensor) -> torch.Tensor:
    return vectors / vectors.norm(dim=1, keepdim=True).clamp_min(EPSILON)
