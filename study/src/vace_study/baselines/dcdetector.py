"""DCdetector (2023): two views of a window's patches should agree, where a row is normal.

The loss is a difference of two equal numbers: its value is always 0, one view is drawn towards the
other and the other pushed away. Early stopping therefore sees nothing, and is left out. The score
is high where the views agree, and sums to 1 in each window, so levels between windows are lost;
`dcdetector-raw` scores by the disagreement itself. No settings for this benchmark are published;
those here follow the authors' for like data. `dcdetector-quick` trains on at most 512
windows in batches of 32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from vace_ad.errors import ConfigError
from vace_study.baselines.networks.detector import Array, network_method
from vace_study.baselines.networks.tiled import TiledNetwork

if TYPE_CHECKING:
    from torch import Tensor, nn

    from vace_study.baselines.networks.training import At

_TEMPERATURE = 50


@dataclass(kw_only=True)
class DCDetector(TiledNetwork):
    """Agreement, or disagreement, of attention between patches and within them."""

    drop_last = True

    window: int = 105  # a multiple of every patch size
    patches: tuple[int, ...] = (3, 5, 7)
    width: int = 256
    layers: int = 3
    evidence: Literal["softmax of agreement", "disagreement"] = "softmax of agreement"
    row_sums: Literal["inside", "both"] = "inside"  # which maps are divided by their row sums
    learning_rate: float = 1e-4
    epochs: int = 3

    def _module(self, channels: int) -> nn.Module:
        from vace_study.baselines.modules.dcdetector import DCDetectorModule

        strange = [size for size in self.patches if self.window % size]
        if strange:
            raise ConfigError(
                f"window={self.window} is not a multiple of the patch sizes {strange}; choose one "
                "that is"
            )
        return DCDetectorModule(self.window, self.patches, self.width, self.layers)

    def _split(self, table: Array) -> tuple[Array, Array]:
        return table, table[:0]  # all rows train: there is nothing to watch

    def _rate(self, epoch: int) -> float:
        return float(self.learning_rate * 0.5 ** max(epoch - 2, 0))

    def _losses(self, module: Any, batch: Tensor, at: At) -> Tensor:
        """The two views' divergence, once with each of them held still: P − S."""
        import torch

        terms = [
            _symmetric(inside, across.detach()).mean() - _symmetric(across, inside.detach()).mean()
            for across, inside in self._maps(module, batch)
        ]
        return torch.stack(terms).mean()

    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        import torch

        parts = [_symmetric(across, inside) for across, inside in self._maps(module, batch)]
        disagreement = torch.stack(parts).sum(dim=0)  # (b, window)
        if self.evidence == "disagreement":
            return disagreement
        return torch.softmax(-_TEMPERATURE * disagreement, dim=1)

    def _maps(self, module: Any, batch: Tensor) -> list[tuple[Tensor, Tensor]]:
        def shares(rows: Tensor) -> Tensor:
            return rows / rows.sum(dim=2, keepdim=True)

        both = self.row_sums == "both"
        return [
            (shares(maps.across) if both else maps.across, shares(maps.inside))
            for maps in module(batch)
        ]


def _symmetric(p: Tensor, q: Tensor) -> Tensor:
    """KL(p‖q) + KL(q‖p) of each row: (batch, window)."""
    from vace_study.baselines.networks.layers import divergence

    return divergence(p, q) + divergence(q, p)


METHODS = (
    network_method("dcdetector", DCDetector, "Transformers"),
    network_method(
        "dcdetector-raw",
        DCDetector,
        "Transformers",
        evidence="disagreement",
        row_sums="both",
    ),
    network_method(
        "dcdetector-quick", DCDetector, "Transformers", max_train_windows=512, batch_size=32
    ),
)
