from __future__ import annotations

import numpy as np
import pytest
from vace_ad.alarms.explain import TOTAL, Explainer, ScoreRows, focus
from vace_ad.alarms.reference import Normal, reference_rows

from alarms.plants import KINDS, PATCH, Simple, break_sensor, plant
from vace_ad.errors import InputError

TRAIN = 2000


def made(channels: int, seed: int = 0) -> tuple[np.ndarray, Explainer, Simple]:
    values = plant(5000, channels, np.random.default_rng(seed))
    score = Simple(values[:TRAIN])
    names = [f"sensor {i}" for i in range(channels)]
    reference = reference_rows([values[:TRAIN]], 5 * PATCH)
    return values, Explainer(lambda _: score, names, reference, before=PATCH, after=PATCH), score


@pytest.mark.parametrize(("channels", "events"), [(12, 60), (40, 40), (200, 20)])
def test_the_broken_channel_is_found(channels: int, events: int) -> None:
    values, explainer, _ = made(channels)
    ranks = []
    for seed in range(events):
        rng = np.random.default_rng(seed)
        channel, start = int(rng.integers(channels)), int(rng.integers(TRAIN + 100, 4700))
        broken = values.copy()
        break_sensor(broken[:, channel], slice(start, start + 60), KINDS[seed % 4], rng)
        blame = explainer.explain(broken, start, start + 60)
        for shares in blame.shares.values():
            assert shares.sum() == pytest.approx(1)
            assert shares.min() >= 0
        ranks.append(int((blame.shares[TOTAL] > blame.shares[TOTAL][channel]).sum()))
    assert np.mean(np.array(ranks) == 0) >= 0.9
    assert np.mean(np.array(ranks) < 3) >= 0.98


def test_groups_save_work_and_agree_with_trying_each(monkeypatch: pytest.MonkeyPatch) -> None:
    values, explainer, score = made(100)
    break_sensor(values[:, 37], slice(3000, 3060), "inverted", np.random.default_rng(0))
    score.calls = 0
    quick = explainer.explain(values, 3000, 3060)
    assert score.calls < 60
    monkeypatch.setattr("vace_ad.alarms.explain._SINGLY", 1000)
    score.calls = 0
    full = explainer.explain(values, 3000, 3060)
    assert score.calls == 101
    assert quick.top(1)[0][0] == full.top(1)[0][0] == "sensor 37"
    assert np.abs(quick.shares[TOTAL] - full.shares[TOTAL]).max() < 0.1


def test_only_the_events_rows_and_what_they_look_at_are_scored() -> None:
    values, explainer, score = made(12)
    scored, memories = [], []

    def scorer_after(history: np.ndarray) -> ScoreRows:
        memories.append(history)
        return lambda window: scored.append(len(window)) or score(window)  # type: ignore[func-returns-value]

    explainer.scorer_after, explainer.memory = scorer_after, 500
    explainer.explain(values, 3000, 3060)
    assert set(scored) == {60 + 2 * PATCH}
    assert len(memories) == 1
    np.testing.assert_array_equal(memories[0], values[2500 - PATCH : 3000 - PATCH])
    explainer.explain(values, 0, 10)
    assert scored[-1] == 10 + PATCH
    assert len(memories[1]) == 0


def test_which_signal_spoke() -> None:
    values, explainer, _ = made(12)
    break_sensor(values[:, 3], slice(3000, 3060), "shifted", np.random.default_rng(0))
    assert explainer.explain(values, 3000, 3060).signal == "position"
    values, explainer, _ = made(12)
    values[3000:3060:2, 3] += 2 * values[:, 3].std()
    assert explainer.explain(values, 3000, 3060).signal == "direction"


def test_top_leaves_out_the_blameless() -> None:
    values, explainer, _ = made(12)
    break_sensor(values[:, 3], slice(3000, 3060), "shifted", np.random.default_rng(0))
    top = explainer.explain(values, 3000, 3060).top(12)
    assert top[0][0] == "sensor 3"
    assert len(top) < 12
    assert [share for _, share in top] == sorted((share for _, share in top), reverse=True)


def test_rows_outside_the_table() -> None:
    values, explainer, _ = made(12)
    for start, end in ((-1, 5), (10, 10), (4990, 5001)):
        with pytest.raises(InputError, match="do not lie in the table"):
            explainer.explain(values, start, end)


def test_missing_values_and_one_channel() -> None:
    values, explainer, _ = made(12)
    values[3000:3010, 2] = np.nan
    shares = explainer.explain(values, 3000, 3060).shares[TOTAL]
    assert shares.sum() == pytest.approx(1)
    values, explainer, _ = made(1)
    assert explainer.explain(values, 3000, 3060).top(3) == (("sensor 0", 1.0),)


def test_focus_takes_the_loudest_rows() -> None:
    scores = np.zeros(100)
    scores[60:70] = 5
    scores[20] = np.nan
    assert focus(scores, 10, 90, 10) == (60, 70)
    assert focus(scores, 10, 15, 10) == (10, 15)


def test_reference_rows_are_spread_over_the_parts() -> None:
    parts = [np.arange(100.0)[:, None], np.arange(200.0, 230.0)[:, None]]
    reference = reference_rows(parts, 20, stretches=3)
    assert reference.shape == (3, 20, 1)
    assert reference[0, 0, 0] == 0
    assert reference[-1, 0, 0] == 200
    assert reference_rows(parts, 500).shape == (1, 100, 1)


def test_groups_are_rebuilt_from_the_rest() -> None:
    values = plant(3000, 8, np.random.default_rng(0))
    normal = Normal(reference_rows([values[:2000]], 480))
    normal.noise = np.zeros_like(normal.noise)
    window, group = values[2500:2540], np.array([1, 4, 6])
    rest = np.setdiff1d(np.arange(8), group)
    z = (window - normal.mean) / normal.spread
    # The same by plain regression on the other channels, from the covariance.
    covariance = np.linalg.inv(normal.precision)
    weights = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[np.ix_(rest, group)])
    expected = z[:, rest] @ weights * normal.spread[group] + normal.mean[group]
    np.testing.assert_allclose(normal.look(window).rebuilt(group), expected, rtol=1e-6)


def test_a_rebuilt_channel_follows_the_others() -> None:
    values = plant(3000, 20, np.random.default_rng(0))
    normal = Normal(reference_rows([values[:2000]], 480))
    rebuilt = normal.look(values[2500:2600]).rebuilt(np.array([4]))[:, 0]
    assert np.corrcoef(rebuilt, values[2500:2600, 4])[0, 1] > 0.95
    still = values.copy()
    still[:, 7] = 3.0
    normal = Normal(reference_rows([still[:2000]], 480))
    rebuilt = normal.look(still[2500:2600]).rebuilt(np.array([7]))
    np.testing.assert_allclose(rebuilt, 3.0, atol=1e-6)
