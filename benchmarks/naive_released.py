"""The baseline of speed.py: what the released code does, done the plain way.

Written from the method's description. Eager float32 PyTorch; every patch materialised three times
(itself and both neighbours), neighbours gathered one by one; training and test patches embedded
twice each, once for position and once for direction. Initial kernels and the order of anchors are
given from outside, so that its numbers can be compared with the package's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans
from torch import nn

LENGTH = 96
TRAINING_OFFSET, SCORING_OFFSET = 96, 48
EPSILON = 1e-6  # added to the covariance
KMEANS_SEED = 42


class Encoder(nn.Module):
    """RevIN, five convolutions with BatchNorm and ReLU, mean over time."""

    def __init__(self, n_channels: int, kernels: Sequence[NDArray[np.float32]]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for i, kernel in enumerate(kernels):
            n_out, n_in, taps = kernel.shape
            groups = n_channels if i == 0 else 1
            layer = nn.Conv1d(
                n_in * groups, n_out, taps, groups=groups, padding=taps // 2, bias=False
            )
            layer.weight.data = torch.from_numpy(kernel.copy())
            layers += [layer, nn.BatchNorm1d(n_out), nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        """Raw patches (n, n_channels, P) to embeddings (n, d_z)."""
        mean = patches.mean(dim=2, keepdim=True)
        deviation = torch.sqrt(patches.var(dim=2, keepdim=True, unbiased=False) + 1e-5)
        return self.layers((patches - mean) / deviation.clamp_min(1e-5)).mean(dim=2)


class NaiveReleased:
    """Fit and score as the released code does."""

    def __init__(
        self,
        kernels: Sequence[NDArray[np.float32]],
        batches: Iterator[NDArray[np.intp]],
        iterations: int = 20,
    ) -> None:
        self._kernels, self._batches, self._iterations = kernels, batches, iterations

    def fit(self, rows: NDArray[np.float64]) -> None:
        """Train the encoder, then learn position and direction from all training patches."""
        patches, before, after, whole = self._triples(rows)
        self.encoder = Encoder(rows.shape[1], self._kernels)
        self.losses = self._train(patches, before, after, whole)
        z = self._embed(patches)
        self._mean = z.mean(axis=0)
        covariance = np.cov(z, rowvar=False) + EPSILON * np.eye(z.shape[1])
        self._inverse = np.linalg.inv(covariance)
        velocities = self._velocities(self._embed(patches))
        count = max(1, min(500, round(0.1 * len(patches))))
        means = MiniBatchKMeans(
            count, random_state=KMEANS_SEED, batch_size=max(1024, count), n_init=1
        ).fit(velocities)
        centres = means.cluster_centers_
        self._prototypes = centres / np.linalg.norm(centres, axis=1, keepdims=True)

    def score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """A score for each row."""
        patches = self._patches(rows)
        off = self._embed(patches).astype(np.float64) - self._mean
        position = np.sqrt(np.einsum("nd,de,ne->n", off, self._inverse, off))
        velocities = self._velocities(self._embed(patches))
        distance = np.sort(1 - velocities @ self._prototypes.T, axis=1)[:, :3].mean(axis=1)
        direction = np.full(len(patches), distance.mean())  # the last δ patches have no velocity
        direction[: len(distance)] = distance
        scores = _minmax(position) * (1 + _minmax(direction))
        total, count = np.zeros(len(rows)), np.zeros(len(rows))
        for i, value in enumerate(scores):
            total[i : i + LENGTH] += value
            count[i : i + LENGTH] += 1
        return total / count

    @staticmethod
    def _patches(rows: NDArray[np.float64]) -> torch.Tensor:
        each = [rows[i : i + LENGTH].T for i in range(len(rows) - LENGTH + 1)]
        return torch.from_numpy(np.stack(each).astype(np.float32))

    def _triples(self, rows: NDArray[np.float64]) -> tuple[torch.Tensor, ...]:
        """Every patch, its neighbours (zeros where there is none), and whether it has both."""
        patches = self._patches(rows)
        nothing = torch.zeros_like(patches[0])
        before, after, whole = [], [], []
        for i in range(len(patches)):
            earlier, later = i - TRAINING_OFFSET, i + TRAINING_OFFSET
            before.append(patches[earlier] if earlier >= 0 else nothing)
            after.append(patches[later] if later < len(patches) else nothing)
            whole.append(earlier >= 0 and later < len(patches))
        return patches, torch.stack(before), torch.stack(after), torch.tensor(whole)

    def _train(
        self, patches: torch.Tensor, before: torch.Tensor, after: torch.Tensor, whole: torch.Tensor
    ) -> list[float]:
        optimiser = torch.optim.AdamW(self.encoder.parameters(), lr=1e-4, weight_decay=1e-4)
        losses = []
        self.encoder.train()
        for t in range(self._iterations):
            anchors = torch.from_numpy(next(self._batches))
            batch = torch.cat([patches[anchors], before[anchors], after[anchors]])
            z, past, future = self.encoder(batch).chunk(3)
            came = nn.functional.normalize(z - past, dim=1, eps=1e-8)
            goes = nn.functional.normalize(future - z, dim=1, eps=1e-8)
            loss = (1 - (came * goes).sum(dim=1))[whole[anchors]].mean()
            losses.append(float(loss.detach()))
            weight = 1 - (t + 1) / self._iterations
            if weight > 0:
                cosine = (1 + math.cos(math.pi * t / self._iterations)) / 2
                optimiser.param_groups[0]["lr"] = 1e-5 + (1e-4 - 1e-5) * cosine
                optimiser.zero_grad()
                (weight * loss).backward()
                optimiser.step()
        return losses

    def _embed(self, patches: torch.Tensor) -> NDArray[np.float32]:
        self.encoder.eval()
        with torch.no_grad():
            parts = [self.encoder(patches[a : a + 512]) for a in range(0, len(patches), 512)]
        return torch.cat(parts).numpy()

    @staticmethod
    def _velocities(z: NDArray[np.float32]) -> NDArray[np.float64]:
        moves = (z[SCORING_OFFSET:] - z[:-SCORING_OFFSET]).astype(np.float64)
        return moves / np.maximum(1e-8, np.linalg.norm(moves, axis=1, keepdims=True))


def _minmax(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return (values - values.min()) / max(float(values.max() - values.min()), 1e-12)
