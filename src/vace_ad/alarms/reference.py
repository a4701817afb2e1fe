"""What a channel would have shown: normal stretches, and one channel rebuilt from the others.

An encoder that normalises each patch finds a constant strange, and a stretch from another time
breaks what channels do together. So a channel is put back to what the others lead to expect of
it, plus the noise that it has in normal operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SHRINK = 0.05  # of correlations towards none, as they are learned from few stretches
_FARTHEST = 8.0  # standard deviations: beyond, a faulty channel would drag its neighbours along


def reference_rows(parts: Sequence[Array], rows: int, stretches: int = 4) -> Array:
    """Evenly spaced stretches of `rows` training rows, (n_stretches, rows, n_channels).

    `parts` are complete stretches of training rows. Where none is long enough, the longest is
    taken as it is.
    """
    longest = max(map(len, parts))
    rows = min(rows, longest)
    starts = [(p, s) for p, part in enumerate(parts) for s in range(0, len(part) - rows + 1, rows)]
    chosen = np.linspace(0, len(starts) - 1, min(stretches, len(starts))).round().astype(int)
    return np.stack([parts[p][s : s + rows] for p, s in (starts[i] for i in chosen)])


class Normal:
    """How channels hang together in normal operation, learned from reference stretches."""

    def __init__(self, reference: Array) -> None:
        """Learn from (n_stretches, n_rows, n_channels) without missing values."""
        rows = reference.reshape(-1, reference.shape[-1])
        self.mean = rows.mean(axis=0)
        spread = rows.std(axis=0)
        floor = 1e-9 * np.maximum(np.abs(self.mean), 1e-12)
        self.spread = np.where(spread > floor, spread, 1.0)  # constant channels stay as they are
        z = (rows - self.mean) / self.spread
        correlation = (1 - _SHRINK) * (z.T @ z) / len(z)
        correlation[np.diag_indices_from(correlation)] += _SHRINK
        self.precision = np.linalg.inv(correlation)  # (D, D)
        # z minus its regression on all other channels is z P / diag(P), for each channel.
        noise = z @ self.precision / np.diag(self.precision)
        middle = reference.shape[0] // 2 * reference.shape[1]
        self.noise = noise[middle : middle + reference.shape[1]]  # (n_rows, D), one stretch
        self.usual = np.maximum(np.abs(noise).mean(axis=0), 1e-9)  # (D,)

    def look(self, window: Array) -> Look:
        """A window seen against normal operation."""
        z = np.clip((window - self.mean) / self.spread, -_FARTHEST, _FARTHEST)
        z = np.where(np.isnan(z), 0.0, z)
        return Look(self, z, z @ self.precision)


class Look(NamedTuple):
    """A window in normal units, and what each channel says beyond the others."""

    normal: Normal
    z: Array  # (n_rows, D)
    beyond: Array  # (n_rows, D), z P

    def rebuilt(self, channels: NDArray[np.intp]) -> Array:
        """What `channels` would have shown given the others, (n_rows, n_rebuilt).

        E[z_G | z_rest] = −P_GG⁻¹ P_G,rest z_rest = z_G − P_GG⁻¹ (P z)_G for a Gaussian with
        precision P.
        """
        normal = self.normal
        inner = normal.precision[np.ix_(channels, channels)]
        expected = self.z[:, channels] - np.linalg.solve(inner, self.beyond[:, channels].T).T
        noise = np.resize(normal.noise[:, channels], expected.shape)  # from its start over again
        out: Array = (expected + noise) * normal.spread[channels] + normal.mean[channels]
        return out

    def strangeness(self, rows: slice) -> Array:
        """How far channels are from what the others lead to expect, in usual noise, (D,)."""
        noise = np.abs(self.beyond[rows] / np.diag(self.normal.precision)).mean(axis=0)
        out: Array = noise / self.normal.usual
        return out
