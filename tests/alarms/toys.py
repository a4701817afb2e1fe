"""A model with all that alarms need, quick enough to run hundreds of times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from alarms.plants import PATCH, Simple
from vace_ad.alarms.blame import Wander
from vace_ad.alarms.calibration import Calibration
from vace_ad.config import VACEConfig
from vace_ad.frames.segments import Segments
from vace_ad.frames.steps import StepRule, StepTracker
from vace_ad.frames.table import Table, as_table
from vace_ad.signals.normal import Normal


@dataclass
class Toy:
    """Distance from the main directions of training."""

    train: np.ndarray
    channels: tuple[str, ...]
    step: int | None = None  # nanoseconds
    adapt: bool = False  # whether thresholds go on learning

    def __post_init__(self) -> None:
        self.config = VACEConfig(patch_length=PATCH, drift_half_life=200, adapt=self.adapt)
        self.simple = Simple(self.train[: len(self.train) // 2])
        held_out = self.simple(self.train[len(self.train) // 2 :])
        self.calibration_scores = held_out["position"] + held_out["direction"]
        self.calibration = Calibration.from_scores(self.calibration_scores, PATCH)
        self.seen_scores = np.stack([self.calibration_scores] * 2)
        self.seen_calibration = self.calibration
        self.period = 0
        self.normal, _ = Normal.fit([self.train])
        self.wander = Wander.fit([self.train])

    @property
    def step_rule(self) -> StepRule:
        return StepRule(self.step, max_gap=self.config.max_gap)

    def signals(self, data: Any) -> dict[str, np.ndarray]:
        """Evidence of each stretch, NaN between them."""
        table: Table = as_table(data).aligned(self.channels)
        segments = Segments(len(self.channels), self.config.max_gap, 0.5, self.normal.rebuild)
        cuts = StepTracker(self.step_rule).add(table.time, len(table)).cuts()
        pieces = [*segments.add(table.block(0, len(table)), cuts), *segments.finish()]
        found: dict[str, list[np.ndarray]] = {"position": [], "direction": []}
        for piece in pieces:
            lines = self.simple(piece.rows) if piece.n >= PATCH and piece.rows is not None else {}
            for name, line in found.items():
                line.append(lines.get(name, np.full(piece.n, np.nan)))
        return {name: np.concatenate(parts) for name, parts in found.items()}
