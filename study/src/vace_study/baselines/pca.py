"""PCA as TSB-AD runs it: fitted on the very rows it scores.

The score of a row is its distance from each kept component, weighted by one over the share of
variance that the component explains (the PyOD rule). The "distance from a component" is the
distance from the tip of the unit eigenvector, so it depends on the eigenvector's sign, which
mathematics leaves free: the published numbers hold for the sign that scikit-learn chose before
release 1.5 (the largest projection is positive), today's scikit-learn makes the largest entry of
the component itself positive and gets others. Both rules are here; see docs/errata.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import TooShortError, needs
from vace_study.baselines.contract import Method
from vace_study.baselines.windows import centred, windows

Array = NDArray[np.float64]


@dataclass
class PCA:
    """Weighted distance from the leading principal components."""

    window: int = 1  # rows a sample spans
    explained: float = 0.25  # components are kept until they explain more than this
    sign: Literal["projection", "component"] = "projection"  # whose largest entry is positive

    def fit(self, table: NDArray[np.float64]) -> PCA:
        """Nothing to learn: the method is fitted on what it scores."""
        return self

    def score(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Fit on the table's rows and score them."""
        samples = _standardised(windows(np.asarray(table, dtype=np.float64), self.window))
        components, ratios = self._components(samples)  # (k, n_features), (k,)
        # ‖x − c‖² = ‖x‖² + 1 − 2⟨x, c⟩, without an array of samples × components × features
        lengths = np.einsum("ij,ij->i", samples, samples)
        squared = lengths[:, None] + 1.0 - 2.0 * samples @ components.T  # (n, k)
        distances = np.sqrt(np.maximum(squared, 0.0))
        return centred((distances / ratios).sum(axis=1), self.window)

    def _components(
        self, samples: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The kept components, signs fixed, and their shares of the variance."""
        n, features = samples.shape
        if n < 2 or features == 0:  # one row, or nothing varies: no component to measure from
            return np.zeros((1, features)), np.ones(1)
        components, ratios = _leading(samples, self.explained)
        judged = samples @ components.T if self.sign == "projection" else components.T
        largest = judged[np.abs(judged).argmax(axis=0), np.arange(len(ratios))]
        return components * np.where(largest < 0, -1.0, 1.0)[:, None], ratios


def _leading(samples: NDArray[np.float64], explained: float) -> tuple[Array, Array]:
    """Components (k, n_features) and their shares, until they explain more than `explained`.

    Through the smaller of the two matrices of products, and only as many eigenvectors as needed:
    windows of many channels are wide.
    """
    with needs("scipy", "paper", "the baseline PCA"):
        from scipy.linalg import eigh

    wide = samples.shape[1] > samples.shape[0]
    products = samples @ samples.T if wide else samples.T @ samples
    size, total, count = len(products), float(np.trace(products)), 16
    while True:
        count = min(count, size)
        values, vectors = eigh(products, subset_by_index=[size - count, size - 1])
        ratios = np.maximum(values[::-1], 0.0) / total
        kept = int(np.searchsorted(np.cumsum(ratios), explained, side="right")) + 1
        if kept <= count or count == size:
            break
        count *= 2
    components = vectors[:, ::-1][:, :kept].T
    if wide:  # from the other side: vᵢ = Xᵀuᵢ / ‖Xᵀuᵢ‖
        components = components @ samples
        components /= np.linalg.norm(components, axis=1, keepdims=True)
    return components, ratios[:kept]


def _standardised(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns with mean 0 and variance 1; columns that do not vary are left out."""
    if not len(samples):
        raise TooShortError("a table without rows came; at least one row is needed")
    scale = samples.std(axis=0)
    varying = scale > 10 * np.finfo(np.float64).eps * np.abs(samples).max(axis=0)
    chosen = samples[:, varying]
    return np.asarray((chosen - chosen.mean(axis=0)) / scale[varying])


def _method(name: str, **settings: object) -> Method:
    detector = PCA(**settings)  # type: ignore[arg-type]
    return Method(
        name, lambda seed: PCA(**asdict(detector)), asdict(detector), False, "Traditional"
    )


METHODS = (_method("pca"), _method("pca-window", window=100, sign="component"))
