"""Input checks of the measures: 0/1 labels, finite scores of the same length, a window."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vace_ad.errors import InputError


def binary(values: ArrayLike, name: str) -> NDArray[np.bool_]:
    """Return 0/1 values of any numeric kind as booleans, or say which value is neither."""
    array = np.asarray(values)
    _one_dimensional(array, name)
    if array.dtype == np.bool_:
        return array
    if array.dtype.kind not in "iuf":
        raise InputError(
            f"{name} are of type {array.dtype}; expected 0 and 1 as integers, booleans or floats: "
            "convert them first"
        )
    ones: NDArray[np.bool_] = array == 1
    strange = np.flatnonzero(~(ones | (array == 0)))
    if strange.size:
        row = int(strange[0])
        raise InputError(
            f"{name} hold {array[row]} at row {row} ({strange.size} such rows); "
            "expected only 0 and 1: map or drop the others"
        )
    return ones


def both_classes(labels: ArrayLike) -> NDArray[np.bool_]:
    """Return labels as booleans; they must hold anomalous and normal rows."""
    anomalous = binary(labels, "labels")
    if not anomalous.any():
        raise InputError(
            f"labels have no anomalous row among {anomalous.size}; the measures compare anomalous "
            "with normal rows: pass a part of the series that holds at least one 1"
        )
    if anomalous.all():
        raise InputError(
            f"labels are 1 on all {anomalous.size} rows; the measures compare anomalous with "
            "normal rows: pass a part of the series that holds at least one 0"
        )
    return anomalous


def finite(values: ArrayLike, name: str) -> NDArray[np.floating[Any]]:
    """Return finite real values as floats; float32 stays float32, integers become float64."""
    array = np.asarray(values)
    _one_dimensional(array, name)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} are of type {array.dtype}; expected real numbers: convert them")
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        row = int(bad[0])
        raise InputError(
            f"{name} hold {array[row]} at row {row} ({bad.size} such rows); expected finite "
            "numbers: drop these rows from labels and scores, or fill them"
        )
    return array


def labels_and_scores(
    labels: ArrayLike, scores: ArrayLike
) -> tuple[NDArray[np.bool_], NDArray[np.floating[Any]]]:
    """Return labels of both classes and finite scores of the same length."""
    anomalous, values = both_classes(labels), finite(scores, "scores")
    same_length(anomalous, values, "scores")
    return anomalous, values


def same_length(labels: NDArray[Any], other: NDArray[Any], name: str) -> None:
    """Refuse vectors of different lengths."""
    if labels.size != other.size:
        raise InputError(
            f"got {labels.size} labels and {other.size} {name}; expected one of each a row: "
            "cut both to the same rows"
        )


def at_least(value: int, least: int, name: str) -> int:
    """Return an integer setting, or say that it is none or too small."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(
            f"{name} is {value!r}; expected a whole number of at least {least}"
        ) from None
    if number < least:
        raise InputError(f"{name} is {number}; expected a whole number of at least {least}")
    return number


def _one_dimensional(array: NDArray[Any], name: str) -> None:
    if array.ndim != 1:
        raise InputError(
            f"{name} have shape {array.shape}; expected one dimension, a value for each row: "
            "pass a single column"
        )
