"""OmniAnomaly (2019) as TSB-AD runs it: a recurrent variational autoencoder of windows.

This is not the paper's model, which has planar flows, a linear-Gaussian state space and scores by
log-likelihood; TSB-AD's has a plain normal latent and scores by squared error. Two quirks are
behind the published number and are settings here: a sequence of the GRU mixes windows of the batch,
and its first state is a uniform draw for all but the first batch of a pass. Latents are drawn at
scoring too; the seed fixes them. `omnianomaly-fixed` has neither quirk, and standardised windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from vace_study.baselines.networks.detector import WindowNetwork, tsb_ad_methods

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from vace_study.baselines.networks.training import At


@dataclass(kw_only=True)
class OmniAnomaly(WindowNetwork):
    """Mean squared error of the reconstructed window."""

    window: int = 100
    hidden: int = 32
    latent: int = 8
    layout: Literal["reinterpreted", "transposed"] = "reinterpreted"
    first_state: Literal["random after the first batch", "zero"] = "random after the first batch"
    divergence_weight: float = 0.01
    learning_rate: float = 2e-3
    weight_decay: float = 1e-5
    epochs: int = 50

    def _module(self, channels: int) -> nn.Module:
        from vace_study.baselines.modules.omnianomaly import OmniAnomalyModule

        transposed = self.layout == "transposed"
        return OmniAnomalyModule(channels, self.hidden, self.latent, transposed=transposed)

    def _optimisers(self, module: nn.Module) -> Sequence[Optimizer]:
        from torch.optim import AdamW

        rate, decay = self.learning_rate, self.weight_decay
        return (AdamW(module.parameters(), lr=rate, weight_decay=decay),)

    def _rate(self, epoch: int) -> float:
        return float(self.learning_rate * 0.9 ** ((epoch - 1) // 5))

    def _losses(self, module: Any, batch: Tensor, at: At) -> Tensor:
        """Mean squared error + 0.01 · KL, the latter summed over the latents of a window."""
        found = module(batch, self._random_state(at))
        divergence = (found.mean**2 + found.log_variance.exp() - 1 - found.log_variance) / 2
        error = (found.values - batch).square().mean()
        loss: Tensor = error + self.divergence_weight * divergence.sum() / len(batch)
        return loss

    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        values: Tensor = module(batch, self._random_state(at)).values
        return (values - batch).square().mean(dim=(1, 2))

    def _random_state(self, at: At) -> bool:
        return self.first_state != "zero" and at.batch > 0


METHODS = tsb_ad_methods("omnianomaly", OmniAnomaly, layout="transposed", first_state="zero")
