"""The content of the report page of a run; what its results rest on, as sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms import Event, Rules
from vace_ad.alarms.scan import WORDS
from vace_ad.batch import expected_cells, explain_rows
from vace_ad.engine.patches import PatchSet, embed
from vace_ad.frames.segments import missing_cells
from vace_ad.frames.table import Table, as_table
from vace_ad.frames.time import duration_words
from vace_ad.frames.timestamps import offsets, zone_words
from vace_ad.model import Model
from vace_ad.report.data import Curve, ReportData, what_if
from vace_ad.wording import plural

if TYPE_CHECKING:
    from vace_ad.detection import Detection

SUSPECTS = 6  # of an event
MOST = 24  # channels
CELLS = 10_000_000  # of all curves together, beyond the first few channels
LEAD = 2_000  # rows before a stretch by which its baseline is nearly that of the whole table
_POINTS = 600  # of the trajectory at most: it is folded away, and costs a pass of the encoder

VERDICTS = {
    "healthy": "The embedding spreads over several directions, as the score assumes.",
    "collapsed": "The embedding has collapsed onto nearly one direction: shape evidence is weak "
    "here, trust the other signals more.",
    "isotropic": "The embedding spreads over all directions alike, like noise: there may be "
    "little structure to learn.",
}
FAR = 4.0  # deviations from the mean of training within which nearly all normal values lie


def report_data(
    title: str,
    found: Detection,
    *,
    training: tuple[int, int] | None = None,
    notes: Sequence[str] | None = None,
    facts: Mapping[str, str] | None = None,
    command: str = "",
    rules: Rules | None = None,
    units: Mapping[str, str] | None = None,
) -> ReportData:
    """Everything the page shows; without the model it shows what the detection alone can."""
    model, table = found.model, as_table(found.data)
    if model is not None:
        table = model.table(table)
    first = 0 if training is None else training[1]
    nearly = _near_misses(model, table, found)
    rows = np.array([[e.start, e.end] for e in found.anomalies], np.intp).reshape(-1, 2)
    units = {name: unit for name, unit in (units or {}).items() if name in table.names and unit}
    expected = expected_curves(model, table, (*found.events, *nearly))
    shown = table if model is None else table.first(len(model.inputs))  # without the calendar
    return ReportData(
        title=title,
        channels=shown.names,
        values=shown.values,
        scores=found.evidence,
        threshold=found.limits,
        time=table.time,
        time_zone=zone_words(table.zone) or None,
        offsets=offsets(table.time, table.zone),
        signals=found.signals,
        expected=expected,
        units=units,
        events=found.events,
        near_misses=nearly,
        what_if=what_if(found.evidence, found.limits, rules or Rules(), rows, first=first),
        training=training,
        idle=found.idle,
        alarm_words=found.threshold.words,
        notes=found.notes if notes is None else notes,
        facts=facts or {},
        command=command,
        **({} if model is None else _of_model(model, table, found)),
    )


def _of_model(model: Model, table: Table, found: Detection) -> dict[str, Any]:
    """The parts of the page that need the model."""
    points, rows = trajectory(model, table)
    shape = model.shape
    geometry = {} if shape is None else asdict(shape.geometry)
    verdict = geometry.pop("verdict", None)
    return {
        "signal_words": {**model.lines, **WORDS},
        "trust": trust(model, table, found),
        "trajectory": points,
        "trajectory_rows": rows,
        "geometry": geometry,
        "verdict": VERDICTS.get(verdict, ""),
    }


def trajectory(
    model: Model, table: Table
) -> tuple[NDArray[np.float64], NDArray[np.intp]] | tuple[None, None]:
    """The first encoder's embeddings in their two main directions, and each one's middle row."""
    shape = model.shape
    if shape is None:
        return None, None
    length = shape.config.length
    stride = max(shape.config.grid_stride, -(-len(table) // _POINTS))  # no denser than scores
    patches = PatchSet([table.block(0, len(table))], length, shape.scale)
    broken = np.cumsum(np.insert(missing_cells(table.values).any(axis=1), 0, False))
    index = patches.grid(stride)
    index = index[broken[index + length] == broken[index]]  # without a missing value
    if len(index) < 2:
        return None, None
    blocks = [block[:, 0] for block in embed(shape.engine.engine, patches, index)]
    z = np.concatenate(blocks).astype(np.float64)  # (k, d_z)
    z -= np.median(z, axis=0)
    _, _, directions = np.linalg.svd(z, full_matrices=False)
    if len(directions) < 2:
        return None, None
    return z @ directions[:2].T, index + length // 2


def _near_misses(model: Model | None, table: Table, found: Detection) -> list[Event]:
    """The near misses in order of row, with their suspects where the model is at hand."""
    nearly = sorted(found.near_misses, key=lambda event: event.start)
    if model is None:
        return nearly
    blamed = []
    for event in nearly:
        who = explain_rows(model, table, event.start, event.end)
        blamed.append(event.with_blame(who.top(len(who.names)), who.signal))
    return blamed


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
