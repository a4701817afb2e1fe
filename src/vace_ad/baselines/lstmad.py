"""LSTMAD (2015) as TSB-AD runs it: an LSTM encoder and decoder predict the next row.

One quirk: where the rows that validate are fewer than a window and the row after it, the watched
loss is 0 in every epoch, so training stops after four. With a window of 150 that is so for every
series with fewer than 755 training rows. `lstmad-fixed` watches the training loss instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from vace_ad.baselines.networks.detector import WindowNetwork, network_method

if TYPE_CHECKING:
    from torch import Tensor, nn

    from vace_ad.baselines.networks.training import At


@dataclass(kw_only=True)
class LSTMAD(WindowNetwork):
    """Mean squared error of the predicted row."""

    horizon = 1

    window: int = 150
    hidden: int = 20
    layers: int = 2
    unwatched: Literal["train on", "stop"] = "stop"
    learning_rate: float = 8e-4
    epochs: int = 49  # set to 50, and the loop leaves out the last

    def _module(self, channels: int) -> nn.Module:
        from vace_ad.baselines.modules.lstmad import LSTMADModule

        return LSTMADModule(channels, self.hidden, self.layers)

    def _rate(self, epoch: int) -> float:
        return float(self.learning_rate * 0.75 ** ((epoch - 1) // 5))

    def _losses(self, module: Any, batch: Tensor, at: At) -> Tensor:
        return self._errors(module, batch, at).mean()

    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        difference: Tensor = module(batch[:, : self.window]) - batch[:, self.window]
        return difference.square().mean(dim=1)


METHODS = (
    network_method("lstmad", LSTMAD, "Neural Networks"),
    network_method("lstmad-current", LSTMAD, "Neural Networks", windows="current"),
    network_method(
        "lstmad-fixed", LSTMAD, "Neural Networks", windows="current", unwatched="train on"
    ),
)
