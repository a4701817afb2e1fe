"""PATE row by row and threshold by threshold, as its paper and its authors' code define it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def slow_pate(labels, scores, early, late, splits=1, thresholds=None):
    cuts = cuts_of(labels, scores, thresholds)
    areas = []
    for e in range(splits + 1):
        for d in range(splits + 1):
            zone = (int(early * e / splits), int(late * d / splits))
            curve = [(0.0, 1.0)]
            for cut in cuts:
                precision, recall = at_threshold(labels, [s >= cut for s in scores], *zone)
                if recall >= curve[-1][0]:
                    curve.append((recall, precision))
            areas.append(sum((r1 - r0) * (p0 + p1) / 2 for (r0, p0), (r1, p1) in pairwise(curve)))
    return sum(areas) / len(areas)


def cuts_of(labels, scores, thresholds):
    cuts = sorted(set(scores), reverse=True)
    if thresholds is None:
        return cuts
    hits = [sum(y and s >= cut for y, s in zip(labels, scores, strict=True)) for cut in cuts]
    if len(cuts) > 2:
        last = len(cuts) - 1
        cuts = [
            cut
            for i, cut in enumerate(cuts)
            if i in (0, last) or hits[i] != hits[i - 1] or hits[i + 1] != hits[i]
        ]
    return [np.percentile(cuts, q) for q in np.linspace(100, 0, thresholds)]


def ranges(labels):
    """First and last row of each event."""
    found = []
    for i, label in enumerate(labels):
        if label and (i == 0 or not labels[i - 1]):
            found.append([i, i])
        if label:
            found[-1][1] = i
    return found


def at_threshold(labels, predicted, early, late):
    events, n = ranges(labels), len(labels)
    true = false = missed = 0.0
    outside = set(range(n))
    ended = -1  # last row of the zone after the event before
    for i, (first, last) in enumerate(events):
        rows = range(first, last + 1)
        following = events[i + 1][0] if i + 1 < len(events) else n
        zone_end = min(last + late, following - 1)
        zone_start = max(0, first - early, ended + 1)
        ended = zone_end
        outside -= set(range(zone_start, zone_end + 1))
        seen = [row for row in rows if predicted[row]]
        true += len(seen)
        for x in range(last + 1, zone_end + 1):
            if predicted[x]:
                far = sum(zone_end - y for y in rows)
                weight = 1 - sum(x - y for y in rows) / far
                true, false = true + weight, false + 1 - weight
        for x in range(zone_start, first):
            if predicted[x]:
                far = sum(y - zone_start for y in rows)
                weight = 1 - sum(y - x for y in rows) / far if seen else 0.0
                true, false = true + weight, false + 1 - weight
        missed += missed_weight(first, last, seen)
    false += sum(predicted[x] for x in outside)
    precision = true / (true + false) if true + false else 0.0
    recall = true / (true + missed) if true + missed else 0.0
    return precision, recall


def missed_weight(first, last, seen):
    if not seen:
        return last - first + 1
    run = 1
    while seen[0] + run in seen:
        run += 1
    total = 0.0
    for x in range(first, last + 1):
        if x in seen:
            continue
        if x <= first + run:
            total += 1
        else:
            far = sum(last - y for y in range(first, last + 1))
            total += 1 - sum(x - y for y in range(first, first + run + 1)) / far
    return total
