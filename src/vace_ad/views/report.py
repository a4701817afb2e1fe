"""Fills the report with the results of a run."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    import numpy as np
    from numpy.typing import NDArray

    from vace_ad.alarms import Event, Rules
    from vace_ad.detection import Detection
    from vace_ad.frames.table import Table
    from vace_ad.model import Model
    from vace_ad.report import ReportData, ReportEvent

_POINTS = 600  # of the trajectory at most: it is folded away, and costs a pass of the encoder

VERDICTS = {
    "healthy": "The embedding spreads over several directions, as the score assumes.",
    "collapsed": "The embedding has collapsed onto nearly one direction: shape evidence is weak "
    "here, trust the other signals more.",
    "isotropic": "The embedding spreads over all directions alike, like noise: there may be "
    "little structure to learn.",
}


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
    import numpy as np

    from vace_ad.alarms import Rules
    from vace_ad.frames.table import as_table
    from vace_ad.frames.zones import offsets, zone_words
    from vace_ad.report import ReportData
    from vace_ad.views.suspect_curves import expected_curves
    from vace_ad.views.threshold_sweep import what_if

    model, table = found.model, as_table(found.data)
    if model is not None:
        table = table.aligned(model.channels)
    first = 0 if training is None else training[1]
    nearly = _near_misses(model, table, found)
    rows = np.array([[e.start, e.end] for e in found.anomalies], np.intp).reshape(-1, 2)
    units = {name: unit for name, unit in (units or {}).items() if name in table.names and unit}
    return ReportData(
        title=title,
        channels=table.names,
        values=table.values,
        scores=found.evidence,
        threshold=found.limits,
        time=table.time,
        time_zone=zone_words(table.zone) or None,
        offsets=offsets(table.time, table.zone),
        signals=found.signals,
        expected=expected_curves(model, table, (*found.events, *nearly)),
        units=units,
        events=_events(found.events),
        near_misses=_events(nearly, near_miss=True),
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
    """What only the model can say."""
    from vace_ad.alarms.scan import WORDS
    from vace_ad.views.diagnostics import trust

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
    import numpy as np

    from vace_ad.engine.patches import PatchSet
    from vace_ad.engine.trajectory import embed
    from vace_ad.frames.segments import missing_cells

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


def write_detection(found: Detection, path: str | PathLike[str], *, first: int = 0) -> None:
    """Write the report of a detection; the title is the file's name.

    Rows before `first` are those of the training.
    """
    from pathlib import Path

    from vace_ad import __version__
    from vace_ad.report import write_report

    facts = {"vace-ad": __version__}
    if found.model is not None:
        facts = {"seed": str(found.model.config.random_state), **facts}
    training = (0, first) if first else None
    write_report(report_data(Path(path).stem, found, training=training, facts=facts), path)


def _near_misses(model: Model | None, table: Table, found: Detection) -> list[Event]:
    """The near misses in order of row, with their suspects where the model is at hand."""
    from vace_ad.alarms.expected import explain_rows

    nearly = sorted(found.near_misses, key=lambda event: event.start)
    if model is None:
        return nearly
    blamed = []
    for event in nearly:
        who = explain_rows(model, table, event.start, event.end, model.period)
        blamed.append(event.with_blame(who.top(len(who.names)), who.signal))
    return blamed


def _events(events: Sequence[Event], *, near_miss: bool = False) -> list[ReportEvent]:
    from vace_ad.report import ReportEvent

    return [
        ReportEvent(
            start=event.start,
            end=event.end,
            peak=event.peak,
            severity=event.severity,
            probability=event.probability,
            kind="no data" if event.kind == "no data" else "anomaly",
            signal=event.signal,
            conditions=event.conditions,
            shares=event.shares,
            readings=event.readings,
            near_miss=near_miss,
            normal_rows=event.normal_rows,
            ratio=event.ratio,
            partner=event.partner,
            lasting=event.lasting,
        )
        for event in events
    ]
