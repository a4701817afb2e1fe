"""The result of one machine, as a row of the results file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ok", "borrowed", "short", "failed"]


@dataclass(frozen=True)
class MachineRow:
    """What came of one machine."""

    machine: str  # its keys, joined by " / "
    status: Status  # borrowed: with the shared model; short: too few rows for a model of its own
    folder: str | None = None  # of its own results, inside the run's
    error: str | None = None
    rows: int = 0
    channels: int = 0
    threshold: float | None = None
    zone: str | None = None
    events: tuple[dict[str, Any], ...] = ()  # app.results.event_record, and the height of each
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    bar: float = 1.0  # evidence over its limit that its part of the budget asks for
    allowed: float = 0.0  # events that its part of the budget allows in its rows
    until: str | None = None  # the time of its last row
    patience: int | None = None  # nanoseconds without rows after which there is no data
    peaks: tuple[float, ...] = ()  # the highest evidence over its limit of stretches of its rows

    @property
    def key(self) -> str:
        """What this is the result of."""
        return self.machine

    @property
    def anomalies(self) -> list[dict[str, Any]]:
        """The events that scores made."""
        return [event for event in self.events if event["kind"] == "anomaly"]

    @property
    def severity(self) -> float:
        """Of its worst event; -1 where there is none."""
        return max((event["severity"] or 0.0 for event in self.anomalies), default=-1.0)

    def to_json(self) -> str:
        """One line of JSON, without its end."""
        return json.dumps(asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, line: str | bytes) -> MachineRow:
        """The row of a line."""
        fields: dict[str, Any] = json.loads(line)
        for name in ("events", "notes", "peaks"):
            fields[name] = tuple(fields[name])
        return cls(**fields)
