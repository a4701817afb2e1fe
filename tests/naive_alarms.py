"""The slow, obvious versions of what alarms are made of; loops only, nothing from the package."""

from __future__ import annotations

import math
from itertools import chain

import numpy as np


def average_of_past(before, half_life):
    """The weighted mean of some rows: half as much for each half-life that has gone by."""
    ages = range(len(before) - 1, -1, -1)
    weights = [0.5 ** (age / half_life) if half_life else float(age == 0) for age in ages]
    return sum(w * row for w, row in zip(weights, before, strict=True)) / sum(weights)


def past_averages(rows, half_lives):
    """Averages of the rows before each, (n, n_averages, n_channels).

    The first row counts once more, as if it had come before itself too.
    """
    before = [[rows[0], *rows[:t]] for t in range(len(rows))]
    return np.array([[average_of_past(each, h) for h in half_lives] for each in before])


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


def bounded_stream(rows, model, half_lives, most, confirm, farthest):
    """All that a model of cells gives of each row, whose past takes in no far value at once.

    The model's last columns are innovations, in units of its `error`.
    """
    entered, out, far = [], [], [0] * model.n_channels
    d = model.n_channels
    for row in rows:
        before = [rows[0], *entered]
        averages = [average_of_past(before, half_life) for half_life in half_lives]
        found = np.concatenate([row, *averages]) @ model.matrix + model.offset
        out.append(found)
        new = row.copy()
        for i in range(d):
            innovation = found[len(found) - d + i]
            far[i] = far[i] + 1 if abs(innovation) > most else 0
            if 0 < far[i] <= confirm:
                new[i] -= innovation * model.error[i]
            elif far[i]:
                new[i] -= (innovation - math.copysign(most, innovation)) * model.error[i]
        entered.append(np.clip(new, -farthest, farthest))
    return np.array(out)


def conditioned(covariance, kept):
    """The covariance of some entries of a normal vector, given all others."""
    others = [i for i in range(len(covariance)) if i not in kept]
    own = covariance[np.ix_(kept, kept)]
    if not others:
        return own
    across = covariance[np.ix_(kept, others)]
    return own - across @ np.linalg.solve(covariance[np.ix_(others, others)], across.T)


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


def excursions(heights):
    """First row, row of the highest W, and that W, of each run of rows above zero."""
    found, run = [], []
    for row, w in enumerate([*heights, 0]):
        if w > 0:
            run.append((row, w))
        elif run:
            at, top = max(run, key=lambda one: (one[1], -one[0]))
            found.append((run[0][0], at, top))
            run = []
    return found


def tail_law(peaks, kinds, idle, most, prior_peaks, unit):
    """Level, mean excess and count of each line, from the peaks of its excursions.

    The level is the lowest of the `most + 1` highest peaks, or the highest one where fewer than
    four rose; excesses are drawn to the median of their kind, in multiples of the level.
    """
    level, own, count = [], [], []
    for each in peaks:
        highest = sorted(each, reverse=True)[: most + 1]
        n = max(len(highest) - 1, 0)
        level.append((highest[n] if n >= 3 else highest[0]) if highest else unit)
        own.append(sum(top - level[-1] for top in highest[:n]) / max(n, 1))
        count.append(n)
    excess = []
    for line, kind in enumerate(kinds):
        same = [i for i, other in enumerate(kinds) if other == kind]
        shares = [own[i] / max(level[i], unit) for i in same if count[i] >= 3 and not idle[i]]
        drawn = prior_peaks * (np.median(shares) if shares else 0.5) * max(level[line], unit)
        weight = count[line] if count[line] >= 3 else 0
        excess.append((weight * own[line] + drawn) / (weight + prior_peaks) + 1)
    return level, excess, count


def log_density(height, shape):
    """Of the generalised Pareto law with scale 1."""
    return -(1 + 1 / shape) * math.log(1 + shape * height)


def best_shapes(stretches, kinds, idle, shapes, prior_shape, how):
    """For each kind, the shape that makes the peaks of each stretch likeliest by the others.

    `stretches` hold the peaks of each line; `how` is what `tail_law` needs besides. Quantiles of a
    heavy tail count as peaks too.
    """
    total = {kind: dict.fromkeys(shapes, 0.0) for kind in kinds}
    n = how["prior_peaks"]
    for kind in total:
        for k in range(n):
            height = (((k + 0.5) / n) ** -prior_shape - 1) / prior_shape
            for shape in shapes:
                total[kind][shape] += log_density(height, shape)
    for k, mine in enumerate(stretches):
        others = [stretch for i, stretch in enumerate(stretches) if i != k]
        if not others:
            continue
        together = [[*chain(*tops)] for tops in zip(*others, strict=True)]
        level, excess, _ = tail_law(together, kinds, idle, **how)
        for line, kind in enumerate(kinds):
            for top in mine[line]:
                if top > level[line] and not idle[line]:
                    for shape in shapes:
                        height = (top - level[line]) / excess[line]
                        total[kind][shape] += log_density(height, shape)
    return [max(total[kind], key=lambda shape: total[kind][shape]) for kind in kinds]


def pareto_height(nats, rate, excess, shape):
    """How far above its level a line rises once in exp(nats) rows, when it does at `rate`."""
    above = max(nats + math.log(rate), 0.0)
    return excess * (math.exp(above * shape) - 1) / shape


def baseline(residuals, block, half_life, prior, warm_up, clip):
    """Mean and variance of one column after these rows, taken in full blocks."""
    mean, variance = 0.0, 1.0
    for k in range(len(residuals) // block):
        fraction = 1 - 0.5 ** (block / half_life)
        if (k + 1) * block <= warm_up:
            fraction = block / (prior + (k + 1) * block)
        most = clip * math.sqrt(max(variance, 1.0))
        steps = [min(max(x - mean, -most), most) for x in residuals[k * block : (k + 1) * block]]
        mean += fraction * sum(steps) / block
        variance += fraction * (sum(step**2 for step in steps) / block - variance)
    return mean, variance


def nats_of_distance(distances, x, tail_share, most):
    """−log of the share of held-out distances that are at least x, with a tail beyond them all."""
    n, normal = len(distances), -math.log(max(math.erfc(x / math.sqrt(2)), 1e-300))
    within = math.ceil((1 - tail_share) * n)
    level = sorted(distances)[within - 1] ** 2
    if x**2 <= level:
        beyond = sum(distance >= x for distance in distances)
        counted = -math.log((beyond + 0.5) / (n + 1))
        return min(counted, -math.log(tail_share), normal, most)
    excesses = [d**2 - level for d in sorted(distances)[within:] if d**2 > level]
    mean = sum(excesses) / max(len(excesses), 1)
    scale, shape = max(mean, 2.0), 0.0
    if len(excesses) >= 5:  # by moments, the shape drawn to 0.1 by as much as 20 excesses
        variance = sum((excess - mean) ** 2 for excess in excesses) / len(excesses)
        by_moments = 0.5 * (1 - mean**2 / variance)
        shape = (len(excesses) * by_moments + 20 * 0.1) / (len(excesses) + 20)
        shape = max(shape, 0.0)
        scale = mean * (1 - shape)
    past = (x**2 - level) / scale
    tail = math.log(1 + shape * past) / shape if shape else past
    return min(tail - math.log(tail_share), normal, most)
