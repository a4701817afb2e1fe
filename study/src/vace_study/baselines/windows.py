"""Windows of a series as rows of a matrix, and scores of windows as scores of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import TooShortError


def windows(table: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """Every `length` rows in a row, flattened channel by channel; window 1 is the table itself.

    (n_rows, n_channels) → (n_rows − length + 1, n_channels · length)
    """
    if len(table) < length:
        raise TooShortError(
            f"{len(table)} rows came, a window has {length}; pass a longer table or choose a "
            "method with shorter windows"
        )
    if length == 1:
        return table
    view = np.lib.stride_tricks.sliding_window_view(table, length, axis=0)
    return view.reshape(len(view), -1)


def centred(scores: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """Give each row the score of the window around it; the ends repeat the outermost window's.

    (n_rows − length + 1,) → (n_rows,)
    """
    return np.pad(scores, (length // 2, (length - 1) // 2), mode="edge")


def covering_means(scores: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """Give each row the mean score of all windows that cover it.

    (n_rows − length + 1,) → (n_rows,)
    """
    pad = np.zeros(length - 1)
    view = np.lib.stride_tricks.sliding_window_view(np.concatenate([pad, scores, pad]), length)
    n, rows = len(scores), np.arange(len(view))
    count = np.minimum(rows, n - 1) - np.maximum(rows - length + 1, 0) + 1
    return np.asarray(view.sum(axis=1) / count)
