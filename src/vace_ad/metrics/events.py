"""Events: unbroken runs of positive rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.frames.segments import run_edges


class Events(NamedTuple):
    """Runs of positive rows in time order, half-open: rows ``starts[i]`` to ``stops[i] - 1``."""

    starts: NDArray[np.intp]  # (n_events,)
    stops: NDArray[np.intp]  # (n_events,)


def find_events(positive: NDArray[np.bool_]) -> Events:
    """Find the runs of True."""
    starts, stops = run_edges(positive).T
    return Events(starts, stops)


def ranges_of(starts: NDArray[np.intp], sizes: NDArray[np.intp]) -> NDArray[np.intp]:
    """The rows of half-open ranges of these sizes, one range after the other. (sum of sizes,)."""
    first = np.cumsum(sizes) - sizes  # place of each range in the answer
    return np.asarray(np.arange(sizes.sum()) + np.repeat(starts - first, sizes))


def reduce_events(reduce: np.ufunc, values: NDArray[Any], events: Events) -> NDArray[Any]:
    """Reduce the values of each event, by ``np.maximum`` for example. (n,) -> (n_events,)."""
    bounds = np.stack(events, axis=1).ravel()
    if bounds[-1] == values.size:  # reduceat wants every index inside; the last slice runs to
        bounds = bounds[:-1]  # the end anyway
    return np.asarray(reduce.reduceat(values, bounds)[::2])
