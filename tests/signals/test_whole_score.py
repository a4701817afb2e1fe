"""The default's score, line by line, against loops from the rows and their embeddings on."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from vace_ad import VACE, VACEConfig
from vace_ad.signals import Evidence, Fitted, Signal
from vace_ad.signals.baseline_model import Normal
from vace_ad.signals.ensemble import held_out
from vace_ad.signals.shape.embeddings import cluster, unit

SETTINGS = {
    "patch_length": 24,
    "stride": 4,
    "encoders": 2,
    "widths": (8, 8, 8, 6),
    "channel_expansion": 2,
    "drift_half_life": 150,
    "prototype_seed": 3,
    "max_gap": 0,
}
OFFSET, STRIDE, LENGTH, NEAR, SEED, EPSILON = 12, 4, 24, 3, 3, 1e-6


def plant(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = np.sin(np.arange(n)[:, None] / [4, 6, 9, 13]) + 0.15 * rng.normal(size=(n, 4))
    rows[:, 3] = 0.8 * rows[:, 0] - 0.5 * rows[:, 1] + 0.1 * rng.normal(size=n)
    return rows * [1, 10, 0.1, 3] + [0, 100, 5, -7]


@pytest.fixture(scope="module")
def train():
    rows = plant(420, 0)
    rows[200] += [30, 0, 0, 0]  # beyond what counts where channels are related
    return rows


@pytest.fixture(scope="module")
def rows():
    rows = plant(300, 1)
    rows[60:90, 1] += 60
    rows[130:160, 2] = 5 + 4 * (rows[130:160, 2] - 5)
    rows[190, 0] += 9
    rows[220:260, 3] = rows[20:60, 3]
    rows[280, 2] -= 1e7
    return rows


@pytest.fixture(scope="module")
def fitted(train):
    return VACE(**SETTINGS).fit(train)


def embeddings(detector, rows):
    """(n_encoders, n_patches, d_z)."""
    return detector.embed(rows).reshape(-1, 2, 6).swapaxes(0, 1)


def learned(z):
    """What one encoder learns from its training embeddings (n, d_z)."""
    starts = list(range(len(z)))
    pairs = [(i, i + OFFSET) for i in range(len(z) - OFFSET)]
    most = min(500, round(0.1 * len(z)))

    def prototypes(moves):
        return cluster(unit(moves), max(1, min(most, len(moves) // 2)), SEED, "spherical")

    held = naive.held_out_shape(z, starts, pairs, LENGTH, EPSILON, prototypes, NEAR)
    *units, median = naive.shape_units(*held)
    moves = np.array([z[b] - z[a] for a, b in pairs])
    return held, {
        "train": z.astype(float),
        "epsilon": EPSILON,
        "prototypes": prototypes(moves),
        "units": units,
        "median": median,
    }


@pytest.fixture(scope="module")
def encoders(fitted, train):
    return [learned(z) for z in embeddings(fitted, train)]


def test_units_of_position_and_direction(fitted, encoders):
    for evidence, (_, wanted) in zip(fitted.model_.shape.learned, encoders, strict=True):
        found = (evidence.position_unit, evidence.direction_unit, evidence.direction_median)
        assert found == pytest.approx((*wanted["units"], wanted["median"]), rel=1e-4)


def test_every_line_of_the_score(fitted, encoders, train, rows):
    z = embeddings(fitted, rows)[:, ::STRIDE]
    parts = [encoder for _, encoder in encoders]
    shape = naive.shape_rows(parts, z, STRIDE, OFFSET // STRIDE, NEAR, len(rows), LENGTH)
    wanted = naive.default_score(train, rows, LENGTH, SETTINGS["drift_half_life"], shape)
    found = fitted.signals(rows)
    assert list(found) == list(wanted)
    for name, line in wanted.items():
        tolerance = 1e-4 if name in ("position", "direction") else 1e-8
        np.testing.assert_allclose(found[name], line, atol=tolerance, rtol=tolerance, err_msg=name)
        assert line.max() > 0.1, name  # the faults speak through every line
    np.testing.assert_allclose(fitted.score(rows), sum(wanted.values()), rtol=1e-3)


def test_training_rows_are_scored_as_a_stream_by_what_did_not_learn_from_them(train):
    """A block that changes cannot change what judges it, and is judged as a table would be."""
    plain = VACE(**SETTINGS).fit(train)
    other = train.copy()
    block = slice(2 * len(train) // 4, 3 * len(train) // 4)
    other[block, 1] += 60
    loud = VACE(**SETTINGS).fit(other)
    assert loud.calibration_scores_.shape == (len(train),)
    known, unknown = loud.score(other)[block].mean(), loud.calibration_scores_[block].mean()
    assert unknown > 2 * known
    assert unknown > 1.5 * plain.calibration_scores_[block].mean()


def test_held_out_scores_of_a_signal_that_learns_nothing_are_those_of_the_stream(train):
    parts = [train[:30], train[30:]]
    normal = Normal.fit(parts).normal
    scores = held_out([Fitted(Echo())], normal, parts, VACEConfig(patch_length=LENGTH))
    np.testing.assert_array_equal(np.concatenate(scores), train[:, 0])


class Echo(Signal):
    """The first channel is the evidence."""

    key, lines = "echo", {"echo": "the first channel"}

    def begin(self, *, live=False):
        return EchoEvidence(1)

    fit = constants = arrays = layout = restored = None


class EchoEvidence(Evidence):
    def add(self, rows, scaled=None):
        self.now = rows[:, :1].T
        return self.now

    def end(self):
        return np.empty((1, 0))

    state = resume = None
