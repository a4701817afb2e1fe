"""Modes of operation that training shows and nobody tells."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from signals.two_modes import NAMES, machine
from vace_ad import VACE, load
from vace_ad.signals.cell_fit import learn
from vace_ad.signals.modes import MOST_MODES, ModeModel

TRAIN = 5_000


@pytest.mark.parametrize("seed", range(5))
def test_two_modes_are_learned(seed):
    rows, truth, _ = machine(seed)
    modes = ModeModel.fit(rows[:TRAIN])
    assert modes.n_modes == 2
    found = modes.of(rows)
    assert max((found == truth).mean(), (found != truth).mean()) > 0.999


def test_what_has_one_mode_has_one():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(3000, 4))
    day = np.sin(np.arange(3000) * 2 * np.pi / 144)[:, None] * (1, 2, -1, 0.5) + 0.2 * noise
    drift = np.linspace(0, 20, 3000)[:, None] + noise
    once = noise + 10 * (np.arange(3000) > 1500)[:, None]  # a step that never comes back
    blips = noise + 10 * (np.arange(3000) % 20 == 0)[:, None]  # rows of their own, never stayed in
    constant = np.ones((3000, 4))
    for rows in (noise, day, drift, once, blips, constant, noise[:, :1]):
        modes = ModeModel.fit(rows)
        assert modes.n_modes == 1
        assert modes.of(rows[:5]).tolist() == [0] * 5
        assert modes.indicators(rows[:5]).shape == (5, 0)


def test_no_more_than_four_modes():
    rng = np.random.default_rng(1)
    levels = rng.normal(size=(6, 5)) * 30
    which = np.repeat(rng.permutation(np.tile(np.arange(6), 12)), 50)
    assert ModeModel.fit(levels[which] + rng.normal(size=(len(which), 5))).n_modes == MOST_MODES


def test_a_switch_beside_channels_that_do_without_it_is_no_mode():
    rng = np.random.default_rng(2)
    switch = np.repeat(rng.integers(0, 2, 60), 50)
    rows = np.column_stack([switch, rng.normal(size=(3000, 4))])
    assert ModeModel.fit(rows).n_modes == 2
    assert learn([rows]).model.modes.n_modes == 1


def test_modes_are_the_same_bits_in_chunks():
    rows = machine(3).rows
    model = learn([rows[:TRAIN]]).model
    assert model.modes.n_modes == 2
    whole = model.begin().add(rows[TRAIN : TRAIN + 700])
    stream = model.begin()
    parts = [stream.add(rows[at : at + 7]) for at in range(TRAIN, TRAIN + 700, 7)]
    for i, each in enumerate(whole):
        assert np.array_equal(each, np.concatenate([part[i] for part in parts]))


def test_counts_that_disagree_are_refused():
    arrays = ModeModel.fit(machine(0).rows[:TRAIN]).arrays()
    restored = ModeModel.restored(arrays)
    assert restored.n_modes == 2
    with pytest.raises(ValueError, match="modes of operation"):
        ModeModel.restored(arrays | {"share": arrays["share"][:1]})
    with pytest.raises(ValueError, match="modes of operation"):
        ModeModel.restored({name: array[:0] if name in ("mean", "whitening", "cost", "share")
                            else array for name, array in arrays.items()})  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_faults_within_modes_are_found_without_a_word(seed, tmp_path):
    rows, _, faults = machine(seed)
    table = pl.DataFrame(rows, schema=list(NAMES))
    detector = VACE(random_state=0).fit(table[:TRAIN])
    assert "2 modes of operation" in repr(detector)
    detector.save(tmp_path / "machine.vace")
    new = table[TRAIN:]
    found = load(tmp_path / "machine.vace").detect(new, budget="1 in 1440 rows").anomalies
    assert found == detector.detect(new, budget="1 in 1440 rows").anomalies
    hit = set()
    for start, end, channel in faults:
        mine = [e for e in found if e.start < end - TRAIN and start - TRAIN < e.end]
        assert mine
        assert mine[0].shares[0][0] == channel
        hit |= {e.start for e in mine}
    assert len(found) - len(hit) <= 3
