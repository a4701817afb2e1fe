"""A training loop with the field's two kinds of early stopping, and scoring in batches.

`keep="last"`: training ends early, and the weights of its last epoch are used (TSB-AD's own).
`keep="best"`: the weights of the best epoch are put back.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer

from vace_study.baselines.networks.batches import Windows

Keep = Literal["last", "best"]


class At(NamedTuple):
    """Where a pass over the windows is."""

    epoch: int  # from 1; 0 when scoring
    batch: int  # from 0, within the pass


Step = Callable[[Tensor, At], Tensor]  # a batch (b, rows, channels) to losses, one or several


@dataclass
class EarlyStopping:
    """Stop when `patience` epochs in a row were not better than the best."""

    patience: int
    least_gain: float  # an epoch is better when each of its losses is lower by this much
    keep: Keep = "last"
    best: Tensor | None = None
    waited: int = 0
    _weights: dict[str, Tensor] = field(default_factory=dict)

    def stops(self, losses: Tensor, module: nn.Module) -> bool:
        """Take note of an epoch; True where it was the last."""
        if self.best is None or bool((losses <= self.best - self.least_gain).all()):
            self.best, self.waited = losses, 0
            if self.keep == "best":
                self._weights = copy.deepcopy(module.state_dict())
        else:
            self.waited += 1
        return self.waited >= self.patience

    def finish(self, module: nn.Module) -> None:
        """Put the best weights back, where they are to be kept."""
        if self._weights:
            module.load_state_dict(self._weights)


class Parts(NamedTuple):
    """What is trained on, and what is watched; without the second, the first is watched."""

    train: Windows
    validation: Windows | None


@dataclass(frozen=True)
class Loop:
    """How long, in what batches, and at which rate."""

    epochs: int
    batch_size: int
    rate: Callable[[int], float]  # epoch, from 1, to learning rate
    drop_last: bool = False  # leave out a batch that is not full


def train(
    module: nn.Module,
    parts: Parts,
    step: Step,  # trains on a batch
    watch: Step,  # the losses that early stopping looks at
    optimisers: Sequence[Optimizer],  # whose rate the loop sets
    loop: Loop,
    stopping: EarlyStopping,
) -> list[list[float]]:
    """Train until done; returns the watched losses of each epoch."""
    history: list[list[float]] = []
    for epoch in range(1, loop.epochs + 1):
        for optimiser in optimisers:
            for group in optimiser.param_groups:
                group["lr"] = loop.rate(epoch)
        module.train()
        batches = parts.train.batches(loop.batch_size, shuffle=True, drop_last=loop.drop_last)
        trained = [step(batch, At(epoch, i)).detach() for i, batch in enumerate(batches)]
        losses = _mean(trained)
        if parts.validation is not None:
            module.eval()
            with torch.no_grad():
                batches = parts.validation.batches(loop.batch_size)
                losses = _mean([watch(batch, At(epoch, i)) for i, batch in enumerate(batches)])
        history.append(losses.tolist())
        if stopping.stops(losses, module):
            break
    stopping.finish(module)
    module.eval()
    return history


def descent(optimiser: Optimizer, losses: Step) -> Step:
    """A step down the sum of the losses of a batch."""

    def step(batch: Tensor, at: At) -> Tensor:
        optimiser.zero_grad()
        found = losses(batch, at)
        found.sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        return found

    return step


def score_windows(
    module: nn.Module, windows: Windows, errors: Step, batch_size: int
) -> NDArray[np.float64]:
    """What `errors` says of each window, in order: (n_windows,) or (n_windows, rows)."""
    module.eval()
    with torch.no_grad():
        batches = windows.batches(batch_size)
        found = [errors(batch, At(0, i)).double().cpu() for i, batch in enumerate(batches)]
    return torch.cat(found).numpy()


def _mean(losses: Sequence[Tensor]) -> Tensor:
    """Mean over batches, each counting the same, as TSB-AD has it."""
    return torch.stack([loss.reshape(-1) for loss in losses]).double().mean(dim=0).cpu()
