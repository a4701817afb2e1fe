"""VACE for the TSB-AD benchmark: its custom detector, semi-supervised, as a function and a class.

The benchmark calls ``run_Custom_AD_Semisupervised(data_train, data, **HP)`` and evaluates the
scores of all rows of ``data``.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.compat import _core

# The settings that TSB-AD's tuning may vary, in the form of its HP_list.
CUSTOM_AD_HP: dict[str, list[Any]] = {"patch_length": [64, 96, 128], "random_state": [0]}


class CustomAD:
    """TSB-AD's detector contract: `fit`, `decision_function`, `decision_scores_` after both."""

    def __init__(
        self,
        HP: dict[str, Any] | None = None,
        *,
        preset: str | None = None,
        patch_length: int | None = None,
        random_state: int = 0,
        **settings: Any,
    ) -> None:
        given = {**(HP or {}), **settings}
        self.preset: str | None = given.pop("preset", preset)
        self.patch_length: int | None = given.pop("patch_length", patch_length)
        self.random_state = int(given.pop("random_state", random_state))
        self.settings: dict[str, Any] | None = given

    def fit(self, X: NDArray[np.float64], y: Any = None) -> Self:
        """Learn normal operation from the training part, (n_rows, n_channels)."""
        self.detector_ = _core.fit(_core.columns(X), self)
        self.decision_scores_ = _core.scores(self.detector_, _core.columns(X))
        return self

    def decision_function(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score of each row, high when anomalous."""
        self.decision_scores_ = _core.scores(self.detector_, _core.columns(X))
        return self.decision_scores_


def run_custom_ad_semisupervised(
    data_train: NDArray[np.float64], data_test: NDArray[np.float64], **HP: Any
) -> NDArray[np.float64]:
    """Train on one part, score the rows of another."""
    return CustomAD(HP).fit(data_train).decision_function(data_test)


def run_custom_ad_unsupervised(data: NDArray[np.float64], **HP: Any) -> NDArray[np.float64]:
    """Train on the series that is scored."""
    return CustomAD(HP).fit(data).decision_scores_


# The names under which TSB-AD looks for them.
run_Custom_AD_Semisupervised = run_custom_ad_semisupervised  # noqa: N816
run_Custom_AD_Unsupervised = run_custom_ad_unsupervised  # noqa: N816
