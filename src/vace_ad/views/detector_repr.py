"""The repr of a fitted detector: text, and a table for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from vace_ad.alarms.budget import Budget
from vace_ad.frames.time import duration_words
from vace_ad.wording import listed, plain_text, plural, shortened

if TYPE_CHECKING:
    from vace_ad.detector import VACE

NAMED = 6  # channels that are listed by name


def facts(detector: VACE) -> dict[str, str]:
    """A summary of the model, by subject."""
    model = detector.model_
    rows = plural(model.facts["rows"], "row")
    if model.step:
        rows += f", one every {duration_words(model.step)}"
    names = listed([shortened(plain_text(name), 24) for name in model.inputs], NAMED)
    found = {
        "learned from": rows,
        "channels": f"{len(model.inputs):,}: {names}",
        "seasonality": _seasonality(detector),
        "signals": ", ".join(model.lines),
        "alarms": _alarms(detector),
    }
    if model.alarm.cells.modes.n_modes > 1:
        found["modes"] = f"{model.alarm.cells.modes.n_modes} modes of operation"
    notes = model.facts.get("training", ())
    if notes:
        found["look at"] = "; ".join(str(note["words"]) for note in notes)
    if model.shape is not None:
        found["engine"] = str(model.facts["engine"])
    return {subject: plain_text(words) for subject, words in found.items()}


def text(detector: VACE) -> str:
    """Return the settings, then a line for each subject."""
    learned = facts(detector)
    width = max(map(len, learned))
    lines = [f"  {subject:<{width}}  {words}" for subject, words in learned.items()]
    return "\n".join([detector.settings_text, *lines])


def html(detector: VACE) -> str:
    """Return the same as a table."""
    rows = "".join(
        f'<tr><th style="text-align:left;white-space:nowrap">{escape(subject)}</th>'
        f'<td style="text-align:left">{escape(words)}</td></tr>'
        for subject, words in facts(detector).items()
    )
    return f"<div><p><b>{escape(detector.settings_text)}</b></p><table>{rows}</table></div>"


def _seasonality(detector: VACE) -> str:
    period = (detector.facts_.get("seasonality") or {}).get("period")
    if not period:
        return "none"
    step = detector.model_.step
    return plural(period, "row") + (f" ({duration_words(period * step)})" if step else "")


def _alarms(detector: VACE) -> str:
    """The default budget, and what its limits rest on."""
    model = detector.model_
    rows = plural(model.alarm.tails.n_rows, "training row")
    words = model.threshold(Budget()).words
    return f"{words}; limits from {rows} judged as if they were new"
