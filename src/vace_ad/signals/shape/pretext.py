"""The velocity-consistency pretext: the only gradient training.

L = mean over t of 1 − ⟨v^b_t, v^f_t⟩, times λ_t = 1 − t/T_iter, with the backward velocity
v^b_t = (z_t − z_{t−δ}) / max(ε, ‖·‖) and the forward one v^f_t = (z_{t+δ} − z_t) / max(ε, ‖·‖).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.engine.encoder import Encoder
from vace_ad.engine.patches import PatchSet
from vace_ad.engine.torch import from_module, import_torch, to_module
from vace_ad.progress import Progress, silent
from vace_ad.signals.shape.embeddings import EPSILON

ZEROS = -1  # number of the patch of zeros


class Trained(NamedTuple):
    """An encoder after its iterations."""

    encoder: Encoder
    losses: list[float]  # of each iteration, before λ; NaN where no anchor had both neighbours


class Triples(NamedTuple):
    """Anchors with their neighbours: patch numbers, ZEROS where there is no such patch."""

    rows: NDArray[np.intp]  # (3, n): anchor, δ before, δ after
    whole: NDArray[np.bool_]  # (n,), whether both neighbours exist

    @classmethod
    def of(cls, anchors: NDArray[np.intp], patches: PatchSet, offset: int) -> Triples:
        """The triples of these anchors."""
        shifted = [patches.shifted(anchors, step) for step in (0, -offset, offset)]
        rows = np.stack([np.where(inside, numbers, ZEROS) for numbers, inside in shifted])
        return cls(rows, (rows != ZEROS).all(axis=0))


def train(
    encoder: Encoder,
    patches: PatchSet,
    config: VACEConfig,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Trained:
    """Run the iterations; without the pretext, or without a triple, they only feed BatchNorm."""
    learner = _Learner(encoder, patches, config)
    batches = anchor_batches(patches, config, rng)
    losses: list[float] = []
    lowest, kept = math.inf, None
    for t in range(config.reproduction.iterations):
        triples = Triples.of(next(batches), patches, config.training_offset)
        weight = loss_weight(t, config)
        losses.append(learner.step(triples, weight, learning_rate(t, config)))
        weighted = weight * losses[-1] if weight > 0 else 0.0
        if config.reproduction.checkpoint == "lowest" and weighted < lowest:
            lowest, kept = weighted, learner.encoder
        progress("training", t + 1, config.reproduction.iterations)
    return Trained(kept or learner.encoder, losses)


class _Learner:
    """Who holds the weights in training and changes them: a torch module and AdamW."""

    def __init__(self, encoder: Encoder, patches: PatchSet, config: VACEConfig) -> None:
        self._torch = import_torch("training an encoder (the presets paper and released)", "paper")
        self._like, self._patches, self._device = encoder, patches, config.device
        self._module = to_module(encoder, config.device).train()
        self._optimiser = _AdamW(self._module, config.reproduction.weight_decay)

    @property
    def encoder(self) -> Encoder:
        """The weights as they stand."""
        return from_module(self._module, self._like)

    def step(self, triples: Triples, weight: float, rate: float) -> float:
        """One iteration; returns the loss before λ. Weight 0 only feeds BatchNorm."""
        with self._torch.set_grad_enabled(weight > 0):
            loss = self._loss(triples)
        value = float(loss.detach())
        if weight > 0 and math.isfinite(value):
            self._module.zero_grad()
            (weight * loss).backward()
            self._optimiser.step(rate)
        return value

    def _loss(self, triples: Triples) -> Any:
        """Mean of 1 − ⟨v^b, v^f⟩ over the anchors that have both neighbours.

        Anchors and neighbours go through the encoder together, so BatchNorm sees one batch.
        """
        batch = self._torch.from_numpy(gather(self._patches, triples.rows.ravel()))
        z, before, after = self._module(batch.to(self._device)).chunk(3)  # (n, d_z) each
        cosine = (_unit(z - before) * _unit(after - z)).sum(dim=1)
        whole = self._torch.from_numpy(triples.whole).to(self._device)
        return (1 - cosine)[whole].mean()


class _AdamW:
    """torch's AdamW by its function: the class imports torch's compiler, seconds before a fit."""

    def __init__(self, module: Any, weight_decay: float) -> None:
        import torch

        self._torch, self._weight_decay = torch, weight_decay
        self._parameters: list[Any] = list(module.parameters())
        self._means = [torch.zeros_like(one) for one in self._parameters]
        self._squares = [torch.zeros_like(one) for one in self._parameters]
        self._steps = [torch.tensor(0.0) for _ in self._parameters]

    def step(self, rate: float) -> None:
        """Change the weights by their gradients, those that have one."""
        from torch.optim.adamw import adamw

        given = [i for i, one in enumerate(self._parameters) if one.grad is not None]
        kept = (self._parameters, self._means, self._squares, self._steps)
        weights, means, squares, steps = ([each[i] for i in given] for each in kept)
        gradients: list[Any] = [one.grad for one in weights]
        with self._torch.no_grad():
            adamw(weights, gradients, means, squares, [], steps,
                  amsgrad=False, beta1=0.9, beta2=0.999, eps=1e-8, maximize=False,
                  lr=rate, weight_decay=self._weight_decay)  # fmt: skip


def _unit(vectors: Any) -> Any:
    return vectors / vectors.norm(dim=1, keepdim=True).clamp_min(EPSILON)


def gather(patches: PatchSet, rows: NDArray[np.intp]) -> NDArray[np.float32]:
    """The normalised patches of these numbers, zeros for ZEROS, (n, n_channels, P)."""
    batch = patches.gather(np.maximum(rows, 0))
    batch[rows == ZEROS] = 0
    return batch


def loss_weight(t: int, config: VACEConfig) -> float:
    """λ_t, counted from 0 or, where the last iteration is BatchNorm's alone, from 1."""
    if not config.reproduction.pretext:
        return 0.0
    return (
        1
        - (t + (config.reproduction.last_iteration == "batch_norm"))
        / config.reproduction.iterations
    )


def learning_rate(t: int, config: VACEConfig) -> float:
    """The cosine from the first to the final rate."""
    span = config.reproduction.learning_rate - config.reproduction.final_learning_rate
    return (
        config.reproduction.final_learning_rate
        + span * (1 + math.cos(math.pi * t / config.reproduction.iterations)) / 2
    )


def has_triples(patches: PatchSet, config: VACEConfig) -> bool:
    """Whether any patch has a neighbour on both sides."""
    every = np.arange(len(patches))
    return bool(Triples.of(every, patches, config.training_offset).whole.any())


def anchor_batches(
    patches: PatchSet, config: VACEConfig, rng: np.random.Generator
) -> Iterator[NDArray[np.intp]]:
    """Anchors without end: one shuffled pass after another, cut into batches."""
    pool = np.arange(len(patches))
    if config.reproduction.missing_neighbour == "skip":
        whole = Triples.of(pool, patches, config.training_offset).whole
        pool = pool[whole] if whole.any() else pool
    size = min(config.reproduction.batch_size, len(pool))
    while True:
        order = rng.permutation(pool)
        for a in range(0, len(order) - size + 1, size):
            yield order[a : a + size]
