"""The slow, obvious versions: loops only, one line of the definition at a time."""

from __future__ import annotations

import math
from fractions import Fraction

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


def amplitude(scaled, low, high, usual, window, step, half_life):
    """Evidence of level and scale, row by row: excess over the envelope less what is usual."""
    features = window_features(scaled, window, step)
    n_channels = scaled.shape[1]
    above, below = np.zeros((2, 2 * n_channels))
    keep = 0.5 ** (step / half_life)
    sums = []
    for feature in features:
        evidence = np.zeros(2)
        for j, value in enumerate(feature):
            width = max(high[j] - low[j], 0.3)
            up, down = max(value - high[j], 0) / width, max(low[j] - value, 0) / width
            fresh = max(up - above[j], 0) + max(down - below[j], 0)
            evidence[j // n_channels] += math.log1p(fresh / (1 + above[j] + below[j]))
            above[j] = keep * above[j] + (1 - keep) * up
            below[j] = keep * below[j] + (1 - keep) * down
        sums.append(evidence)
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
