"""Thresholds that go on learning: a score against the recent past of its own series.

Training tells where to start. Then the middle and the spread of the last thousand scores take its
place as they come, and the threshold follows the peaks of independent stretches of the past. So the
budget is kept on what is scored and not only on what was trained on. Both look at the past alone,
and neither is moved by a few high rows. Evidence too weak for that counts where it lasts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.lasting import Lasting
from vace_ad.alarms.tail import fit_pareto
from vace_ad.signals.rows import RowBuffer

Array = NDArray[np.float64]

WINDOW, PRIOR = 1_000, 1_000  # scores of the recent past; how many of them training counts as
LEAST = 64  # scores from which on the past counts
EVERY = 32  # rows between two looks at the recent past
TAIL_EVERY = 8  # blocks of peaks between two looks at the tail
TAIL_LEAST, TAIL_PRIOR = (
    20,
    100,
)  # blocks from which on the tail counts; how many training counts as
TAIL_MOST = 4_096  # blocks kept
TAIL_SHARE = 0.3  # of the blocks' peaks that make the tail
WINSOR = 1.5  # thresholds at which a peak counts no more: it was no normal one
TINY = 1e-9
WITHIN = (0.5, 3.0)  # of the first threshold that later ones stay
# Statistics that miss a quarter of a short training find its regimes strange, so held-out scores
# run too high; those of rows that were seen run too low. How far apart their limits are tells how
# much: up to the first factor held-out scores are believed, from the second on as little as ever.
INFLATED = (2.0, 10.0)
TOWARDS = 0.3  # of the way to what was seen, on a log scale, where held-out scores run too high
FIRST, SHRINK = 1.1, 0.75  # of the first threshold: factor and power
FLOOR_SHARE = 0.25  # of training's spread that is added to every spread


class Judged(NamedTuple):
    """Rows against their threshold."""

    ratio: Array  # (n,), evidence over threshold: above 1 is an alarm; NaN where no score is
    limit: Array  # (n,), the threshold as a score


class Sample(NamedTuple):
    """Scores of training rows, and the limit that they alone would set."""

    scores: Array
    limit: float

    def spread(self) -> tuple[float, float]:
        """Their middle, and the way from there to the highest tenth."""
        middle, high = np.quantile(self.scores[np.isfinite(self.scores)], [0.5, 0.9])
        return float(middle), max(float(high - middle), TINY)


@dataclass(frozen=True)
class Start:
    """What training says of scores."""

    middle: float
    spread: float  # from the middle to the highest tenth
    threshold: float  # of standardised scores
    rate: float  # alarms a row
    spacing: int  # rows that share evidence
    seen: float = np.inf  # limit by the finished detector: what lies below never counts

    @classmethod
    def of(cls, held_out: Sample, seen: Sample, rate: float, spacing: int) -> Self:
        """From held-out training scores, and from those of the finished detector."""
        apart = float(np.clip(held_out.limit / max(seen.limit, TINY), *INFLATED))
        share = TOWARDS * np.log(apart / INFLATED[0]) / np.log(INFLATED[1] / INFLATED[0])

        def between(high: float, low: float) -> float:
            high = max(high, TINY)
            return float(high * max(low / high, 1 / INFLATED[1]) ** share)

        (middle, spread), (low_middle, low_spread) = held_out.spread(), seen.spread()
        middle, spread = between(middle, low_middle), between(spread, low_spread)
        beyond = (between(held_out.limit, seen.limit) - middle) / (spread * (1 + FLOOR_SHARE))
        return cls(middle, spread, FIRST * max(beyond, 1.0) ** SHRINK, rate, spacing, seen.limit)

    def scaled(self, final: Array, provisional: Array) -> Self:
        """The same for provisional scores, from both kinds of the same rows."""
        (middle, spread), (now_middle, now_spread) = (
            Sample(scores, 0.0).spread() for scores in (final, provisional)
        )
        return replace(
            self,
            middle=self.middle * max(now_middle, TINY) / max(middle, TINY),
            spread=self.spread * max(now_spread, TINY) / max(spread, TINY),
            seen=self.seen * max(now_middle, TINY) / max(middle, TINY),
        )

    @property
    def floor(self) -> float:
        """Added to every spread."""
        return FLOOR_SHARE * self.spread


class Watcher:
    """Judges scores as they come; the same whatever the chunks."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._n = 0  # rows judged
        self._past = RowBuffer(1)  # the last WINDOW + spacing scores
        self._middle, self._spread = start.middle, start.spread
        self._threshold = self._next = start.threshold  # of this look's rows; from the next look on
        self._peaks = np.empty(0)  # the highest standardised score of each block of the past
        self._peak, self._in_block = -np.inf, 0  # of the block under way
        self._lasting, self._lasts = Lasting(start.spacing, start.seen), 0.0  # as of the last look

    def add(self, scores: Array) -> Judged:
        """Judge the next rows."""
        parts, at = [], 0
        while at < len(scores):
            m = min(len(scores) - at, EVERY - self._n % EVERY)
            parts.append(self._block(scores[at : at + m]))
            at += m
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return Judged(np.empty(0), np.empty(0))
        return Judged(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _block(self, scores: Array) -> Judged:
        start = self._start
        if self._n % EVERY == 0:
            self._threshold = self._next  # only now: chunks that end elsewhere must not matter
            self._look_back()
            self._lasts = self._lasting.ratio()
        wide = self._spread + start.floor
        y = (scores - self._middle) / wide
        limit = self._middle + wide * self._threshold
        judged = Judged(y / self._threshold, np.full(len(y), limit))
        self._lasting.add(scores, limit)
        if self._lasts > 1:
            judged = _at_least(judged, self._lasts, scores)
        self._n += len(scores)
        self._past.add(scores[:, None])
        self._past.keep(WINDOW + start.spacing)
        self._keep_peaks(y)
        return judged

    def _look_back(self) -> None:
        """Middle and spread of the recent past, blended with training's."""
        start = self._start
        known = self._past.first(max(0, len(self._past) - start.spacing))[:, 0]
        known = known[np.isfinite(known)]
        if len(known) < LEAST:
            return
        middle, high = np.quantile(known, [0.5, 0.9])
        own = len(known) / (len(known) + PRIOR)
        self._middle = own * float(middle) + (1 - own) * start.middle
        self._spread = own * float(high - middle) + (1 - own) * start.spread

    def _keep_peaks(self, y: Array) -> None:
        """Peaks of blocks as long as rows share evidence, and the tail they make."""
        while len(y):
            part = y[: self._start.spacing - self._in_block]
            self._peak = max(self._peak, float(np.fmax.reduce(part)))  # fmax passes over NaN
            self._in_block, y = self._in_block + len(part), y[len(part) :]
            if self._in_block == self._start.spacing:
                if np.isfinite(self._peak):
                    self._peaks = np.append(self._peaks, self._peak)[-TAIL_MOST:]
                    if len(self._peaks) % TAIL_EVERY == 0:
                        self._follow_tail()
                self._peak, self._in_block = -np.inf, 0

    def _follow_tail(self) -> None:
        """The threshold that the peaks of the past would keep to the budget, blended."""
        start, n = self._start, len(self._peaks) - 1  # the last block may be an alarm under way
        if n < TAIL_LEAST:
            return
        peaks = np.minimum(self._peaks[:n], WINSOR * self._next)
        level = float(np.quantile(peaks, 1 - TAIL_SHARE))
        above = peaks[peaks > level] - level
        wanted, alone = level, start.rate * start.spacing  # alarms a block
        if len(above) and alone < TAIL_SHARE:
            wanted += fit_pareto(above, len(above)).excess(alone / TAIL_SHARE)
        wanted = float(np.clip(wanted, WITHIN[0] * start.threshold, WITHIN[1] * start.threshold))
        own = n / (n + TAIL_PRIOR)
        self._next = float(np.exp((1 - own) * np.log(start.threshold) + own * np.log(wanted)))

    def state(self) -> dict[str, NDArray[Any]]:
        """All that was learned from the rows."""
        numbers = [self._middle, self._spread, self._threshold, self._next, self._peak, self._lasts]
        return {
            **self._lasting.state(),
            "past": self._past.all[:, 0].copy(),
            "peaks": self._peaks,
            "numbers": np.array(numbers),
            "counts": np.array([self._n, self._in_block]),
        }

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take back a state."""
        self._past.refill(state["past"][:, None].copy())
        self._peaks = state["peaks"]
        self._lasting.resume(state)
        numbers = state["numbers"].tolist()
        self._middle, self._spread, self._threshold, self._next, self._peak, self._lasts = numbers
        self._n, self._in_block = (int(n) for n in state["counts"])


def _at_least(judged: Judged, ratio: float, scores: Array) -> Judged:
    """Rows of a stretch that is an alarm as a whole; their limit is what makes it one."""
    weak = judged.ratio < ratio
    limit = np.where(weak, np.minimum(judged.limit, scores / ratio), judged.limit)
    return Judged(np.where(weak, ratio, judged.ratio), limit)


class Fixed:
    """A threshold that stays: where a person sets it, or learning is off."""

    def __init__(self, limit: float) -> None:
        self._limit = limit

    def add(self, scores: Array) -> Judged:
        """Judge the next rows."""
        least = max(abs(self._limit), 1e-12)
        ratio = 1 + (scores - self._limit) / least
        return Judged(ratio, np.full(len(scores), self._limit))

    def state(self) -> dict[str, NDArray[Any]]:
        """Nothing."""
        return {}

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Nothing to take back."""
