"""A detector whose network predicts the next row: TSB-AD's loop for DeepAnT and LSTMAD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vace_study.baselines.networks.detector import WindowNetwork

if TYPE_CHECKING:
    from torch import Tensor

    from vace_study.baselines.networks.training import At


@dataclass(kw_only=True)
class NextRow(WindowNetwork):
    """Mean squared error of the predicted row."""

    horizon = 1

    learning_rate: float = 8e-4
    epochs: int = 49  # set to 50, and the loop leaves out the last

    def _rate(self, epoch: int) -> float:
        return float(self.learning_rate * 0.75 ** ((epoch - 1) // 5))

    def _losses(self, module: Any, batch: Tensor, at: At) -> Tensor:
        return self._errors(module, batch, at).mean()

    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        difference: Tensor = module(batch[:, : self.window]) - batch[:, self.window]
        return difference.square().mean(dim=1)
