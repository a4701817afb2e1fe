import numpy as np
import pytest

from vace_ad.metrics import vus
from vace_study import published
from vace_study.baselines.pca import PCA
from vace_study.protocols import exam
from vace_study.series import load


def naive(samples, explained, sign):
    """The rule by loops over components, from a singular value decomposition."""
    z = (samples - samples.mean(axis=0)) / samples.std(axis=0)
    u, s, vt = np.linalg.svd(z, full_matrices=False)
    ratios = s**2 / np.sum(s**2)
    total, score = 0.0, np.zeros(len(z))
    for k, ratio in enumerate(ratios):
        judged = u[:, k] if sign == "projection" else vt[k]
        component = vt[k] * np.sign(judged[np.abs(judged).argmax()])
        for i, row in enumerate(z):
            score[i] += np.linalg.norm(row - component) / ratio
        total += ratio
        if total > explained:
            break
    return score


@pytest.mark.parametrize("sign", ["projection", "component"])
@pytest.mark.parametrize("explained", [0.25, 0.9])
def test_the_rule(rng, sign, explained):
    samples = rng.normal(size=(80, 5)) @ rng.normal(size=(5, 5))
    found = PCA(explained=explained, sign=sign).fit(samples).score(samples)
    np.testing.assert_allclose(found, naive(samples, explained, sign), rtol=1e-9)


def test_windows_are_samples_and_rows_get_the_window_around_them(rng):
    series = rng.normal(size=(60, 2))
    found = PCA(window=7).score(series)
    samples = np.array([series[i : i + 7].T.ravel() for i in range(54)])
    np.testing.assert_allclose(found[3:57], naive(samples, 0.25, "projection"), rtol=1e-9)
    assert (found[:3] == found[3]).all()
    assert (found[57:] == found[56]).all()


def test_more_features_than_samples(rng):
    series = rng.normal(size=(12, 30))
    found = PCA(explained=0.5).score(series)
    np.testing.assert_allclose(found, naive(series, 0.5, "projection"), rtol=1e-9)


def test_nothing_that_varies_gives_equal_scores():
    assert np.ptp(PCA().score(np.full((30, 3), 2.5))) == 0


def test_the_published_numbers_hold_for_the_old_sign_rule(data_folder):
    """TSB-AD's published values, to the last of the decimals we keep."""
    for stem in (
        "001_Genesis_id_1_Sensor_tr_4055_1st_15538",
        "003_MSL_id_2_Sensor_tr_883_1st_1238",
        "159_SMAP_id_16_Sensor_tr_1757_1st_2650",
    ):
        paper = exam(load(data_folder / f"{stem}.parquet"), "tsb-ad")
        scores = PCA().score(paper.scored)
        ours = vus(paper.labels, scores, window=paper.window).vus_pr
        assert ours == pytest.approx(published.per_series()["PCA"][stem], abs=1e-6)


def test_the_sign_alone_moves_the_measure(data_folder):
    paper = exam(load(data_folder / "003_MSL_id_2_Sensor_tr_883_1st_1238.parquet"), "tsb-ad")
    values = [
        vus(paper.labels, PCA(sign=sign).score(paper.scored), window=paper.window).vus_pr
        for sign in ("projection", "component")
    ]
    assert abs(values[0] - values[1]) > 0.02
