"""A detector with all that alarms need, quick enough to run hundreds of times."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from vace_ad.alarms.reference import reference_rows
from vace_ad.frames.gaps import stretches

from alarms.plants import PATCH, Simple
from vace_ad.alarms.calibration import Calibration
from vace_ad.frames.table import as_table
from vace_ad.progress import Progress, silent


@dataclass
class Toy:
    """Distance from the main directions of training, less what it is used to."""

    train: np.ndarray
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        self.config = SimpleNamespace(
            patch_length=PATCH, offset=PATCH // 2, max_gap=5, drift_half_life=200
        )
        self.channels_ = self.names
        self.simple = Simple(self.train[: len(self.train) // 2])
        held_out = self.simple(self.train[len(self.train) // 2 :])
        scores = held_out["position"] + held_out["direction"]
        self.calibration_ = Calibration.from_scores(scores, PATCH)
        self.reference_ = reference_rows([self.train], 5 * PATCH)
        self.facts_: dict[str, Any] = {"step_seconds": None}

    def used_to(self, data: Any) -> float:
        return float(len(as_table(data)))

    def signals(
        self, data: Any, *, used: Any = None, progress: Progress = silent
    ) -> dict[str, np.ndarray]:
        table = as_table(data).aligned(self.channels_)
        found = {name: np.full(len(table), np.nan) for name in ("position", "direction")}
        for stretch in stretches(table.values, self.config.max_gap, PATCH):
            rows = self.simple(stretch.values)
            for name in found:
                found[name][stretch.start : stretch.start + len(stretch.values)] = rows[name]
        progress("scoring", len(table), len(table))
        return found
