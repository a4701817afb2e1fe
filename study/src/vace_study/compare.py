"""Whether a difference means anything: a paired bootstrap over series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_DRAWS = 10_000
_LEVEL = 0.95


@dataclass(frozen=True)
class Difference:
    """A mean difference over the series that both sides have, and its 95 % interval."""

    mean: float
    low: float | None  # None where one series allows no interval
    high: float | None
    n: int
    wins: int  # series where the first is higher
    losses: int

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low is not None and self.high is not None and self.low * self.high > 0


def paired(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Difference | None:
    """Ours minus theirs, resampling series together; None where no series is shared."""
    import numpy as np

    shared = [series for series in ours if series in theirs]
    if not shared:
        return None
    gaps = np.array([ours[series] - theirs[series] for series in shared])
    low = high = None
    if len(gaps) > 1:
        draws = np.random.default_rng(0).integers(len(gaps), size=(_DRAWS, len(gaps)))
        means = gaps[draws].mean(axis=1)  # (draws,)
        low, high = (float(q) for q in np.quantile(means, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]))
    return Difference(
        float(gaps.mean()), low, high, len(gaps), int((gaps > 0).sum()), int((gaps < 0).sum())
    )
