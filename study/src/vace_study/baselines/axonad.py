"""AxonAD (2026): how far attention's queries are from what the rows before foretell.

A window is reconstructed by one layer of attention. Beside it, convolutions over the past foretell
the query of every row; what they should give comes from a copy of the embedding whose weights
follow slowly. A window's score is the error of its values plus the mismatch of its last queries,
each less its median over training windows and divided by their interquartile range.

The paper's abstract (arXiv 2603.12916) names these parts; sizes, rates, masks and how the two are
added are read from its authors' released code (settings of the benchmark, commit 01bdbf9), whose
windows are TSB-AD's current ones. Quirks that shape its number, and that are kept:

- Training windows are standardised by themselves, and so is the scored table.
- "Masked" rows are not hidden from anything: half of the tail's rows, drawn for each window, are
  where the mismatch counts in training. Early stopping watches the error of the values alone.
- The error is a sum over channels, the mismatch a mean; each is scaled by training, not weighed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from vace_study.baselines.networks.backend import seeded
from vace_study.baselines.networks.detector import Array, WindowNetwork, network_method
from vace_study.baselines.networks.windows import Rule, split

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from vace_study.baselines.networks.training import At, Step

_LEAST_SPREAD = 1e-9


@dataclass(kw_only=True)
class AxonAD(WindowNetwork):
    """Error of the values and mismatch of the queries, in spreads of training windows."""

    momentum: ClassVar[float] = 0.9  # of the slow copy
    longest_gradient: ClassVar[float] = 1.0

    window: int = 100
    windows: Rule = "current"
    width: int = 128
    heads: int = 8
    tail: int = 10  # last rows of a window whose queries count in the score
    ahead: int = 1  # rows between a row and the newest that foretells its query
    learning_rate: float = 5e-4
    decay: float = 1e-5
    epochs: int = 50
    unwatched: Literal["train on", "stop", "finish"] = "finish"

    def fit(self, table: Array) -> Self:
        """Train the network, and learn what error and mismatch are on training windows."""
        from vace_study.baselines.networks.training import score_windows

        super().fit(table)
        rows, _ = self._split(np.asarray(table, np.float64))
        with seeded(self.random_state, self._device):
            windows = self._cut(rows, self._train_starts(len(rows)))
            evidence = self._bound(self._evidence)
            both = score_windows(self.module_, windows, evidence, self.batch_size)  # (n, 2)
        low, self.middle_, high = np.percentile(both, [25, 50, 75], axis=0)
        self.spread_ = high - low + _LEAST_SPREAD
        return self

    def _module(self, channels: int) -> nn.Module:
        from vace_study.baselines.modules.axonad import AxonADModule

        return AxonADModule(channels, self.width, self.heads, self.window, self.ahead)

    def _optimisers(self, module: nn.Module) -> Sequence[Optimizer]:
        from torch.optim import AdamW

        return (AdamW(module.parameters(), lr=self.learning_rate, weight_decay=self.decay),)

    def _split(self, table: Array) -> tuple[Array, Array]:
        """All rows train where four fifths of them are not more than a window."""
        cut = split(len(table))
        return super()._split(table) if cut > self.window else (table, table[:0])

    # ------------------------------------------------------------------------- training

    def _losses(self, module: Any, batch: Tensor, at: At) -> Tensor:
        """Both losses, each divided by a learned scale, as one."""
        import torch

        from vace_study.baselines.modules.axonad import mismatch

        output = module(batch)
        counted = self._counted(batch)[:, None]  # (b, 1, window)
        of_queries = (mismatch(output) * counted).sum() / (counted.sum() * self.heads)
        losses = torch.stack([(output.values - batch).square().mean(), of_queries])
        total: Tensor = (torch.exp(-module.scales) * losses + module.scales).sum()
        return total

    def _counted(self, batch: Tensor) -> Tensor:
        """Ones at a run of half of the tail, drawn for each window: (b, window)."""
        import torch

        tail = max(1, (self.window - self.ahead) // 2)
        run = max(1, round(tail / 2))
        first = torch.randint(self.window - tail, self.window - run + 1, (len(batch), 1))
        places = torch.arange(self.window)
        inside = (places >= first) & (places < first + run)
        return inside.to(batch)

    def _step(self, module: Any, optimisers: Sequence[Optimizer]) -> Step:
        from torch.nn.utils import clip_grad_norm_

        (optimiser,) = optimisers

        def step(batch: Tensor, at: At) -> Tensor:
            optimiser.zero_grad()
            found = self._losses(module, batch, at)
            found.backward()  # type: ignore[no-untyped-call]
            clip_grad_norm_(module.parameters(), self.longest_gradient)
            optimiser.step()
            module.follow(self.momentum)
            return found

        return step

    def _watched(self, module: Any, batch: Tensor, at: At) -> Tensor:
        error: Tensor = (module(batch).values - batch).square().mean()
        return error

    # -------------------------------------------------------------------------- scoring

    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        import torch

        middle, spread = (torch.from_numpy(each).to(batch) for each in (self.middle_, self.spread_))
        score: Tensor = ((self._evidence(module, batch, at) - middle) / spread).sum(dim=1)
        return score

    def _evidence(self, module: Any, batch: Tensor, at: At) -> Tensor:
        """The error of each window's values, summed over channels, and its mismatch: (b, 2)."""
        import torch

        from vace_study.baselines.modules.axonad import mismatch

        output = module(batch)
        error = (output.values - batch).square().sum(dim=2).mean(dim=1)
        return torch.stack([error, mismatch(output)[:, :, -self.tail :].mean(dim=(1, 2))], dim=1)


METHODS = (network_method("axonad", AxonAD, "Transformers"),)
