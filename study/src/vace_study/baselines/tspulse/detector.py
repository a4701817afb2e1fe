"""TSPulse as a detector: windows, heads, and how their errors become scores of rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import ConfigError, InputError, NotFittedError
from vace_study.baselines.contract import Method
from vace_study.baselines.networks.backend import choose_device, import_torch
from vace_study.baselines.networks.scaling import Scale
from vace_study.baselines.networks.windows import interpolated, refuse_short, strided
from vace_study.baselines.tspulse.config import sizes_of
from vace_study.baselines.weights import Source, check_tensors, fingerprint, read_tensors

if TYPE_CHECKING:
    from torch import Tensor

    from vace_study.baselines.modules.tspulse import TSPulseModule

Array = NDArray[np.float64]
Head = Literal["time", "fft", "forecast", "ensemble"]

SOURCE = Source(
    "TSPulse",
    "VACE_TSPULSE_WEIGHTS",
    "config.json and model.safetensors of the branch main of "
    "ibm-granite/granite-timeseries-tspulse-r1 (Hugging Face)",
)
_BATCH = 768  # windows of one channel with one patch hidden, at a time


@dataclass
class TSPulse:
    """Error of what a pretrained network says of hidden patches, or of the next row."""

    weights: str | None = None  # folder; else VACE_TSPULSE_WEIGHTS
    head: Head = "time"
    scored_rows: int = 96  # at the end of a window, hidden patch by patch
    smoothing: int = 8  # rows of the moving average
    score_stride: int = 1  # windows between two that are scored; the rest is interpolated
    tuned: bool = False  # fine-tune all weights on the training rows
    epochs: int = 20  # at most 5 below 3,000 training rows
    max_samples: int = 100_000  # windows with one patch hidden, at random
    max_channels: int | None = None  # that a training step sees, at random; None takes all
    learning_rate: float = 1e-4
    patience: int = 5
    device: str = "auto"
    random_state: int = 0

    def fit(self, table: Array) -> TSPulse:
        """Read the weights and, where `tuned`, go on training them on these rows."""
        import_torch("TSPulse")
        if self.head not in get_args(Head):
            raise ConfigError(f"head={self.head!r}: must be one of {', '.join(get_args(Head))}")
        values = np.asarray(table, np.float64)
        self._channels = values.shape[1]
        self._module = load(self.weights, choose_device(self.device))
        sizes = self._module.sizes
        if self.scored_rows < 1 or self.scored_rows % sizes.patch_length:
            raise ConfigError(
                f"scored_rows={self.scored_rows}: must be a multiple of {sizes.patch_length}, the "
                "rows of a patch in these weights"
            )
        if self.head in ("forecast", "ensemble") and not sizes.prediction_length:
            raise ConfigError(f"head={self.head!r}: these weights have no forecast head; use time")
        self._train_caps: list[str] = []
        if self.tuned:
            from vace_study.baselines.tspulse.tuning import n_samples, tune

            total = n_samples(len(values), self._module, self._tail)
            if self.max_samples < total:
                self._train_caps.append(f"capped: {self.max_samples} of {total} samples")
            if self.max_channels is not None and self.max_channels < self._channels:
                self._train_caps.append(
                    f"capped: {self.max_channels} of {self._channels} channels a training step"
                )
            self.history_ = tune(self._module, Scale.of(values)(values), self._tail, self)
        return self

    def score(self, table: Array) -> Array:
        """Score every row of the table."""
        if not hasattr(self, "_module"):
            raise NotFittedError("this TSPulse has read no weights yet; call fit first")
        values = np.asarray(table, np.float64)
        if values.shape[1] != self._channels:
            raise InputError(
                f"a table of {values.shape[1]} channels came, the fit had {self._channels}; "
                "score the same channels or fit again"
            )
        refuse_short(len(values), self._tail)
        context = self._module.sizes.context_length
        missing = max(0, context + 1 - len(values))  # the published code needs one row more
        scaled = Scale.of(values)(values).astype(np.float32)
        padded = np.pad(scaled, ((missing, 0), (0, 0)), mode="edge")
        places = strided(len(padded) - context, self.score_stride)
        found = self._window_errors(padded, places)
        n_windows = len(padded) - context
        scores = [
            _min_max(np.pad(interpolated(places, errors, n_windows), pad, mode="edge"))
            for errors, pad in zip(found, self._pads(), strict=True)
        ]
        return smoothed(np.max(scores, axis=0), self.smoothing)[missing:]

    @property
    def notes_(self) -> tuple[str, ...]:
        """Which weights were read, and what was left out to save time; kept with the result."""
        notes = [f"weights {self._module.fingerprint}", *self._train_caps]
        if self.score_stride > 1:
            notes.append(f"capped: one of {self.score_stride} windows scored")
        return tuple(notes)

    @property
    def _tail(self) -> int:
        return min(self.scored_rows, self._module.sizes.context_length)

    def _pads(self) -> list[tuple[int, int]]:
        """Rows before the first window's score and after the last one's, for each head."""
        context, half = self._module.sizes.context_length, self._tail // 2
        middle, after = (context - half, half), (context, 0)
        return {
            "time": [middle],
            "fft": [middle],
            "forecast": [after],
            "ensemble": [middle, middle, after],
        }[self.head]

    def _window_errors(self, table: NDArray[np.float32], starts: NDArray[np.intp]) -> list[Array]:
        """Mean squared errors of each window, one array (n_starts,) a head."""
        import torch

        device = self._module.backbone.base_norm.weight.device
        rows = torch.from_numpy(table).to(device)
        context, tail = self._module.sizes.context_length, self._tail
        each = max(1, _BATCH // (table.shape[1] * tail // self._module.sizes.patch_length))
        steps = torch.arange(context, device=device)
        found: list[list[Tensor]] = []
        with torch.inference_mode():
            for first in range(0, len(starts), each):
                chosen = torch.from_numpy(starts[first : first + each]).to(device)
                windows = rows[chosen[:, None] + steps].transpose(1, 2)  # (b, channels, context)
                parts = []
                if self.head != "forecast":
                    by_time, by_spectrum = self._hidden_errors(windows)
                    parts += {"time": [by_time], "fft": [by_spectrum]}.get(
                        self.head, [by_time, by_spectrum]
                    )
                if self.head in ("forecast", "ensemble"):
                    parts.append(self._forecast_errors(windows, rows[chosen + context]))
                found.append(parts)
        return [torch.cat(part).double().cpu().numpy() for part in zip(*found, strict=True)]

    def _hidden_errors(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """Errors of the last rows, each patch guessed while it is hidden: (b,) for both heads."""
        b, channels, context = windows.shape
        flat = windows.reshape(b * channels, context)
        hidden = hidden_patches(context, self._tail, self._module.sizes.patch_length)
        hidden = hidden.to(windows.device)  # (n_hidden, context)
        many = flat.repeat_interleave(len(hidden), dim=0)
        masks = hidden.repeat(len(flat), 1)
        output = self._module(many, masks)
        # Every sample hides as many rows, so the mean over samples is that over rows.
        by_time, by_spectrum = (
            (guess - many)[masks].square().reshape(b, -1).mean(dim=1)
            for guess in (output.time, output.through)
        )
        return by_time, by_spectrum

    def _forecast_errors(self, windows: Tensor, following: Tensor) -> Tensor:
        """Errors of the next row, nothing hidden: (b,)."""
        import torch

        b, channels, context = windows.shape
        flat = windows.reshape(b * channels, context)
        output = self._module(flat, torch.zeros_like(flat, dtype=torch.bool))
        guess = output.forecast[:, 0].reshape(b, channels)
        error: Tensor = (guess - following).square().mean(dim=1)
        return error


def hidden_patches(context: int, tail: int, patch: int) -> Tensor:
    """One mask for each patch of the last `tail` rows: (tail / patch, context)."""
    import torch

    row = torch.arange(context)
    firsts = torch.arange(context - tail, context, patch)[:, None]
    return (row >= firsts) & (row < firsts + patch)


def smoothed(scores: Array, rows: int) -> Array:
    """A moving average with zeros beyond the ends, by its largest value."""
    if rows > 1:
        scores = np.convolve(scores, np.full(rows, 1 / rows), mode="same")
    top = scores.max()
    return scores / top if top > 0 else scores


def _min_max(scores: Array) -> Array:
    low, high = scores.min(), scores.max()
    return np.asarray((scores - low) / (high - low)) if high > low else np.zeros_like(scores)


def load(folder: str | None, device: str) -> TSPulseModule:
    """The network with the weights of a folder; every name and shape must fit."""
    import torch

    from vace_study.baselines.modules.tspulse import TSPulseModule

    where = SOURCE.folder(folder)
    module = TSPulseModule(sizes_of(SOURCE.config(where), where))
    path = SOURCE.file(where, "model.safetensors")
    tensors = read_tensors(path)
    state = module.state_dict()
    check_tensors(tensors, {name: tuple(each.shape) for name, each in state.items()}, path)
    module.load_state_dict({name: torch.from_numpy(tensors[name]) for name in state})
    module.fingerprint = fingerprint(tensors)
    return module.eval().to(device)


def _method(name: str, **changed: Any) -> Method:
    settings = asdict(TSPulse(**changed))
    del settings["random_state"]
    return Method(
        name,
        lambda seed: TSPulse(**changed, random_state=seed),
        settings,
        seeded=bool(settings["tuned"]),  # zero-shot scoring draws nothing
        category="Neural Networks",
    )


METHODS = (
    _method("tspulse"),
    _method("tspulse-fft", head="fft"),
    _method("tspulse-forecast", head="forecast"),
    _method("tspulse-ensemble", head="ensemble"),
    _method("tspulse-stride16", score_stride=16),
    _method("tspulse-tuned", tuned=True),
    _method(
        "tspulse-tuned-small",
        tuned=True,
        epochs=5,
        max_samples=2_000,
        max_channels=16,
        score_stride=16,
    ),
)
