"""Fill the report with what a run gave."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vace_ad.alarms import Event
    from vace_ad.alarms.detection import Detection
    from vace_ad.detector import VACE
    from vace_ad.frames.table import Table
    from vace_ad.report import ReportData, ReportEvent

_POINTS = 3000  # of the trajectory at most

SIGNAL_WORDS = {
    "position": "the shape of the curves over a patch",
    "direction": "how that shape changes from patch to patch",
    "level": "levels outside the range of the training",
    "scale": "swings wider or narrower than in the training",
    "spike": "single rows far from the rows around them",
    "relation": "channels that no longer move together as in the training",
}
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
    geometry = asdict(detector.geometry_)
    verdict = geometry.pop("verdict")
    return ReportData(
        title=title,
        channels=table.names,
        values=table.values,
        scores=found.scores,
        threshold=found.threshold.value,
        time=table.time,
        time_zone=zone,
        signals=found.signals,
        signal_words={name: SIGNAL_WORDS[name] for name in found.signals if name in SIGNAL_WORDS},
        events=[_event(event) for event in found.events],
        training=training,
        trajectory=points,
        trajectory_rows=rows,
        geometry=geometry,
        verdict=VERDICTS[verdict],
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
    from vace_ad.frames.gaps import stretches

    length = detector.config.patch_length
    stride = max(1, -(-len(table) // _POINTS))
    blocks: list[NDArray[Any]] = []
    rows: list[NDArray[np.intp]] = []
    for piece in stretches(table.values, detector.config.max_gap, length):
        patches = PatchSet([piece.values], length, detector.scale_)
        index = patches.grid(stride)
        blocks += [block[:, 0] for block in embed(detector.engine, patches, index)]
        rows.append(index + piece.start + length // 2)
    if not blocks:
        return None, None
    z = np.concatenate(blocks).astype(np.float64)  # (k, d_z)
    z -= np.median(z, axis=0)
    _, _, directions = np.linalg.svd(z, full_matrices=False)
    points = z @ directions[:2].T
    if points.shape[1] < 2:
        return None, None
    return points, np.concatenate(rows)


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
