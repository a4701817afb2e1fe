"""Geometry of the training embeddings: checks of the regime that the scorer assumes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Verdict = Literal["healthy", "collapsed", "isotropic"]


@dataclass(frozen=True)
class Geometry:
    """Four diagnostics of the eigenvalues λ of the embeddings' covariance, and a verdict."""

    effective_rank_pr: float  # (Σλ)² / Σλ², divided by d_z
    effective_rank_entropy: float  # exp(−Σ p log p) with p = λ/Σλ, divided by d_z
    active_dims: float  # fraction of dimensions that are active
    top1_variance: float  # λ_1 / Σλ
    verdict: Verdict

    @classmethod
    def of(cls, spectra: Sequence[NDArray[np.float64]], active: str) -> Geometry:
        """The mean diagnostics of several encoders, each with its eigenvalues (d_z,)."""
        each = [cls._one(eigenvalues, active) for eigenvalues in spectra]
        if len(each) == 1:
            return each[0]
        names = ("effective_rank_pr", "effective_rank_entropy", "active_dims", "top1_variance")
        means = {name: float(np.mean([getattr(g, name) for g in each])) for name in names}
        verdicts = [g.verdict for g in each]
        return cls(**means, verdict=max(verdicts, key=verdicts.count))

    @classmethod
    def _one(cls, eigenvalues: NDArray[np.float64], active: str) -> Geometry:
        total = float(eigenvalues.sum())
        d_z = len(eigenvalues)
        if total <= 0:
            return cls(0.0, 0.0, 0.0, 1.0, "collapsed")
        share = eigenvalues / total
        positive = share[share > 0]
        entropy = -float(np.sum(positive * np.log(positive)))
        is_active = share > 1 / d_z if active == "share" else eigenvalues > 1e-10
        rank = 1 / float(np.sum(share**2))
        top = float(share.max())
        # One direction that carries nearly all variance leaves nothing for the others to say;
        # a spread over most dimensions is noise without structure.
        verdict: Verdict = "healthy"
        if top > 0.95 or total < 1e-10:
            verdict = "collapsed"
        elif rank > 0.5 * d_z:
            verdict = "isotropic"
        return cls(rank / d_z, float(np.exp(entropy)) / d_z, float(is_active.mean()), top, verdict)
