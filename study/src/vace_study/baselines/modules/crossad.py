"""CrossAD's network (2025): each scale of a window predicts the next finer one.

Channels never meet, so a batch here is of windows of one channel: (n, window).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from vace_study.baselines.networks.layers import positions


class Sizes(NamedTuple):
    """Of the network."""

    window: int
    patch: int
    kernels: tuple[int, ...]  # of the poolings, from coarse to fine
    d_model: int
    heads: int
    layers: int  # of encoder, context and decoder each
    d_ff: int
    dropout: float
    queries: int  # that a router chooses from, and as many tokens in each
    bank: int
    decay: float
    epsilon: float
    frequencies: int

    @property
    def tokens(self) -> tuple[int, ...]:
        """Of each scale, the window itself last."""
        lengths = [math.ceil(self.window / kernel) for kernel in (*self.kernels, 1)]
        return tuple(math.ceil(length / self.patch) for length in lengths)


class CrossADModule(nn.Module):
    """1.33 M weights at the published sizes."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.embed = nn.Linear(sizes.patch, sizes.d_model, bias=False)
        self.encoder = nn.ModuleList(
            _Layer(sizes, norms=2, twice=True) for _ in range(sizes.layers)
        )
        self.decoder = nn.ModuleList(_Layer(sizes, norms=3) for _ in range(sizes.layers))
        self.encoder_norm, self.decoder_norm = (nn.LayerNorm(sizes.d_model) for _ in range(2))
        self.context = Context(sizes)
        self.leave = nn.Linear(sizes.d_model, sizes.patch)

    def forward(self, x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """(n, window) to the predicted scales and the true ones, from the second coarsest on."""
        coarse, tokens = self.sizes.tokens[:-1], self.sizes.tokens[1:]
        scales = scales_of(x, self.sizes.kernels)
        embedded = [self._embedded(scale) for scale in scales[:-1]]
        inside = scale_mask(coarse, coarser=False).to(x.device)
        encoded = torch.cat(embedded, dim=1)
        for layer in self.encoder:
            encoded = layer(encoded, inside)
        encoded = self.encoder_norm(encoded)
        context = self.context(x, encoded)
        parts = encoded.split(list(coarse), dim=1)
        decoded = torch.cat(
            [stretched(part, n) for part, n in zip(parts, tokens, strict=True)], dim=1
        )
        coarser = scale_mask(tokens, coarser=True).to(x.device)
        for layer in self.decoder:
            decoded = layer(decoded, coarser, context)
        found = self.leave(self.decoder_norm(decoded)).split(list(tokens), dim=1)
        guesses = [
            each.flatten(1)[:, : scale.shape[1]]
            for each, scale in zip(found, scales[1:], strict=True)
        ]
        return guesses, scales[1:]

    def _embedded(self, scale: Tensor) -> Tensor:
        patches = _multiple(scale, self.sizes.patch).unfold(1, self.sizes.patch, self.sizes.patch)
        finest = positions(self.sizes.tokens[-1], self.sizes.d_model).to(scale.device)
        pooled = functional.adaptive_avg_pool1d(finest.T[None], patches.shape[1])[0].T
        embedded: Tensor = self.embed(patches) + pooled
        return embedded


class Context(nn.Module):
    """What was usual: a bank of entries that queries of training windows have moved."""

    entries: Tensor  # (bank, queries, d_model)
    counts: Tensor  # (bank,)
    sums: Tensor  # (bank, queries, d_model)

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        shape = (sizes.queries, sizes.d_model)
        self.router = nn.Linear(sizes.window, sizes.queries)
        self.queries = nn.Parameter(torch.randn(sizes.queries, *shape))
        self.layers = nn.ModuleList(
            _Layer(sizes, norms=2, cross_only=True) for _ in range(sizes.layers)
        )
        entries = torch.randn(sizes.bank, *shape)
        self.register_buffer("entries", entries)
        self.register_buffer("sums", entries.clone())
        self.register_buffer("counts", torch.ones(sizes.bank))
        self._gathered: list[tuple[Tensor, Tensor]] = []  # counts and sums since the last move
        self._sizes = sizes

    def forward(self, x: Tensor, encoded: Tensor) -> Tensor:
        """(n, window) and (n, tokens, d_model) to (n, bank · queries, d_model)."""
        if not self.training:  # the stored bank alone, and nothing random
            return self.entries.flatten(0, 1).expand(len(x), -1, -1)
        main = strongest(x, self._sizes.frequencies)
        chosen = functional.gumbel_softmax(self.router(main), hard=True)  # (n, queries)
        query = torch.einsum("nq,qtd->ntd", chosen, self.queries)
        for layer in self.layers:
            query = layer(query, None, encoded)
        self._gather(query.detach())
        # The gradient reaches the queries, past the bank, which has none.
        bank = self.entries + (query - query.detach())[:, None]  # (n, bank, queries, d_model)
        return bank.flatten(1, 2)

    def _gather(self, query: Tensor) -> None:
        """Note which entry is nearest to each query: (n, queries, d_model)."""
        flat = query.flatten(1)
        nearest = torch.cdist(flat, self.entries.flatten(1)).argmin(dim=1)
        hits = functional.one_hot(nearest, self._sizes.bank).to(flat.dtype)  # (n, bank)
        self._gathered.append((hits.sum(dim=0), (hits.T @ flat).view_as(self.sums)))

    def move(self) -> None:
        """Move the entries to the queries near them: a moving average of counts and sums."""
        if not self._gathered:
            return
        decay, epsilon = self._sizes.decay, self._sizes.epsilon
        counts, sums = (torch.stack(each).sum(dim=0) for each in zip(*self._gathered, strict=True))
        self._gathered.clear()
        self.counts.mul_(decay).add_(counts, alpha=1 - decay)
        self.sums.mul_(decay).add_(sums, alpha=1 - decay)
        total = self.counts.sum()
        smooth = (self.counts + epsilon) / (total + self._sizes.bank * epsilon) * total
        self.entries.copy_(self.sums / smooth[:, None, None])


class _Layer(nn.Module):
    """Attention among tokens, to a context, or both; then two dense layers; norms come first."""

    def __init__(
        self, sizes: Sizes, norms: int, *, twice: bool = False, cross_only: bool = False
    ) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(sizes.d_model) for _ in range(norms))
        self.attentions = nn.ModuleList(
            nn.MultiheadAttention(sizes.d_model, sizes.heads, sizes.dropout, batch_first=True)
            for _ in range(norms - 1)
        )
        self.dense = nn.Sequential(
            nn.Linear(sizes.d_model, sizes.d_ff),
            nn.GELU(),
            nn.Dropout(sizes.dropout),
            nn.Linear(sizes.d_ff, sizes.d_model),
        )
        self.dropout = nn.Dropout(sizes.dropout)
        self._twice, self._cross_only = twice, cross_only

    def forward(self, x: Tensor, hidden: Tensor | None, context: Tensor | None = None) -> Tensor:
        """(n, tokens, d_model) to the same; `hidden` is True where a token must not look."""
        for i, (norm, attention) in enumerate(zip(self.norms, self.attentions, strict=False)):
            entered = norm(x)
            if self._twice:  # as released: the first norm is applied again to its own output
                entered = norm(entered)
            seen = context if i == 1 or self._cross_only else entered
            mask = hidden if seen is entered else None
            attended, _ = attention(entered, seen, seen, attn_mask=mask, need_weights=False)
            x = x + self.dropout(attended)
        changed: Tensor = self.dropout(self.dense(self.norms[-1](x)))
        return x + changed


def scales_of(x: Tensor, kernels: tuple[int, ...]) -> list[Tensor]:
    """Mean-pooled copies from coarse to fine, and the window itself."""
    pooled = [_multiple(x, kernel).view(len(x), -1, kernel).mean(dim=2) for kernel in kernels]
    return [*pooled, x]


def scale_mask(tokens: tuple[int, ...], *, coarser: bool) -> Tensor:
    """True where a token must not look: at other scales, or only at finer ones."""
    scale = torch.repeat_interleave(torch.arange(len(tokens)), torch.tensor(tokens))
    own, other = scale[:, None], scale[None]
    return other > own if coarser else other != own


def stretched(tokens: Tensor, n: int) -> Tensor:
    """(b, m, d) to (b, n, d), each token repeated: nearest neighbours."""
    return functional.interpolate(tokens.transpose(1, 2), size=n, mode="nearest").transpose(1, 2)


def strongest(x: Tensor, n: int) -> Tensor:
    """The series of its n largest frequencies."""
    spectrum = torch.fft.rfft(x, dim=1)
    top = spectrum.abs().topk(min(n, spectrum.shape[1]), dim=1).indices
    kept = torch.zeros_like(spectrum).scatter(1, top, spectrum.gather(1, top))
    series: Tensor = torch.fft.irfft(kept, n=x.shape[1], dim=1)
    return series


def _multiple(x: Tensor, of: int) -> Tensor:
    """The right edge repeated until the length is a multiple."""
    missing = -x.shape[1] % of
    return functional.pad(x[:, None], (0, missing), mode="replicate")[:, 0] if missing else x
