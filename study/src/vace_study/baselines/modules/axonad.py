"""AxonAD's network: attention that reconstructs, and a guess at its queries from the rows before.

The queries that are guessed come from a copy of the embedding whose weights follow those of the
trained one slowly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

_DILATIONS = (1, 2, 4, 8)
_TAPS = 3
_DROPOUT = 0.1
_FIRST_POSITIONS = 0.02  # standard deviation of their first weights


class Output(NamedTuple):
    """What the network says of a batch of windows."""

    values: Tensor  # (batch, rows, channels), reconstructed
    foretold: Tensor  # (batch, heads, rows, width / heads), queries by the rows before
    queries: Tensor  # the same shape, by the slow copy


class Entry(nn.Module):
    """A row with its position, normalised, and its query."""

    def __init__(self, channels: int, width: int, rows: int) -> None:
        super().__init__()
        self.embedding = nn.Linear(channels, width)
        self.positions = nn.Parameter(_FIRST_POSITIONS * torch.randn(1, rows, width))
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(batch, rows, channels) to the embedding, the same normalised, and the query."""
        embedded = self.embedding(x) + self.positions
        normalised = self.norm(embedded)
        return embedded, normalised, self.query(normalised)


class Foretelling(nn.Module):
    """Dilated convolutions over the past: what is at row t comes from rows before t alone."""

    def __init__(self, width: int, ahead: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Conv1d(width, width, _TAPS, dilation=dilation) for dilation in _DILATIONS
        )
        self.out = nn.Conv1d(width, width, 1)
        self.dropout = nn.Dropout(_DROPOUT)
        self._ahead = ahead

    def forward(self, x: Tensor) -> Tensor:
        """(batch, rows, width) to the same; row t has seen rows up to t − ahead."""
        rows = x.shape[1]
        x = functional.pad(x.transpose(1, 2), (self._ahead, 0))[:, :, :rows]
        for layer, dilation in zip(self.layers, _DILATIONS, strict=True):
            past = functional.pad(x, ((_TAPS - 1) * dilation, 0))
            x = self.dropout(functional.relu(layer(past)))
        foretold: Tensor = self.out(x).transpose(1, 2)
        return foretold


class AxonADModule(nn.Module):
    """0.5 M weights at 38 channels and the published sizes."""

    def __init__(self, channels: int, width: int, heads: int, rows: int, ahead: int) -> None:
        super().__init__()
        self.entry, self.slow = (Entry(channels, width, rows) for _ in range(2))
        self.slow.load_state_dict(self.entry.state_dict())
        self.slow.requires_grad_(False)
        self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.out = nn.Linear(width, width)
        self.foretelling = Foretelling(width, ahead)
        self.norm = nn.LayerNorm(width)
        self.first, self.second = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.head = nn.Linear(width, channels)
        # Logarithms of what the loss of the values, and of the queries, is divided by.
        self.scales = nn.Parameter(torch.zeros(2))
        self._heads = heads

    def forward(self, x: Tensor) -> Output:
        """(batch, rows, channels); every window has as many rows as the positions."""
        embedded, normalised, query = self.entry(x)
        key, value = self._split(self.key(normalised)), self._split(self.value(normalised))
        context = functional.scaled_dot_product_attention(self._split(query), key, value)
        hidden = embedded + self.out(context.transpose(1, 2).flatten(start_dim=2))
        hidden = hidden + self.second(functional.relu(self.first(self.norm(hidden))))
        with torch.no_grad():
            slow = self.slow(x)[2]
        foretold = self._split(self.foretelling(normalised))
        return Output(self.head(hidden), foretold, self._split(slow))

    @torch.no_grad()
    def follow(self, momentum: float) -> None:
        """Move the slow copy towards the trained weights."""
        for slow, now in self._pairs():
            slow.mul_(momentum).add_(now, alpha=1 - momentum)

    def _pairs(self) -> Iterator[tuple[Tensor, Tensor]]:
        return zip(self.slow.parameters(), self.entry.parameters(), strict=True)

    def _split(self, x: Tensor) -> Tensor:
        """(batch, rows, width) to (batch, heads, rows, width / heads)."""
        batch, rows, _ = x.shape
        return x.reshape(batch, rows, self._heads, -1).transpose(1, 2)


def mismatch(output: Output) -> Tensor:
    """One minus the cosine of each query and what was foretold: (batch, heads, rows)."""
    return 1 - functional.cosine_similarity(output.foretold, output.queries, dim=3, eps=1e-12)
