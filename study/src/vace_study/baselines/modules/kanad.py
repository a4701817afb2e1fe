"""KAN-AD's network (2025): a window of one channel as cosines, mixed by convolutions."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class KANADModule(nn.Module):
    """274 weights for the next value at window 96 and order 2."""

    fixed: Tensor  # (order, window)

    def __init__(self, window: int, order: int, outputs: int, *, divided: bool) -> None:
        super().__init__()
        maps = 2 * order + 1
        self.first, self.second = (
            nn.Conv1d(maps, maps, kernel_size=3, padding=1, bias=False) for _ in range(2)
        )
        self.join = nn.Conv1d(maps, 1, kernel_size=1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm1d(n) for n in (maps, maps, 1)])
        self.projection = nn.Linear(window, outputs)
        k = torch.arange(1, order + 1)[:, None]
        turns = torch.arange(window) / window  # (window,)
        self.register_buffer(
            "fixed", torch.cos(2 * math.pi * (turns / k if divided else turns * k))
        )
        self._orders = k

    def forward(self, x: Tensor) -> Tensor:
        """(n, window) to (n, outputs)."""
        gelu = nn.functional.gelu
        own = torch.cos(self._orders.to(x) * x[:, None])  # (n, order, window)
        fixed = self.fixed.expand(len(x), -1, -1)
        maps = torch.cat([fixed, own, x[:, None]], dim=1)  # (n, 2 · order + 1, window)
        hidden = gelu(self.norms[0](self.first(maps)))
        hidden = gelu(self.norms[1](self.second(hidden) + maps))
        joined = gelu(self.norms[2](self.join(hidden) + x[:, None]))
        projected: Tensor = self.projection(joined[:, 0])
        return projected
