"""What one transaction of the state writes, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from vace_ad.live.alarms import Alarm


class JournalRow(NamedTuple):
    """A row of an entity since its snapshot."""

    name: str
    row: int
    time: int
    cells: bytes  # float64 by channel


class Queued(NamedTuple):
    """A message in the outbox."""

    seq: int
    body: dict[str, Any]
    came: int


@dataclass
class Pending:
    """Everything that one transaction writes."""

    position: Any = None
    entities: dict[str, tuple[int, str, str]] = field(default_factory=dict)  # seen, phase, small
    journal: list[JournalRow] = field(default_factory=list)
    snapshots: dict[str, tuple[int, str, bytes]] = field(default_factory=dict)
    forgotten: dict[str, int] = field(default_factory=dict)  # journal rows below, by entity
    needed: dict[str, int] = field(default_factory=dict)  # time from which on rows are kept
    alarms: list[tuple[Alarm, dict[str, Any]]] = field(default_factory=list)
    outbox: list[tuple[str, dict[str, Any], int]] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)  # messages up to here are, by sink
    applied: list[int] = field(default_factory=list)  # verdicts
    meta: dict[str, str] = field(default_factory=dict)
    set_aside: list[str] = field(default_factory=list)  # damaged entities, which start again
    gone: list[str] = field(default_factory=list)  # entities that a person wants forgotten
