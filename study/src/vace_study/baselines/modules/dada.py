"""DADA's network (2025): patches, dilated-in-name convolutions, a choice of bottlenecks, a decoder.

Submodules carry the names of the released tensors, so that a state can be compared name by name.
The second decoder and the noise of the gate serve pre-training alone; they are here because the
file has them.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Sizes(NamedTuple):
    """What config.json says."""

    seq_len: int = 100
    patch_len: int = 5
    hidden_dim: int = 64
    d_model: int = 256
    depth: int = 10
    bn_dims: tuple[int, ...] = (16, 32, 64, 128, 192, 256)
    k: int = 3

    @property
    def n_patches(self) -> int:
        """Patches of a window."""
        return self.seq_len // self.patch_len


class DADAModule(nn.Module):
    """A window of one channel from its patches, some of them hidden; 1,844,714 weights."""

    fingerprint = ""  # of the weights that were read

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.input_embed = nn.Linear(sizes.patch_len, sizes.hidden_dim)
        widths = [sizes.hidden_dim] * sizes.depth + [sizes.d_model]
        blocks = [
            _Block(sizes.hidden_dim, width, last=i == sizes.depth) for i, width in enumerate(widths)
        ]
        self.encoder = _named("feature_extractor", _named("net", nn.Sequential(*blocks)))
        self.adaptive_bottleneck = _AdaptiveBottleneck(sizes)
        self.decoder, self.adv_decoder = (_decoder(sizes) for _ in range(2))

    def forward(self, x: Tensor, shown: Tensor) -> Tensor:
        """Reconstruct windows under masks.

        (n, seq_len) and (n, copies, n_patches), 1 where a patch is shown, to (n, copies, seq_len).
        """
        n, copies, n_patches = shown.shape
        tokens = self.input_embed(x.reshape(n, n_patches, -1))  # (n, n_patches, hidden_dim)
        masked = tokens[:, None] * shown[..., None]  # (n, copies, n_patches, hidden_dim)
        features = self.encoder(masked.flatten(0, 1).transpose(1, 2)).transpose(1, 2)
        decoded: Tensor = self.decoder(self.adaptive_bottleneck(features))
        return decoded.reshape(n, copies, -1)


class _Block(nn.Module):
    """GELU and convolution, twice, plus the input; the last block changes the width."""

    def __init__(self, n_in: int, n_out: int, *, last: bool) -> None:
        super().__init__()
        self.conv1 = _named("conv", nn.Conv1d(n_in, n_out, 3, padding=1))
        self.conv2 = _named("conv", nn.Conv1d(n_out, n_out, 3, padding=1))
        self.projector = nn.Conv1d(n_in, n_out, 1) if last else None

    def forward(self, x: Tensor) -> Tensor:
        """(n, n_in, n_patches) to (n, n_out, n_patches)."""
        gelu = nn.functional.gelu
        changed: Tensor = self.conv2(gelu(self.conv1(gelu(x))))
        kept: Tensor = x if self.projector is None else self.projector(x)
        return changed + kept


class _AdaptiveBottleneck(nn.Module):
    """The k bottlenecks that a gate prefers for this window, weighted."""

    mean: Tensor
    std: Tensor

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        features, n = sizes.n_patches * sizes.d_model, len(sizes.bn_dims)
        self.w_gate = nn.Parameter(torch.zeros(features, n))
        self.w_noise = nn.Parameter(torch.zeros(features, n))  # of pre-training
        self.register_buffer("mean", torch.zeros(1))
        self.register_buffer("std", torch.ones(1))
        self.bottlenecks = nn.ModuleList(
            _named(
                "net",
                nn.Sequential(
                    nn.Linear(sizes.d_model, width),
                    nn.GELU(),
                    nn.Linear(width, width),
                    nn.GELU(),
                    nn.Dropout(0.0),  # holds the place that the released names count
                    nn.Linear(width, sizes.d_model),
                ),
            )
            for width in sizes.bn_dims
        )
        self._k = sizes.k

    def forward(self, x: Tensor) -> Tensor:
        """(n, n_patches, d_model) to the same."""
        logits = x.flatten(1) @ self.w_gate  # (n, n_bottlenecks)
        top = logits.topk(self._k, dim=1)
        weights = torch.zeros_like(logits).scatter(1, top.indices, top.values.softmax(dim=1))
        total = torch.zeros_like(x)
        for j, bottleneck in enumerate(self.bottlenecks):
            chosen = weights[:, j].nonzero().flatten()  # most windows leave half of them out
            part = x[chosen]
            through = (bottleneck(part) + part) * weights[chosen, j][:, None, None]
            total = total.index_add(0, chosen, through)
        return total


def _decoder(sizes: Sizes) -> nn.Sequential:
    """Each token to the rows of its patch."""
    wide = 2 * sizes.d_model
    layers = nn.Sequential(
        nn.GELU(),
        nn.Linear(sizes.d_model, wide),
        nn.GELU(),
        nn.Linear(wide, wide),
        nn.GELU(),
        nn.Linear(wide, sizes.patch_len),
    )
    return _named("net", layers)


def _named(name: str, module: nn.Module) -> nn.Sequential:
    """A module one name deeper, as the released names have it."""
    return nn.Sequential(OrderedDict([(name, module)]))
