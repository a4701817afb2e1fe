import numpy as np
import pytest

from toys import make_folder
from vace_ad.errors import ConfigError
from vace_ad.metrics import sliding_window
from vace_study.protocols import exam
from vace_study.series import load


@pytest.fixture
def series(tmp_path):
    return load(make_folder(tmp_path) / "002_MSL_id_1_Sensor_tr_120_1st_180.csv")


def test_tsb_ad_scores_everything(series):
    paper = exam(series, "tsb-ad")
    np.testing.assert_array_equal(paper.train, series.values[:120])
    np.testing.assert_array_equal(paper.scored, series.values)
    np.testing.assert_array_equal(paper.labels, series.labels)
    assert paper.window == sliding_window(series.values[:, 0])


def test_test_only_leaves_the_training_rows_out(series):
    paper = exam(series, "test-only")
    np.testing.assert_array_equal(paper.train, series.values[:120])
    np.testing.assert_array_equal(paper.scored, series.values[120:])
    np.testing.assert_array_equal(paper.labels, series.labels[120:])
    assert paper.window == sliding_window(series.values[120:, 0])


def test_no_third_protocol(series):
    with pytest.raises(ConfigError, match="tsb-ad, test-only"):
        exam(series, "tsb_ad")
