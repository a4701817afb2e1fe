"""USAD (2020) as TSB-AD runs it: two autoencoders with a shared encoder, trained as adversaries.

They are not adversaries there: both losses go to one optimiser and are added, and the adversarial
terms cancel exactly. What is trained is (err(AE1) + err(AE2)) / n. The original steps two
optimisers in turn; that is `usad-adversarial`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from vace_study.baselines.networks.detector import WindowNetwork, network_method

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from vace_study.baselines.networks.training import At, Step


@dataclass(kw_only=True)
class USAD(WindowNetwork):
    """Reconstruction error of the two autoencoders, one and one after the other."""

    window: int = 100
    hidden: int = 16
    latent: int = 5
    optimisers: Literal[1, 2] = 1  # 1: the adversarial terms cancel
    learning_rate: float = 1e-3
    weight_decay: float = 1e-5
    epochs: int = 10

    def _module(self, channels: int) -> nn.Module:
        from vace_study.baselines.modules.usad import USADModule

        return USADModule(self.window * channels, self.hidden, self.latent)

    def _optimisers(self, module: Any) -> Sequence[Optimizer]:
        from torch.optim import AdamW

        parts = (
            [[module]]
            if self.optimisers == 1
            else [
                [module.encoder, module.first],
                [module.encoder, module.second],
            ]
        )
        return [
            AdamW(
                [weights for part in group for weights in part.parameters()],
                lr=self.learning_rate,
                weight_decay=self.weight_decay,
            )
            for group in parts
        ]

    def _rate(self, epoch: int) -> float:
        return float(self.learning_rate * 0.9 ** ((epoch - 1) // 5))

    def _losses(self, module: Any, batch: Tensor, at: At) -> Tensor:
        """The sum of both losses, which has no adversarial term; early stopping watches it."""
        first, second = self._pair(module, batch, at)
        return first + second

    def _pair(self, module: Any, batch: Tensor, at: At) -> tuple[Tensor, Tensor]:
        """The loss of each autoencoder."""
        # The original weights the first epoch by 1, TSB-AD by 1/2.
        share = 1 / (at.epoch + 1 if self.optimisers == 1 else at.epoch)
        first, second, both = (error.mean() for error in module(batch))
        adversarial = (1 - share) * both
        return share * first + adversarial, share * second - adversarial

    def _step(self, module: nn.Module, optimisers: Sequence[Optimizer]) -> Step:
        import torch

        if self.optimisers == 1:
            return super()._step(module, optimisers)

        def step(batch: Tensor, at: At) -> Tensor:
            found = []
            for i, optimiser in enumerate(optimisers):  # the second sees what the first did
                module.zero_grad()
                loss = self._pair(module, batch, at)[i]
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                found.append(loss.detach())
            return torch.stack(found).sum()

        return step

    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        found = module(batch)
        score: Tensor = 0.1 * found.first + 0.9 * found.both
        return score


METHODS = (
    network_method("usad", USAD, "Neural Networks"),
    network_method("usad-current", USAD, "Neural Networks", windows="current"),
    network_method("usad-adversarial", USAD, "Neural Networks", windows="current", optimisers=2),
)
