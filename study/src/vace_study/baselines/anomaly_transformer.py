"""AnomalyTransformer (2022) as TSB-AD runs it: reconstruction, weighed by association discrepancy.

Of a window's scores only the last row's is kept; the published windows put it at the window's first
row. Both losses go into one step, so the reconstruction counts twice. The variant `-original` keeps
every row of windows side by side, with the original's window and batch. Four million weights and a
window for every row are slow without a GPU: training windows are capped, and of long series every
fourth window is scored; both are settings. `-quick` has 256 training windows in batches of 32,
three epochs, and one window of eight scored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from vace_study.baselines.networks.detector import Array, WindowNetwork, network_method
from vace_study.baselines.networks.windows import Starts, place_last_row, place_tiles, tile_starts

if TYPE_CHECKING:
    from torch import Tensor, nn

    from vace_study.baselines.networks.training import At

_TEMPERATURE = 50


@dataclass(kw_only=True)
class AnomalyTransformer(WindowNetwork):
    """Squared error of a row, times a softmax over the window of how alike its two maps are."""

    least_gain = 0.0  # neither of the two watched losses may rise

    window: int = 50
    kept: Literal["last row, by window rule", "last row, own row", "every row"] = (
        "last row, by window rule"
    )
    width: int = 512
    heads: int = 8
    layers: int = 3
    hidden: int = 512
    discrepancy_weight: float = 3.0
    learning_rate: float = 1e-3
    epochs: int = 10
    patience: int = 7
    max_train_windows: int | None = 2000
    long_rows: int = 100_000  # a table longer than this is scored with the stride below
    long_score_stride: int = 4

    def _module(self, channels: int) -> nn.Module:
        from vace_study.baselines.modules.anomaly_transformer import AnomalyTransformerModule

        return AnomalyTransformerModule(channels, self.width, self.heads, self.layers, self.hidden)

    def _rate(self, epoch: int) -> float:
        return float(self.learning_rate * 0.5 ** max(epoch - 2, 0))

    def _losses(self, module: Any, batch: Tensor, at: At) -> Tensor:
        """MSE − k · discrepancy of the learned map, MSE + k · discrepancy of the Gaussian."""
        import torch

        values, maps = module(batch)
        error = (values - batch).square().mean()
        of_series = torch.stack([_symmetric(m.series, m.prior.detach()).mean() for m in maps])
        of_prior = torch.stack([_symmetric(m.prior, m.series.detach()).mean() for m in maps])
        k = self.discrepancy_weight
        return torch.stack([error - k * of_series.mean(), error + k * of_prior.mean()])

    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        import torch

        values, maps = module(batch)
        discrepancy = torch.stack([_symmetric(m.series, m.prior) for m in maps]).sum(dim=0)
        weight = torch.softmax(-_TEMPERATURE * discrepancy, dim=1)  # (b, window)
        scores: Tensor = weight * (values - batch).square().mean(dim=2)
        return scores if self.kept == "every row" else scores[:, -1]

    def _stride(self, n_rows: int) -> int:
        if self.kept == "every row":
            return 1
        return self.long_score_stride if n_rows > self.long_rows else self.score_stride

    def _score_starts(self, n_rows: int) -> Starts:
        if self.kept == "every row":
            return tile_starts(n_rows, self.window)
        return super()._score_starts(n_rows)

    def _place(self, scores: Array, n_rows: int) -> Array:
        if self.kept == "every row":
            return place_tiles(scores, n_rows)
        if self.kept == "last row, own row":
            return place_last_row(scores, self.window, n_rows)
        return super()._place(scores, n_rows)


def _symmetric(p: Tensor, q: Tensor) -> Tensor:
    """KL(p‖q) + KL(q‖p) of each row, mean over heads: (batch, rows)."""
    from vace_study.baselines.networks.layers import divergence

    return (divergence(p, q) + divergence(q, p)).mean(dim=1)


METHODS = (
    network_method("anomaly-transformer", AnomalyTransformer, "Transformers"),
    network_method(
        "anomaly-transformer-current", AnomalyTransformer, "Transformers", windows="current"
    ),
    network_method(
        "anomaly-transformer-original",
        AnomalyTransformer,
        "Transformers",
        windows="current",
        kept="every row",
        window=100,
        batch_size=256,
        learning_rate=1e-4,
    ),
    network_method(
        "anomaly-transformer-quick",
        AnomalyTransformer,
        "Transformers",
        max_train_windows=256,
        batch_size=32,
        epochs=3,
        score_stride=8,
        long_score_stride=8,
    ),
)
