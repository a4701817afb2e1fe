"""Rows by the book: all readings at once, sorted, with no watermark at all."""

import math


def naive_rows(readings, step, combine="mean", gap=1000):
    """Rows of (time, channel, value) readings, each wanted once; in order of time."""
    unique = {}
    for time, channel, value in readings:
        unique.setdefault((time, channel), value)
    spans = {}
    for (time, channel), value in sorted(unique.items()):
        spans.setdefault(time // step, {}).setdefault(channel, []).append(value)
    rows, before = [], None
    for span in sorted(spans):
        if before is not None and span - before - 1 <= gap:
            rows += [(missing * step, {}) for missing in range(before + 1, span)]
        cells = {
            channel: math.fsum(values) / len(values) if combine == "mean" else values[-1]
            for channel, values in spans[span].items()
        }
        rows.append((span * step, cells))
        before = span
    return rows
