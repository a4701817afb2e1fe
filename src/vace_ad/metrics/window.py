"""The period estimate from which TSB-AD takes the window of VUS."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vace_ad.errors import ConfigError, TooShortError
from vace_ad.metrics import _check

DEFAULT_WINDOW = 125  # where no period is found
_ROWS = 20_000  # only the first rows are looked at
_LAGS = 400
_BASE = 3  # smaller lags are left out of the search for peaks

# The smallest and the largest period that counts.
_LIMITS = {"1.5": (6, 303), "main": (3, 300)}


def sliding_window(series: ArrayLike, limits: Literal["1.5", "main"] = "1.5") -> int:
    """Estimate the period of one channel, in rows, as TSB-AD does.

    The lag (3 to 400) of the highest local maximum of the autocorrelation of the first 20,000
    rows, or 125 where there is none or its lag lies outside the limits. TSB-AD takes channel 0 of
    a multivariate series.

    Parameters
    ----------
    series
        One channel, of shape (n_rows,) or (n_rows, 1).
    limits
        ``"1.5"``, the default, follows the released TSB-AD 1.5, which compares the lag *less 3*
        with 3 and 300 and so accepts periods of 6 to 303 rows. ``"main"`` follows the repository
        since its pull request 51 (February 2026), which compares the lag itself: 3 to 300 rows.
        The published TSB-AD results are of the first kind.

    Examples
    --------
    >>> import numpy as np
    >>> from vace_ad.metrics import sliding_window
    >>> sliding_window(np.sin(np.arange(2000) * 2 * np.pi / 50))
    50
    """
    if limits not in _LIMITS:
        raise ConfigError(f"limits is {limits!r}; expected one of {', '.join(map(repr, _LIMITS))}")
    array = np.asarray(series)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    values = _check.finite(array, "series").astype(np.float64, copy=False)[:_ROWS]
    if values.size == 0:
        raise TooShortError("series has no rows; expected at least one: pass a channel's values")
    if values.size <= _BASE or np.all(values == values[0]):
        return DEFAULT_WINDOW

    correlation = _autocorrelation(values)[_BASE : _LAGS + 1]
    middle = correlation[1:-1]
    peaks = np.flatnonzero((middle > correlation[:-2]) & (middle > correlation[2:])) + 1
    if peaks.size == 0:
        return DEFAULT_WINDOW
    period = int(peaks[np.argmax(correlation[peaks])]) + _BASE
    smallest, largest = _LIMITS[limits]
    return period if smallest <= period <= largest else DEFAULT_WINDOW


def _autocorrelation(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Biased autocorrelation at the lags 0, ..., n - 1, by Fourier transform.

    Complex transforms of a 5-smooth length, as statsmodels has them: where theory gives a flat
    autocorrelation, rounding decides on the peaks, and it must be the same rounding.
    """
    n = values.size
    spectrum = np.fft.fft(values - values.mean(), n=_smooth(2 * n + 1))
    covariance = np.fft.ifft(spectrum * np.conjugate(spectrum))[:n].real / n
    if covariance[0] <= 0:  # values so small that their squares vanish: as good as constant
        return np.zeros(n)
    correlation: NDArray[np.float64] = covariance / covariance[0]
    return correlation


def _smooth(least: int) -> int:
    """The smallest number from `least` on that has no prime factor above 5."""
    size = least
    while True:
        rest = size
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return size
        size += 1
