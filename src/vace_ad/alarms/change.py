"""What rows bring: events that open, grow, rest, end, and the evidence of each row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.events import Event
from vace_ad.alarms.pattern import Pattern
from vace_ad.alarms.tracked import What

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """What became of an event."""

    what: What | Literal["accepted"]  # accepted: no alarm, for the record
    event: Event
    # of an event that has ended: how its channels left their past
    pattern: Pattern | None = field(default=None, compare=False)
    row: int | None = field(default=None, compare=False)  # that brought it; None: no single one


class Taken(NamedTuple):
    """What decided rows gave."""

    changes: tuple[Change, ...]
    evidence: Array  # (n,), highest evidence over its limit; NaN for rows without any
    surprise: Array  # (n,), nats of the most surprising cell; NaN the same

    def followed_by(self, other: Taken) -> Taken:
        """What these rows and those after them gave."""
        both = zip(self[1:], other[1:], strict=True)
        return Taken(self.changes + other.changes, *(np.concatenate(pair) for pair in both))
