"""DCdetector's network: two views of a window's patches, and the attention maps of each.

Only embeddings, queries and keys matter; the original also holds values, an output projection and
an embedding of the window (together 0.87 M weights), none of which is ever used.

The maps are computed without the wide embeddings. A token is e = C·u + s, where u holds the token
and its two neighbours (3·length numbers), C the convolution's weights and s the position. Then
⟨W_q e_i + b_q, W_k e_j + b_k⟩ = e_iᵀ M e_j + b·e_j + (a term of i alone) with M = W_qᵀ W_k and
b = W_kᵀ b_q, and softmax over j does not see the last term. Expanded by u, all large products have
3·length columns instead of 256: the same map, about ten times cheaper in a training step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from vace_study.baselines.networks.layers import Embedding, normalised, positions


class Maps(NamedTuple):
    """Attention of a layer and patch size, as (batch, window, window), mean over channels."""

    across: Tensor  # between patches
    inside: Tensor  # within patches


class Attention(nn.Module):
    """The query and key of a layer, shared by all views."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, tokens: Tensor, embedding: Embedding) -> Tensor:
        """(entries, n, length) to softmax maps (entries, n, n)."""
        stacked = _with_neighbours(tokens)  # u, (entries, n, 3 · length)
        weights = embedding.tokens.weight  # (width, length, 3)
        width = len(weights)
        embed = weights.transpose(1, 2).flatten(start_dim=1)  # C, (width, 3 · length)
        place = positions(tokens.shape[1], width).to(tokens)  # s, (n, width)
        product = self.query.weight.T @ self.key.weight  # M, (width, width)
        bias = self.key.weight.T @ self.query.bias  # b, (width,)
        small = embed.T @ product @ embed  # CᵀMC, (3 · length, 3 · length)
        to_values = (place @ product + bias) @ embed  # (n, 3 · length)
        to_places = embed.T @ product @ place.T  # (3 · length, n)
        constant = (place @ product + bias) @ place.T  # (n, n)
        logits = (stacked @ small + to_values) @ stacked.transpose(1, 2)
        logits = logits + stacked @ to_places + constant
        return torch.softmax(logits / math.sqrt(width), dim=2)


class DCDetectorModule(nn.Module):
    """Maps of every patch size and layer."""

    def __init__(self, window: int, patches: tuple[int, ...], width: int, layers: int) -> None:
        super().__init__()
        self.across = nn.ModuleList(Embedding(size, width) for size in patches)
        self.inside = nn.ModuleList(Embedding(window // size, width) for size in patches)
        self.layers = nn.ModuleList(Attention(width) for _ in range(layers))
        self._patches = patches

    def forward(self, x: Tensor) -> list[Maps]:
        """(batch, window, channels) to the maps, patch size by patch size, layer by layer."""
        batch, window, channels = x.shape
        series = normalised(x).values.transpose(1, 2).reshape(batch * channels, window)
        found = []
        for i, size in enumerate(self._patches):
            count = window // size
            for layer in self.layers:
                across = layer(series.reshape(-1, count, size), self.across[i])
                inside = layer(series.reshape(-1, size, count), self.inside[i])
                across = across.reshape(batch, channels, count, count).mean(dim=1)
                inside = inside.reshape(batch, channels, size, size).mean(dim=1)
                across = across.repeat_interleave(size, dim=1).repeat_interleave(size, dim=2)
                found.append(Maps(across, inside.repeat(1, count, count)))
        return found


def _with_neighbours(tokens: Tensor) -> Tensor:
    """Each token between its neighbours, around the end: (entries, n, 3 · length)."""
    return torch.cat([tokens.roll(1, dims=1), tokens, tokens.roll(-1, dims=1)], dim=2)
