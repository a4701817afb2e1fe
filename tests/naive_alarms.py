"""The slow, obvious versions of what alarms are made of; loops only, nothing from the package."""

from __future__ import annotations

import math

import numpy as np


def past_averages(rows, half_lives):
    """Weighted means of the rows before each, (n, n_averages, n_channels).

    A row counts half as much for each half-life that has gone by, and the first row counts once
    more, as if it had come before itself too.
    """
    out = np.zeros((len(rows), len(half_lives), rows.shape[1]))
    for t in range(len(rows)):
        before = [rows[0], *rows[:t]]
        for h, half_life in enumerate(half_lives):
            ages = range(len(before) - 1, -1, -1)
            weights = [0.5 ** (age / half_life) if half_life else float(age == 0) for age in ages]
            for c in range(rows.shape[1]):
                total = sum(w * row[c] for w, row in zip(weights, before, strict=True))
                out[t, h, c] = total / sum(weights)
    return out


def features(rows, half_lives):
    """Rows in training deviations and their averages, (n, (1 + n_averages) · n_channels)."""
    if not half_lives:
        return rows.copy()
    averages = past_averages(rows, half_lives)
    return np.array([[*row, *more.ravel()] for row, more in zip(rows, averages, strict=True)])


def log_likelihood(rows, covariance):
    """Of rows with mean zero, up to a constant."""
    _, log_determinant = np.linalg.slogdet(covariance)
    return sum(-log_determinant - row @ np.linalg.solve(covariance, row) for row in rows)


def correlations(rows):
    """Mean of the outer products of standardised rows."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for row in rows:
        total += np.outer(row, row)
    return total / len(rows)


def shrunk(matrix, shrinkage):
    return (1 - shrinkage) * matrix + shrinkage * np.eye(len(matrix))


def best_shrinkage(rows, candidates, folds):
    """The shrinkage under which held-out thirds, or so, are likeliest."""
    edges = [int(len(rows) * k / folds) for k in range(folds + 1)]
    totals = []
    for shrinkage in candidates:
        total = 0.0
        for k in range(folds):
            inside = rows[edges[k] : edges[k + 1]]
            outside = np.concatenate([rows[: edges[k]], rows[edges[k + 1] :]])
            total += log_likelihood(inside, shrunk(correlations(outside), shrinkage))
        totals.append(total)
    return candidates[totals.index(max(totals))]


def residual(z, covariance, i, given):
    """(z_i − E[z_i | z_given]) / its standard deviation, of a normal vector with mean zero."""
    expected, variance = 0.0, covariance[i, i]
    if given:
        across = covariance[np.ix_(given, [i])][:, 0]
        weights = np.linalg.solve(covariance[np.ix_(given, given)], across)
        expected, variance = weights @ z[given], variance - weights @ across
    return (z[i] - expected) / math.sqrt(variance)


def squared_distance(z, covariance):
    return z @ np.linalg.solve(covariance, z) if len(z) else 0.0


def cells(z, covariance, n_channels):
    """`now`, `past` and `share` of each channel at each row of z (n, n_features), conditioned."""
    n_features = z.shape[1]
    now, past, share = np.zeros((3, len(z), n_channels))
    for t, row in enumerate(z):
        for i in range(n_channels):
            others = [k for k in range(n_features) if k % n_channels != i]
            all_else = [k for k in range(n_features) if k != i]
            now[t, i] = residual(row, covariance, i, others)
            past[t, i] = residual(row, covariance, i, all_else)
            without = squared_distance(row[others], covariance[np.ix_(others, others)])
            share[t, i] = squared_distance(row, covariance) - without
    return now, past, share


def scan(nats, price, before=0):
    """W = max(0, W + e − price) of one line, in Python integers."""
    out, w = [], int(before)
    for e in nats:
        w = max(0, w + int(e) - int(price))
        out.append(w)
    return out


def excursion_peaks(heights):
    """The highest W of each run of rows above zero."""
    peaks, top = [], 0
    for w in [*heights, 0]:
        if w > 0:
            top = max(top, w)
        elif top:
            peaks.append(top)
            top = 0
    return peaks
