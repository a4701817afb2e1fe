import numpy as np
import pytest

from vace_ad.metrics import vus
from vace_study.baselines.amplitude import RawAmplitude
from vace_study.protocols import exam
from vace_study.published import per_series
from vace_study.series import load


def test_scores_by_loop(rng):
    table = 3 + 2 * rng.normal(size=(60, 3))
    found = RawAmplitude(window=10).fit(table).score(table)
    for i in range(60):
        first = min(i, 50)
        expected = sum(table[t, c] ** 2 for t in range(first, first + 10) for c in range(3)) / 30
        assert found[i] == pytest.approx(expected)
    centred = RawAmplitude(window=10, windows="current").fit(table).score(table)
    deviations = (table - table.mean(axis=0)) / table.std(axis=0)
    assert centred[5] == pytest.approx((deviations[:10] ** 2).mean())
    assert centred[4] == centred[5]


@pytest.mark.data
@pytest.mark.parametrize(
    "stem",
    [
        "001_Genesis_id_1_Sensor_tr_4055_1st_15538",
        "018_Daphnet_id_1_HumanActivity_tr_9693_1st_20732",
    ],
)
def test_it_gives_the_published_values_of_usad_and_omnianomaly(data_folder, stem):
    """Values there lie far above what a sigmoid can follow, so the network does not matter."""
    paper = exam(load(data_folder / f"{stem}.parquet"), "tsb-ad")
    found = vus(paper.labels, RawAmplitude().score(paper.scored), paper.window).vus_pr
    for system in ("USAD", "OmniAnomaly"):
        assert found == pytest.approx(per_series()[system][stem], abs=5e-4)
    other = RawAmplitude(windows="current").score(paper.scored)
    assert not np.isclose(vus(paper.labels, other, paper.window).vus_pr, found, atol=0.005)
