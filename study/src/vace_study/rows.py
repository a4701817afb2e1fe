"""One result: a method on a series with a seed under a protocol."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

MEASURES = (
    "VUS-PR",
    "VUS-ROC",
    "AUC-PR",
    "AUC-ROC",
    "Standard-F1",
    "PA-F1",
    "Event-based-F1",
    "R-based-F1",
    "Affiliation-F",
    "PATE",  # this and the next are not in rows from before they were measured
    "DQE",
)
GEOMETRY = ("effective_rank_pr", "effective_rank_entropy", "active_dims", "top1_variance")

Status = Literal["ok", "failed", "no-anomaly"]


class Key(NamedTuple):
    """What a row is the result of; a run holds each once."""

    method: str
    series: str
    seed: int
    protocol: str


@dataclass(frozen=True)
class Row:
    """A line of a run."""

    method: str
    series: str
    seed: int
    protocol: str
    status: Status  # no-anomaly: nothing to find in the evaluated rows, so nothing was measured
    family: str
    split: str
    config: str  # hash of the method's settings
    version: str  # of this package
    error: str | None = None
    traceback: str | None = None
    notes: tuple[str, ...] = ()  # where the file disagrees with its name, and warnings

    rows: int | None = None  # of the whole series
    channels: int | None = None
    train_rows: int | None = None
    evaluated_rows: int | None = None
    anomalous_rows: int | None = None  # of the evaluated ones
    window: int | None = None  # of VUS

    measures: dict[str, float] = field(default_factory=dict)  # those that are defined
    geometry: dict[str, float | str] = field(default_factory=dict)  # of the training embeddings
    operating: dict[str, Any] = field(default_factory=dict)  # counts of alarms, and their budget
    fit_seconds: float | None = None
    score_seconds: float | None = None
    evaluate_seconds: float | None = None
    cpu_seconds: float | None = None  # of fit and score, all threads: the same on a busy machine
    peak_memory_mb: float | None = None  # of the process, while it computed this row's task

    @property
    def key(self) -> Key:
        """What this is the result of."""
        return Key(self.method, self.series, self.seed, self.protocol)

    def to_json(self) -> str:
        """One line of JSON, without its end."""
        return json.dumps(asdict(self), allow_nan=False)  # ASCII: no odd line end inside

    @classmethod
    def from_json(cls, line: str | bytes) -> Row:
        """The row of a line."""
        fields: dict[str, Any] = json.loads(line)
        fields["notes"] = tuple(fields["notes"])
        return cls(**fields)
