"""DeepAnT (2019), called CNN in TSB-AD: a convolutional network predicts the next row.

Two quirks are behind the published number and are settings here: the window is reinterpreted, not
transposed, before the convolutions, and the pooling meant to join mean and maximum joins the mean
twice. `deepant-fixed` has neither, and standardised windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from vace_ad.baselines.networks.detector import WindowNetwork, network_method

if TYPE_CHECKING:
    from torch import Tensor, nn

    from vace_ad.baselines.networks.training import At


@dataclass(kw_only=True)
class DeepAnT(WindowNetwork):
    """Mean squared error of the predicted row."""

    horizon = 1

    window: int = 50
    widths: tuple[int, ...] = (32, 40)  # the published list [32, 32, 40] makes two convolutions
    layout: Literal["reinterpreted", "transposed"] = "reinterpreted"
    pooling: Literal["mean twice", "mean and maximum"] = "mean twice"
    learning_rate: float = 8e-4
    epochs: int = 49  # set to 50, and the loop leaves out the last

    def _module(self, channels: int) -> nn.Module:
        from vace_ad.baselines.modules.deepant import DeepAnTModule

        return DeepAnTModule(
            channels,
            self.widths,
            transposed=self.layout == "transposed",
            with_maximum=self.pooling == "mean and maximum",
        )

    def _rate(self, epoch: int) -> float:
        return float(self.learning_rate * 0.75 ** ((epoch - 1) // 5))

    def _losses(self, module: Any, batch: Tensor, at: At) -> Tensor:
        return self._errors(module, batch, at).mean()

    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        difference: Tensor = module(batch[:, : self.window]) - batch[:, self.window]
        return difference.square().mean(dim=1)


METHODS = (
    network_method("deepant", DeepAnT, "Neural Networks"),
    network_method("deepant-current", DeepAnT, "Neural Networks", windows="current"),
    network_method(
        "deepant-fixed",
        DeepAnT,
        "Neural Networks",
        windows="current",
        layout="transposed",
        pooling="mean and maximum",
    ),
)
