"""Delivers scored rows to the sinks that take every row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vace_ad.live.align import Row
from vace_ad.live.detector import Rows
from vace_ad.live.entity import Entity, Tell
from vace_ad.live.sinks import RowSink, Scored, Sink

if TYPE_CHECKING:
    from vace_ad.live.expected_band import ExpectedBand


def teller(sinks: Sequence[Sink[Any]]) -> Tell | None:
    """Who tells these sinks of scored rows; None where none of them wants to hear."""
    wanting = [sink for sink in sinks if isinstance(sink, RowSink)]
    return _Teller(wanting) if wanting else None


class _Teller:
    """Makes bands where they are wanted, and hands rows over."""

    def __init__(self, sinks: Sequence[RowSink[Any]]) -> None:
        self._sinks = sinks
        self._wanted = any(sink.bands for sink in sinks)
        self._bands: dict[str, tuple[str, ExpectedBand]] = {}  # by entity: model, band

    def __call__(
        self,
        entity: Entity,
        rows: Sequence[Row],
        cells: Rows,
        scores: Sequence[float],
        alarming: Sequence[bool],
    ) -> None:
        scored = Scored(
            entity.name,
            tuple(entity.channels),
            [row.time for row in rows],
            cells,
            list(scores),
            list(alarming),
        )
        with_band = scored
        if self._wanted:
            expected, lower, upper = self._band(entity).add(cells)
            with_band = scored._replace(expected=expected, lower=lower, upper=upper)
        for sink in self._sinks:
            sink.rows(with_band if sink.bands else scored)

    def _band(self, entity: Entity) -> ExpectedBand:
        """The band of an entity; after a restart it begins anew, as after a cut."""
        assert entity.model is not None
        known = self._bands.get(entity.name)
        if known is None or known[0] != entity.model.identity:
            known = self._bands[entity.name] = (entity.model.identity, entity.model.band())
        return known[1]
