"""LSTMAD (2015) as TSB-AD runs it: an LSTM encoder and decoder predict the next row.

One quirk: where the rows that validate are fewer than a window and the row after it, the watched
loss is 0 in every epoch, so training stops after four. With a window of 150 that is so for every
series with fewer than 755 training rows. `lstmad-fixed` watches the training loss instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from vace_study.baselines.networks.detector import tsb_ad_methods
from vace_study.baselines.networks.next_row import NextRow

if TYPE_CHECKING:
    from torch import nn


@dataclass(kw_only=True)
class LSTMAD(NextRow):
    """A recurrent encoder and decoder."""

    window: int = 150
    hidden: int = 20
    layers: int = 2
    unwatched: Literal["train on", "stop"] = "stop"

    def _module(self, channels: int) -> nn.Module:
        from vace_study.baselines.modules.lstmad import LSTMADModule

        return LSTMADModule(channels, self.hidden, self.layers)


METHODS = tsb_ad_methods("lstmad", LSTMAD, unwatched="train on")
