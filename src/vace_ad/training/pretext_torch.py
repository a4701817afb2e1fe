"""Training by torch and its automatic gradients: for a GPU, and to check the hand-written pass."""

from __future__ import annotations

import math
from typing import Any

from vace_ad.config import VACEConfig
from vace_ad.engine.encoder import Encoder
from vace_ad.engine.patches import PatchSet
from vace_ad.engine.torch import from_module, import_torch, to_module
from vace_ad.training.pretext import EPSILON, Triples, gather


class TorchLearner:
    """The plain module over all patches of a batch, however often each occurs."""

    def __init__(self, encoder: Encoder, patches: PatchSet, config: VACEConfig) -> None:
        self._torch = import_torch(f"training on device={config.device!r}")
        self._like, self._patches, self._device = encoder, patches, config.device
        self._module = to_module(encoder, config.device).train()
        self._optimiser = self._torch.optim.AdamW(
            self._module.parameters(),
            lr=config.reproduction.learning_rate,
            weight_decay=config.reproduction.weight_decay,
        )

    @property
    def encoder(self) -> Encoder:
        """The weights as they stand."""
        return from_module(self._module, self._like)

    def step(self, triples: Triples, weight: float, rate: float) -> float:
        """One iteration; returns the loss before λ."""
        with self._torch.set_grad_enabled(weight > 0):
            loss = self._loss(triples)
        value = float(loss.detach())
        if weight > 0 and math.isfinite(value):
            for group in self._optimiser.param_groups:
                group["lr"] = rate
            self._optimiser.zero_grad()
            (weight * loss).backward()
            self._optimiser.step()
        return value

    def _loss(self, triples: Triples) -> Any:
        """Mean of 1 − ⟨v^b, v^f⟩ over the anchors that have both neighbours.

        Anchors and neighbours go through the encoder together, so BatchNorm sees one batch.
        """
        batch = self._torch.from_numpy(gather(self._patches, triples.rows.ravel()))
        z, before, after = self._module(batch.to(self._device)).chunk(3)  # (n, d_z) each
        cosine = (_unit(z - before) * _unit(after - z)).sum(dim=1)
        whole = self._torch.from_numpy(triples.whole).to(self._device)
        return (1 - cosine)[whole].mean()


def _unit(vectors: Any) -> Any:
    return vectors / vectors.norm(dim=1, keepdim=True).clamp_min(EPSILON)
