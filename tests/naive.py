"""The slow, obvious versions: loops only, one line of the definition at a time."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np


def patches(series, length):
    """x_i = X[i : i+P], as (n, n_channels, P)."""
    return np.array([series[i : i + length].T for i in range(len(series) - length + 1)])


def normalise(patch, scale):
    """(x − mean) / max(√(var + ε), ε) for each channel of one patch (n_channels, P)."""
    out = np.zeros_like(patch)
    for c, row in enumerate(patch):
        exact = [Fraction(float(x)) for x in row]  # no rounding, whatever the offset
        mean = sum(exact) / len(exact)
        var = float(sum((x - mean) ** 2 for x in exact) / len(exact))
        unit = scale[c]
        deviation = max(math.sqrt(var + 1e-5 * unit**2), 1e-5 * unit)
        out[c] = [float(x - mean) / deviation for x in exact]
    return out


def mahalanobis(train, z, epsilon):
    """(z − μ)ᵀ(Σ + εI)⁻¹(z − μ)."""
    mean = train.mean(axis=0)
    covariance = np.zeros((train.shape[1], train.shape[1]))
    for row in train:
        covariance += np.outer(row - mean, row - mean)
    covariance = covariance / (len(train) - 1) + epsilon * np.eye(len(mean))
    return np.array([(row - mean) @ np.linalg.solve(covariance, row - mean) for row in z])


def direction(velocity, prototypes, neighbours):
    """Mean of 1 − cosine over the nearest prototypes, for one unit velocity."""
    distances = sorted(1 - float(np.dot(velocity, p)) for p in prototypes)
    return sum(distances[:neighbours]) / len(distances[:neighbours])


def unit(vector, epsilon=1e-8):
    return vector / max(epsilon, math.sqrt(sum(x * x for x in vector)))


def points(scores, length):
    """The mean of the scores of all patches that cover a point."""
    n_rows = len(scores) + length - 1
    out = []
    for t in range(n_rows):
        covering = [scores[i] for i in range(len(scores)) if i <= t < i + length]
        out.append(sum(covering) / len(covering))
    return np.array(out)


def between(scores, stride, n_patches):
    """Scores of skipped patches, linearly between their scored neighbours."""
    out = []
    for i in range(n_patches):
        k, rest = divmod(i, stride)
        if k + 1 >= len(scores):
            out.append(scores[-1])
        else:
            out.append(scores[k] + (scores[k + 1] - scores[k]) * rest / stride)
    return np.array(out)


def convolve(patch, kernel, groups):
    """Same-padded convolution of one patch (in, P)."""
    n_out, n_in, taps = kernel.shape
    length = patch.shape[1]
    out = np.zeros((n_out, length))
    for o in range(n_out):
        first = (o // (n_out // groups)) * n_in
        for t in range(length):
            for c in range(n_in):
                for k in range(taps):
                    at = t + k - taps // 2
                    if 0 <= at < length:
                        out[o, t] += kernel[o, c, k] * patch[first + c, at]
    return out


def geometry(eigenvalues):
    """Participation ratio, entropy rank (both by d_z) and top-1 share."""
    total = sum(eigenvalues)
    ratio = total**2 / sum(x * x for x in eigenvalues)
    entropy = -sum(x / total * math.log(x / total) for x in eigenvalues if x > 0)
    d = len(eigenvalues)
    return ratio / d, math.exp(entropy) / d, max(eigenvalues) / total


def torch_encoder(n_channels, expansion=8, widths=(128, 256, 128, 64)):
    """The paper's encoder as plain PyTorch."""
    from torch import nn

    w2, w3, w4, w5 = widths
    mid = n_channels * expansion

    def stage(n_in, n_out, taps, groups=1):
        return [
            nn.Conv1d(n_in, n_out, taps, padding=taps // 2, groups=groups, bias=False),
            nn.BatchNorm1d(n_out),
            nn.ReLU(),
        ]

    return nn.Sequential(
        *stage(n_channels, mid, 7, n_channels),
        *stage(mid, w2, 1),
        *stage(w2, w3, 5),
        *stage(w3, w4, 3),
        *stage(w4, w5, 3),
    )


def past_average(values, start, half_life):
    """The exponential average before each step, one step at a time."""
    keep = 0.5 ** (1 / half_life)
    average, out = start, []
    for value in values:
        out.append(average)
        average = keep * average + (1 - keep) * value
    return np.array(out), average


def window_features(scaled, window, step):
    """Mean and log-deviation of each channel in every `step`-th window."""
    out = []
    for a in range(0, len(scaled) - window + 1, step):
        part = scaled[a : a + window]
        out.append([*part.mean(axis=0), *np.log(part.std(axis=0) + 0.2)])
    return np.array(out)


def excess(features, low, high):
    """How far each feature lies above and below its envelope, in widths, (2, n, n_features)."""
    out = np.zeros((2, *features.shape))
    for k, feature in enumerate(features):
        for j, value in enumerate(feature):
            width = max(high[j] - low[j], 0.3)
            out[:, k, j] = max(value - high[j], 0) / width, max(low[j] - value, 0) / width
    return out


def lengths(values, n_lines):
    """The Euclidean length of each line's share of the values."""
    d = len(values) // n_lines
    return [math.sqrt(sum(x * x for x in values[i * d : (i + 1) * d])) for i in range(n_lines)]


def amplitude(scaled, low, high, usual, window, step, half_life, warm):
    """Evidence of level and scale, row by row: excess over the envelope less what is usual.

    What is usual starts at the mean of the windows that end within the first `warm` rows, or of
    the first window.
    """
    outside = excess(window_features(scaled, window, step), low, high)  # (2, n, n_features)
    n = outside.shape[1]
    first = [k for k in range(n) if k * step + window <= warm] or [0]
    above, below = (sum(side[k] for k in first) / len(first) for side in outside)
    keep = 0.5 ** (step / half_life)
    sums = []
    for up, down in zip(*outside, strict=True):
        fresh = []
        for j in range(len(up)):
            new = max(up[j] - above[j], 0) + max(down[j] - below[j], 0)
            fresh.append(new / (1 + above[j] + below[j]))
        sums.append(lengths(fresh, 2))
        above = keep * above + (1 - keep) * up
        below = keep * below + (1 - keep) * down
    n_windows = len(scaled) - window + 1
    rows = []
    for k in range(2):
        every = between([s[k] for s in sums], step, n_windows)
        raw = np.log1p(points(every, window))
        used, _ = past_average(raw, usual[k], half_life)
        rows.append(raw / (1 + used))
    return np.array(rows)


def spikes(scaled, edge, start, half_life, reach=4):
    """Evidence of each row: how far it stands out from the median around it, beyond the edge."""
    n = len(scaled)
    out, average = [], start
    for t in range(n):
        around = [min(max(u, 0), n - 1) for u in range(t - reach, t + reach + 1)]
        total = 0.0
        for c in range(scaled.shape[1]):
            height = abs(scaled[t, c] - sorted(scaled[u, c] for u in around)[reach])
            total += math.log(1 + max(0.0, height / edge[c] - 1))
        raw = math.log(1 + total)
        out.append(raw / (1 + average))
        keep = 0.5 ** (1 / half_life)
        average = keep * average + (1 - keep) * raw
    return np.array(out)


# ------------------------------------------------------------------ the default's whole score


def scaled(train, rows, farthest=1e4):
    """Rows in deviations of the training's channels; a constant one counts in per cents."""
    n, d = rows.shape
    out = np.zeros((n, d))
    for c in range(d):
        column = [Fraction(float(x)) for x in train[:, c]]
        mean = sum(column) / len(column)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in column) / len(column))
        mean = float(mean)
        if deviation <= 1e-14 * abs(mean):
            deviation = 0.01 * abs(mean) or 1.0
        for t in range(n):
            out[t, c] = min(max((rows[t, c] - mean) / deviation, -farthest), farthest)
    return out


def clipped(rows, largest):
    return np.array([[min(max(x, -largest), largest) for x in row] for row in rows])


def left_over(train, rows, ridge=0.03):
    """What a ridge regression of each channel on all others does not predict, (n, d)."""
    out = np.zeros(rows.shape)
    for c in range(rows.shape[1]):
        others = [k for k in range(rows.shape[1]) if k != c]
        if not others:
            continue
        x, y = train[:, others], train[:, c]
        weights = np.linalg.solve(x.T @ x + ridge * len(x) * np.eye(len(others)), x.T @ y)
        for t in range(len(rows)):
            out[t, c] = rows[t, c] - sum(
                rows[t, k] * w for k, w in zip(others, weights, strict=True)
            )
    return out


def held_out_residuals(train, folds=4, largest=20.0):
    """Residuals of scaled training rows, each by what the other blocks say; and their unit."""
    rows = clipped(train, largest)
    out = np.zeros(rows.shape)
    for block in np.array_split(np.arange(len(rows)), folds):
        others = np.array([t for t in range(len(rows)) if t not in set(block.tolist())])
        out[block] = left_over(rows[others], rows[block])
    unit = np.array([x if x > 0 else 1.0 for x in out.std(axis=0)])
    return out / unit, unit


def residuals(train, rows, unit, largest=20.0):
    """Residuals of scaled rows in units of what is usual in training."""
    return left_over(clipped(train, largest), clipped(rows, largest)) / unit


def rebuilt(train, rows, gone, ridge=0.03, largest=20.0):
    """What the channels that are there lead to expect of those that are `gone`, (n, n_gone)."""
    train, rows = clipped(train, largest), clipped(rows, largest)
    d = rows.shape[1]
    rest = [c for c in range(d) if c not in gone]
    covariance = train.T @ train / len(train) + ridge * np.eye(d)
    weights = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[np.ix_(rest, gone)])
    return np.array([row[rest] @ weights for row in rows])


def folds(starts, length, n_folds=4, least=8):
    """For each block of windows: those to learn from, which share no row with it, and itself."""
    n = len(starts)
    edges = [int(n * k / n_folds) for k in range(n_folds + 1)]
    for a, b in pairwise(edges):
        if a == b:
            continue
        fit = [i for i in range(n) if abs_gap(starts[i], starts[a], starts[b - 1]) >= length]
        if len(fit) < least:
            fit = [i for i in range(n) if not a <= i < b]
        yield fit or list(range(a, b)), list(range(a, b))


def abs_gap(start, first, last):
    """Rows from a window's start to the nearest end of a block, 0 inside it."""
    return max(first - start, start - last, 0)


def envelope(features, edge=0.01):
    """Where the outermost hundredth of training windows begins, on either side."""
    return quantile(features, edge), quantile(features, 1 - edge)


def quantile(values, q):
    """By linear interpolation between ranks, down the columns."""
    out = []
    for column in np.atleast_2d(values.T):
        ranked = sorted(column.tolist())
        place = q * (len(ranked) - 1)
        low = int(place)
        high = min(low + 1, len(ranked) - 1)
        out.append(ranked[low] + (ranked[high] - ranked[low]) * (place - low))
    return np.array(out) if values.ndim > 1 else out[0]


def learn_windows(train, window, step):
    """The envelope of one window length and its mean held-out evidence of level and scale."""
    features = window_features(train, window, step)
    starts = [k * step for k in range(len(features))]
    sums = np.zeros((2, len(features)))
    for fit, held in folds(starts, window):
        above, below = excess(features[held], *envelope(features[fit]))
        for i, beyond in zip(held, above + below, strict=True):
            sums[:, i] = lengths(beyond, 2)
    usual = []
    for k in range(2):
        every = between(sums[k], step, len(train) - window + 1)
        usual.append(float(np.mean(np.log1p(points(every, window)))))
    return (*envelope(features), np.array(usual))


def window_evidence(train, rows, patch_length, part, half_life):
    """Level and scale of one window length, (2, n)."""
    window = max(2, patch_length // part)
    step = max(1, window // 8)
    window = min(8, window) * step
    low, high, usual = learn_windows(train, window, step)
    warm = min(48, patch_length)
    return amplitude(rows, low, high, usual, window, step, half_life, warm)


def learn_spikes(train, n_folds=4, reach=4):
    """The edge of each channel, and the mean held-out evidence."""
    n, d = train.shape
    heights = np.zeros((n, d))
    for t in range(n):
        around = [min(max(u, 0), n - 1) for u in range(t - reach, t + reach + 1)]
        for c in range(d):
            heights[t, c] = abs(train[t, c] - sorted(train[u, c] for u in around)[reach])
    blocks = np.array_split(np.arange(n), n_folds)
    evidence = []
    for block in blocks:
        others = [t for t in range(n) if t not in set(block.tolist())]
        edge = [max(1.0, *heights[others, c]) for c in range(d)]
        for t in block:
            total = sum(math.log1p(max(0.0, heights[t, c] / edge[c] - 1)) for c in range(d))
            evidence.append(math.log1p(total))
    edge = np.array([max(1.0, *heights[:, c]) for c in range(d)])
    return edge, sum(evidence) / len(evidence)


def spread(line, width):
    """The mean over `width` rows around each, as many of them as there are."""
    half = width // 2  # rows before a row; with the row itself, as many from it on
    out = []
    for t in range(len(line)):
        around = [line[u] for u in range(t - half, t + half) if 0 <= u < len(line)]
        out.append(sum(around) / len(around))
    return np.array(out)


def beyond_edge(off, edge):
    """log(1 + Σ log(1 + excess beyond the edge)) of one row."""
    total = sum(math.log1p(max(0.0, abs(x) / e - 1)) for x, e in zip(off, edge, strict=True))
    return math.log1p(total)


def lags_of(rows, common, t, c, lags):
    """What channel c of row t is predicted from: common movements, then itself, latest first."""
    past = range(t - 1, t - lags - 1, -1)
    return [x for u in past for x in common[u]] + [rows[u, c] for u in past]


def ridge_weights(x, y, ridge=0.03):
    """(XᵀX / n + r I)⁻¹ Xᵀy / n."""
    x, y = np.array(x), np.array(y)
    return np.linalg.solve(x.T @ x / len(x) + ridge * np.eye(x.shape[1]), x.T @ y / len(x))


def learn_forecast(train, lags=6, n_common=8, n_folds=4, largest=20.0):
    """From scaled training rows: directions, weights, edge and mean held-out evidence."""
    rows = clipped(train, largest)
    n, d = rows.shape
    directions = np.linalg.eigh(sum(np.outer(row, row) for row in rows))[1][:, -n_common:]
    common = rows @ directions
    weights, off = [], np.zeros((n - lags, d))
    for c in range(d):
        x = np.array([lags_of(rows, common, t, c, lags) for t in range(lags, n)])
        y = rows[lags:, c]
        weights.append(ridge_weights(x, y))
        for block in np.array_split(np.arange(n - lags), n_folds):
            others = [t for t in range(n - lags) if t < block[0] or t > block[-1]]
            other = ridge_weights(x[others], y[others])
            for t in block:
                off[t, c] = y[t] - sum(a * b for a, b in zip(x[t], other, strict=True))
    edge = np.array([max(1.0, q) for q in quantile(np.abs(off), 0.999)])
    evidence = [beyond_edge(row, edge) for row in off]
    return directions, weights, edge, sum(evidence) / len(evidence)


def forecast_raw(scaled, directions, weights, edge, lags=6, largest=20.0):
    """Evidence of each scaled row of a stretch, whose first rows have no forecast."""
    rows = clipped(scaled, largest)
    common = rows @ directions
    out = [0.0] * min(lags, len(rows))
    for t in range(lags, len(rows)):
        off = []
        for c, w in enumerate(weights):
            known = lags_of(rows, common, t, c, lags)
            off.append(rows[t, c] - sum(a * b for a, b in zip(known, w, strict=True)))
        out.append(beyond_edge(off, edge))
    return np.array(out)


def forecast(train, rows, half_life):
    """The line of scaled rows after scaled training rows."""
    *learned, usual = learn_forecast(train)
    raw = forecast_raw(rows, *learned)
    used, _ = past_average(raw, usual, half_life)
    return spread(raw / (1 + used), 48)


def learn_distance(train, farthest=5.0):
    """The length of all but one in a thousand training rows, and the mean evidence."""
    every = np.array([math.sqrt(sum(x * x for x in row)) for row in clipped(train, farthest)])
    longest = max(quantile(every, 0.999), 1e-9)
    return longest, sum(math.log1p(x / longest) for x in every) / len(every)


def distance(train, rows, half_life, warm, farthest=5.0, weight=0.5):
    """The line of scaled rows after scaled training rows."""
    longest, usual = learn_distance(train, farthest)
    near = clipped(rows, farthest)
    first = near[:warm]
    middles, _ = past_average(near, sum(first) / len(first), half_life)
    raw = []
    for row, middle in zip(near, middles, strict=True):
        raw.append(math.log1p(math.sqrt(sum((row - middle) ** 2)) / longest))
    used, _ = past_average(raw, usual, half_life)
    return weight * spread(np.array(raw) / (1 + used), 96)


def surge_lengths(rows, half_life, warm):
    """The log length of scaled rows, each channel off its past average or zero, what is nearer."""
    near = clipped(rows, 10.0)
    first = near[:warm]
    middles, _ = past_average(near, sum(first) / len(first), half_life)
    out = []
    for row, middle in zip(near, middles, strict=True):
        total = sum(min(abs(x), abs(x - m)) ** 2 for x, m in zip(row, middle, strict=True))
        out.append(math.log(math.sqrt(total / len(row)) + 0.1))
    return np.array(out)


def surge_above(lengths, usual, half_life, warm):
    """How far log lengths lie above their habit, which begins no higher than training's mean."""
    start = min(usual, sum(lengths[:warm]) / len(lengths[:warm]))
    return lengths - past_average(lengths, start, half_life / 16)[0]


def learn_surge(train, half_life, warm):
    """The mean log length of training rows, and its deviation from the habit."""
    lengths = surge_lengths(train, half_life, warm)
    usual = sum(lengths) / len(lengths)
    above = surge_above(lengths, usual, half_life, warm)
    middle = sum(above) / len(above)
    return usual, max(math.sqrt(sum((above - middle) ** 2) / len(above)), 0.1)


def surge(train, rows, half_life, warm):
    """The line of scaled rows after scaled training rows."""
    usual, deviation = learn_surge(train, half_life, warm)
    above = surge_above(surge_lengths(rows, half_life, warm), usual, half_life, warm)
    weight = min((train.shape[1] / 150) ** 2, 3.0)
    return np.array([weight * max(x / deviation - 1.0, 0.0) for x in above])


def autocorrelation(rows, span, looks, lags):
    """Mean over varying channels of the autocorrelation of looks, trend removed; how many vary."""
    n, d = rows.shape
    slope = np.linspace(-1, 1, span)
    total = np.zeros((d, lags + 1))
    for start in np.linspace(0, n - span, looks).astype(int):
        for c in range(d):
            line = rows[start : start + span, c]
            line = line - sum(line) / span
            line = line - slope * sum(slope * line) / sum(slope * slope)
            for lag in range(lags + 1):
                total[c, lag] += line[: span - lag] @ line[lag:] / (span - lag)
    varying = [each / each[0] for each in total if each[0] > 1e-12]
    return (sum(varying) / len(varying) if varying and lags >= 10 else None), len(varying)


def rhythm(train):
    """The period of training rows and how far the autocorrelation rises there; 0, 0 for none."""
    n = len(train)
    span = min(2048, n)
    looks = max(1, min(64, 2 * (n // span) - 1))
    line, d = autocorrelation(scaled(train, train), span, looks, min(400, span // 2))
    if line is None:
        return 0, 0.0
    rises = {}
    for lag in range(8, min(330, len(line) - 2) + 1):
        if line[lag - 1] <= line[lag] > line[lag + 1]:
            rises[lag] = line[lag] - min(line[: lag + 1])
    if not rises:
        return 0, 0.0
    period = min(lag for lag in rises if rises[lag] >= 0.8 * max(rises.values()))
    if n < 4 * period or rises[period] < 8 / math.sqrt(min(n, looks * span) * d):
        return 0, 0.0
    return period, rises[period]


def compose(position, direction, position_unit, direction_unit, weight=1.0):
    """log(1 + s̃_p), and what log(1 + s̃_p (1 + w s̃_d)) adds to it, for one patch."""
    p, d = position / position_unit, direction / direction_unit
    alone = math.log(1 + p)
    return alone, math.log(1 + p * (1 + weight * d)) - alone


def held_out_shape(z, starts, pairs, length, epsilon, cluster, near):
    """Both raw signals of training patches, each by statistics of patches that share no row.

    `pairs` are (from, to) of velocities; a velocity belongs to the patch it leads to. `cluster`
    makes prototypes of differences.
    """
    position, turns = np.zeros(len(z)), np.full(len(z), np.nan)
    for fit, held in folds(starts, length):
        known = set(fit)
        moves = [(a, b) for a, b in pairs if a in known and b in known] or pairs
        prototypes = cluster(np.array([z[b] - z[a] for a, b in moves]))
        position[held] = mahalanobis(z[fit], z[held], epsilon)
        for a, b in pairs:
            if b in held:
                turns[b] = direction(unit(z[b] - z[a]), prototypes, near)
    return position, turns


def shape_units(position, turns):
    """Units of position and direction, and the direction of a patch without a velocity."""
    known = turns[~np.isnan(turns)]
    return quantile(position, 0.9), max(quantile(known, 0.99), 1e-3), float(np.median(known))


def shape_rows(encoders, z, stride, lag, near, n_rows, length):
    """Position and direction of every row (2, n_rows), from embeddings (n_encoders, n_grid, d).

    An encoder is a dictionary of train (embeddings), epsilon, prototypes, units and median.
    """
    lines = np.zeros((2, z.shape[1]))
    for learned, own in zip(encoders, z, strict=True):
        position = mahalanobis(learned["train"], own, learned["epsilon"])
        for i in range(len(own)):
            turn = learned["median"]
            if i >= lag:
                turn = direction(unit(own[i] - own[i - lag]), learned["prototypes"], near)
            lines[:, i] += compose(position[i], turn, *learned["units"])
    lines /= len(encoders)
    n_patches = n_rows - length + 1
    return np.array([points(between(line, stride, n_patches), length) for line in lines])


def default_score(train, rows, patch_length, half_life, shape):
    """Every line of evidence of complete rows; `shape` is (2, n), its lines before their weight.

    The length of patches is given, so shape counts whatever the rhythm, but never less than half.
    """
    own, seen = scaled(train, train), scaled(train, rows)
    level, scale = np.zeros((2, len(rows)))
    for part, level_weight, scale_weight in ((1, 0.5, 1.0), (3, 0.5, 1.0), (12, 0.0, 0.25)):
        lines = window_evidence(own, seen, patch_length, part, half_life)
        level += level_weight * lines[0]
        scale += scale_weight * lines[1]
    edge, usual = learn_spikes(own)
    own_left, unit_left = held_out_residuals(own)
    left = residuals(own, seen, unit_left)
    relation = sum(
        0.5 * window_evidence(own_left, left, patch_length, part, half_life)[1] for part in (1, 3)
    )
    weight = min(max(2 * rhythm(train)[1], 0.5), 1.0)
    return {
        "position": weight * shape[0],
        "direction": weight * shape[1],
        "level": level,
        "scale": scale,
        "spike": spikes(seen, edge, usual, half_life),
        "relation": relation,
        "forecast": forecast(own, seen, half_life),
        "distance": distance(own, seen, half_life, min(48, patch_length)),
    }


def operating_counts(labels, events, opened, tolerance):
    """What alarms were worth: stretch by stretch, event by event, row by row."""
    n, stretches, start = len(labels), [], None
    for row in range(n + 1):
        inside = row < n and labels[row] == 1
        if inside and start is None:
            start = row
        if not inside and start is not None:
            stretches.append((start, row))
            start = None

    def near(event, stretch):
        return event[0] < stretch[1] + tolerance and event[1] > stretch[0] - tolerance

    onsets, lengths, delays, found = [], [], [], 0
    for stretch in stretches:
        mine = [event for event in events if near(event, stretch)]
        found += bool(mine)
        if len(mine) == 1 and sum(near(mine[0], other) for other in stretches) == 1:
            onsets.append(mine[0][0] - stretch[0])
            lengths.append((mine[0][1] - mine[0][0]) / (stretch[1] - stretch[0]))
        for row in sorted(opened):
            if near((row, row + 1), stretch):
                delays.append(max(0, row - stretch[0]))
                break
    normal = inside_rows = 0
    for row in range(n):
        if all(not (s - tolerance <= row < e + tolerance) for s, e in stretches):
            normal += 1
            inside_rows += any(a <= row < b for a, b in events)
    false = sum(not any(near(event, stretch) for stretch in stretches) for event in events)
    return {
        "events": len(stretches), "found": found, "false_alarms": false, "normal_rows": normal,
        "inside_rows": inside_rows, "onsets": tuple(onsets), "lengths": tuple(lengths),
        "live": len(stretches), "delays": tuple(delays),
    }  # fmt: skip
