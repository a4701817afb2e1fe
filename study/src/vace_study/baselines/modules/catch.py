"""CATCH's network (2025): patches of a window's spectrum, masked attention across channels."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from vace_study.baselines.networks.layers import normalised

_HIDDEN = -math.log(1e10)  # the attention score of a pair that the mask hides


class Sizes(NamedTuple):
    """Of the network; the names are the authors'."""

    window: int
    patch: int  # frequencies
    stride: int
    cf_dim: int  # of a token
    d_model: int  # half the width of a patch in the heads
    layers: int
    heads: int
    head_dim: int
    d_ff: int
    dropout: float
    temperature: float
    regulariser: float

    @property
    def n_patches(self) -> int:
        """Of a spectrum."""
        return (self.window - self.patch) // self.stride + 1


class Output(NamedTuple):
    """What the network says of a batch."""

    values: Tensor  # (b, window, channels)
    frequency_error: Tensor  # mean |predicted spectrum − spectrum|
    contrast: Tensor  # of the masks, mean over layers


class CATCHModule(nn.Module):
    """Reconstructs a window through its spectrum; 211 M weights at the published sizes."""

    def __init__(self, channels: int, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.mask_generator = nn.Linear(2 * sizes.patch, channels, bias=False)
        nn.init.zeros_(self.mask_generator.weight)  # every pair shown with probability 1/2
        self.embed = nn.Linear(2 * sizes.patch, sizes.cf_dim)
        self.blocks = nn.ModuleList(_Block(sizes) for _ in range(sizes.layers))
        width = 2 * sizes.d_model
        self.widen = nn.Linear(sizes.cf_dim, width)
        self.split = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.heads = nn.ModuleList(_Head(sizes.n_patches * width, sizes.window) for _ in range(2))
        self.join = nn.Linear(2 * sizes.window, sizes.window)

    def forward(self, x: Tensor) -> Output:
        """(b, window, channels)."""
        b, _, channels = x.shape
        window = normalised(x)
        spectrum = torch.fft.fft(window.values.transpose(1, 2), dim=2)  # (b, channels, window)
        tokens = self._patches(spectrum)  # (b · n_patches, channels, 2 · patch)
        mask = self._mask(tokens)
        hidden, contrasts = self.embed(tokens), []
        for block in self.blocks:
            hidden, contrast = block(hidden, mask)
            contrasts.append(contrast)
        wide = self.widen(hidden).view(b, self.sizes.n_patches, channels, -1)
        real, imaginary = (
            head(part(wide).transpose(1, 2).flatten(2))  # (b, channels, window)
            for part, head in zip(self.split, self.heads, strict=True)
        )
        predicted = torch.complex(real, imaginary)
        back = torch.fft.ifft(predicted, dim=2)
        values = self.join(torch.cat([back.real, back.imag], dim=2)).transpose(1, 2)
        error = (predicted - spectrum).abs().mean()
        return Output(window.undo(values), error, torch.stack(contrasts).mean())

    def _patches(self, spectrum: Tensor) -> Tensor:
        """A sequence of channels for each patch of frequencies."""
        cut = [
            part.unfold(2, self.sizes.patch, self.sizes.stride)
            for part in (spectrum.real, spectrum.imag)
        ]
        return torch.cat(cut, dim=3).transpose(1, 2).flatten(0, 1)

    def _mask(self, tokens: Tensor) -> Tensor:
        """1 where a channel may look at another, drawn in scoring too: (n, channels, channels)."""
        shown = self.mask_generator(tokens)
        both = torch.stack(
            [nn.functional.logsigmoid(shown), nn.functional.logsigmoid(-shown)], dim=-1
        )
        drawn = nn.functional.gumbel_softmax(both, hard=True)[..., 0]
        own = torch.eye(drawn.shape[1], device=drawn.device)
        return drawn * (1 - own) + own


class _Block(nn.Module):
    """Attention across channels, then two dense layers; each on a normalised input, added."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        inner = sizes.heads * sizes.head_dim
        self.norms = nn.ModuleList(nn.LayerNorm(sizes.cf_dim) for _ in range(2))
        self.query, self.key, self.value = (
            nn.Linear(sizes.cf_dim, inner, bias=False) for _ in range(3)
        )
        self.out = nn.Sequential(nn.Linear(inner, sizes.cf_dim), nn.Dropout(sizes.dropout))
        self.dense = nn.Sequential(
            nn.Linear(sizes.cf_dim, sizes.d_ff),
            nn.GELU(),
            nn.Dropout(sizes.dropout),
            nn.Linear(sizes.d_ff, sizes.cf_dim),
            nn.Dropout(sizes.dropout),
        )
        self._sizes = sizes

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(n, channels, cf_dim) to the same, and the contrast."""
        entered = self.norms[0](x)
        shape = (*x.shape[:2], self._sizes.heads, self._sizes.head_dim)
        q, k, v = (
            each(entered).view(shape).transpose(1, 2)  # (n, heads, channels, head_dim)
            for each in (self.query, self.key, self.value)
        )
        dots = q @ k.transpose(2, 3)
        shown = mask[:, None]
        masked = dots * shown + (1 - shown) * _HIDDEN
        weights = (masked / math.sqrt(self._sizes.head_dim)).softmax(dim=-1)
        x = x + self.out((weights @ v).transpose(1, 2).flatten(2))
        lengths = q.norm(dim=-1)[..., :, None] * k.norm(dim=-1)[..., None, :]
        cosine = (dots / lengths.clamp_min(1e-8)).mean(dim=1)  # (n, channels, channels)
        changed: Tensor = self.dense(self.norms[1](x))
        return x + changed, contrast(cosine, mask, self._sizes)


def contrast(cosine: Tensor, mask: Tensor, sizes: Sizes) -> Tensor:
    """Pairs that are shown should be alike, and few; 0 for one channel, where it is not defined."""
    channels = cosine.shape[1]
    if channels == 1:
        return cosine.new_zeros(())
    alike = (cosine / sizes.temperature).exp()
    likely = (alike * mask).sum(dim=2) / alike.sum(dim=2)
    own = torch.eye(channels, device=mask.device)
    many = (own - mask).abs().sum(dim=(1, 2)) / (channels * (channels - 1))
    return -likely.log().mean() + sizes.regulariser * many.mean()


class _Head(nn.Module):
    """Three square layers with a way around, and one to the window's frequencies."""

    def __init__(self, size: int, window: int) -> None:
        super().__init__()
        self.square = nn.ModuleList(nn.Linear(size, size) for _ in range(3))
        self.last = nn.Linear(size, window)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.square:
            x = x + torch.relu(layer(x))
        left: Tensor = self.last(x)
        return left


def frequency_score(error: Tensor, length: int) -> Tensor:
    """Mean |FFT| of every patch of `length` rows, averaged over the patches that cover a row.

    (b, window, channels), the reconstruction less the window, to (b, window).
    """
    window = error.shape[1]
    patches = error.unfold(1, length, 1)  # (b, n, channels, length)
    size = torch.fft.fft(patches, dim=3).abs().mean(dim=(2, 3))  # (b, n)
    n = size.shape[1]
    covers = (torch.arange(window) - torch.arange(n)[:, None]).to(error.device)  # (n, window)
    inside = ((covers >= 0) & (covers < length)).to(size.dtype)
    averaged: Tensor = size @ inside / inside.sum(dim=0)
    return averaged
