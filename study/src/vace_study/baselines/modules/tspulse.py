"""TSPulse's network (2026): patches of a window and of its spectrum, mixed by small dense layers.

Submodules carry the names of the released tensors, so that a state can be compared name by name.
Channels never meet in this network, so a batch here is of windows of one channel: (n, rows).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import torch
from torch import Tensor, nn

from vace_study.baselines.tspulse.config import Sizes


class Output(NamedTuple):
    """What the network says of a batch; the first three in the input's own scale."""

    time: Tensor  # (n, rows)
    through: Tensor  # (n, rows), through the spectrum
    forecast: Tensor | None  # (n, prediction_length)
    spectrum: Tensor  # (n, rows): real parts, then imaginary ones, each by its largest
    logits: Tensor | None  # (n, fft_prob_length), of the spectrum's softmax


class Spectrum(NamedTuple):
    """A series as frequencies 0 to rows/2 − 1, and what the way back needs."""

    parts: Tensor  # (n, rows)
    last: Tensor  # (n, 1), complex: the frequency that is left out
    largest: tuple[Tensor, Tensor]  # (n, 1) each, of real and imaginary parts

    def series(self, parts: Tensor) -> Tensor:
        """Other parts, as a series: (n, rows)."""
        real, imaginary = parts.chunk(2, dim=1)
        inner = torch.complex(real * self.largest[0], imaginary * self.largest[1])
        frequencies = torch.cat([inner, self.last], dim=1)
        series: Tensor = torch.fft.irfft(frequencies, n=parts.shape[1], dim=1)
        return series


class TSPulseModule(nn.Module):
    """Reconstructs what is hidden of a window, in time and through its spectrum."""

    fingerprint = ""  # of the weights that were read

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.backbone = _Backbone(sizes)
        self.decoder_with_head = _Decoder(sizes)

    def forward(self, x: Tensor, hidden: Tensor) -> Output:
        """(n, rows) and (n, rows), True where a value is hidden."""
        backbone, head, n = self.backbone, self.decoder_with_head, self.sizes.n_patches
        token = backbone.time_masker.mask_token.repeat(n)
        masked = torch.where(hidden, token, x)
        scaled, undo = backbone.scaler(masked, hidden, self.sizes.minimum_scale)
        spectrum = spectrum_of(scaled, self.sizes.minimum_scale)
        decoded = head.decoder(backbone(scaled, spectrum.parts))  # (n, tokens, d_model)
        registers = decoded[:, 2 * n :]
        parts: Tensor = head.fft_head(decoded[:, n : 2 * n]).flatten(1)
        forecast = head.forecast_mapping(registers) if head.forecast_mapping else None
        return Output(
            undo(head.time_head(decoded[:, :n]).flatten(1)),
            undo(spectrum.series(parts)),
            None if forecast is None else undo(forecast),
            parts,
            head.fft_softmax_mapping(registers) if head.fft_softmax_mapping else None,
        )


def spectrum_of(series: Tensor, epsilon: float) -> Spectrum:
    """The real FFT without its last frequency, both parts by their largest absolute value."""
    frequencies = torch.fft.rfft(series, dim=1)
    inner, last = frequencies[:, :-1], frequencies[:, -1:]
    largest = [part.abs().amax(dim=1, keepdim=True) + epsilon for part in (inner.real, inner.imag)]
    parts = torch.cat([inner.real / largest[0], inner.imag / largest[1]], dim=1)
    return Spectrum(parts, last, (largest[0], largest[1]))


def losses(output: Output, x: Tensor, hidden: Tensor, sizes: Sizes, channels: int) -> Tensor:
    """The four losses of pre-training, weighted: time, spectrum, through it, its softmax."""
    mean = x.mean(dim=1, keepdim=True)
    variance = x.var(dim=1, keepdim=True, unbiased=False) + sizes.minimum_scale
    truth = (x - mean) / variance.sqrt()
    found = [
        (output.time - x)[hidden].square().mean(),
        (output.spectrum - spectrum_of(truth, sizes.minimum_scale).parts).square().mean(),
        (output.through - x)[hidden].square().mean(),
    ]
    if output.logits is not None:
        size = torch.fft.rfft(truth, dim=1)[:, 1 : 1 + sizes.fft_prob_length].abs()
        target = (torch.log1p(size) if sizes.log_spectrum else size).softmax(dim=1)
        # The released code sums over channels and averages over frequencies, not the reverse.
        found.append(-(target * output.logits.log_softmax(dim=1)).mean() * channels)
    weights = torch.tensor(sizes.weights[: len(found)], device=x.device)
    return torch.stack(found) * weights


# ------------------------------------------------------------------- parts, named as released


class _Backbone(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.encoder_block = _Block(sizes, sizes.num_layers, sizes.n_tokens, sizes.dropout)
        self.time_encoding, self.fft_encoding = (
            _named("patcher", nn.Linear(sizes.patch_length, sizes.d_model)) for _ in range(2)
        )
        self.time_masker = _Masker(sizes.patch_length)
        self.scaler = _Scaler()
        self.add_tokens = _Registers(sizes)
        self.base_norm = nn.LayerNorm(sizes.n_tokens * sizes.d_model, eps=sizes.norm_eps)
        self._patches = (sizes.n_patches, sizes.patch_length)

    def forward(self, scaled: Tensor, spectrum: Tensor) -> Tensor:
        """(n, rows) each to (n, tokens, d_model)."""
        time = self.time_encoding(scaled.view(-1, *self._patches))
        frequency = self.fft_encoding(spectrum.view(-1, *self._patches))
        registers = self.add_tokens.patch_tokens.expand(len(scaled), -1, -1)
        tokens = torch.cat([time, frequency, registers], dim=1)
        mixed: Tensor = self.encoder_block(self.base_norm(tokens.flatten(1)).view_as(tokens))
        return mixed


class _Decoder(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        drop = sizes.head_dropout
        self.decoder = _named(
            "decoder_block", _Block(sizes, sizes.decoder_num_layers, sizes.n_tokens, drop)
        )
        self.time_head, self.fft_head = (_head(sizes) for _ in range(2))
        self.forecast_mapping = _mapping(sizes, sizes.prediction_length)
        self.fft_softmax_mapping = _mapping(sizes, sizes.fft_prob_length)


class _Masker(nn.Module):
    def __init__(self, length: int) -> None:
        super().__init__()
        self.mask_token = nn.Parameter(torch.randn(length))


class _Registers(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.patch_tokens = nn.Parameter(torch.randn(sizes.patch_register_tokens, sizes.d_model))


class _Undo(NamedTuple):
    """Values of the network's scale as values of the input's."""

    mean: Tensor  # (n, 1)
    scale: Tensor  # (n, 1)
    weight: Tensor
    bias: Tensor

    def __call__(self, values: Tensor) -> Tensor:
        return (values - self.bias) / self.weight * self.scale + self.mean


class _Scaler(nn.Module):
    """Standardises by the values that are not hidden; the mask's token keeps its own scale."""

    def __init__(self) -> None:
        super().__init__()
        self.affine_weight = nn.Parameter(torch.ones(1, 1, 1))
        self.affine_bias = nn.Parameter(torch.zeros(1, 1, 1))

    def forward(self, masked: Tensor, hidden: Tensor, least: float) -> tuple[Tensor, _Undo]:
        shown = (~hidden).to(masked.dtype)
        count = shown.sum(dim=1, keepdim=True).clamp_min(1)
        mean = (masked * shown).sum(dim=1, keepdim=True) / count
        variance = ((masked - mean) * shown).square().sum(dim=1, keepdim=True) / count
        scale = variance.clamp_min(least).sqrt()  # the "minimum scale" bounds the variance
        values = torch.where(hidden, masked, (masked - mean) / scale)
        weight, bias = self.affine_weight.view(()), self.affine_bias.view(())
        return values * weight + bias, _Undo(mean, scale, weight, bias)


class _Block(nn.Module):
    """Layers that mix over tokens, then over features."""

    def __init__(self, sizes: Sizes, layers: int, tokens: int, dropout: float) -> None:
        super().__init__()
        self.mixers = nn.ModuleList(_Layer(sizes, tokens, dropout) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for mixer in self.mixers:
            x = mixer(x)
        return x


class _Layer(nn.Module):
    def __init__(self, sizes: Sizes, tokens: int, dropout: float) -> None:
        super().__init__()
        self.patch_mixer = _Mixer(sizes, tokens, dropout)
        self.feature_mixer = _Mixer(sizes, sizes.d_model, dropout)

    def forward(self, x: Tensor) -> Tensor:
        norm = self.patch_mixer.norm
        x = x + self.patch_mixer(norm(x).transpose(1, 2)).transpose(1, 2)
        changed: Tensor = self.feature_mixer(self.feature_mixer.norm(x))
        return x + changed


class _Mixer(nn.Module):
    """A dense layer and back, then a gate: each number times its softmax weight."""

    def __init__(self, sizes: Sizes, size: int, dropout: float) -> None:
        super().__init__()
        wide = sizes.expansion_factor * size
        self.norm = _named("norm", nn.LayerNorm(sizes.d_model, eps=sizes.norm_eps))
        self.mlp = nn.Sequential(
            OrderedDict(
                fc1=nn.Linear(size, wide),
                gelu=nn.GELU(),
                dropout1=nn.Dropout(dropout),
                fc2=nn.Linear(wide, size),
                dropout2=nn.Dropout(dropout),
            )
        )
        self.gating_block = _named("attn_layer", nn.Linear(size, size))

    def forward(self, x: Tensor) -> Tensor:
        """(…, size) to the same."""
        mixed: Tensor = self.mlp(x)
        gate: Tensor = self.gating_block(mixed).softmax(dim=-1)
        return mixed * gate


def _head(sizes: Sizes) -> nn.Sequential:
    block = nn.Linear(sizes.d_model, sizes.patch_length)
    return nn.Sequential(
        OrderedDict(dropout=nn.Dropout(sizes.head_dropout), base_reconstruction_block=block)
    )


def _mapping(sizes: Sizes, outputs: int) -> nn.Sequential | None:
    """A small head on the registers."""
    if outputs == 0:
        return None
    registers, drop = sizes.patch_register_tokens, sizes.head_dropout
    return nn.Sequential(
        _Block(sizes, sizes.register_mixer_layers, registers, drop),
        nn.Flatten(),
        nn.LayerNorm(registers * sizes.d_model, eps=sizes.norm_eps),
        nn.Linear(registers * sizes.d_model, outputs),
    )


def _named(name: str, module: nn.Module) -> nn.Sequential:
    return nn.Sequential(OrderedDict([(name, module)]))
