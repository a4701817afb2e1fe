"""Modes of operation that training shows and nobody tells."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from signals.two_modes import NAMES, machine
from vace_ad import VACE, load
from vace_ad.signals.cell_fit import learn
from vace_ad.signals.modes import MOST_MODES, MOST_ROWS, SHRINKAGE, ModeModel

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


def visited(*visits: tuple[int, int], d: int = 4, seed: int = 0) -> np.ndarray:
    """Noise, with stretches of (mode, rows); each but mode 0 raises a channel of its own by 30."""
    modes = np.repeat(*np.transpose(visits))
    levels = np.eye(max(modes.max() + 1, d), d, k=-1)
    return np.random.default_rng(seed).normal(size=(len(modes), d)) + 30 * levels[modes]


def n_modes(*visits: tuple[int, int], d: int = 4) -> int:
    return ModeModel.fit(visited(*visits, d=d)).n_modes


def test_each_mode_is_the_normal_distribution_of_its_rows():
    rows = visited(*[(0, 100), (1, 40)] * 12, d=3)
    model = ModeModel.fit(rows)
    y = np.clip(rows - np.median(rows, axis=0), -model.most, model.most) @ model.projection
    np.testing.assert_allclose(model.most, 5 * rows.std(axis=0))
    np.testing.assert_allclose(np.cov(y.T) - np.diag(np.var(y, axis=0, ddof=1)), 0, atol=1e-9)
    spread = y.std(axis=0)
    assert (np.diff(spread) < 0).all()  # the component that varies most comes first
    modes, x = model.of(rows), rows[:, 0] > 15
    assert np.array_equal(modes == modes[x][0], x)
    assert sorted(model.share) == [40 / 140, 100 / 140]
    wanted = []
    for i, share in enumerate(model.share):
        mine = y[modes == i]
        mean = sum(mine) / len(mine)
        covariance = sum(np.outer(row - mean, row - mean) for row in mine) / len(mine)
        shrunk = 0.98 * covariance + 0.02 * np.eye(3) * (covariance[[0, 1, 2], [0, 1, 2]].sum() / 3)
        np.testing.assert_allclose(model.mean[i], mean)
        inverse = model.whitening[i] @ model.whitening[i].T
        np.testing.assert_allclose(inverse @ shrunk, np.eye(3), atol=1e-9)
        cost = np.log(np.linalg.det(shrunk)) - 2 * np.log(share)
        assert model.cost[i] == pytest.approx(cost)
        apart = y - mean
        wanted.append((apart @ np.linalg.inv(shrunk) * apart).sum(axis=1) + cost)
    assert SHRINKAGE == 0.02
    between = np.linspace(y[modes == 0].mean(axis=0), y[modes == 1].mean(axis=0), 101)
    back = np.linalg.inv(model.projection)
    laws = [
        np.einsum("ni,ij,nj->n", between - m, w @ w.T, between - m) + c
        for m, w, c in zip(model.mean, model.whitening, model.cost, strict=True)
    ]
    found = model.of(between @ back + np.median(rows, axis=0))
    assert np.array_equal(found, np.argmin(laws, axis=0))
    assert np.array_equal(modes, np.argmin(wanted, axis=0))


def test_indicators_are_standardised_and_one_a_mode_but_the_first():
    rows = visited(*[(0, 100), (1, 40), (2, 60)] * 8)
    model = ModeModel.fit(rows)
    modes, found = model.of(rows), model.indicators(rows)
    assert found.shape == (1600, 2)
    for i in (1, 2):
        inside = (modes == i).astype(float)
        np.testing.assert_allclose(found[:, i - 1], (inside - inside.mean()) / inside.std())
    first = model.first
    assert first.n_modes == 1
    assert first.of(rows).tolist() == [0] * len(rows)
    assert first.indicators(rows).shape == (1600, 0)
    assert first.share.tolist() == [1.0]


def test_a_value_counts_up_to_five_deviations():
    rows = visited(*[(0, 100), (1, 40)] * 12)
    model = ModeModel.fit(rows)
    center, deviation = np.median(rows, axis=0), rows.std(axis=0)
    far, most = rows.copy(), rows.copy()
    far[::7, 3], far[::5, 2] = 1e9, -1e9
    most[::7, 3], most[::5, 2] = (center + 5 * deviation)[3], (center - 5 * deviation)[2]
    assert np.array_equal(model.of(far), model.of(most))
    rows[::50, 3] = 1e9  # in training: a deviation of its own, that the others do not drown in
    assert ModeModel.fit(rows).n_modes == 2


def test_rows_are_thinned_evenly_from_the_first_on():
    rows = np.random.default_rng(3).normal(size=(2 * MOST_ROWS + 3, 2))
    for every, some in ((3, rows), (2, rows[: 2 * MOST_ROWS]), (1, rows[:MOST_ROWS])):
        found, wanted = ModeModel.fit(some), ModeModel.fit(some[::every])
        for name, array in wanted.arrays().items():
            assert np.array_equal(getattr(found, name), array)


@pytest.mark.parametrize(("visits", "modes"), [(5, 2), (4, 1)])
def test_a_mode_is_visited_five_times_the_first_and_the_last_rows_included(visits, modes):
    """Both modes as often: read from either end, each begins the series once, and ends it once."""
    rows = visited(*[(0, 100), (1, 100)] * visits)
    assert ModeModel.fit(rows).n_modes == ModeModel.fit(rows[::-1]).n_modes == modes


def test_each_of_three_modes_is_visited_often():
    often = [(0, 100), (1, 100)] * 10
    for visits, modes in ((4, 2), (5, 3)):
        assert n_modes(*often, *[(2, 100), (0, 100)] * visits) == modes


@pytest.mark.parametrize(("stay", "modes"), [(24, 2), (23, 1)])
def test_a_mode_is_stayed_in_for_24_rows(stay, modes):
    assert n_modes(*[(0, 100), (1, stay)] * 10, (0, 100)) == modes
    # of the stretches it is the median row's that counts: half of the rows are in short ones
    assert n_modes(*[(0, 100), (1, stay), *[(0, 100), (1, 3)] * 7] * 6, (0, 100)) == modes


@pytest.mark.parametrize(("share", "modes"), [(0.06, 2), (0.04, 1)])
def test_a_mode_has_a_twentieth_of_the_rows(share, modes):
    other = round(30 / share) - 30
    assert n_modes(*[(0, other), (1, 30)] * 8) == modes


@pytest.mark.parametrize(("longest", "modes"), [(28, 2), (26, 1)])
def test_a_mode_has_four_rows_for_each_component(longest, modes):
    """Eight components: a mode has at least 32 rows, however few there are in all."""
    blips = [visit for _ in range(4) for visit in ((0, 60), (1, 1))]
    assert n_modes(*blips, (0, 60), (1, longest), (0, 60), d=8) == modes


def test_two_small_modes_beside_a_large_one():
    """Each has 6 % of the rows: split off together, they have enough to be split themselves."""
    rows = visited(*[(0, 220), (1, 30), (0, 220), (2, 30)] * 6, d=5)
    rows[:, 4] += 60.0 * (rows[:, :2].max(axis=1) > 15)
    model = ModeModel.fit(rows)
    assert sorted(np.round(model.share, 6)) == [0.06, 0.06, 0.88]


def test_modes_that_lie_along_the_second_component_are_found():
    """The first is what most channels do together, and no mode."""
    rng = np.random.default_rng(5)
    together = rng.normal(size=(3000, 1)) * (1, 1, 1, 1, 0, 0)
    switch = np.repeat(np.arange(60) % 2, 50)
    rows = together + 0.1 * rng.normal(size=(3000, 6))
    rows[:, 4:] += switch[:, None] * (3, -3)
    model = ModeModel.fit(rows)
    assert model.n_modes == 2
    modes = model.of(rows)
    assert max((modes == switch).mean(), (modes != switch).mean()) == 1


@pytest.mark.parametrize(("apart", "modes"), [(5.0, 1), (5.7, 2)])
def test_rows_in_doubt_are_no_modes(apart, modes):
    """Rows are clear where twice the log of the odds, normal with mean a² and deviation 2·a, is 6.

    That leaves 2.9 % of the rows in doubt at five deviations, more than one in fifty, 1 % at 5.7.
    """
    switch = np.repeat(np.arange(200) % 2, 50)
    rows = np.random.default_rng(6).normal(size=(10_000, 2))
    rows[:, 0] += apart * switch
    assert ModeModel.fit(rows).n_modes == modes


def test_one_to_four_modes_are_restored_and_five_are_refused():
    rows = visited(*[(i, 50) for i in range(5)] * 8)
    for one in (ModeModel.fit(rows), ModeModel.fit(rows).first):
        restored = ModeModel.restored(one.arrays())
        assert np.array_equal(restored.of(rows), one.of(rows))
    arrays = ModeModel.fit(rows).first.arrays()
    many = {name: np.repeat(arrays[name], 5, axis=0) for name in ("mean", "whitening", "cost")}
    for n in (2, 4, 5):
        some = {name: each[:n] for name, each in many.items()} | {"share": np.full(n, 1 / n)}
        if n <= MOST_MODES:
            assert ModeModel.restored(arrays | some).n_modes == n
        else:
            with pytest.raises(ValueError, match=r"counts \[5\]"):
                ModeModel.restored(arrays | some)
    layout = ModeModel.layout(4)
    assert set(layout) == set(arrays)
    for name, (_, shape) in layout.items():
        assert len(shape) == arrays[name].ndim
        assert all(want in (None, n) for want, n in zip(shape, arrays[name].shape, strict=True))


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
