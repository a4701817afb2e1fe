"""Events: unbroken runs of positive rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Events(NamedTuple):
    """Runs of positive rows in time order, half-open: rows ``starts[i]`` to ``stops[i] - 1``."""

    starts: NDArray[np.int64]  # (n_events,)
    stops: NDArray[np.int64]  # (n_events,)


def find_events(positive: NDArray[np.bool_]) -> Events:
    """Find the runs of True."""
    padded = np.zeros(positive.size + 2, dtype=np.bool_)
    padded[1:-1] = positive
    edges = np.flatnonzero(padded[1:] != padded[:-1])  # starts and stops alternate
    return Events(edges[0::2], edges[1::2])
