"""What a fleet in Python gives back: rows, overview and incidents in the caller's kind of table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vace_ad.fleet.incidents import find_incidents
from vace_ad.fleet.overview import incident_frame, overview_frame
from vace_ad.fleet.pooling import kept_to_budget
from vace_ad.fleet.rows import MachineRow
from vace_ad.fleet.runner import FleetRun, ranked

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class FleetDetection:
    """What was found in a fleet; tables come in the caller's kind."""

    run: FleetRun
    _like: Any = field(repr=False, default=None)

    @classmethod
    def of(cls, rows: Sequence[MachineRow], like: Any) -> FleetDetection:
        """From what came of each machine."""
        kept, notes = kept_to_budget(rows)
        return cls(FleetRun(ranked(kept), find_incidents(kept), notes), like)

    @property
    def rows(self) -> list[MachineRow]:
        """What came of each machine, the most severe first."""
        return self.run.rows

    @property
    def overview(self) -> Any:
        """A row for each machine, the most severe first."""
        return self._kind(overview_frame(self.run).drop("folder"))

    @property
    def incidents(self) -> Any:
        """A row for each incident: events of several machines at the same time are one."""
        return self._kind(incident_frame(self.run.incidents))

    def __repr__(self) -> str:
        troubled = sum(bool(row.anomalies) for row in self.rows)
        failed = self.run.count("failed") + self.run.count("short")
        return (
            f"FleetDetection({len(self.run.incidents)} incidents on {troubled} of "
            f"{len(self.rows)} machines, {failed} failed)"
        )

    def _kind(self, frame: pl.DataFrame) -> Any:
        from vace_ad.frames.write import frame_like

        return frame_like(self._like, frame.to_dict(as_series=False))
