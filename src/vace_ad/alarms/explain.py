"""Which channels an event is due to: put each back to normal, score again, see what is gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.reference import Normal
from vace_ad.errors import InputError

Array = NDArray[np.float64]
ScoreRows = Callable[[Array], Mapping[str, Array]]  # (n, D) -> evidence of each signal, (n,)
ScorerAfter = Callable[[Array], ScoreRows]  # rows that came before (m, D) -> how to score others
TOTAL = "score"

_SINGLY = 24  # up to so many channels, each is tried; beyond, groups are tried first
_NOISE = 0.1  # of the largest drop: smaller ones are noise and count as none


@dataclass(frozen=True)
class Blame:
    """Each channel's share of an event, for the score and for each signal; shares sum to 1."""

    names: tuple[str, ...]
    shares: Mapping[str, Array]  # signal -> (D,); TOTAL for the score
    signal: str | None  # the signal that stood out most against normal operation

    def top(self, count: int = 3, signal: str = TOTAL) -> tuple[tuple[str, float], ...]:
        """The channels with the largest shares, largest first, those without any left out."""
        shares = self.shares[signal]
        order = np.argsort(-shares, kind="stable")[:count]
        return tuple((self.names[i], float(shares[i])) for i in order if shares[i] > 0)


class Explainer:
    """Blames channels for events, by scoring again with channels put back to normal."""

    def __init__(
        self,
        scorer_after: ScorerAfter,
        names: Sequence[str],
        reference: Array,
        *,
        before: int,
        after: int,
        memory: int = 0,
    ) -> None:
        """`reference` holds normal stretches, (k, n, D).

        `before` and `after` are the rows around a row that its score looks at: patch length and
        velocity offset, and patch length. What a detector is used to comes from the `memory`
        rows before those; it is worked out once for each event.
        """
        self.scorer_after, self.names = scorer_after, tuple(names)
        self.before, self.after, self.memory = before, after, memory
        self.normal = Normal(reference)
        stretch = reference[len(reference) // 2]
        self.levels = {
            signal: (float(np.nanmean(rows)), float(np.nanstd(rows)) + 1e-12)
            for signal, rows in scorer_after(stretch[:0])(stretch).items()
        }

    def explain(self, values: Array, start: int, end: int) -> Blame:
        """Blame channels for the rows `[start, end)`; only patches on them are scored."""
        if not 0 <= start < end <= len(values):
            raise InputError(
                f"rows [{start}, {end}) do not lie in the table's {len(values)} rows; "
                "give 0 ≤ start < end ≤ rows"
            )
        first = max(0, start - self.before)
        window = values[first : end + self.after]  # (w, D)
        inside = slice(start - first, end - first)
        score_rows = self.scorer_after(values[max(0, first - self.memory) : first])

        def evidence(rows: Array) -> dict[str, float]:
            return _means(score_rows(rows), inside)

        look = self.normal.look(window)

        def without(channels: Sequence[int]) -> Array:
            picked = np.asarray(channels, dtype=np.intp)
            changed = window.copy()
            changed[:, picked] = look.rebuilt(picked)
            return changed

        found = evidence(window)
        drops = {signal: np.zeros(len(self.names)) for signal in found}
        for channel in self._suspects(lambda group: evidence(without(group)), found):
            left = evidence(without([channel]))
            for signal in found:
                drops[signal][channel] = found[signal] - left[signal]
        fallback = look.strangeness(inside)
        shares = {signal: _shares(drop, fallback) for signal, drop in drops.items()}
        return Blame(self.names, shares, self._loudest(found))

    def _suspects(
        self,
        evidence_without: Callable[[Sequence[int]], Mapping[str, float]],
        found: Mapping[str, float],
    ) -> list[int]:
        """Channels worth a try: all of a few; of many, those of groups that matter.

        Groups of about √D channels are put back together, neighbours in different groups, since
        columns side by side often measure the same thing and stand in for each other.
        """
        channels = len(self.names)
        if channels <= _SINGLY:
            return list(range(channels))
        count = int(np.ceil(np.sqrt(channels)))
        groups = [list(range(g, channels, count)) for g in range(count)]
        suspects: set[int] = set()
        left = [evidence_without(group) for group in groups]
        for signal, before in found.items():
            drops = np.array([before - rest[signal] for rest in left])
            for g in np.flatnonzero((drops > 0) & (drops >= 2 * _NOISE * drops.max())):
                suspects.update(groups[g])
        return sorted(suspects)

    def _loudest(self, found: Mapping[str, float]) -> str | None:
        rises = {
            signal: (evidence - self.levels[signal][0]) / self.levels[signal][1]
            for signal, evidence in found.items()
            if signal != TOTAL
        }
        return max(rises, key=lambda signal: rises[signal]) if rises else None


def focus(scores: Array, start: int, end: int, rows: int) -> tuple[int, int]:
    """The `rows` rows of an event with the highest mean score, or all of a shorter event."""
    if end - start <= rows:
        return start, end
    total = np.cumsum(np.insert(np.nan_to_num(scores[start:end]), 0, 0.0))
    best = start + int(np.argmax(total[rows:] - total[:-rows]))
    return best, best + rows


def _means(signals: Mapping[str, Array], inside: slice) -> dict[str, float]:
    """The mean of each signal over some rows; 0 where no patch covers any of them."""
    known = {name: rows[inside][~np.isnan(rows[inside])] for name, rows in signals.items()}
    return {name: float(rows.mean()) if len(rows) else 0.0 for name, rows in known.items()}


def _shares(drops: Array, fallback: Array) -> Array:
    """Drops as shares that sum to 1; by `fallback` where putting back helps nowhere."""
    kept = np.where(drops >= _NOISE * max(drops.max(), 0.0), np.maximum(drops, 0.0), 0.0)
    if kept.sum() <= 0:
        kept = fallback if fallback.sum() > 0 else np.ones_like(fallback)
    out: Array = kept / kept.sum()
    return out
