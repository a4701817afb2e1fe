"""Shared by all adapters: a fit that adapts to short series, and scores without NaN."""

from __future__ import annotations

import warnings
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.detector import VACE
from vace_ad.errors import TooShortError, VaceWarning

SHORTEST_PATCH = 4


class Adapter(Protocol):
    """The settings that every adapter has."""

    preset: str | None
    patch_length: int | None
    random_state: Any
    settings: dict[str, Any] | None


def fit(values: NDArray[np.float64], adapter: Adapter, seed: int | None = None) -> VACE:
    """Fit a detector on rows (n_rows, n_channels) by the settings of an adapter.

    Without `patch_length`, it is the default or the longest that fits.
    """
    seed = adapter.random_state if seed is None else seed
    chosen: dict[str, Any] = {"random_state": seed, **(adapter.settings or {})}
    default = VACEConfig.from_preset(adapter.preset)
    length = adapter.patch_length or min(default.length, _longest(len(values)))
    if length != default.length:
        chosen = {"patch_length": length, **chosen}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VaceWarning)  # these libraries take warnings as failures
        return VACE(preset=adapter.preset, **chosen).fit(values)


def columns(values: Any) -> NDArray[np.float64]:
    """The rows (n_rows, n_channels) of a table, a series or an array."""
    array = np.asarray(values, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array


def _longest(rows: int) -> int:
    """The longest patch P with P + P/2 + 1 rows."""
    length = (2 * (rows - 1)) // 3
    if length < SHORTEST_PATCH:
        raise TooShortError(
            f"n_samples = {rows}: a fit needs at least "
            f"{SHORTEST_PATCH + SHORTEST_PATCH // 2 + 1}, in order of time"
        )
    return length


def scores(detector: VACE, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A score for each row, as these libraries expect for any number of rows.

    Fewer rows than a patch has are continued backwards by their mirror image. Rows that no patch
    covers get the median, neither normal nor anomalous.
    """
    missing, padded = _padded(detector, values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VaceWarning)
        found = detector.score(padded)[missing:]
    unknown = np.isnan(found)
    return np.where(unknown, 0.0 if unknown.all() else np.median(found[~unknown]), found)


def threshold(detector: VACE, contamination: float) -> float:
    """The score beyond which so large a share of rows lies that the detector did not learn from."""
    return float(np.quantile(detector.calibration_scores_, 1 - contamination))


def alarms(
    detector: VACE, values: NDArray[np.float64], budget: str | None = None
) -> NDArray[np.intp]:
    """The rows of events under a budget in words, for any number of rows."""
    missing, padded = _padded(detector, values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VaceWarning)
        found = detector.detect(padded, budget=budget, first=missing)
    return np.flatnonzero(found.predictions[missing:])


def _padded(detector: VACE, values: NDArray[np.float64]) -> tuple[int, NDArray[np.float64]]:
    """Rows with as many before them as a patch lacks, and how many these are."""
    missing = max(0, detector.model_.reach - len(values))
    return missing, np.pad(values, ((missing, 0), (0, 0)), mode="symmetric")
