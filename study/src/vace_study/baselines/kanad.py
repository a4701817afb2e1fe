"""KAN-AD (2025): windows of one channel as cosines with learned weights. Two public forms.

- `kan-ad`: the original. It predicts the next value of the first difference; the score is the
  absolute error. Made for one channel; how it was run on many is not known. Here one network
  serves all channels and their errors are averaged; `kan-ad-separate` has a network for each
  channel and takes the largest error.
- `kan-ad-reconstruction`: the form in the Time-Series-Library. It reconstructs; its fixed cosines
  have periods W·k where the paper has W/k, a slip that `kan-ad-reconstruction-fixed` corrects.

`kan-ad-reconstruction-quick` is capped: at most 256 training windows in batches of 32, 20 epochs.

Which of them made the published 0.41 is not known, so that number is unconfirmed. Not said and
chosen here: the original's last weights are kept, as in TSB-AD, whose loop is the same; the other
keeps the best ones and halves its rate from epoch 3 on, the library's habits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from vace_study.baselines.networks.detector import Array, WindowNetwork, network_method
from vace_study.baselines.networks.scaling import Scale
from vace_study.baselines.networks.tiled import TiledNetwork
from vace_study.baselines.networks.windows import (
    Starts,
    interpolated,
    place_forecast,
    refuse_short,
    split,
    strided,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from vace_study.baselines.networks.batches import Windows
    from vace_study.baselines.networks.training import At


@dataclass(kw_only=True)
class KANAD(WindowNetwork):
    """Absolute error of the next value, channel by channel."""

    horizon = 1

    window: int = 96
    order: int = 2
    channels: Literal["shared", "separate"] = "shared"  # one network and the mean; many and the max
    cosines: Literal["multiples", "divided"] = "multiples"  # periods W/k or W·k
    batch_size: int = 1024  # windows of one channel
    learning_rate: float = 0.01
    epochs: int = 100
    nan_score: float = 1000.0  # what an error that is no number counts

    def fit(self, table: Array) -> Self:
        """Train on the first difference of the training rows."""
        refuse_short(len(table), self.window + self.horizon + 1)
        steps = np.diff(np.asarray(table, np.float64), axis=0)
        if self.channels == "shared":
            super().fit(steps)
            n = len(self._starts(split(len(steps))))  # of each channel
            capped = self.max_train_windows is not None and self.max_train_windows < n
            self._train_cap = (
                f"capped: {self.max_train_windows} of {n} training windows" if capped else ""
            )
            return self
        one = replace(self, channels="shared")
        self._networks = [
            replace(one).fit(table[:, [channel]]) for channel in range(table.shape[1])
        ]
        first = self._networks[0]
        self._channels, self.module_ = table.shape[1], first.module_
        self._train_cap, self._score_cap = first._train_cap, ""
        return self

    def score(self, table: Array) -> Array:
        """Score every row by the error of its prediction."""
        values = self._checked(table)
        refuse_short(len(values), self.window + self.horizon + 1)
        if self.channels == "separate":
            self._note_stride(self.score_stride)
            each = [
                network.score(values[:, [channel]])
                for channel, network in enumerate(self._networks)
            ]
            return np.asarray(np.max(each, axis=0))
        steps = np.diff(values, axis=0)
        starts = self._starts(len(steps))
        places = strided(len(starts), self.score_stride)
        self._note_stride(self.score_stride)
        errors = self._window_scores(steps, starts[places]).reshape(steps.shape[1], -1)
        errors[np.isnan(errors)] = self.nan_score
        every = interpolated(places, errors.mean(axis=0), len(starts))
        placed = place_forecast(every, self.window, self.horizon)
        return np.pad(placed, (1, 0), mode="edge")  # the first row has no difference

    def _module(self, channels: int) -> nn.Module:
        from vace_study.baselines.modules.kanad import KANADModule

        return KANADModule(self.window, self.order, 1, divided=self.cosines == "divided")

    def _rate(self, epoch: int) -> float:
        return float(self.learning_rate * 0.75 ** ((epoch - 1) // 5))

    def _losses(self, module: Any, batch: Tensor, at: At) -> Tensor:
        return self._errors(module, batch, at).square().mean()

    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        difference: Tensor = module(batch[:, : self.window, 0])[:, 0] - batch[:, self.window, 0]
        return difference.abs()

    def _learn_scale(self, table: Array) -> None:
        self._scale = Scale.of(table)

    def _scaled(self, table: Array) -> Array:
        return self._scale(table)

    def _cut(self, table: Array, starts: Starts) -> Windows:
        return _one_by_one(self._scaled(table), starts, self.window + self.horizon, self._device)


@dataclass(kw_only=True)
class KANADReconstruction(TiledNetwork):
    """Squared error of each row's reconstruction, mean over channels."""

    keep = "best"
    least_gain = 0.0

    window: int = 96
    order: int = 4
    cosines: Literal["multiples", "divided"] = "divided"
    batch_size: int = 128  # windows, of all channels
    learning_rate: float = 0.01
    epochs: int = 100
    patience: int = 5

    def _module(self, channels: int) -> nn.Module:
        from vace_study.baselines.modules.kanad import KANADModule

        divided = self.cosines == "divided"
        return KANADModule(self.window, self.order, self.window, divided=divided)

    def _rate(self, epoch: int) -> float:
        return float(self.learning_rate * 0.5 ** max(0, epoch - 2))

    def _losses(self, module: Any, batch: Tensor, at: At) -> Tensor:
        return self._errors(module, batch, at).mean()

    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        flat = batch.transpose(1, 2).flatten(0, 1)  # (b · channels, window)
        error: Tensor = (module(flat) - flat).square()
        return error.view(len(batch), -1, self.window).mean(dim=1)


def _one_by_one(table: Array, starts: Starts, length: int, device: str) -> Windows:
    """The windows of each channel after those of the one before: (n_channels · n_starts)."""
    from vace_study.baselines.networks.batches import Windows

    n_rows, n_channels = table.shape
    firsts = np.arange(n_channels)[:, None] * n_rows + starts  # no window runs into the next
    return Windows(table.T.reshape(-1, 1), firsts.ravel(), length, device)


METHODS = (
    network_method("kan-ad", KANAD, "Neural Networks"),
    network_method(
        "kan-ad-reconstruction-quick",
        KANADReconstruction,
        "Neural Networks",
        max_train_windows=256,
        batch_size=32,
        epochs=20,
    ),
    network_method("kan-ad-separate", KANAD, "Neural Networks", channels="separate"),
    network_method("kan-ad-reconstruction", KANADReconstruction, "Neural Networks"),
    network_method(
        "kan-ad-reconstruction-fixed", KANADReconstruction, "Neural Networks", cosines="multiples"
    ),
)
