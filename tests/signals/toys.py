"""Signals fitted on their own and run over rows, without a detector."""

from __future__ import annotations

import numpy as np

from vace_ad.config import VACEConfig
from vace_ad.signals import Signal, Training


def fitted(kind: type[Signal], parts, **settings):
    """The signal, and its held-out evidence of each part."""
    return kind.fit(Training.of(list(parts), VACEConfig.from_preset(None, **settings)))


def run(signal: Signal, rows: np.ndarray, cuts=()) -> np.ndarray:
    """Its evidence (n_lines, n) of one stretch, added in chunks."""
    evidence = signal.begin()
    done = [evidence.add(part) for part in np.split(rows, list(cuts))]
    return np.concatenate([*done, evidence.end(), evidence.finish()], axis=1)
