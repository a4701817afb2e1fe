import numpy as np
import pytest

from vace_ad.metrics import vus
from vace_study import published
from vace_study.baselines.iforest import IForest
from vace_study.protocols import exam
from vace_study.series import load


def test_standing_out_scores_high(rng):
    table = rng.normal(size=(400, 3))
    table[200] = [8, -8, 8]
    assert IForest(across_channels=False).fit(table).score(table).argmax() == 200


def test_a_row_scaled_across_its_channels_loses_its_amplitude(rng):
    table = rng.normal(size=(100, 4))
    moved = table * rng.uniform(1, 50, size=(100, 1)) + rng.normal(size=(100, 1))
    np.testing.assert_allclose(IForest().score(moved), IForest().score(table), atol=1e-12)


@pytest.mark.parametrize(
    "stem",
    [
        "001_Genesis_id_1_Sensor_tr_4055_1st_15538",
        "017_MSL_id_16_Sensor_tr_512_1st_1850",
        "156_SMAP_id_13_Sensor_tr_1173_1st_2750",
    ],
)
def test_the_published_numbers(data_folder, stem):
    paper = exam(load(data_folder / f"{stem}.parquet"), "tsb-ad")
    scores = IForest().score(paper.scored)
    ours = vus(paper.labels, scores, window=paper.window).vus_pr
    assert ours == pytest.approx(published.per_series()["IForest"][stem], abs=1e-6)
