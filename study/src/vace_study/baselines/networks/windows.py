"""Where windows begin, how their rows are scaled, and which row gets a window's score.

TSB-AD has cut windows in two ways, and they give very different numbers:

- `published`: the loader behind the published table (2024). Nothing is scaled. There is a
  reconstruction window for every row: window i begins at row i while i < N − W, later ones are all
  the last W rows. Its score stays at row i, the window's first.
- `current`: the loader since March 2025. Each table is standardised by its own mean and deviation,
  the scored one too. There are N − W + 1 reconstruction windows; a score goes to the middle row.

Forecasts are placed alike in both: the score of window i goes to the last row that it predicts.
The published code then maps scores to 0…1, which changes no rank and is left out here.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import ConfigError, TooShortError
from vace_study.baselines.windows import centred

Rule = Literal["published", "current"]
Array = NDArray[np.float64]
Starts = NDArray[np.intp]


def check_rule(rule: str) -> None:
    """Refuse a rule that does not exist."""
    if rule not in ("published", "current"):
        raise ConfigError(f"windows={rule!r}: must be published or current")


def scaled(table: Array, rule: Rule) -> Array:
    """The table as windows are cut from it."""
    return table if rule == "published" else standardised(table, *moments(table))


def moments(table: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each channel; a deviation of 0 becomes 1e-8."""
    deviation = table.std(axis=0)
    return table.mean(axis=0), np.where(deviation == 0, 1e-8, deviation)


def standardised(table: Array, mean: Array, deviation: Array) -> Array:
    """The table in deviations from the mean, channel by channel."""
    return np.asarray((table - mean) / deviation)


def split(n_rows: int, share: float = 0.8) -> int:
    """Rows that train; those after them validate."""
    return int(share * n_rows)


# ------------------------------------------------------------------------- first rows of windows


def reconstruction_starts(n_rows: int, window: int, rule: Rule) -> Starts:
    """First rows of the windows that are reconstructed: (n_rows,) or (n_rows − window + 1,)."""
    refuse_short(n_rows, window)
    last = n_rows - window
    return np.minimum(np.arange(n_rows), last) if rule == "published" else np.arange(last + 1)


def forecast_starts(n_rows: int, window: int, horizon: int) -> Starts:
    """First rows of the windows that have `horizon` rows after them."""
    refuse_short(n_rows, window + horizon)
    return np.arange(n_rows - window - horizon + 1)


def tile_starts(n_rows: int, window: int) -> Starts:
    """Windows side by side, and one that ends at the last row where rows are left over."""
    refuse_short(n_rows, window)
    starts = np.arange(0, n_rows - window + 1, window)
    return starts if n_rows % window == 0 else np.append(starts, n_rows - window)


def refuse_short(n_rows: int, needed: int) -> None:
    """A table must hold at least one window."""
    if n_rows < needed:
        raise TooShortError(
            f"{n_rows} rows came, this method needs at least {needed}; pass a longer table or "
            "choose a method with shorter windows"
        )


# --------------------------------------------------------------- scores of windows become of rows


def place_reconstruction(scores: Array, window: int, rule: Rule) -> Array:
    """(n_windows,) to (n_rows,)."""
    return scores if rule == "published" else centred(scores, window)


def place_forecast(scores: Array, window: int, horizon: int) -> Array:
    """(n_rows − window − horizon + 1,) to (n_rows,); rows without a forecast take the first."""
    return np.pad(scores, (window + horizon - 1, 0), mode="edge")


def place_last_row(scores: Array, window: int, n_rows: int) -> Array:
    """Reconstruction scores at the last row of their window; earlier rows take the first."""
    return np.pad(scores[: n_rows - window + 1], (window - 1, 0), mode="edge")


def place_tiles(values: Array, n_rows: int) -> Array:
    """(n_tiles, window) to (n_rows,); of a tile that overlaps the one before, its tail."""
    window = values.shape[1]
    whole, left = divmod(n_rows, window)
    body = values[:whole].ravel()
    return np.concatenate([body, values[-1, window - left :]]) if left else body


# ------------------------------------------------------- fewer windows than there are, for speed


def thinned(starts: Starts, most: int | None) -> Starts:
    """At most so many of them, evenly spaced, the first and the last among them."""
    if most is None or len(starts) <= most:
        return starts
    if most < 1:
        raise ConfigError(f"max_train_windows={most}: must be 1 or more, or None for all")
    return starts[np.linspace(0, len(starts) - 1, most).round().astype(np.intp)]


def strided(n_windows: int, stride: int) -> Starts:
    """Places of the windows that are scored: every `stride`-th, and the last."""
    if stride < 1:
        raise ConfigError(f"score_stride={stride}: must be 1 or more")
    places = np.arange(0, n_windows, stride)
    return places if places[-1] == n_windows - 1 else np.append(places, n_windows - 1)


def interpolated(places: Starts, scores: Array, n_windows: int) -> Array:
    """The scores of all windows, on straight lines between those that were computed."""
    if len(places) == n_windows:
        return scores
    return np.interp(np.arange(n_windows), places, scores)
