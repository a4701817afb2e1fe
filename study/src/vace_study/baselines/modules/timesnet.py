"""TimesNet's network: a window folded by its strongest periods, and convolved in two dimensions."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from vace_study.baselines.networks.layers import Embedding, normalised


class TimesNetModule(nn.Module):
    """Instance normalisation, embedding, one block, and back.

    At 38 channels 74,630 weights; the count of 74,670 that the library reports takes in an
    embedding of time stamps (5 → 8) that never gets any.
    """

    def __init__(
        self, channels: int, width: int, hidden: int, periods: int, dropout: float
    ) -> None:
        super().__init__()
        self.embedding = Embedding(channels, width, dropout)
        self.block = TimesBlock(width, hidden, periods)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, channels)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, window, channels), reconstructed."""
        window = normalised(x)
        hidden = self.norm(self.block(self.embedding(window.values)))
        return window.undo(self.head(hidden))


class TimesBlock(nn.Module):
    """Two inception blocks on the window folded by each period, weighted by amplitude."""

    def __init__(self, width: int, hidden: int, periods: int) -> None:
        super().__init__()
        self.first, self.second = Inception(width, hidden), Inception(hidden, width)
        self._periods = periods

    def forward(self, x: Tensor) -> Tensor:
        """(batch, rows, width), with what the periods say added."""
        rows = x.shape[1]
        amplitude = torch.fft.rfft(x, dim=1).abs().mean(dim=2)  # (batch, frequencies)
        common = amplitude.mean(dim=0)  # one choice for the whole batch
        common = torch.cat([torch.zeros_like(common[:1]), common[1:]])  # the level is no period
        chosen = common.topk(min(self._periods, len(common))).indices
        weights = torch.softmax(amplitude[:, chosen], dim=1)  # (batch, periods)
        # Frequency 0 is chosen only where nothing varies; its period is the whole window.
        lengths = [rows // max(frequency, 1) for frequency in chosen.tolist()]
        folded = torch.stack([self._folded(x, length) for length in lengths], dim=-1)
        return x + (folded * weights[:, None, None, :]).sum(dim=-1)

    def _folded(self, x: Tensor, period: int) -> Tensor:
        """The two inception blocks on (batch, width, rows / period, period), unfolded again."""
        batch, rows, width = x.shape
        padded = functional.pad(x, (0, 0, 0, -rows % period))
        grid = padded.reshape(batch, -1, period, width).permute(0, 3, 1, 2)
        grid = torch.as_tensor(self.second(functional.gelu(self.first(grid))))
        return grid.permute(0, 2, 3, 1).reshape(batch, -1, width)[:, :rows]


class Inception(nn.Module):
    """The mean of convolutions with kernels 1, 3, …, 11.

    A mean of convolutions is one convolution with the mean of their kernels, each padded to the
    largest; and weights that reach past the edge of a flat grid only meet zeros. So one small
    kernel does the work of six: the same numbers, about four times cheaper.
    """

    def __init__(self, n_in: int, n_out: int, kernels: int = 6) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            nn.Conv2d(n_in, n_out, kernel_size=2 * i + 1, padding=i) for i in range(kernels)
        )
        for branch in self.branches:
            assert isinstance(branch, nn.Conv2d)
            nn.init.kaiming_normal_(branch.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(branch.bias)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """(batch, n_in, height, width) to (batch, n_out, height, width)."""
        reach = [min(len(self.branches), size) - 1 for size in x.shape[2:]]  # to either side
        branches = cast("list[nn.Conv2d]", list(self.branches))
        kernel = torch.stack([_fitted(branch.weight, reach) for branch in branches]).mean(dim=0)
        bias = torch.stack([cast("Tensor", branch.bias) for branch in branches]).mean(dim=0)
        return functional.conv2d(x, kernel, bias, padding=reach)


def _fitted(kernel: Tensor, reach: list[int]) -> Tensor:
    """A kernel (n_out, n_in, k, k) cut or padded to 2 · reach + 1 in each direction."""
    spare = [kernel.shape[3] // 2 - each for each in reach]  # negative: to be padded
    return functional.pad(kernel, (-spare[1], -spare[1], -spare[0], -spare[0]))
