"""The result of `VACE.detect`: printed, plotted, as a report, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.detection import Found
from vace_ad.alarms.events import Event, event_columns, found_words, reading_words
from vace_ad.errors import needs
from vace_ad.frames.table import as_table, frame_like, zone_of
from vace_ad.frames.timestamps import time_words
from vace_ad.model import Model
from vace_ad.report import write_report
from vace_ad.report.curves import envelope, suspect_svg, svg_bars, svg_line
from vace_ad.report.data import Curve
from vace_ad.version import __version__
from vace_ad.views.report import curve_of, expected_curves, report_data
from vace_ad.wording import plain_text, plural, shortened

LISTED = 5  # events in the text and the card
POINTS = 2000  # of the plotted score; more cannot be told apart
WIDTH, HEIGHT = 640, 96  # pixels of the small picture
INK, RED, GREY, GREEN = "#3b4650", "#c4490c", "#8a929b", "#00805d"
PLOTTED = 3  # channels below the evidence
MARGIN = 64  # rows drawn on either side of an event
STEEP = 8.0  # evidence over its limit beyond which it is drawn on a logarithmic scale

Array = NDArray[np.float64]


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
        table = None if self.data is None else as_table(self.data)
        time = None if table is None else table.time
        channels: dict[str, Curve] = {}
        below: list[Any] = []
        if ax is None:
            with needs("matplotlib", "plot", "a plot"):
                import matplotlib.pyplot as plt
            if table is not None:
                table = table if self.model is None else self.model.table(table)
                channels = expected_curves(self.model, table, self.anomalies, PLOTTED)
            n = 1 + len(channels)
            _, axes = plt.subplots(
                n, sharex=True, squeeze=False, figsize=(10, 1.2 + 1.6 * n), layout="constrained"
            )
            ax, *below = axes[:, 0]
        rows, low, high = envelope(self.evidence, POINTS)
        at = rows if time is None else time[rows]
        _draw_range(ax, at, low, high, "evidence")
        ax.plot(at, self.limits[rows], color=RED, linestyle="--", label="limit")
        if np.nanmax(high, initial=0.0) > STEEP:
            ax.set_yscale("symlog", linthresh=1)
        ax.set_ylabel("evidence\nover its limit")
        ax.set_title(self._headline, loc="left", fontsize="medium")
        for panel, (name, curve) in zip(below, channels.items(), strict=True):
            assert table is not None  # it has channels
            _draw_channel(panel, at, table.values[:, table.names.index(name)], curve)
            panel.set_ylabel(shortened(plain_text(name), 18))
        for panel in (ax, *below):
            for event in self.events:
                start, end = _edges(event, len(self.scores))
                color = RED if event.kind == "anomaly" else GREY
                span = (start, end) if time is None else (time[start], time[end])
                panel.axvspan(*span, color=color, alpha=0.2, linewidth=1)
            panel.margins(x=0)
        (below or [ax])[-1].set_xlabel("row" if time is None else "time")
        return ax

    def report(self, path: str | PathLike[str], *, first: int = 0) -> None:
        """Write the HTML report to `path`; its title is the file's name.

        Rows before `first` are shown as training rows, as in `detect`.
        """
        facts = {"vace-ad": __version__}
        if self.model is not None:
            facts = {"seed": str(self.model.config.random_state), **facts}
        training = (0, first) if first else None
        write_report(report_data(Path(path).stem, self, training=training, facts=facts), path)

    @property
    def _headline(self) -> str:
        """What was found, in one line."""
        rows = plural(len(self.scores), "row")
        return f"{found_words(self.events)} in {rows} ({self.threshold.words})"

    def __repr__(self) -> str:
        """The headline, then the most severe events, in a few lines."""
        lines, zone = [f"Detection: {self._headline}"], zone_of(self.data)
        for event in _strongest(self.events):
            lines.append("  " + "  ".join(cell for cell in _cells(event, zone) if cell))
            if event.readings:
                lines.append(f"      {plain_text(reading_words(event.readings[0]))}")
        hidden = len(self.events) - LISTED
        return "\n".join([*lines, f"  and {hidden:,} more"] if hidden > 0 else lines)

    def _repr_html_(self) -> str:
        """A card for notebooks: the headline, a small picture, the most severe events."""
        rows, zone = "", zone_of(self.data)
        style = "text-align:left;padding-right:1em;white-space"
        for event in _strongest(self.events):
            *short, suspects = map(escape, _cells(event, zone))
            cells = [f'<td style="{style}:nowrap">{cell}</td>' for cell in short]
            cells.append(f'<td style="{style}:normal">{suspects}</td>')
            rows += f"<tr>{''.join(cells)}</tr>{_suspect_row(self, event)}"
        hidden = len(self.events) - LISTED
        more = f"<p>and {hidden:,} more</p>" if hidden > 0 else ""
        table = f"<table>{rows}</table>" if rows else ""
        return f"<div><p><b>{escape(self._headline)}</b></p>{picture(self)}{table}{more}</div>"


def _draw_channel(ax: Any, at: Any, values: NDArray[np.floating], curve: Curve) -> None:
    """A channel against what was expected of it."""
    _, lower, _ = envelope(curve.lower, POINTS)
    _, _, upper = envelope(curve.upper, POINTS)
    _, low, high = envelope(values, POINTS)
    ax.fill_between(at, lower, upper, color=GREEN, alpha=0.25, linewidth=0)
    ax.plot(at, (lower + upper) / 2, color=GREEN, linewidth=0.8, label="expected")
    _draw_range(ax, at, low, high, "actual")


def _draw_range(ax: Any, at: Any, low: Array, high: Array, label: str) -> None:
    """A line where each point is one row, else the range of the rows of each point."""
    if np.array_equal(low, high, equal_nan=True):
        ax.plot(at, high, color=INK, linewidth=1, label=label)
    else:
        ax.fill_between(at, low, high, color=INK, linewidth=0.8, label=label)


def _suspect_row(found: Detection, event: Event) -> str:
    """The first suspect of an event: its value and its curve, each against what was expected."""
    if not event.readings or found.model is None:
        return ""
    table = found.model.table(found.data)
    name = event.readings[0].channel
    first, end = max(0, event.start - MARGIN), min(len(table), event.end + MARGIN)
    curve = curve_of(found.model, table, name, first, end)
    values = table.values[first:end, table.names.index(name)]
    label = escape(plain_text(name))
    svg = suspect_svg(values, curve, first, (event.start, event.end), label)
    words = escape(plain_text(reading_words(event.readings[0])))
    return f'<tr><td colspan="4" style="text-align:left">{words}{svg}</td></tr>'


def picture(found: Detection) -> str:
    """Return the evidence with its limit and events as an SVG that needs nothing else."""
    n = len(found.scores)
    rows, low, high = envelope(np.arcsinh(2 * found.evidence), WIDTH // 2)  # it grows fast
    line = np.arcsinh(2 * found.limits[rows])
    known = np.concatenate([low, high, line])
    known = known[np.isfinite(known)]
    least, most = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)

    def y(values: Array) -> Array:
        share: Array = (most - values) / ((most - least) or 1.0)
        return 4 + (HEIGHT - 8) * share

    scale = WIDTH / max(n, 1)
    x = scale * rows.astype(np.float64)
    shades = []
    for event in found.events:
        start, end = scale * event.start, scale * event.end
        color = RED if event.kind == "anomaly" else GREY
        shades.append(
            f'<rect x="{start:.1f}" y="0" width="{max(end - start, 2):.1f}" height="{HEIGHT}" '
            f'fill="{color}" fill-opacity="0.25"/>'
        )
    bars, level = svg_bars(x, y(high), y(low), 1.0), svg_line(x, y(line))
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="evidence, limit and events" style="max-width:100%">'
        f'{"".join(shades)}<path d="{bars}" stroke="currentColor" stroke-width="2" fill="none"/>'
        f'<path d="{level}" stroke="{RED}" stroke-dasharray="5 4" fill="none"/></svg>'
    )


def _edges(event: Event, n_rows: int) -> tuple[int, int]:
    """The first and last row to shade; for a jump in time the rows on either side."""
    if event.start == event.end:
        return max(0, event.start - 1), min(event.start, n_rows - 1)
    return event.start, event.end - 1


def _strongest(events: Sequence[Event]) -> list[Event]:
    """The most severe events, in order of row."""
    ranked = sorted(events, key=lambda event: -np.nan_to_num(event.severity, nan=-1.0))
    return sorted(ranked[:LISTED], key=lambda event: event.start)


def _cells(event: Event, zone: str | None) -> tuple[str, str, str, str]:
    """When an event began, how long it is, how severe, and who is suspected."""
    time = event.start_time
    suspects = [
        f"{shortened(plain_text(name), 30)} {share:.0%}"
        for name, share in event.shares[:3]
        if share >= 0.005
    ]
    return (
        f"row {event.start:,}" if time is None else time_words(time, zone),
        plural(event.rows, "row") if event.rows else "a gap in time",
        f"severity {event.severity:.0f}" if np.isfinite(event.severity) else event.kind,
        ", ".join(suspects),
    )
