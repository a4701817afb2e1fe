"""BatchNorm and ReLU in training: what one batch measures, the map it makes, its derivative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.engine.encoder import BATCH_NORM_EPSILON, Encoder, Norm
from vace_ad.gradients.convolution import PHASES, Layout, Workspace

Array = NDArray[np.float32]
Exact = NDArray[np.float64]
MOMENTUM = 0.1  # of the running statistics
SMALLEST_GAIN = 1e-6  # to be divided by
FAR = 100  # squared mean over variance from which sums are taken about the mean, not about 0


class Block(NamedTuple):
    """Patches [start, end) of a batch, each occurring `times` times."""

    start: int
    end: int
    times: int


class Moments(NamedTuple):
    """Of the outputs of a stage, in one block; each (out,)."""

    mean: Exact
    squares: Exact  # Σ (y − mean)²

    @classmethod
    def of(cls, out: Array, n: int, layout: Layout, space: Workspace) -> Moments:
        """The moments of n rows in (PHASES, rows, out), which is zero after a patch's end."""
        mean = sums(out) / n
        squares = products(out, out) - n * mean**2
        if (n * mean**2 > FAR * squares).any():  # too much would cancel
            centred = less(out, layout.along(mean), space)
            squares = products(centred, centred)
        return cls(mean, squares)


class BatchNorm:
    """One stage in one batch: y ↦ factor · max(gain · y + shift, 0).

    BatchNorm's own gain γ / √(var + ε) is the factor where it is positive everywhere. The kernel
    of the next stage takes the factor up, which saves a pass over all outputs.
    """

    def __init__(
        self, norm: Norm | None, moments: Sequence[Moments], blocks: Sequence[Block], layout: Layout
    ) -> None:
        means, squares = (np.array(part) for part in zip(*moments, strict=True))
        times = np.array([block.times for block in blocks], np.float64)
        rows = times * [(block.end - block.start) * layout.length for block in blocks]
        self._n = rows.sum()  # rows that BatchNorm counts
        self.mean = rows @ means / self._n  # (out,), as all that follow
        total = times @ squares + rows @ (means - self.mean) ** 2
        self.var, self.unbiased = total / self._n, total / max(1, self._n - 1)
        far = (self.mean**2 > FAR * self.var).any()
        self._pivot = layout.along(self.mean) if far else None  # what sums are taken about
        self._inverse = 1 / np.sqrt(self.var + BATCH_NORM_EPSILON)
        self._norm = norm
        gain, shift = np.ones_like(self.mean), np.zeros_like(self.mean)
        if norm is not None:
            gain = norm.gamma * self._inverse
            shift = norm.beta - self.mean * gain
        one = np.ones_like(gain)
        positive = bool((gain > SMALLEST_GAIN).all())
        self.factor, self.gain = (gain, one) if positive else (one, gain)
        self._gain_rows = None if positive else layout.along(gain)
        self._shift_rows = layout.along(shift / self.factor)
        self._zero_rows = layout.along(np.zeros_like(gain))

    def apply(self, out: Array, hidden: Array) -> None:
        """All but the factor, from `out` into `hidden`, zero after a patch's end."""
        by_patch = hidden.reshape(PHASES, -1, self._shift_rows.shape[2])
        given = out.reshape(by_patch.shape)
        if self._gain_rows is not None:
            given = np.multiply(given, self._gain_rows, out=by_patch)
        np.add(given, self._shift_rows, out=by_patch)
        np.maximum(by_patch, self._zero_rows, out=by_patch)

    def slope_sums(self, out: Array, slope: Array, space: Workspace) -> tuple[Exact, Exact]:
        """Σ g and Σ g · (y − pivot) of slopes g behind the ReLU, (out,) each."""
        return sums(slope), products(slope, less(out, self._pivot, space))

    def differentiate(
        self, parts: Sequence[tuple[Exact, Exact]]
    ) -> tuple[Array | None, Array | None, tuple[Exact, Exact]]:
        """From all `slope_sums`: gradients in γ and β, and what slopes lose in passing.

        Before BatchNorm the slope is gain · (g − Σg/n − x̂ · Σ(g·x̂)/n), x̂ the normalised output,
        so it loses linear · y + constant, times the number of occurrences. Slopes behind the ReLU
        hold the factor already; the gain is the kernel's to take up.
        """
        sum_slope, sum_product = (np.sum(part, axis=0) for part in zip(*parts, strict=True))
        if self._norm is None:
            return None, None, (np.zeros_like(sum_slope), np.zeros_like(sum_slope))
        if self._pivot is None:
            sum_product = sum_product - self.mean * sum_slope
        linear = -sum_product * self._inverse**2 / self._n
        constant = -sum_slope / self._n - linear * self.mean
        gamma = sum_product * self._inverse / self.factor
        beta = sum_slope / self.factor
        return gamma.astype(np.float32), beta.astype(np.float32), (linear, constant)


def with_running_statistics(encoder: Encoder, batch: list[BatchNorm]) -> Encoder:
    """BatchNorm's running statistics moved towards those of a batch."""
    stages = []
    for stage, found in zip(encoder, batch, strict=True):
        norm = stage.norm
        if norm is not None:
            mean = (1 - MOMENTUM) * norm.mean + MOMENTUM * found.mean
            var = (1 - MOMENTUM) * norm.var + MOMENTUM * found.unbiased
            norm = replace(norm, mean=mean.astype(np.float32), var=var.astype(np.float32))
        stages.append(replace(stage, norm=norm))
    return tuple(stages)


def sums(rows: Array) -> Exact:
    """(PHASES, rows, out) summed over rows, (out,), by products with ones."""
    ones = np.ones((1, rows.shape[1]), np.float32)
    return np.asarray((ones @ rows).sum(axis=(0, 1), dtype=np.float64))


def products(a: Array, b: Array) -> Exact:
    """Σ a · b over rows, (out,)."""
    return np.asarray(np.einsum("prc,prc->pc", a, b).sum(axis=0, dtype=np.float64))


def less(out: Array, pivot: Array | None, space: Workspace) -> Array:
    """Outputs less a pivot (PHASES, 1, …) along each patch."""
    if pivot is None:
        return out
    centred = space.array("centred", *out.shape)
    by_patch = centred.reshape(PHASES, -1, pivot.shape[2])
    np.subtract(out.reshape(by_patch.shape), pivot, out=by_patch)
    return centred
