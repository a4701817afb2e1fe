"""The velocity-consistency pretext: the only gradient training.

L = mean over t of 1 − ⟨v^b_t, v^f_t⟩, times λ_t = 1 − t/T_iter, with the backward velocity
v^b_t = (z_t − z_{t−δ}) / max(ε, ‖·‖) and the forward one v^f_t = (z_{t+δ} − z_t) / max(ε, ‖·‖).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Executor
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.engine.encoder import Encoder
from vace_ad.engine.patches import PatchSet
from vace_ad.engine.workers import workers
from vace_ad.gradients.adamw import AdamW
from vace_ad.gradients.backprop import Batch, TrainingPass
from vace_ad.gradients.batch_norm import with_running_statistics
from vace_ad.progress import Progress, silent

EPSILON = 1e-8  # shortest vector that has a direction
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


class Learner(Protocol):
    """Who holds the weights in training and changes them."""

    @property
    def encoder(self) -> Encoder:
        """The weights as they stand."""
        ...

    def step(self, triples: Triples, weight: float, rate: float) -> float:
        """One iteration; returns the loss before λ. Weight 0 only feeds BatchNorm."""
        ...


def train(
    encoder: Encoder,
    patches: PatchSet,
    config: VACEConfig,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Trained:
    """Run the iterations; without the pretext, or without a triple, they only feed BatchNorm."""
    if config.device != "cpu":
        from vace_ad.training.pretext_torch import TorchLearner

        return run(TorchLearner(encoder, patches, config), patches, config, rng, progress)
    with workers() as executor:
        learner = HandLearner(encoder, patches, config, executor)
        return run(learner, patches, config, rng, progress)


def run(
    learner: Learner,
    patches: PatchSet,
    config: VACEConfig,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Trained:
    """The iterations of a learner, and the checkpoint it keeps."""
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


class HandLearner:
    """Training on the CPU, equal patches of a batch computed once."""

    def __init__(
        self, encoder: Encoder, patches: PatchSet, config: VACEConfig, executor: Executor
    ) -> None:
        most = min(3 * config.reproduction.batch_size, len(patches) + 1)
        self.encoder: Encoder = encoder
        self._patches = patches
        self._pass = TrainingPass(encoder, config.length, most, executor)
        self._optimiser = AdamW(config.reproduction.weight_decay)

    def step(self, triples: Triples, weight: float, rate: float) -> float:
        """One iteration; returns the loss before λ."""
        batch = Batch.of(triples.rows, partial(gather, self._patches))
        z = self._pass.forward(self.encoder, batch.patches, batch.counts)
        loss, slopes = velocity_loss(z[batch.where], triples.whole)
        if weight > 0 and math.isfinite(loss):
            total = np.zeros(z.shape)
            np.add.at(total, batch.where, weight * slopes)
            gradients = self._pass.backward(total.astype(np.float32))
            self.encoder = self._optimiser.step(self.encoder, gradients, rate)
        self.encoder = with_running_statistics(self.encoder, self._pass.norms)
        return loss


def velocity_loss(
    z: NDArray[np.float32],  # (3, n, d_z): anchor, δ before, δ after
    whole: NDArray[np.bool_],  # (n,)
) -> tuple[float, NDArray[np.float64]]:
    """The mean of 1 − ⟨v^b, v^f⟩ over whole triples, and its gradient in z, (3, n, d_z)."""
    slopes = np.zeros(z.shape)
    if not whole.any():
        return math.nan, slopes
    anchor, before, after = z[:, whole].astype(np.float64)
    came, back_length = _direction(anchor - before)  # v^b, (n, d_z)
    goes, forth_length = _direction(after - anchor)  # v^f
    cosine = (came * goes).sum(axis=1, keepdims=True)
    # A direction d/‖d‖ turns only sideways; d/ε, of a shorter d, also grows.
    to_came = (goes - came * cosine * (back_length > EPSILON)) / back_length
    to_goes = (came - goes * cosine * (forth_length > EPSILON)) / forth_length
    slopes[:, whole] = np.stack([to_goes - to_came, to_came, -to_goes]) / whole.sum()
    return float((1 - cosine).mean()), slopes


def _direction(moves: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    length = np.maximum(EPSILON, np.linalg.norm(moves, axis=1, keepdims=True))
    return moves / length, length


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
