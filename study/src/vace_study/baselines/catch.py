"""CATCH (2025): reconstruction through patches of the spectrum, with masks between channels.

Quirks of the released code that shape its number, and are settings here:

- `schedule="stuck"`: a one-cycle schedule is built and never stepped, so epoch 1 runs at a rate of
  lr/25 and Adam's first moment decays by 0.95; from epoch 2 on both optimisers have the network's
  rate, lr, lr/2, …, so that of the masks jumps from 4e-7 to 1e-4. `catch-fixed` has
  `schedule="halved"`: each optimiser its own rate, halved every epoch.
- The masks are drawn at random in scoring too; scores depend on the seed.
- The masks' optimiser steps every tenth of an epoch, on gradients gathered since its last step.

At the published sizes the network has 211 M weights, nearly all in six square layers; `catch-small`
has d_model 32 instead of 128, a sixteenth of them, and is not the published system. By default at
most 2,000 training windows are used, evenly spaced; 32 by `catch-quick`, in batches of 4, which is
the published network hardly trained, and 128 by `catch-small-quick`, in batches of 16. The
published 0.30 is unconfirmed.

Not said and chosen here: the similarity in the contrastive term is that of queries and keys, mean
over heads; early stopping watches the whole loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from vace_study.baselines.networks.detector import network_method
from vace_study.baselines.networks.tiled import TiledNetwork
from vace_study.baselines.networks.windows import Starts

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from vace_study.baselines.networks.training import At, Step

_PAIRS = 4_000_000  # of channels, over patches, heads and windows, that are held at a time


@dataclass(kw_only=True)
class CATCH(TiledNetwork):
    """Squared error of a row, and the error of the spectra around it; mean over channels."""

    keep = "best"
    least_gain = 0.0
    scale_share = 0.8

    window: int = 192
    patch: int = 16
    patch_stride: int = 8
    cf_dim: int = 64
    d_model: int = 128
    layers: int = 3
    heads: int = 2
    head_dim: int = 64
    d_ff: int = 256
    dropout: float = 0.2
    temperature: float = 0.07
    regulariser: float = 0.5
    contrast_weight: float = 0.005
    frequency_weight: float = 0.005
    score_weight: float = 0.05  # of the spectra in the score
    score_patch: int = 32
    schedule: Literal["stuck", "halved"] = "stuck"
    learning_rate: float = 1e-4
    mask_rate: float = 1e-5
    epochs: int = 3
    max_train_windows: int | None = 2_000

    def _module(self, channels: int) -> nn.Module:
        from vace_study.baselines.modules.catch import CATCHModule, Sizes

        return CATCHModule(
            channels,
            Sizes(
                self.window,
                self.patch,
                self.patch_stride,
                self.cf_dim,
                self.d_model,
                self.layers,
                self.heads,
                self.head_dim,
                self.d_ff,
                self.dropout,
                self.temperature,
                self.regulariser,
            ),
        )

    def _losses(self, module: Any, batch: Tensor, at: At) -> Tensor:
        import torch

        return torch.stack(list(self._loss_parts(module, batch))).sum()

    def _loss_parts(self, module: Any, batch: Tensor) -> Iterator[Tensor]:
        """The loss of a batch as a sum over parts of it that fit into memory."""
        for part in self._pieces(batch):
            yield self._loss(module, part) * (len(part) / len(batch))

    def _pieces(self, batch: Tensor) -> Sequence[Tensor]:
        import torch

        n_patches = (self.window - self.patch) // self.patch_stride + 1
        pairs = n_patches * self.heads * batch.shape[2] ** 2  # of a window
        return torch.split(batch, max(1, _PAIRS // pairs))

    def _loss(self, module: Any, batch: Tensor) -> Tensor:
        output = module(batch)
        error: Tensor = (output.values - batch).square().mean()
        weighted: Tensor = (
            self.contrast_weight * output.contrast + self.frequency_weight * output.frequency_error
        )
        return error + weighted

    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        import torch

        from vace_study.baselines.modules.catch import frequency_score

        scores = []
        for part in self._pieces(batch):
            error = module(part).values - part
            spectra = frequency_score(error, self.score_patch)
            scores.append(error.square().mean(dim=2) + self.score_weight * spectra)
        return torch.cat(scores)

    # ------------------------------------------------------------------------- training

    def _optimisers(self, module: Any) -> Sequence[Optimizer]:
        from torch.optim import Adam

        masks = list(module.mask_generator.parameters())
        known = {id(each) for each in masks}
        others = [each for each in module.parameters() if id(each) not in known]
        betas = (0.95 if self.schedule == "stuck" else 0.9, 0.999)
        return Adam(others, self.learning_rate, betas), Adam(masks, self.mask_rate, betas)

    def _rate(self, epoch: int) -> float:
        if self.schedule == "halved":
            return float(self.learning_rate * 0.5 ** (epoch - 1))
        return float(
            self.learning_rate / 25 if epoch == 1 else self.learning_rate * 0.5 ** (epoch - 2)
        )

    def _rate_of_masks(self, epoch: int) -> float:
        if self.schedule == "halved":
            return float(self.mask_rate * 0.5 ** (epoch - 1))
        return self.mask_rate / 25 if epoch == 1 else self._rate(epoch)

    def _train_starts(self, n_rows: int) -> Starts:
        starts = super()._train_starts(n_rows)
        n_batches = -(-len(starts) // self.batch_size)
        self._every = max(1, min(n_batches // 10, 100))  # 0 below ten batches would never do
        return starts

    def _step(self, module: nn.Module, optimisers: Sequence[Optimizer]) -> Step:
        network, masks = optimisers

        def step(batch: Tensor, at: At) -> Tensor:
            network.zero_grad()
            total = batch.new_zeros(())
            for loss in self._loss_parts(module, batch):
                loss.backward()  # type: ignore[no-untyped-call]
                total += loss.detach()
            network.step()
            if (at.batch + 1) % self._every == 0:
                masks.param_groups[0]["lr"] = self._rate_of_masks(at.epoch)
                masks.step()
                masks.zero_grad()
            return total

        return step


METHODS = (
    network_method("catch", CATCH, "Transformers"),
    network_method("catch-fixed", CATCH, "Transformers", schedule="halved"),
    network_method("catch-quick", CATCH, "Transformers", max_train_windows=32, batch_size=4),
    network_method("catch-small", CATCH, "Transformers", d_model=32),
    network_method(
        "catch-small-quick",
        CATCH,
        "Transformers",
        d_model=32,
        max_train_windows=128,
        batch_size=16,
    ),
)
