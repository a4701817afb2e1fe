"""Fine-tuning as the authors submitted it: all weights, on windows with one patch hidden.

Not said and chosen here: the windows of each part are all that it holds; a sample keeps its hidden
patch in every epoch; where channels are capped, each step draws its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vace_study.baselines.modules.tspulse import TSPulseModule, losses
from vace_study.baselines.networks.backend import seeded
from vace_study.baselines.networks.batches import Windows
from vace_study.baselines.networks.training import At, EarlyStopping, Loop, Parts, train
from vace_study.baselines.networks.windows import split

if TYPE_CHECKING:
    Array = NDArray[np.float64]

_FEW_ROWS, _FEW_EPOCHS = 3_000, 5  # below: no validation part, and at most so many epochs
_LEAST_SAMPLES = 100  # below: the weights stay as they are
_SMALL, _BATCH, _SMALL_BATCH = 500, 256, 8  # below so many samples, the smaller batch
_LEAST_GAIN = 1e-5


class Tuning(Protocol):
    """The settings that count here."""

    epochs: int
    max_samples: int
    max_channels: int | None
    learning_rate: float
    patience: int
    random_state: int


class _Samples(Windows):
    """Windows that carry, as a last channel, 1 where a row is hidden."""

    def __init__(self, table: Array, starts: Array, first_hidden: Array, module: TSPulseModule):
        sizes, device = module.sizes, str(module.backbone.base_norm.weight.device)
        super().__init__(table, starts.astype(np.intp), sizes.context_length, device)
        self._first = torch.from_numpy(first_hidden).to(device)
        self._patch = sizes.patch_length

    def take(self, places: Tensor) -> Tensor:
        """(len(places), context, n_channels + 1)."""
        first = self._first[places][:, None]
        hidden = (self._steps >= first) & (self._steps < first + self._patch)
        values = super().take(places)
        return torch.cat([values, hidden[..., None].to(values.dtype)], dim=2)


def tune(module: TSPulseModule, table: Array, tail: int, settings: Tuning) -> list[list[float]]:
    """Train the module in place; returns the watched losses of each epoch, none if skipped."""
    few, cut = len(table) < _FEW_ROWS, _cut(len(table))
    rng = np.random.default_rng(settings.random_state)
    training = _samples(module, table[:cut], tail, settings.max_samples, rng)
    if training is None or len(training) < _LEAST_SAMPLES:
        return []
    validation = _samples(module, table[cut:], tail, settings.max_samples, rng)
    batch = _SMALL_BATCH if len(training) < _SMALL else _BATCH
    epochs = min(settings.epochs, _FEW_EPOCHS) if few else settings.epochs
    optimiser = torch.optim.AdamW(module.parameters(), lr=settings.learning_rate)
    steps = epochs * -(-len(training) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=settings.learning_rate, total_steps=steps + 1
    )
    watch = _Watch(module, settings.max_channels)

    def step(samples: Tensor, at: At) -> Tensor:
        optimiser.zero_grad()
        found = watch(samples, at)
        found.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
        return found

    def rate(epoch: int) -> float:
        return float(optimiser.param_groups[0]["lr"])  # the schedule sets it, batch by batch

    with seeded(settings.random_state, next(module.parameters()).device.type):
        return train(
            module,
            Parts(training, validation),
            step,
            watch,
            [optimiser],
            Loop(epochs, batch, rate),
            EarlyStopping(settings.patience, _LEAST_GAIN, "best"),
        )


def n_samples(n_rows: int, module: TSPulseModule, tail: int) -> int:
    """How many samples the part of a table that trains has."""
    n_windows = _cut(n_rows) - module.sizes.context_length + 1
    return max(0, n_windows) * (tail // module.sizes.patch_length)


def _cut(n_rows: int) -> int:
    """Rows that train; the others validate."""
    return n_rows if n_rows < _FEW_ROWS else split(n_rows)


class _Watch:
    """The loss of a batch of samples."""

    def __init__(self, module: TSPulseModule, most: int | None) -> None:
        self._module, self._most = module, most

    def __call__(self, samples: Tensor, at: At) -> Tensor:
        values, hidden = samples[..., :-1], samples[..., -1].bool()
        channels = values.shape[2]
        if self._most is not None and channels > self._most:
            chosen = torch.randperm(channels)[: self._most].to(values.device)
            values, channels = values[..., chosen], self._most
        flat = values.transpose(1, 2).flatten(0, 1)  # (b · channels, context)
        masks = hidden.repeat_interleave(channels, dim=0)
        output = self._module(flat, masks)
        return losses(output, flat, masks, self._module.sizes, channels).sum()


def _samples(
    module: TSPulseModule, table: Array, tail: int, most: int, rng: np.random.Generator
) -> _Samples | None:
    """Every window of the table with each of its last patches hidden, at most so many."""
    context, patch = module.sizes.context_length, module.sizes.patch_length
    n_windows, n_patches = len(table) - context + 1, tail // patch
    if n_windows < 1:
        return None
    total = n_windows * n_patches
    chosen = np.arange(total) if total <= most else np.sort(rng.choice(total, most, replace=False))
    starts, which = np.divmod(chosen, n_patches)
    return _Samples(table, starts, context - tail + which * patch, module)
