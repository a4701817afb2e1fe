"""Labels, scores and predictions as hypothesis makes them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


@st.composite
def labels(draw: st.DrawFn, most: int = 40) -> np.ndarray:
    """0/1 with both: alternating runs, so that events touch ends, crowd together, are one row."""
    runs = draw(st.lists(st.integers(1, 9), min_size=2, max_size=12))
    first = draw(st.integers(0, 1))
    values = np.repeat((np.arange(len(runs)) + first) % 2, runs)[:most]
    if values.min() == values.max():
        values[-1] = 1 - values[-1]
    return values.astype(np.int64)


@st.composite
def labelled_scores(draw: st.DrawFn, most: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Labels with scores: real numbers, few values with many ties, or a constant."""
    y = draw(labels(most))
    value = draw(
        st.sampled_from(
            [
                st.floats(-1e6, 1e6, allow_subnormal=False),
                st.floats(0, 1, width=16),
                st.integers(0, 3).map(float),
                st.just(0.25),
            ]
        )
    )
    return y, np.array(draw(st.lists(value, min_size=y.size, max_size=y.size)))


@st.composite
def labelled_predictions(
    draw: st.DrawFn, most: int = 40
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, scores and predictions; these may be all 0 or all 1."""
    y, scores = draw(labelled_scores(most))
    row = draw(st.sampled_from([st.integers(0, 1), st.just(0), st.just(1)]))
    predictions = draw(st.lists(row, min_size=y.size, max_size=y.size))
    return y, scores, np.array(predictions)


windows = st.one_of(st.integers(0, 12), st.sampled_from([31, 50, 99]))
