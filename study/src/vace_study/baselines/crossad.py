"""CrossAD (2025): every scale of a window is predicted from the next coarser one.

The settings are the authors' for SMD and PSM. Their first LayerNorm of each encoder layer is
applied twice; that is kept. They drop all but the first channel of MSL and SMAP; that is not done
here. By default at most 2,000 training windows are used, evenly spaced; `crossad-quick` has 32, in
batches of eight and for two epochs, and is hardly trained. Where the published 0.33
comes from is not known; it is unconfirmed.

Not said and chosen here: what is stretched to the next finer scale is the encoder's output; norms
come before attention and dense layers; the loss averages over all values of all scales; the bank
moves once a batch, after the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vace_study.baselines.networks.detector import network_method
from vace_study.baselines.networks.tiled import TiledNetwork
from vace_study.baselines.networks.windows import Starts, thinned, tile_starts

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from vace_study.baselines.networks.training import At, Step

_AT_ONCE = 512  # windows of one channel; a batch of many channels would need over 10 GB


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
        from vace_study.baselines.modules.crossad import CrossADModule, Sizes

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

        return torch.stack(list(self._loss_parts(module, batch))).sum()

    def _loss_parts(self, module: Any, batch: Tensor) -> Iterator[Tensor]:
        """The loss of a batch as a sum over parts of it that fit into memory."""
        import torch

        series = _one_channel(batch)
        for part in torch.split(series, _AT_ONCE):
            guesses, truths = module(part)
            error = torch.cat(guesses, dim=1) - torch.cat(truths, dim=1)
            yield error.square().mean() * (len(part) / len(series))

    def _step(self, module: Any, optimisers: Sequence[Optimizer]) -> Step:
        def step(batch: Tensor, at: At) -> Tensor:
            optimisers[0].zero_grad()
            total = batch.new_zeros(())
            for loss in self._loss_parts(module, batch):
                loss.backward()  # type: ignore[no-untyped-call]
                total += loss.detach()
            optimisers[0].step()
            module.context.move()
            return total

        return step

    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        import torch
        from torch.nn.functional import interpolate

        found = []
        for part in torch.split(_one_channel(batch), _AT_ONCE):
            guesses, truths = module(part)
            errors = [
                interpolate((guess - truth).square()[:, None], size=self.window, mode="linear")
                for guess, truth in zip(guesses, truths, strict=True)
            ]
            found.append(torch.stack(errors).sum(dim=0)[:, 0])
        return torch.cat(found).view(len(batch), -1, self.window).mean(dim=1)


def _one_channel(batch: Tensor) -> Tensor:
    """(b, window, channels) to (b · channels, window)."""
    return batch.transpose(1, 2).flatten(0, 1)


METHODS = (
    network_method("crossad", CrossAD, "Transformers"),
    network_method(
        "crossad-quick", CrossAD, "Transformers", max_train_windows=32, batch_size=8, epochs=2
    ),
)
