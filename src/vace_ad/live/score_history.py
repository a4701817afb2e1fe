"""The last scores of an entity, for the page, in 16 bytes a row."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

SHOWN = 360


class ScoreHistory:
    """The newest pairs of time (nanoseconds) and score. One thread adds, others may read."""

    __slots__ = ("_pairs",)

    def __init__(self) -> None:
        # replaced, never changed: a reader sees all of the old or all of the new
        self._pairs = (array("q"), array("d"))

    def extend(self, times: Sequence[int], scores: Sequence[float]) -> None:
        """Add rows; the oldest go."""
        old_times, old_scores = self._pairs
        self._pairs = (
            (old_times + array("q", times[-SHOWN:]))[-SHOWN:],
            (old_scores + array("d", scores[-SHOWN:]))[-SHOWN:],
        )

    def __len__(self) -> int:
        return len(self._pairs[0])

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return zip(*self._pairs, strict=True)

    @property
    def last(self) -> float | None:
        """The newest score."""
        scores = self._pairs[1]
        return scores[-1] if scores else None
