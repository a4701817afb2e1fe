"""Curves of the suspects of events: expected values and evidence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from vace_ad.alarms.expected import expected_cells
from vace_ad.report.data import Curve

if TYPE_CHECKING:
    from vace_ad.alarms import Event
    from vace_ad.frames.table import Table
    from vace_ad.model import Model

SUSPECTS = 6  # of an event
MOST = 24  # channels
CELLS = 10_000_000  # of all curves together, beyond the first few channels
LEAD = 2_000  # rows before a stretch by which its baseline is nearly that of the whole table


def suspects(events: Sequence[Event], most: int) -> list[str]:
    """The channels to draw: the first suspect of each event, then the second of each, and so on."""
    worst = sorted(events, key=lambda event: -event.severity)
    ranks = zip_longest(*([name for name, _ in event.shares[:SUSPECTS]] for event in worst))
    names = dict.fromkeys(name for rank in ranks for name in rank if name is not None)
    return list(names)[:most]


def expected_curves(
    model: Model | None, table: Table, events: Sequence[Event], most: int = MOST
) -> dict[str, Curve]:
    """The curve around each suspect; none without the model."""
    most = max(min(most, CELLS // max(len(table), 1)), min(most, SUSPECTS))
    names = suspects(events, most)
    if model is None or not names:
        return {}
    place = [table.names.index(name) for name in names]
    nats, expected = expected_cells(model, table, place, "float32")
    return {
        name: Curve(expected.lower[:, i], expected.upper[:, i], nats[:, i])
        for i, name in enumerate(names)
    }


def curve_of(model: Model, table: Table, name: str, start: int, end: int) -> Curve:
    """The curve around one channel in rows [start, end), from these and the rows just before."""
    lead = max(0, start - LEAD)
    place = table.names.index(name)
    nats, expected = expected_cells(model, table[lead:end], [place], "float32")
    lines = expected.lower, expected.upper, nats
    return Curve(*(line[start - lead :, 0] for line in lines))
