"""Fill the report with what a run gave."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    import numpy as np
    from numpy.typing import NDArray

    from vace_ad.alarms import Event, Rules
    from vace_ad.alarms.blame import Wander
    from vace_ad.detection import Detection
    from vace_ad.detector import VACE
    from vace_ad.frames.table import Table
    from vace_ad.report import ReportData, ReportEvent, WhatIf

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
    detector: VACE,
    table: Table,
    found: Detection,
    *,
    training: tuple[int, int] | None,
    notes: list[str],
    facts: dict[str, str],
    command: str,
    rules: Rules | None = None,
) -> ReportData:
    """Everything the page shows."""
    from vace_ad.alarms import Rules
    from vace_ad.alarms.scan import WORDS
    from vace_ad.frames.zones import offsets, zone_words
    from vace_ad.report import ReportData
    from vace_ad.views.trust import trust

    model = detector.model_
    rules = rules or Rules()
    first = 0 if training is None else training[1]
    nearly = _blamed_near_misses(detector, table, found)
    points, rows = trajectory(detector, table)
    geometry = {} if detector.geometry_ is None else asdict(detector.geometry_)
    verdict = geometry.pop("verdict", None)
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
        signal_words={**model.lines, **WORDS},
        events=_events(found.events, table, model.wander, model.normal.mean),
        near_misses=_events(nearly, table, model.wander, model.normal.mean, near_miss=True),
        what_if=_what_if(detector, found, first, rules),
        trust=trust(detector, table, found),
        training=training,
        idle=found.idle,
        trajectory=points,
        trajectory_rows=rows,
        geometry=geometry,
        verdict=VERDICTS.get(verdict, ""),
        alarm_words=found.threshold.words,
        notes=notes,
        facts=facts,
        command=command,
    )


def trajectory(
    detector: VACE, table: Table
) -> tuple[NDArray[np.float64], NDArray[np.intp]] | tuple[None, None]:
    """The first encoder's embeddings in their two main directions, and each one's middle row."""
    import numpy as np

    from vace_ad.engine.patches import PatchSet
    from vace_ad.engine.trajectory import embed
    from vace_ad.frames.segments import missing_cells

    shape = detector.model_.shape
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


def plain_report_data(title: str, found: Detection, *, first: int = 0) -> ReportData:
    """What the page can show of a detection alone, without the detector that made it."""
    import numpy as np

    from vace_ad.frames.table import as_table
    from vace_ad.frames.zones import offsets, zone_words
    from vace_ad.report import ReportData
    from vace_ad.views.band import wander_of_table

    table = as_table(found.data)
    nearly = sorted(found.near_misses, key=lambda event: event.start)
    wander, usual = wander_of_table(table.values, found.events), np.zeros(table.values.shape[1])
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
        events=_events(found.events, table, wander, usual),
        near_misses=_events(nearly, table, wander, usual, near_miss=True),
        training=(0, first) if first else None,
        idle=found.idle,
        alarm_words=found.threshold.words,
        notes=found.notes,
    )


def write_detection(
    found: Detection,
    path: str | PathLike[str],
    detector: VACE | None = None,
    *,
    first: int = 0,
    title: str | None = None,
) -> None:
    """Write the report of a detection; with the detector it also says how far to trust it.

    Rows before `first` are those of the training. The title is the file's name unless given.
    """
    from pathlib import Path

    from vace_ad import __version__
    from vace_ad.frames.table import as_table
    from vace_ad.report import write_report

    title = title or Path(path).stem
    if detector is None:
        return write_report(plain_report_data(title, found, first=first), path)
    table = as_table(found.data).aligned(detector.channels_)
    facts = {"seed": str(detector.config.random_state), "vace-ad": __version__}
    data = report_data(
        title,
        detector,
        table,
        found,
        training=(0, first) if first else None,
        notes=list(found.notes),
        facts=facts,
        command="",
    )
    return write_report(data, path)


def _blamed_near_misses(detector: VACE, table: Table, found: Detection) -> list[Event]:
    """The near misses in order of row, with their suspects."""
    blamed = []
    for event in sorted(found.near_misses, key=lambda event: event.start):
        who = detector.explain(table, event.start, event.end)
        blamed.append(event.with_blame(who.top(len(who.names)), who.signal))
    return blamed


def _what_if(detector: VACE, found: Detection, first: int, rules: Rules) -> list[WhatIf]:
    from vace_ad.views.whatif import what_if

    return what_if(found.evidence, found.limits, rules, first=first)


def _events(
    events: Sequence[Event],
    table: Table,
    wander: Wander,
    usual: NDArray[np.float64],
    *,
    near_miss: bool = False,
) -> list[ReportEvent]:
    from vace_ad.report import ReportEvent
    from vace_ad.views.band import expected_band

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
            band=expected_band(table.values, table.names, event, wander, usual),
            near_miss=near_miss,
        )
        for event in events
    ]
