"""TSB-AD 1.5 as the oracle, and real series with real scores to compare on.

Needs the package TSB-AD==1.5 (``pip install --no-deps``) and, for its window estimate only,
statsmodels.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest


def load_oracle() -> SimpleNamespace:
    """Import TSB-AD's measures, or skip."""
    pytest.importorskip("TSB_AD", reason="TSB-AD==1.5 (pip install --no-deps) is not installed")
    with warnings.catch_warnings():  # its docstrings hold invalid escapes, which warn at compile
        warnings.simplefilter("ignore")
        import_module("TSB_AD.evaluation.affiliation.metrics")  # it would come later, and warn
        from TSB_AD.evaluation.basic_metrics import basic_metricor, generate_curve
        from TSB_AD.evaluation.metrics import get_metrics

    def nine(
        labels: np.ndarray, scores: np.ndarray, window: int, predictions: np.ndarray | None = None
    ) -> dict[str, float]:
        with warnings.catch_warnings():  # scikit-learn warns of 0 / 0
            warnings.simplefilter("ignore")
            return get_metrics(scores, labels, slidingWindow=window, pred=predictions)

    def vus(labels: np.ndarray, scores: np.ndarray, window: int, thresholds: int) -> Any:
        fpr, _, tpr, _, precision, _, roc, pr = generate_curve(
            labels, scores, window, "opt", thresholds
        )
        return SimpleNamespace(fpr=fpr, tpr=tpr, precision=precision, vus_roc=roc, vus_pr=pr)

    grader = basic_metricor()
    return SimpleNamespace(
        nine=nine, vus=vus, range_f1=grader.metric_RF1, affiliation_f=grader.metric_Affiliation
    )


def load_window_oracle() -> Any:
    """Import TSB-AD's window estimate, or skip."""
    pytest.importorskip("TSB_AD", reason="TSB-AD==1.5 (pip install --no-deps) is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("statsmodels", reason="statsmodels is not installed")
        from TSB_AD.utils.slidingWindows import find_length_rank

    def window(series: np.ndarray) -> int:
        with warnings.catch_warnings():  # a constant series divides 0 by 0
            warnings.simplefilter("ignore")
            return int(find_length_rank(series))

    return window


def read_series(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Values (n, D), labels (n,) and training rows of the series whose file name holds ``name``."""
    (path,) = folder.glob(f"*_{name}_*.parquet")
    table = pl.read_parquet(path).to_numpy().astype(np.float64)
    train = int(path.name.split("_tr_")[1].split("_")[0])
    return table[:, :-1], table[:, -1].astype(np.int64), train


def distance_scores(values: np.ndarray, train: int) -> np.ndarray:
    """Mean squared z-score of a row by the statistics of the first rows. (n, D) -> (n,)."""
    head = values[:train]
    scale = np.where(head.std(axis=0) > 0, head.std(axis=0), 1.0)
    return np.square((values - head.mean(axis=0)) / scale).mean(axis=1)


def residual_scores(values: np.ndarray, train: int) -> np.ndarray:
    """Squared distance from the plane of the leading principal components. (n, D) -> (n,)."""
    head = values[:train]
    centred = values - head.mean(axis=0)
    _, _, axes = np.linalg.svd(centred[:train], full_matrices=False)
    axes = axes[: max(1, len(axes) // 4)]
    return np.square(centred - centred @ axes.T @ axes).sum(axis=1)
