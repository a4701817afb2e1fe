"""AnomalyTransformer's network: attention, and a Gaussian around each row to compare it with."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from vace_study.baselines.networks.layers import Embedding


class Associations(NamedTuple):
    """How much each row looks at each other: (batch, heads, rows, rows)."""

    series: Tensor  # learned from the values
    prior: Tensor  # a Gaussian of the distance in time, its width learned


class AnomalyAttention(nn.Module):
    """Attention that also says what it looked at, and what a Gaussian would look at."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.sigma = nn.Linear(width, heads)
        self._heads = heads

    def forward(self, x: Tensor) -> tuple[Tensor, Associations]:
        """(batch, rows, width) to the same, and the two maps."""
        query, key, value = (self._split(part(x)) for part in (self.query, self.key, self.value))
        series = torch.softmax(query @ key.transpose(2, 3) / math.sqrt(query.shape[3]), dim=3)
        out = self.out((series @ value).transpose(1, 2).flatten(start_dim=2))
        return out, Associations(series, self._prior(self.sigma(x)))

    def _split(self, x: Tensor) -> Tensor:
        """(batch, rows, width) to (batch, heads, rows, width / heads)."""
        batch, rows, _ = x.shape
        return x.reshape(batch, rows, self._heads, -1).transpose(1, 2)

    @staticmethod
    def _prior(sigma: Tensor) -> Tensor:
        """(batch, rows, heads) to Gaussian densities of |i − j|, each row divided by its sum."""
        width = 3 ** (torch.sigmoid(5 * sigma) + 1e-5) - 1
        width = width.transpose(1, 2)[..., None]  # (batch, heads, rows, 1)
        places = torch.arange(sigma.shape[1], device=sigma.device)
        distance = (places[:, None] - places).abs()
        density = torch.exp(-(distance**2) / (2 * width**2)) / (math.sqrt(2 * math.pi) * width)
        return density / density.sum(dim=3, keepdim=True)


class Layer(nn.Module):
    """Attention and two 1×1 convolutions, each with a residual and a norm after it."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.attention = AnomalyAttention(width, heads)
        self.first, self.second = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, x: Tensor) -> tuple[Tensor, Associations]:
        """(batch, rows, width) to the same, and the two maps."""
        out, maps = self.attention(x)
        x = self.norms[0](x + out)
        return self.norms[1](x + self.second(functional.gelu(self.first(x)))), maps


class AnomalyTransformerModule(nn.Module):
    """4.83 M weights at 38 channels and the published sizes."""

    def __init__(self, channels: int, width: int, heads: int, layers: int, hidden: int) -> None:
        super().__init__()
        self.embedding = Embedding(channels, width)
        self.layers = nn.ModuleList(Layer(width, heads, hidden) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, channels)

    def forward(self, x: Tensor) -> tuple[Tensor, list[Associations]]:
        """(batch, rows, channels) reconstructed, and the maps of each layer."""
        hidden, maps = self.embedding(x), []
        for layer in self.layers:
            hidden, found = layer(hidden)
            maps.append(found)
        return self.head(self.norm(hidden)), maps
