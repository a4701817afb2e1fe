"""Diagnostics of a detector on a table, as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vace_ad.frames.segments import missing_cells
from vace_ad.frames.time import duration_words
from vace_ad.wording import plural

if TYPE_CHECKING:
    from vace_ad.detection import Detection
    from vace_ad.frames.table import Table
    from vace_ad.model import Model

FAR = 4.0  # deviations from the mean of training within which nearly all normal values lie


def trust(model: Model, table: Table, found: Detection) -> list[str]:
    """Length and coverage of training, what was scored, and what the limits rest on."""
    sentences = [
        _length(model.facts),
        *_data(model.facts),
        seasonality_words(model.facts),
        _modes(model),
        _coverage(model, table, found),
        _scored(found),
        *_threshold(model, found),
        *_training(model),
    ]
    return [sentence for sentence in sentences if sentence]


def _length(facts: Any) -> str:
    rows, used, step = facts.get("rows"), facts.get("rows_used"), facts.get("step_seconds")
    if not rows:
        return ""
    words = f"It learned from {plural(rows, 'row')}"
    if step:
        words += f", which is {_span(rows, step)} of operation"
    if used and used < rows:
        words += f"; {plural(rows - used, 'row')} of them could not be used"
    return words + "."


def _data(facts: Any) -> list[str]:
    """The verdict on the training data, and on each sensor that is not good."""
    data = facts.get("data")
    if data is None:
        return []
    why = f": {data['why']}" if data["why"] else ""
    return [
        f"The training data is {data['grade']}{why}.",
        *(
            f"Sensor {one['name']} is {one['grade']}: {', '.join(one['found'])}."
            for one in data["sensors"]
            if one["grade"] != "good"
        ),
    ]


def seasonality_words(facts: Any) -> str:
    """Return the rhythm of training, e.g. "Training shows a pattern of about 1 day"."""
    from vace_ad.signals.protocol import CLEAR

    seasonality = facts.get("seasonality")
    if seasonality is None:
        return ""
    period, rise = seasonality["period"], seasonality["rise"]
    if not period or rise < CLEAR:
        return "Training has no clear period, so the shape of curves is not used much."
    times = f", seen {facts['rows'] // period:,} times" if facts.get("rows") else ""
    return f"Training shows a pattern of about {_span(period, facts.get('step_seconds'))}{times}."


def _modes(model: Model) -> str:
    """The modes of operation that training showed, where there are several."""
    modes = model.alarm.cells.modes
    if modes.n_modes == 1:
        return ""
    shares = ", ".join(f"{share:.0%}" for share in modes.share.tolist())
    return (
        f"Training shows {modes.n_modes} modes of operation, with {shares} of the rows; each row "
        "is judged in its own."
    )


def _span(rows: int, step: float | None) -> str:
    """Rows as a length of time, where the time between them is known."""
    return duration_words(rows * step * 1e9) if step else plural(rows, "row")


def _coverage(model: Model, table: Table, found: Detection) -> str:
    """How many values outside events lie where training had its values."""
    normal = model.normal
    quiet = np.ones(len(table), dtype=bool)
    for event in found.events:
        quiet[event.start : event.end] = False
    rows = table.values[quiet]
    if not len(rows):
        return ""
    known = ~missing_cells(rows)
    with np.errstate(invalid="ignore", over="ignore"):
        inside = np.abs(rows - normal.mean) <= FAR * normal.scale
    if not known.any():
        return ""
    share = float((inside & known).sum() / known.sum())
    if share >= 0.95:
        return f"Outside the events, {_percent(share)} of the values lie in the range of training."
    gone = int((np.where(known, inside, True).mean(axis=0) < 0.5).sum())
    lie = "lies" if gone == 1 else "lie"
    moved = f" {plural(gone, 'channel')} {lie} mostly outside it." if gone else ""
    return (
        f"Outside the events, only {_percent(share)} of the values lie in the range of "
        f"training.{moved} Operation may have changed since: train again on newer rows."
    )


def _scored(found: Detection) -> str:
    share = float(np.isfinite(found.scores).mean())
    if share == 1:
        return "Every row has a score."
    return (
        f"{_percent(share)} of the rows have a score; in the others too many values are missing, "
        "or too few rows lie between two gaps."
    )


def _threshold(model: Model, found: Detection) -> list[str]:
    if found.threshold.given:
        return [f"The threshold was set by the user ({found.threshold.words})."]
    n_rows = model.alarm.tails.n_rows
    words = [
        f"The limits ({found.threshold.words}) come from {plural(n_rows, 'held-out training row')}."
    ]
    if found.threshold.note:
        words.append(f"Be careful: {found.threshold.note}.")
    return words


def _training(model: Model) -> list[str]:
    """What was seen when the training rows were looked at, and what to do."""
    notes = model.facts.get("training", ())
    words = [f"Check the training rows: {note['words']}." for note in notes]
    if not any(note["kind"] == "contaminated" for note in notes):
        words.append("No training rows stand out as a fault.")
    return words


def _percent(share: float) -> str:
    """A share that is called 100 % only where it is all."""
    if 0.995 <= share < 1:
        return f"{min(99.99, 100 * share):.4g} %" if share < 0.9999 else "nearly all"
    return f"{share:.0%}".replace("%", " %")
