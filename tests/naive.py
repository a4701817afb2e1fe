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
