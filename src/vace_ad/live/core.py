"""What `vace watch` needs of a detector: this much, and nothing of how it computes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]  # (n, n_channels), NaN where a cell is missing
Times = NDArray[np.datetime64]  # (n,) nanoseconds


class Added(Protocol):
    """The answer to rows."""

    @property
    def provisional(self) -> NDArray[np.float64]:
        """A score for each row just added, (n,)."""
        ...

    @property
    def scores(self) -> NDArray[np.float64]:
        """Final scores, (m,)."""
        ...

    @property
    def idle(self) -> NDArray[np.bool_]:
        """Whether each row just added is off or under maintenance, (n,)."""
        ...

    @property
    def changes(self) -> Sequence[Any]:
        """What became of events: objects with `what` and `event`."""
        ...


class Latest(Protocol):
    """The last rows of a stream, as people look at them."""

    @property
    def times(self) -> Times:
        """When they were, (n,)."""
        ...

    @property
    def evidence(self) -> NDArray[np.float64]:
        """Evidence over its limit, (n,): above 1 is an alarm."""
        ...

    @property
    def values(self) -> Rows:
        """The rows."""
        ...

    @property
    def lower(self) -> Rows:
        """Where the expected range of each cell begins."""
        ...

    @property
    def upper(self) -> Rows:
        """Where it ends."""
        ...


class Stream(Protocol):
    """One entity's rows, one after the other."""

    def add(self, rows: Rows, time: Times | None = None) -> Added:
        """Add rows."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why the last rows can have no score, and what to do; None where nothing is known."""
        ...

    @property
    def limit(self) -> float | None:
        """The score above which a row alarms, where a person gave it."""
        ...

    def latest(self, n: int) -> Latest | None:
        """The last n rows with their evidence and what was expected, where alarms go by that."""
        ...

    def finish(self) -> Added:
        """The rest."""
        ...

    def to_bytes(self) -> bytes:
        """The state, safe to read back."""
        ...


class Model(Protocol):
    """A fitted detector."""

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels it knows, in the order of its rows."""
        ...

    @property
    def reach(self) -> int:
        """Rows that a stretch needs to be scored."""
        ...

    @property
    def identity(self) -> str:
        """Differs between any two models; a state goes with one."""
        ...

    def stream(self) -> Stream:
        """A new stream."""
        ...

    def restore(self, data: bytes) -> Stream:
        """A stream from its state."""
        ...

    def accept(self, stream: Stream, own: Sequence[tuple[str, Any]], *, hush: bool = False) -> None:
        """Alarm no more on what looks like these, as (id, plain values), in one stream.

        `hush` says that the event that is open there now is normal too.
        """
        ...

    def call_fault(self, alarm: str, entity: str, stretch: tuple[int, int] | None) -> None:
        """Keep beside the model that rows between two times (nanoseconds) are no normal ones.

        None takes back what was said of this alarm.
        """
        ...


class Core(Protocol):
    """Where models come from."""

    def load(self, path: Path) -> Model:
        """Read a model file."""
        ...

    def fit(self, rows: Rows, channels: tuple[str, ...], time: Times, path: Path) -> Model:
        """Learn from rows, write the model to a file, and return it."""
        ...
