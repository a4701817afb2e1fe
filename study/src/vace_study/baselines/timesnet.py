"""TimesNet (2023) in TSB-AD's small version: reconstruction through two-dimensional periods.

A window's score is the error of its last row alone. The published windows put it at the window's
first row, 95 rows early; the current ones in the middle. `timesnet-fixed` puts it where it is from.
The rate is halved after every epoch, so that few epochs matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from vace_study.baselines.networks.detector import Array, WindowNetwork, tsb_ad_methods
from vace_study.baselines.networks.windows import place_last_row

if TYPE_CHECKING:
    from torch import Tensor, nn

    from vace_study.baselines.networks.training import At


@dataclass(kw_only=True)
class TimesNet(WindowNetwork):
    """Squared error of the window's last row."""

    window: int = 96
    placement: Literal["by window rule", "own row"] = "by window rule"
    width: int = 8
    hidden: int = 16
    periods: int = 3
    dropout: float = 0.1
    learning_rate: float = 1e-4
    epochs: int = 50

    def _module(self, channels: int) -> nn.Module:
        from vace_study.baselines.modules.timesnet import TimesNetModule

        return TimesNetModule(channels, self.width, self.hidden, self.periods, self.dropout)

    def _rate(self, epoch: int) -> float:
        return float(self.learning_rate * 0.5 ** (epoch - 1))

    def _losses(self, module: Any, batch: Tensor, at: At) -> Tensor:
        error: Tensor = module(batch) - batch
        return error.square().mean()

    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        error: Tensor = module(batch) - batch
        return error[:, -1].square().mean(dim=1)

    def _place(self, scores: Array, n_rows: int) -> Array:
        if self.placement == "own row":
            return place_last_row(scores, self.window, n_rows)
        return super()._place(scores, n_rows)


METHODS = tsb_ad_methods("timesnet", TimesNet, version=2, placement="own row")
