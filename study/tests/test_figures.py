import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from made_runs import STEMS, full_rows, make_run
from toys import Here, make_folder
from vace_ad.errors import ConfigError, InputError, MissingExtraError
from vace_study.catalog import find_series
from vace_study.figures import FIGURES
from vace_study.figures.cost import place_labels
from vace_study.figures.critical_difference import draw_ranking
from vace_study.figures.series import _thinned, draw_series
from vace_study.figures.style import save
from vace_study.ranks import Ranking
from vace_study.results import Results
from vace_study.runner import Plan, run

pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra plot)")


@pytest.fixture
def results(tmp_path):
    return Results.load(make_run(tmp_path / "run", full_rows(["vace", "pca", "iforest"])))


def texts(figure):
    from matplotlib.text import Text

    return [found.get_text() for found in figure.findobj(Text)]


@pytest.mark.parametrize("name", FIGURES)
def test_a_picture_and_a_drawing_of_each(results, tmp_path, name):
    figure = FIGURES[name](results, [])
    png, svg = save(figure, tmp_path / "out", name)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    again = save(FIGURES[name](results, []), tmp_path / "again", name)
    assert again[1].read_bytes() == svg.read_bytes()


def test_scatter_counts_wins_also_against_published_values(results):
    figure = FIGURES["scatter"](results, ["pca", "vace", "PCA"])
    assert "pca 5 : 0 vace" in texts(figure)
    assert any("95 % interval" in text for text in texts(figure))
    assert len(figure.axes) == 2


def test_scatter_needs_two_methods_that_exist(results):
    with pytest.raises(ConfigError, match="2 methods or more"):
        FIGURES["scatter"](results, ["pca"])
    with pytest.raises(ConfigError, match="no result of 'usad'"):
        FIGURES["scatter"](results, ["pca", "usad"])


def test_density_puts_every_series_in_a_bin(results):
    (ax,) = FIGURES["density"](results, []).axes
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert sum(int(text.split("n = ")[1].rstrip(")")) for text in labels) == 5


def test_a_radar_needs_three_families(tmp_path):
    few = make_run(
        tmp_path / "few", full_rows(["pca"], stems=("001_Genesis_id_1_Sensor_tr_4055_1st_15538",))
    )
    with pytest.raises(InputError, match="three families"):
        FIGURES["categories"](Results.load(few), [])


def test_geometry_needs_a_method_that_has_it(tmp_path):
    run = make_run(tmp_path / "pca", full_rows(["pca"]))
    with pytest.raises(InputError, match="geometry"):
        FIGURES["geometry"](Results.load(run), [])


def test_labels_of_near_points_do_not_cover_each_other():
    points = [(100.0 + 3 * k, 100.0 + k % 3, f"method-{k}") for k in range(9)] + [(9.0, 9.0, "far")]
    shifts = place_labels(points)
    assert shifts[-1][1] == 0  # nothing in its way: beside its point
    middles = [(x + dx, y + dy) for (x, y, _), (dx, dy) in zip(points, shifts, strict=True)]
    for i, (x, y) in enumerate(middles):
        for a, b in middles[:i]:
            assert abs(y - b) >= 9 or abs(x - a) >= 30
    assert max(abs(dy) for _, dy in shifts) < 60


def test_a_series_with_its_scores(tmp_path):
    data = make_folder(tmp_path / "data")
    plan = Plan(find_series(data), ["toys:Distance", "pca"], ("test-only",), keep_scores=True)
    run(plan, tmp_path / "run", Here())
    results = Results.load(tmp_path / "run")
    figure, name = draw_series(results, [], tmp_path / "run", data, "MSL id_1")
    assert name == "series-MSL-1"
    assert len(figure.axes) == 3
    assert any(text.startswith("pca   VUS-PR") for text in texts(figure))
    with pytest.raises(ConfigError, match="fits 2 series"):
        draw_series(results, [], tmp_path / "run", data, "MSL")
    with pytest.raises(InputError, match="--keep-scores"):
        draw_series(results, ["pca"], tmp_path / "elsewhere", data, "MSL id_1")


def test_a_thinned_line_keeps_its_extremes(rng):
    values = rng.normal(size=100_001)
    x, y = _thinned(values)
    assert len(x) <= 4000
    assert (np.diff(x) > 0).all()
    assert (y.min(), y.max()) == (values.min(), values.max())


def test_without_matplotlib_the_install_line_is_said(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'vace-ad\[plot\]'"):
        FIGURES["density"](results, [])


def test_the_critical_difference_diagram_says_ranks_and_draws_a_bar_for_each_group():
    ranking = Ranking(
        ("a", "b", "c"),
        (1.25, 1.75, 3.0),
        12,
        0.001,
        {("a", "b"): 0.5, ("a", "c"): 0.01, ("b", "c"): 0.01},
        0.05,
    )
    figure = draw_ranking(ranking, "tsb-ad")
    told = texts(figure)
    assert "a  1.25" in told
    assert "b  1.75" in told
    assert "3.00  c" in told
    assert any("12 series" in text and "p = 0.001" in text for text in told)
    bars = [line for line in figure.axes[0].lines if line.get_linewidth() > 3]
    assert [line.get_xdata().tolist() for line in bars] == [pytest.approx([1.22, 1.78])]


def test_cost_is_taken_on_the_series_that_all_have(tmp_path):
    rows = [
        *full_rows(["vace"]),
        *full_rows(["pca"], stems=STEMS[:2]),
    ]
    results = Results.load(make_run(tmp_path / "run", rows), "tsb-ad")
    figure = FIGURES["cost"](results, [])
    assert any("on the 2 series that all have" in text for text in texts(figure))
    (ax,) = figure.axes
    (x, y), *_ = [tuple(points.get_offsets()[0]) for points in ax.collections]
    assert (x, y) == pytest.approx((8.0, 0.155))  # vace on the first two series


def test_a_family_that_a_method_lacks_leaves_a_gap_in_its_outline(tmp_path):
    rows = [*full_rows(["vace"]), *full_rows(["pca"], stems=STEMS[1:])]  # pca without Genesis
    results = Results.load(make_run(tmp_path / "run", rows), "tsb-ad")
    (ax,) = FIGURES["categories"](results, []).axes
    lines = {line.get_label(): line.get_ydata() for line in ax.lines}
    assert not np.isnan(lines["vace"]).any()
    assert np.isnan(lines["pca (4 series)"]).sum() >= 1


def test_density_says_when_no_row_tells_its_anomalies(tmp_path):
    rows = [replace(row, anomalous_rows=None) for row in full_rows(["pca"])]
    with pytest.raises(InputError, match="how many of its rows are anomalous"):
        FIGURES["density"](Results.load(make_run(tmp_path / "run", rows)), [])
