"""xLSTMAD (2025): an encoder and a decoder of xLSTM blocks (the package xlstm, an extra).

There are two versions, and the VACE paper mixes them: its main table has the paper's, its category
table the leaderboard's.

- `xlstmad`: the leaderboard's. Reconstruction; the score of a window is put at its last row.
- `xlstmad-r`, `xlstmad-f`: the paper's reconstruction and forecast. Their outputs, (steps, batch,
  channels), are reinterpreted and not transposed before the loss, so predictions are compared with
  rows of other windows of the batch, in training and in scoring. `-fixed` transposes.
- `xlstmad-capped`: the leaderboard's on at most 5,000 windows where there are over 20,000 rows.
- `-quick`: each on at most 256 training windows and ten epochs, one window of four scored
  (of eight by `xlstmad-r-quick`, whose decoder runs fifty times a window).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from vace_study.baselines.networks.detector import Array, WindowNetwork, network_method
from vace_study.baselines.networks.windows import (
    Starts,
    moments,
    place_last_row,
    reconstruction_starts,
    split,
    standardised,
    thinned,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from vace_study.baselines.networks.training import At


@dataclass(kw_only=True)
class _XLSTMAD(WindowNetwork):
    """What the versions share."""

    decoding: ClassVar[Literal["whole", "repeated"]] = "repeated"

    window: int = 50
    width: int = 40
    epochs: int = 50
    cap_above: int = 20_000  # training rows from which max_train_windows counts

    def _module(self, channels: int) -> nn.Module:
        from vace_study.baselines.modules.xlstmad import XLSTMADModule

        return XLSTMADModule(channels, self.width, self.window, self.decoding)

    def _losses(self, module: Any, batch: Tensor, at: At) -> Tensor:
        return self._errors(module, batch, at).mean()

    def _train_starts(self, n_rows: int) -> Starts:
        starts = self._starts(n_rows)
        return thinned(starts, self.max_train_windows) if n_rows > self.cap_above else starts

    def _validation_starts(self, n_rows: int) -> Starts:
        return self._train_starts(n_rows)


@dataclass(kw_only=True)
class XLSTMADLeaderboard(_XLSTMAD):
    """Mean squared error of a window, at its last row."""

    decoding = "whole"
    keep = "best"
    least_gain = 1e-3

    batch_size: int = 32
    learning_rate: float = 1e-3

    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        guess = module(batch, self.window).transpose(0, 1)
        error: Tensor = (guess - batch).square()
        return error.mean(dim=(1, 2))

    def _split(self, table: Array) -> tuple[Array, Array]:
        """The first 80 % of the windows, not of the rows: the parts share W − 1 rows."""
        n_windows = len(self._starts(len(table)))
        cut = split(n_windows)
        if cut == 0:
            return table, table[:0]
        return table[: cut + self.window - 1], table[cut:]

    def _learn_scale(self, table: Array) -> None:
        self._moments = moments(table)
        self._fitting = True

    def fit(self, table: Array) -> XLSTMADLeaderboard:
        """Train the network on the training rows."""
        super().fit(table)
        self._fitting = False
        return self

    def _scaled(self, table: Array) -> Array:
        """By the training rows in training, by the scored table itself in scoring."""
        return standardised(table, *(self._moments if self._fitting else moments(table)))

    def _starts(self, n_rows: int) -> Starts:
        return reconstruction_starts(n_rows, self.window, "current")

    def _place(self, scores: Array, n_rows: int) -> Array:
        return place_last_row(scores, self.window, n_rows)


@dataclass(kw_only=True)
class XLSTMADReconstruction(_XLSTMAD):
    """Mean squared error of a window, at its first row."""

    layout: Literal["reinterpreted", "transposed"] = "reinterpreted"
    learning_rate: float = 5e-3

    def _rate(self, epoch: int) -> float:
        return float(self.learning_rate * 0.75 ** ((epoch - 1) // 5))

    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        rows = batch[:, self.window :] if self.horizon else batch
        guess = module(batch[:, : self.window], rows.shape[1])  # (steps, b, channels)
        if self.layout == "transposed":
            guess = guess.transpose(0, 1)
        error: Tensor = guess.reshape(len(batch), -1) - rows.reshape(len(batch), -1)
        return error.square().mean(dim=1)

    def _learn_scale(self, table: Array) -> None:
        self._moments = moments(table[: split(len(table))])

    def _scaled(self, table: Array) -> Array:
        return standardised(table, *self._moments)


@dataclass(kw_only=True)
class XLSTMADForecast(XLSTMADReconstruction):
    """Mean squared error of five rows after the window, at the last of them."""

    horizon = 5

    width: int = 20
    learning_rate: float = 8e-4


_QUICK: dict[str, Any] = {
    "max_train_windows": 256,
    "cap_above": 0,
    "epochs": 10,
    "score_stride": 4,
}


def _methods(name: str, system: type[XLSTMADReconstruction], stride: int) -> tuple[Any, ...]:
    return (
        network_method(name, system, "Neural Networks"),
        network_method(f"{name}-fixed", system, "Neural Networks", layout="transposed"),
        network_method(
            f"{name}-quick", system, "Neural Networks", **_QUICK | {"score_stride": stride}
        ),
    )


METHODS = (
    network_method("xlstmad", XLSTMADLeaderboard, "Neural Networks"),
    network_method(
        "xlstmad-capped", XLSTMADLeaderboard, "Neural Networks", max_train_windows=5_000
    ),
    network_method("xlstmad-quick", XLSTMADLeaderboard, "Neural Networks", **_QUICK),
    *_methods("xlstmad-r", XLSTMADReconstruction, stride=8),
    *_methods("xlstmad-f", XLSTMADForecast, stride=4),
)
