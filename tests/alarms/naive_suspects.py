"""Suspicion channel by channel and row by row, in plain Python; nothing from the package.

A value that is missing is None.
"""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import mean, median

BEFORE, PERIODS, PAST, LENGTHS, PLACES = 60, 3, 6_000, (1, 4, 12, 40, 120, 400), 64
FIRST, STILL_ROWS, LEAST = 30, 2_000, 20


def known(values):
    """The values that are there."""
    return [value for value in values if value is not None]


def middle_of(values, otherwise):
    """The median of what is known."""
    return median(known(values)) if known(values) else otherwise


def mean_of(values):
    """The mean of what is known."""
    return mean(known(values)) if known(values) else 0.0


def size_of(values):
    """The root mean square of what is known."""
    return math.sqrt(mean_of([None if value is None else value**2 for value in values]))


def excursion(values, length):
    """The largest mean distance of so many rows from the median before them, at some places."""
    quarter = len(values) // 4
    before, length = max(1, min(BEFORE, quarter)), max(1, min(length, quarter))
    last, found = len(values) - length, 0.0
    for i in range(PLACES):
        start = int(before + (last - before) * i / (PLACES - 1))
        middle = middle_of(values[start - before : start], 0.0)
        away = [None if v is None else abs(v - middle) for v in values[start : start + length]]
        found = max(found, mean_of(away))
    return found


def drift(largest, rows):
    """Of the lengths that were measured, between the two next to so many rows, by logarithm."""
    for i, (short, long) in enumerate(pairwise(LENGTHS)):
        if short <= rows <= long:
            share = math.log(rows / short) / math.log(long / short)
            return (1 - share) * largest[i] + share * largest[i + 1]
    return largest[-1]


def stillest(values):
    """The most rows in a row with one value."""
    longest = 1
    for i in range(len(values)):
        n = 1
        while i + n < len(values) and values[i] is not None and values[i + n] == values[i]:
            n += 1
        longest = max(longest, n)
    return longest


def phase(past, row, period):
    """The median of the same phase in up to three periods of the past."""
    row -= period
    while row >= len(past):
        row -= period
    places = [row - k * period for k in range(PERIODS)]
    return median([past[place] if place >= 0 else past[row] for place in places])


def suspicion(columns, start, end, normal, scale, largest, deviation, nats, period):
    """Of every channel; each argument but the rows and the period has an entry a channel."""
    complete = all(None not in column[max(0, start - PAST) : start] for column in columns)
    found = []
    for c, column in enumerate(columns):
        past, event = column[max(0, start - PAST) : start], column[start:end]
        after = column[end + 5 : end + 5 + BEFORE]
        middle = middle_of(past[-BEFORE:], normal[c])
        away = []
        for i, value in enumerate(event):
            places = [middle]
            if period and len(past) >= 2 * period and complete:
                places.append(phase(past, len(past) + i, period))
            away.append(None if value is None else min(abs(value - place) for place in places))
        returned = away
        if len(after) >= LEAST:
            later = middle_of(after, middle)
            returned = [
                None if value is None else min(far, abs(value - later))
                for value, far in zip(event, away, strict=True)
            ]
        level = max([abs(middle), *(abs(value) for value in known(event))])
        floor = 0.01 * level + 1e-9 * scale[c]
        spread, first = deviation[c], drift([row[c] for row in largest], min(len(event), FIRST))
        if len(past) >= 2 * BEFORE:
            first = max(first, excursion(past, min(len(event), FIRST)))
            if len(known(past)) > 1:
                center = mean_of(past)
                spread = size_of([value - center for value in known(past)])
        ratios = (
            size_of(returned) / math.hypot(spread, floor),
            size_of(away) / (drift([row[c] for row in largest], len(event)) + floor),
            size_of(away[:FIRST]) / (first + floor),
            size_of(nats[c]),
        )
        still = min(stillest(event), len(past)) / (4 * stillest(past[-STILL_ROWS:]))
        logs = [math.log(math.hypot(1, ratio)) for ratio in ratios]
        found.append(sum(logs) + math.log(max(still, 1)))
    return found
