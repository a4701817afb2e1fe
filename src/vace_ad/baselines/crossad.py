"""CrossAD (2025): every scale of a window is predicted from the next coarser one.

The settings are the authors' for SMD and PSM. Their first LayerNorm of each encoder layer is
applied twice; that is kept. They drop all but the first channel of MSL and SMAP; that is not done
here. By default at most 2,000 training windows are used, evenly spaced. Where the published 0.33
comes from is not known; it is unconfirmed.

Not said and chosen here: what is stretched to the next finer scale is the encoder's output; norms
come before attention and dense layers; the loss averages over all values of all scales.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vace_ad.baselines.networks.detector import network_method
from vace_ad.baselines.networks.tiled import TiledNetwork
from vace_ad.baselines.networks.windows import Starts, thinned, tile_starts

if TYPE_CHECKING:
    from torch import Tensor, nn

    from vace_ad.baselines.networks.training import At


@dataclass(kw_only=True)
class CrossAD(TiledNetwork):
    """Squared errors of all scales, stretched to the window and summed; mean over channels."""

    keep = "best"
    least_gain = 0.0

    window: int = 192
    patch: int = 6
    kernels: tuple[int, ...] = (32, 16, 8, 4, 2)
    d_model: int = 128
    heads: int = 4
    layers: int = 2  # of encoder, context and decoder each
    d_ff: int = 512
    dropout: float = 0.1
    queries: int = 5
    bank: int = 32
    decay: float = 0.95
    epsilon: float = 1e-5
    frequencies: int = 10
    learning_rate: float = 1e-4
    epochs: int = 20
    max_train_windows: int | None = 2_000

    def _module(self, channels: int) -> nn.Module:
        from vace_ad.baselines.modules.crossad import CrossADModule, Sizes

        return CrossADModule(
            Sizes(
                self.window,
                self.patch,
                self.kernels,
                self.d_model,
                self.heads,
                self.layers,
                self.d_ff,
                self.dropout,
                self.queries,
                self.bank,
                self.decay,
                self.epsilon,
                self.frequencies,
            )
        )

    def _rate(self, epoch: int) -> float:
        return float(self.learning_rate * 0.5 ** max(0, epoch - 2))

    def _validation_starts(self, n_rows: int) -> Starts:
        return thinned(tile_starts(n_rows, self.window), self.max_train_windows)

    def _losses(self, module: Any, batch: Tensor, at: At) -> Tensor:
        import torch

        guesses, truths = module(batch.transpose(1, 2).flatten(0, 1))
        error = torch.cat(guesses, dim=1) - torch.cat(truths, dim=1)
        return error.square().mean()

    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        import torch
        from torch.nn.functional import interpolate

        guesses, truths = module(batch.transpose(1, 2).flatten(0, 1))
        errors = [
            interpolate((guess - truth).square()[:, None], size=self.window, mode="linear")[:, 0]
            for guess, truth in zip(guesses, truths, strict=True)
        ]
        total: Tensor = torch.stack(errors).sum(dim=0)
        return total.view(len(batch), -1, self.window).mean(dim=1)


METHODS = (network_method("crossad", CrossAD, "Transformers"),)
