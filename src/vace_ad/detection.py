"""The result of `VACE.detect`: printed, plotted, as a report, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import Any, Self

from vace_ad.alarms.detection import Found
from vace_ad.alarms.events import event_columns
from vace_ad.frames.write import frame_like
from vace_ad.model import Model
from vace_ad.views import figure, report


@dataclass(frozen=True, repr=False)
class Detection(Found):
    """The events of a table, and the table."""

    data: Any = field(default=None, compare=False)  # as the caller gave it
    model: Model | None = field(default=None, compare=False)  # that it was found with

    @classmethod
    def of(cls, found: Found, data: Any, notes: Sequence[str], model: Model) -> Self:
        """A result with its table, its model and further notes."""
        given = {each.name: getattr(found, each.name) for each in fields(found)}
        return cls(**{**given, "notes": (*notes, *found.notes)}, data=data, model=model)

    def to_frame(self) -> Any:
        """Return the events as a table of the same kind as the data: pandas, polars or Arrow."""
        return frame_like(self.data, event_columns(self.events))

    def plot(self, ax: Any = None) -> Any:
        """Draw evidence, its limit and events; takes and returns matplotlib axes.

        Without `ax`, a new figure also shows the channels with the largest shares and their
        expected values.
        """
        return figure.plot(self, ax)

    def report(self, path: str | PathLike[str], *, first: int = 0) -> None:
        """Write the HTML report.

        Rows before `first` are those of the training, as in `detect`.
        """
        report.write_detection(self, path, first=first)

    def __repr__(self) -> str:
        """A summary in a few lines."""
        return figure.text(self)

    def _repr_html_(self) -> str:
        """The same with a small plot, for notebooks."""
        return figure.html(self)
