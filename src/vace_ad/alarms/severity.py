"""Severity: how often normal operation shows an event as strong.

The probability is alarms a row, by the excursions of held-out training rows alone: neither the
budget nor what came before on the stream matters. Beyond what those rows show it is extrapolated by
their tail, whose uncertainty makes it a Pareto one, so fewer rows give a more careful answer.
Severity is that probability on a scale of decades, and its hundredth a score from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from vace_ad.alarms.evidence import UNIT
from vace_ad.alarms.scan import Tails

LEVELS = ("low", "medium", "high", "critical")
BOUNDS = (50.0, 100 * 12 / 18, 80.0)  # severities of 6, 12 and 24 decades, where levels begin
HALF = 6.0  # decades at which severity is 50: one alarm in a million rows
LEAST = 1e-300  # the smallest probability that is reported
_NORMAL = 1.96  # standard deviations to either side of 95 %


def probability(tails: Tails, tops: Mapping[int, int]) -> float:
    """Alarms a row, in normal operation, as strong as an event whose lines rose to these tops.

    The strongest line counts, and any of all lines could have been it.
    """
    each = tails.needed(1.0)
    nats = max(_nats(tails, line, top) - float(each[line]) for line, top in tops.items())
    return min(max(math.exp(-nats), LEAST), 1.0)


def _nats(tails: Tails, line: int, top: int) -> float:
    """−log of how often, a row, an excursion of a line rises so high.

    Evidence cannot be rarer than the nats that it amounts to.
    """
    count, excess = float(tails.count[line]), float(tails.excess[line])
    shape, above = float(tails.shape[line]), max(top - int(tails.level[line]), 0) / excess
    return min(math.log(tails.n_rows / count) + math.log1p(shape * above) / shape, top / UNIT)


def upper_bound(probability: float, n_rows: int) -> float:
    """What a probability is at most, as far as so many normal rows can show.

    The upper end of the 95 % score interval of a Poisson count: 3.84 / n where none was seen.
    """
    count = probability * n_rows
    most = count + _NORMAL**2 / 2 + _NORMAL * math.sqrt(count + _NORMAL**2 / 4)
    return min(most / n_rows, 1.0)


def severity(probability: float) -> float:
    """From 0 for what every row shows towards 100: 50 for one in 10⁶ rows, 80 for one in 10²⁴."""
    decades = -math.log10(probability)
    return 100.0 * decades / (decades + HALF)


def level(severity: float) -> str:
    """The severity in a word."""
    return LEVELS[sum(severity >= bound for bound in BOUNDS)]
