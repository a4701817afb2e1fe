"""What the detector does around a network, seen through one that is no network at all."""

from dataclasses import dataclass

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from vace_ad.errors import ConfigError  # noqa: E402
from vace_ad.metrics import vus  # noqa: E402
from vace_study.baselines import resolve  # noqa: E402
from vace_study.baselines.networks.detector import (  # noqa: E402
    WindowNetwork,
    network_method,
    tsb_ad_methods,
)
from vace_study.baselines.networks.tiled import TiledNetwork  # noqa: E402
from vace_study.baselines.usad import USAD  # noqa: E402
from vace_study.protocols import exam  # noqa: E402
from vace_study.published import per_series  # noqa: E402
from vace_study.series import load  # noqa: E402


@dataclass(kw_only=True)
class Amplitude(WindowNetwork):
    """The mean squared value of a window: no model, the same windows."""

    window: int = 100
    learning_rate: float = 0.1
    epochs: int = 1

    def _module(self, channels):
        return torch.nn.Linear(1, 1)

    def _losses(self, module, batch, at):
        self.seen = [*getattr(self, "seen", []), len(batch)]
        return (module.weight + 10).square().sum()  # falls by more than the least gain

    def _errors(self, module, batch, at):
        return batch.square().mean(dim=(1, 2))


@dataclass(kw_only=True)
class Tiles(TiledNetwork):
    window: int = 4
    learning_rate: float = 0.1
    epochs: int = 1
    _module, _losses = Amplitude._module, Amplitude._losses

    def _errors(self, module, batch, at):
        return batch.square().mean(dim=2)


@pytest.mark.data
@pytest.mark.parametrize("system", ["USAD", "OmniAnomaly"])
def test_published_windows_alone_give_published_values(data_folder, system):
    """On Genesis values lie far above what a sigmoid can follow, so the model does not matter."""
    stem = "001_Genesis_id_1_Sensor_tr_4055_1st_15538"
    paper = exam(load(data_folder / f"{stem}.parquet"), "tsb-ad")
    scores = Amplitude().fit(paper.train).score(paper.scored)
    found = vus(paper.labels, scores, paper.window).vus_pr
    assert found == pytest.approx(per_series()[system][stem], abs=5e-4)
    other = Amplitude(windows="current").fit(paper.train).score(paper.scored)
    assert vus(paper.labels, other, paper.window).vus_pr > 2 * found


def test_rows_are_split_and_windows_counted(rng):
    table = rng.normal(size=(100, 2))
    detector = Amplitude(window=10, batch_size=1000).fit(table)
    assert detector.seen == [80, 20]  # published: a window for every row
    detector = Amplitude(window=10, batch_size=1000, windows="current").fit(table)
    assert detector.seen == [71, 11]
    detector = Amplitude(window=10, batch_size=1000, max_train_windows=5).fit(table)
    assert detector.seen == [5, 5]
    assert detector.notes_ == ("capped: 5 of 80 training windows",)
    detector = Amplitude(window=30, batch_size=1000, epochs=9).fit(table)
    assert detector.seen == [80] * len(detector.history_)  # 20 rows cannot validate


def test_without_rows_to_validate_a_method_may_stop_after_its_patience(rng):
    table = rng.normal(size=(100, 1))
    settings = {"window": 30, "epochs": 20, "learning_rate": 1e-3}
    assert len(Amplitude(**settings, unwatched="train on").fit(table).history_) > 4
    assert len(Amplitude(**settings, unwatched="stop").fit(table).history_) == 4


def test_scores_under_the_published_rule_by_loop(rng):
    table = rng.normal(size=(60, 2))
    scores = Amplitude(window=10).fit(table).score(table)
    for i in range(60):
        first = min(i, 50)
        assert scores[i] == pytest.approx((table[first : first + 10] ** 2).mean(), rel=1e-5)


def test_a_stride_is_interpolated(rng):
    table = rng.normal(size=(61, 2))
    every = Amplitude(window=10).fit(table).score(table)
    detector = Amplitude(window=10, score_stride=3).fit(table)
    assert detector.notes_ == ()
    third = detector.score(table)
    np.testing.assert_allclose(third[::3], every[::3])
    assert detector.notes_ == ("capped: one of 3 windows scored",)
    assert third[1] == pytest.approx((2 * every[0] + every[3]) / 3)


def test_tiles_are_scaled_by_the_training_rows_and_cover_all(rng):
    train, table = 5 + 2 * rng.normal(size=(50, 2)), rng.normal(size=(30, 2))
    scores = Tiles().fit(train).score(table)
    expected = ((table - train.mean(axis=0)) / train.std(axis=0)) ** 2
    np.testing.assert_allclose(scores, expected.mean(axis=1), rtol=1e-4)
    with pytest.raises(ConfigError, match="score_stride=2"):
        Tiles(score_stride=2).fit(train).score(table)


def test_caps_and_windows_are_part_of_a_methods_settings():
    settings = resolve("anomaly-transformer").settings
    assert settings["max_train_windows"] == 2000
    assert settings["long_score_stride"] == 4
    assert settings["windows"] == "published"
    assert "random_state" not in settings
    capped = network_method("x", USAD, "User", max_train_windows=5)
    assert capped.config_hash != network_method("x", USAD, "User").config_hash
    newer = network_method("x", USAD, "User", version=2)
    assert newer.config_hash != network_method("x", USAD, "User").config_hash
    assert newer.make(3).random_state == 3


def test_fewer_epochs_and_smaller_batches_than_a_systems_own_are_told(rng):
    detector = USAD(window=5, epochs=2, batch_size=16).fit(rng.normal(size=(60, 2)))
    assert detector.notes_ == (
        "capped: batches of 16 windows, usually 128",
        "capped: 2 of 10 epochs",
    )


def test_a_network_of_tsb_ad_comes_in_three_kinds():
    published, current, fixed = tsb_ad_methods("x", USAD, optimisers=2)
    assert [each.name for each in (published, current, fixed)] == ["x", "x-current", "x-fixed"]
    told = [(m.settings["windows"], m.settings["optimisers"]) for m in (published, current, fixed)]
    assert told == [("published", 1), ("current", 1), ("current", 2)]
