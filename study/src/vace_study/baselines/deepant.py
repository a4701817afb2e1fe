"""DeepAnT (2019), called CNN in TSB-AD: a convolutional network predicts the next row.

Two quirks are behind the published number and are settings here: the window is reinterpreted, not
transposed, before the convolutions, and the pooling meant to join mean and maximum joins the mean
twice. `deepant-fixed` has neither, and standardised windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from vace_study.baselines.networks.detector import tsb_ad_methods
from vace_study.baselines.networks.next_row import NextRow

if TYPE_CHECKING:
    from torch import nn


@dataclass(kw_only=True)
class DeepAnT(NextRow):
    """Two convolutions and two dense layers."""

    window: int = 50
    widths: tuple[int, ...] = (32, 40)  # the published list [32, 32, 40] makes two convolutions
    layout: Literal["reinterpreted", "transposed"] = "reinterpreted"
    pooling: Literal["mean twice", "mean and maximum"] = "mean twice"

    def _module(self, channels: int) -> nn.Module:
        from vace_study.baselines.modules.deepant import DeepAnTModule

        return DeepAnTModule(
            channels,
            self.widths,
            transposed=self.layout == "transposed",
            with_maximum=self.pooling == "mean and maximum",
        )


METHODS = tsb_ad_methods("deepant", DeepAnT, layout="transposed", pooling="mean and maximum")
