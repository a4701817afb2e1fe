"""The result of `VACE.detect`: printed, plotted, as a report, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import Any, Self

from vace_ad.alarms.detection import Found
from vace_ad.alarms.events import event_columns
from vace_ad.frames.table import frame_like
from vace_ad.model import Model
from vace_ad.views import figure, report


@dataclass(frozen=True, repr=False)
class Detection(Found):
    """The result of `VACE.detect`: events, scores, and the table they belong to.

    Attributes
    ----------
    scores
        Score of each row, (n_rows,); NaN where a row has no score.
    signals
        The components that add up to the score, by name, (n_rows,) each.
    evidence
        Alarm evidence of each row divided by its limit, (n_rows,): above 1 is an alarm; NaN: none.
    surprise
        Surprise of the most surprising value in each row, in nats, (n_rows,); NaN: none.
    threshold
        The budget in words, and a note on its limits.
    events
        All events, in order of rows; `anomalies` are those that are not missing data or unusual
        conditions.
    near_misses
        The strongest ranges below the limit, strongest first.
    notes
        Notes on the result, such as the number of rows without a score.
    accepted
        Ranges that match one marked as normal; they are not events.
    idle
        Ranges that were not scored: the machine was off or under maintenance.
    data
        The table.
    model
        The model.
    """

    data: Any = field(default=None, compare=False)  # as the caller gave it
    model: Model | None = field(default=None, compare=False)  # that it was found with

    @classmethod
    def of(cls, found: Found, data: Any, notes: Sequence[str], model: Model) -> Self:
        """A result with its table, its model and further notes."""
        given = {each.name: getattr(found, each.name) for each in fields(found)}
        return cls(**{**given, "notes": (*notes, *found.notes)}, data=data, model=model)

    def to_frame(self) -> Any:
        """Return the events as a table of the same type as the data: pandas, polars or Arrow."""
        return frame_like(self.data, event_columns(self.events))

    def plot(self, ax: Any = None) -> Any:
        """Plot the evidence, its limit and the events; return the matplotlib axes.

        Without `ax`, a new figure also shows the channels with the largest shares and their
        expected values.
        """
        return figure.plot(self, ax)

    def report(self, path: str | PathLike[str], *, first: int = 0) -> None:
        """Write the HTML report to `path`.

        Rows before `first` are shown as training rows, as in `detect`.
        """
        report.write_detection(self, path, first=first)

    def __repr__(self) -> str:
        """A summary in a few lines."""
        return figure.text(self)

    def _repr_html_(self) -> str:
        """The same with a small plot, for notebooks."""
        return figure.html(self)
