"""Fill the report with what a run gave."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vace_ad.alarms import Event
    from vace_ad.alarms.detection import Detection
    from vace_ad.detector import VACE
    from vace_ad.frames.table import Table
    from vace_ad.report import ReportData, ReportEvent

_POINTS = 3000  # of the trajectory at most

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
    zone: str | None,
    notes: list[str],
    facts: dict[str, str],
    command: str,
) -> ReportData:
    """Everything the page shows."""
    from vace_ad.report import ReportData

    points, rows = trajectory(detector, table)
    geometry = {} if detector.geometry_ is None else asdict(detector.geometry_)
    verdict = geometry.pop("verdict", None)
    return ReportData(
        title=title,
        channels=table.names,
        values=table.values,
        scores=found.scores,
        threshold=found.threshold.value,
        time=table.time,
        time_zone=zone,
        signals=found.signals,
        signal_words=detector.model_.lines,
        events=[_event(event) for event in found.events],
        training=training,
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
    stride = max(1, -(-len(table) // _POINTS))
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


def _event(event: Event) -> ReportEvent:
    from vace_ad.report import ReportEvent

    return ReportEvent(
        start=event.start,
        end=event.end,
        peak=event.peak,
        severity=event.severity,
        probability=event.probability,
        kind="anomaly" if event.kind == "anomaly" else "no data",
        signal=event.signal,
        shares=event.shares,
    )
