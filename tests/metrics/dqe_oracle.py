"""DQE half a row by half a row, threshold by threshold, event by event."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from metrics.pate_oracle import ranges


def slow_dqe(labels, scores, near):
    low, high = min(scores), max(scores)
    scaled = [(s - low) / (high - low) if high > low else 0.0 for s in scores]
    events = [(first, last + 1) for first, last in ranges(labels)]
    total = 0.0
    for threshold in np.linspace(1, 0, 101)[:-1]:
        predicted = [s >= threshold for s in scaled]
        total += sum(quality(i, events, predicted, near) for i in range(len(events)))
    return total / (100 * len(events))


def zones_of(i, events, n, near):
    """The five zones of an event as lists of quarters of a row, by their number from 0 on."""
    start, stop = events[i]
    late = min(stop + near, events[i + 1][0] if i + 1 < len(events) else n)
    last_late = min(events[i - 1][1] + near, start) if i else 0
    early = max(start - near, last_late)
    left = (last_late + early) / 2 if i else 0
    right = n
    if i + 1 < len(events):
        right = (late + max(events[i + 1][0] - near, late)) / 2
    edges = [left, early, start, stop, late, right]
    return [list(range(round(4 * a), round(4 * b))) for a, b in pairwise(edges)]


def pieces_in(zone, predicted):
    """Lengths of unbroken predicted runs within a zone, and the gaps to its two ends, in rows."""
    on = [predicted[quarter // 4] for quarter in zone]
    lengths, run = [], 0
    for value in [*on, False]:
        if value:
            run += 1
        elif run:
            lengths.append(run / 4)
            run = 0
    if not lengths:
        return [], None, None
    return lengths, on.index(True) / 4, on[::-1].index(True) / 4


def quality(i, events, predicted, near):
    zones = zones_of(i, events, len(predicted), near)
    (far_a, *_), (near_a, _, gap_a), (own, *_), (near_b, gap_b, _), (far_b, *_) = (
        pieces_in(zone, predicted) for zone in zones
    )
    captured = 1.0 if own else 0.0
    close = 0.0
    if near_a or near_b:
        gap = min(g for g in (gap_a, gap_b) if g is not None)
        close = (1 - gap / near) * (1 - (sum(near_a) + sum(near_b)) / (2 * near))
    elif own and not far_a and not far_b:
        close = 1.0
    away = far_a + far_b
    quiet = 1.0
    if away:
        cover = sum(away) / ((len(zones[0]) + len(zones[4])) / 4)
        scatter = 1 - sum(x * x for x in away) / sum(away) ** 2
        quiet = 1 - (cover + scatter - cover * scatter)
    return quiet * (captured + close) / 2
