"""Layers that several networks have: embeddings of rows, positions, normalisation of a window."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Embedding(nn.Module):
    """A circular convolution over time, plus fixed sine and cosine positions, then dropout."""

    def __init__(self, channels: int, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.tokens = nn.Conv1d(
            channels, width, kernel_size=3, padding=1, padding_mode="circular", bias=False
        )
        nn.init.kaiming_normal_(self.tokens.weight, mode="fan_in", nonlinearity="leaky_relu")
        self.dropout = nn.Dropout(dropout)
        self._width = width

    def forward(self, x: Tensor) -> Tensor:
        """(batch, rows, channels) to (batch, rows, width)."""
        tokens: Tensor = self.tokens(x.transpose(1, 2)).transpose(1, 2)
        embedded: Tensor = self.dropout(tokens + positions(x.shape[1], self._width).to(x))
        return embedded


def positions(rows: int, width: int) -> Tensor:
    """Sines in the even columns, cosines in the odd ones: (rows, width)."""
    pairs = torch.arange(0, width, 2)
    angles = torch.arange(rows)[:, None] * torch.exp(pairs * (-math.log(10_000.0) / width))
    table = torch.zeros(rows, width)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles[:, : width // 2])
    return table


class Normalised(NamedTuple):
    """A window without its own level and scale, and what undoes that."""

    values: Tensor  # (batch, rows, channels)
    mean: Tensor  # (batch, 1, channels)
    scale: Tensor  # (batch, 1, channels)

    def undo(self, values: Tensor) -> Tensor:
        """Values of the normalised kind as values of the original kind."""
        return values * self.scale + self.mean


def normalised(x: Tensor, epsilon: float = 1e-5) -> Normalised:
    """Instance normalisation: each channel of each window by its own mean and deviation.

    No gradient flows through mean and scale; they come from the data alone.
    """
    mean = x.mean(dim=1, keepdim=True)
    scale = torch.sqrt(x.var(dim=1, keepdim=True, unbiased=False) + epsilon)
    return Normalised((x - mean) / scale, mean, scale)


def divergence(p: Tensor, q: Tensor, epsilon: float = 1e-4) -> Tensor:
    """KL(p‖q) = Σ p · (log(p + ε) − log(q + ε)) over the last axis."""
    return (p * (torch.log(p + epsilon) - torch.log(q + epsilon))).sum(dim=-1)
