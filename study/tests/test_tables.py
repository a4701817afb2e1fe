import csv
import io
from dataclasses import replace

import pytest

from made_runs import STEMS, full_rows, made_row, make_run
from vace_ad.errors import ConfigError, InputError
from vace_study import published
from vace_study.baselines.vace import ABLATION, SENSITIVITY
from vace_study.results import Results
from vace_study.tables import TABLES
from vace_study.tables.category import category_table
from vace_study.tables.main import NEWER, main_table
from vace_study.tables.rivals import _mean_ranks
from vace_study.tables.table import Table


def results(tmp_path, methods, split="all", **changes):
    return Results.load(make_run(tmp_path, full_rows(methods, **changes)), split=split)


def cells(table):
    return list(csv.DictReader(io.StringIO(table.to_csv())))


def test_category_as_csv_has_the_agreed_shape(tmp_path):
    table = TABLES["category"](results(tmp_path, ["vace", "pca"]))
    lines = list(csv.reader(io.StringIO(table.to_csv())))
    assert lines[0] == ["method", "GECCO", "MSL", "Genesis", "Overall"]
    assert lines[1] == ["n", "1", "3", "1", "5"]
    assert [line[0] for line in lines[2:4]] == ["vace", "pca"]
    vace = [float(cell) for cell in lines[2][1:]]
    assert vace == pytest.approx([0.505, 0.305, 0.105, 0.305])
    assert "protocol tsb-ad" in table.title


def test_overall_is_the_mean_over_series_not_over_families(tmp_path):
    row = cells(TABLES["category"](results(tmp_path, ["pca"])))[1]
    assert float(row["Overall"]) == pytest.approx(sum(0.1 * i + 0.005 for i in range(1, 6)) / 5)


def test_published_families_stand_only_beside_the_same_series(tmp_path):
    mixed = {row["method"]: row for row in cells(TABLES["category"](results(tmp_path, ["pca"])))}
    assert float(mixed["PCA (published)"]["Genesis"]) == pytest.approx(0.019186)
    assert mixed["PCA (published)"]["MSL"] == ""  # a tuning series is among ours
    assert mixed["PCA (published)"]["Overall"] == ""
    assert mixed["PaAno (published)"]["GECCO"] == "0.187000"
    pure = Results.load(tmp_path, split="eval")
    rows = {row["method"]: row for row in cells(TABLES["category"](pure))}
    known = published.per_series()["PCA"]
    expected = (known[STEMS[1]] + known[STEMS[2]]) / 2
    assert float(rows["PCA (published)"]["MSL"]) == pytest.approx(expected, abs=1e-6)
    assert rows["PaAno (published)"]["MSL"] == ""  # two of 14 are not the family
    assert "VACE (published)" not in rows  # that one is test-only


def test_main_sets_published_values_beside_ours(tmp_path):
    table = main_table(results(tmp_path, ["vace", "pca"]))
    rows = cells(table)
    head = ["category", "method", "VUS-PR", "VUS-ROC", "AUC-ROC", "AUC-PR", "F1", "Range-F1"]
    assert list(rows[0])[:8] == head
    ours = {row["method"]: row for row in rows if row["source"] == "ours"}
    assert ours["pca"]["series"] == "5"
    assert ours["pca"]["seeds"] == "2"
    assert float(ours["pca"]["difference"]) == pytest.approx(0.05)
    assert ours["vace"]["difference"] == ""
    same = next(r for r in rows if r["source"] == "published, same series" and r["method"] == "PCA")
    assert same["series"] == "4"
    assert rows[rows.index(ours["pca"]) + 1] == same
    whole = {row["method"]: row for row in rows if row["source"] == "published"}
    assert (whole["VACE"]["VUS-PR"], whole["VACE"]["protocol"]) == ("0.480000", "test-only")
    assert len(whole) == 16 + len(published.RIVALS)
    assert float(whole["AxonAD"]["VUS-PR"]) == pytest.approx(0.4954, abs=1e-4)
    beside = {row["method"]: row for row in rows if row["source"] == "published, same series"}
    known = published.per_series()["SHADE"]
    expected = sum(known[stem] for stem in STEMS if stem in known) / 4
    assert float(beside["SHADE"]["VUS-PR"]) == pytest.approx(expected, abs=1e-6)


def test_a_rival_that_ran_on_some_series_keeps_its_published_mean_over_all(tmp_path):
    rows = full_rows(["vace"], stems=STEMS[:3]) + full_rows(["axonad"], stems=STEMS[1:2])
    table = TABLES["main"](Results.load(make_run(tmp_path, rows), "tsb-ad", "eval"))
    lines = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    told = [line for line in lines if line["method"] == "AxonAD"]
    assert [(line["source"], line["series"]) for line in told] == [
        ("published, same series", 1), ("published, same series", 3), ("published", 180)
    ]  # fmt: skip
    known = published.per_series()["AxonAD"]
    assert told[0]["VUS-PR"] == known[STEMS[1]]
    assert lines[lines.index(told[0]) - 1]["method"] == "axonad"
    assert told[1]["VUS-PR"] == pytest.approx(sum(known[stem] for stem in STEMS[:3]) / 3)


def without(row, *names):
    return replace(row, measures={k: v for k, v in row.measures.items() if k not in names})


def test_a_newer_measure_stands_where_every_series_has_it(tmp_path):
    rows = full_rows(["vace", "pca", "iforest"], seeds=2, protocols=("tsb-ad",))
    # vace lacks it on one series, pca in one of two seeds of each series
    rows = [
        without(row, "PATE")
        if (row.method, row.series) == ("vace", STEMS[0]) or (row.method, row.seed) == ("pca", 0)
        else row
        for row in rows
    ]
    table = main_table(Results.load(make_run(tmp_path, rows)))
    ours = {row["method"]: row["PATE"] for row in cells(table) if row["source"] == "ours"}
    assert ours == {"vace": "", "pca": "0.250000", "iforest": "0.250000"}


def with_measures(method, stem, vus, pate, dqe):
    row = made_row(method, stem, vus_pr=vus)
    return replace(row, measures={**row.measures, "PATE": pate, "DQE": dqe})


def test_measures_side_by_side(tmp_path):
    values = {"vace": (0.5, 0.4, 0.2), "pca": (0.3, 0.6, 0.1), "iforest": (0.2, 0.5, 0.3)}
    rows = [
        with_measures(method, stem, *(x + 0.01 * i for x in found))
        for method, found in values.items()
        for i, stem in enumerate(STEMS)
    ]
    rows += [without(made_row("usad", stem), "PATE", "DQE") for stem in STEMS]  # an older one
    rows += [made_row("cells", stem) for stem in STEMS[1:]]  # the others keep their series
    table = TABLES["measures"](Results.load(make_run(tmp_path, rows)))
    lines = {line["method"]: line for line in cells(table)}
    assert list(lines) == ["vace", "pca", "iforest"]
    places = [[line[f"{m} place"] for m in ("VUS-PR", "PATE", "DQE")] for line in lines.values()]
    assert places == [["1", "3", "2"], ["2", "1", "3"], ["3", "2", "1"]]
    assert lines["pca"]["PATE difference"] == "0.200000"
    assert float(lines["pca"]["PATE low"]) == pytest.approx(0.2)
    assert lines["vace"]["PATE difference"] == ""
    assert any(note.startswith("PATE orders 2 of the 3 pairs") for note in table.notes)
    assert any(note.startswith("DQE orders 2 of the 3 pairs") for note in table.notes)
    assert {line["series"] for line in lines.values()} == {"5"}
    assert table.notes[-1] == "left out, with fewer series: cells"


def test_measures_need_two_methods_that_have_them(tmp_path):
    rows = [made_row("vace", STEMS[0]), without(made_row("pca", STEMS[0]), "DQE")]
    with pytest.raises(InputError, match="fewer than two methods with VUS-PR, PATE, DQE"):
        TABLES["measures"](Results.load(make_run(tmp_path, rows)))


def test_main_with_a_system_published_by_series_alone(tmp_path):
    rows = cells(main_table(results(tmp_path, ["lstmad"])))
    assert [row["source"] for row in rows[:2]] == ["ours", "published, same series"]
    assert rows[1]["method"] == "LSTMAD"
    known = published.per_series()["LSTMAD"]
    mean = sum(known[stem] for stem in STEMS if stem in known) / 4
    assert float(rows[1]["VUS-PR"]) == pytest.approx(mean, abs=1e-6)


def test_main_under_test_only_averages_no_tsb_ad_values(tmp_path):
    run = make_run(tmp_path, full_rows(["vace", "pca"]))
    rows = cells(main_table(Results.load(run, "test-only")))
    assert not [row for row in rows if row["source"] == "published, same series"]


def test_main_compares_an_ablation_run_with_the_full_model(tmp_path):
    table = main_table(results(tmp_path, ["vace-no-direction", "vace-released"]))
    ours = {row["method"]: row for row in cells(table) if row["source"] == "ours"}
    assert ours["vace-released"]["difference"] == ""
    assert ours["vace-no-direction"]["difference"] != ""


def test_main_needs_its_reference(tmp_path):
    with pytest.raises(ConfigError, match="reference 'usad'"):
        main_table(results(tmp_path, ["pca"]), "usad")
    with pytest.raises(InputError, match="no row with measures"):
        main_table(Results("tsb-ad", [made_row("pca", STEMS[0], status="failed", measures={})]))


def test_rivals_by_family_on_the_same_series(tmp_path):
    table = TABLES["rivals"](results(tmp_path, ["vace"], split="eval"))
    lines = {line["family"]: line for line in cells(table)}
    assert list(lines) == ["GECCO", "MSL", "Genesis", "all"]
    known = published.per_series()
    two = STEMS[1:3]
    ours = {STEMS[1]: 0.205, STEMS[2]: 0.305}  # the mean of two seeds
    row = lines["MSL"]
    assert row["series"] == "2"
    for name in published.RIVALS:
        theirs = [known[name][stem] for stem in two]
        assert float(row[name]) == pytest.approx(sum(theirs) / 2, abs=1e-6)
        gap = sum(ours.values()) / 2 - sum(theirs) / 2
        assert float(row[f"difference {name}"]) == pytest.approx(gap, abs=1e-6)
        wins = sum(ours[stem] > known[name][stem] for stem in two)
        assert int(row[f"wins {name}"]) == wins
    systems = ("vace", *published.RIVALS)
    assert sum(float(row[f"rank {name}"]) for name in systems) == pytest.approx(6.0, abs=1e-5)
    assert lines["all"]["series"] == "4"
    with pytest.raises(InputError, match="no row of vace"):
        TABLES["rivals"](results(tmp_path / "pca", ["pca"]))


def test_equal_values_share_a_rank():
    values = {"a": {"s": 0.5}, "b": {"s": 0.5}, "c": {"s": 0.1}}
    assert _mean_ranks(values, ["s"]) == [1.5, 1.5, 3.0]


@pytest.mark.parametrize(
    ("name", "methods", "columns"),
    [
        (
            "ablation",
            ABLATION,
            "variant channel_encoder velocity_pretext mahalanobis velocity_scoring "
            "VUS-PR AUC-PR F1",
        ),
        ("sensitivity", SENSITIVITY, "hyperparameter value VUS-PR default"),
        (
            "geometry",
            ABLATION,
            "variant effective_rank_pr effective_rank_pr_std effective_rank_entropy "
            "effective_rank_entropy_std active_dims active_dims_std top1_variance "
            "top1_variance_std",
        ),
        ("msl", ABLATION, "series NCA FM active_NCA active_FM"),
    ],
)
def test_the_studies_have_the_papers_columns(tmp_path, name, methods, columns):
    table = TABLES[name](results(tmp_path, methods))
    assert list(table.columns)[: len(columns.split())] == columns.split()
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert "protocol tsb-ad" in table.title


def test_a_spread_needs_seeds(tmp_path):
    values = {("vace-released", 0): 0.2, ("vace-released", 1): 0.4, ("vace-no-direction", 0): 0.3}
    values["vace-no-direction", 1] = 0.3
    rows = [
        made_row(method, STEMS[0], vus_pr=value, seed=seed)
        for (method, seed), value in values.items()
    ]
    found = {row["variant"]: row for row in cells(TABLES["ablation"](Results("tsb-ad", rows)))}
    assert float(found["Full model"]["std"]) == pytest.approx(0.141421)
    assert float(found["w/o Velocity Scoring"]["std"]) == 0
    one = [row for row in rows if row.seed == 0]
    assert cells(TABLES["ablation"](Results("tsb-ad", one)))[0]["std"] == ""


def test_ablation_has_both_kinds_of_no_pretext(tmp_path):
    rows = {row["variant"]: row for row in cells(TABLES["ablation"](results(tmp_path, ABLATION)))}
    assert rows["w/o Velocity Pretext"]["published_VUS-PR"] == "0.441000"
    assert rows["w/o Velocity Pretext (calibrated)"]["published_VUS-PR"] == ""
    assert float(rows["Full model"]["VUS-PR"]) == pytest.approx(0.305)
    assert len(rows) == 6


def test_sensitivity_covers_every_setting_once(tmp_path):
    rows = cells(TABLES["sensitivity"](results(tmp_path, SENSITIVITY)))
    assert len(rows) == 15
    assert [row["value"] for row in rows if row["default"] == "1"] == ["96", "48", "20", "1.0", "8"]
    assert all(row["published"] for row in rows)


def test_geometry_is_mean_and_spread_over_seeds(tmp_path):
    rows = cells(TABLES["geometry"](results(tmp_path, ABLATION)))
    ours = [row for row in rows if row["source"] == "ours"]
    assert [row["variant"] for row in ours] == [
        "w/o Velocity Pretext",
        "w/o Velocity Pretext (calibrated)",
        "w/o BatchNormalisation",
        "Full model",
    ]
    assert (ours[0]["effective_rank_pr"], ours[0]["effective_rank_pr_std"]) == (
        "0.060000",
        "0.000000",
    )


def test_geometry_is_of_every_series_whatever_its_seeds(tmp_path):
    rows = [
        row
        for row in results(tmp_path, ABLATION, seeds=2).rows
        if row.series != STEMS[0] or row.seed == 0
    ]
    rows = [
        replace(row, geometry=row.geometry | {"active_dims": 0.25})
        if row.series == STEMS[0]
        else row
        for row in rows
    ]
    found = cells(TABLES["geometry"](Results("tsb-ad", rows)))[0]
    assert (found["series"], found["seeds"]) == ("5", "1 to 2")
    assert float(found["active_dims"]) == pytest.approx((4 * 0.75 + 0.25) / 5)


def test_msl_counts_active_dimensions(tmp_path):
    rows = cells(TABLES["msl"](results(tmp_path, ABLATION)))
    assert [row["series"] for row in rows] == ["MSL id_1", "MSL id_2", "mean"]
    assert rows[0]["active_FM"] == "48"
    assert rows[0]["published_FM"] == "0.665000"


def test_msl_compares_the_seeds_that_both_have(tmp_path):
    both = results(tmp_path, ABLATION, seeds=2)
    once = [row for row in both.rows if row.method == "vace-released" or row.seed == 0]
    found = cells(TABLES["msl"](Results(both.protocol, once)))
    assert found == cells(TABLES["msl"](Results(both.protocol, [r for r in once if r.seed == 0])))
    assert found != cells(TABLES["msl"](both))


@pytest.mark.parametrize("name", ["ablation", "sensitivity", "geometry", "msl"])
def test_a_study_that_was_not_run_says_how(tmp_path, name):
    with pytest.raises(InputError, match="run --methods"):
        TABLES[name](results(tmp_path, ["pca"]))


TABLE = Table("A & B", ["name", "x"], [["a_b", 0.12345678], ["|", None], ["c", -1e-9]], ["a note"])


def test_formats():
    assert TABLE.to_csv() == "name,x\na_b,0.123457\n|,\nc,0.000000\n"
    markdown = TABLE.to_markdown().splitlines()
    assert markdown[0] == "**A & B**"
    assert markdown[2:5] == ["| name | x |", "| --- | ---: |", "| a_b | 0.123 |"]
    assert "| \\| |  |" in markdown
    assert markdown[-1] == "- a note"
    latex = TABLE.to_latex()
    assert "\\begin{tabular}{lr}" in latex
    assert "a\\_b & 0.123 \\\\" in latex
    text = TABLE.to_text().splitlines()
    assert text[2] == "name      x"
    assert text[4] == "a_b   0.123"
    assert text[-1] == "a note"


def test_the_main_table_tells_costs_and_the_spread_between_seeds(tmp_path):
    rows = [
        *full_rows(["vace", "pca"], protocols=("tsb-ad",)),
        *(
            replace(row, cpu_seconds=None)
            for row in full_rows(["iforest"], seeds=1, protocols=("tsb-ad",))
        ),
    ]
    table = main_table(Results.load(make_run(tmp_path, rows)))
    ours = {line["method"]: line for line in cells(table) if line["source"] == "ours"}
    assert float(ours["vace"]["seconds"]) == 8  # processor time, where it was taken
    assert float(ours["pca"]["seconds"]) == 2
    assert float(ours["iforest"]["seconds"]) == 3 + 1  # else the clock's
    assert {float(line["memory_mb"]) for line in ours.values()} == {300}
    assert float(ours["vace"]["std"]) == pytest.approx(0.01 / 2**0.5, abs=1e-6)
    assert ours["iforest"]["std"] == ""
    lengths = {len(row) for row in table.rows}
    assert lengths == {len(table.columns)}


def test_an_ablation_compares_each_variant_on_the_series_and_seeds_of_both(tmp_path):
    rows = [
        *full_rows(["vace-released"], seeds=3),
        *full_rows(["vace-no-direction"], seeds=1, stems=STEMS[:2]),
        *full_rows(["vace-no-pretext"], seeds=2, stems=STEMS[1:4]),
    ]
    lines = cells(TABLES["ablation"](Results.load(make_run(tmp_path, rows))))
    found = {line["variant"]: (line["series"], line["seeds"]) for line in lines}
    assert found == {
        "w/o Velocity Pretext": ("3", "2"),
        "w/o Velocity Scoring": ("2", "1"),
        "Full model": ("4", "1 to 2"),  # of either
    }
    assert [float(line["VUS-PR"]) for line in lines] == pytest.approx([0.205, 0.15, 0.25375])
    assert [line["full model"] for line in lines] == ["0.305000", "0.150000", ""]


def test_an_ablations_difference_is_from_the_full_model(tmp_path):
    stems = STEMS[:3]
    rows = [
        *(made_row("vace-released", stem, vus_pr=0.5) for stem in stems),
        *(made_row("vace-no-direction", s, vus_pr=0.2 + i / 10) for i, s in enumerate(stems)),
    ]  # fmt: skip
    line = cells(TABLES["ablation"](Results("tsb-ad", rows)))[0]
    gap, low, high = (float(line[name]) for name in ("difference", "low", "high"))
    assert gap == pytest.approx(-0.2)
    assert -0.3 - 1e-9 <= low < gap < high <= -0.1 + 1e-9


def older(rows, method):
    """As rows of a method were before the newer measures were taken."""
    return [
        replace(row, measures={k: v for k, v in row.measures.items() if k not in NEWER})
        if row.method in method else row
        for row in rows
    ]  # fmt: skip


def test_newer_measures_stand_where_every_row_has_them():
    rows = full_rows(["vace-released", "vace-no-direction", "vace-no-pretext"])
    made = Results("tsb-ad", older(rows, ["vace-no-pretext"]))
    lines = {line["variant"]: line for line in cells(TABLES["ablation"](made))}
    assert lines["w/o Velocity Scoring"]["PATE"] == "0.250000"
    assert lines["w/o Velocity Pretext"]["PATE"] == ""
    none = Results("tsb-ad", older(rows, {row.method for row in rows}))
    assert not {*NEWER} & {*TABLES["ablation"](none).columns}


def test_a_category_table_of_another_measure():
    rows = full_rows(["vace", "pca"], protocols=("tsb-ad",))
    newer = Results("tsb-ad", older(rows, ["pca"]))
    table = category_table(newer, "PATE")
    assert table.title == "PATE by category, protocol tsb-ad"
    assert [line["method"] for line in cells(table)] == ["n", "vace"]  # nothing published either
    assert cells(table)[1]["Overall"] == "0.250000"
    assert any("without PATE" in note and "pca" in note for note in table.notes)
    with pytest.raises(InputError, match="no row with DQE"):
        category_table(Results("tsb-ad", older(rows, ["vace", "pca"])), "DQE")
    with pytest.raises(ConfigError, match="no measure 'VUS'"):
        category_table(newer, "VUS")


@pytest.mark.parametrize("name", ["ablation", "sensitivity"])
def test_a_study_of_the_full_model_alone_is_none(tmp_path, name):
    with pytest.raises(InputError, match=f"run --methods {name} first"):
        TABLES[name](results(tmp_path, ["vace-released"]))


def test_the_published_counterpart_stands_on_the_methods_own_series(tmp_path):
    rows = [*full_rows(["vace"]), *full_rows(["usad"], stems=STEMS[:2])]
    lines = cells(main_table(Results.load(make_run(tmp_path, rows))))
    known = published.per_series()["USAD"]
    (usad,) = [
        line
        for line in lines
        if (line["method"], line["source"]) == ("USAD", "published, same series")
    ]
    assert usad["series"] == "2"
    expected = sum(known[stem] for stem in STEMS[:2]) / 2
    assert float(usad["VUS-PR"]) == pytest.approx(expected, abs=1e-6)


def test_the_best_of_ours_is_bold_and_published_means_stand_below(tmp_path):
    rows = [*full_rows(["vace", "pca"]), *full_rows(["usad"], stems=STEMS[3:])]
    table = main_table(Results.load(make_run(tmp_path, rows)))
    sources = [row[table.columns.index("source")] for row in table.rows]
    assert table.apart == sources.index("published")
    assert "published" not in sources[: table.apart]
    assert set(sources[table.apart :]) == {"published"}
    bold = [line for line in table.to_markdown().splitlines() if "**0." in line]
    assert any("| pca | **0.355** |" in line for line in bold)  # usad has two series: not compared
    assert not any("usad" in line for line in bold)
    assert "\\textbf{0.355}" in table.to_latex()


def test_a_table_of_some_columns(tmp_path):
    table = main_table(results(tmp_path, ["vace", "pca"]))
    narrow = table.only(["series", "VUS-PR"])
    assert list(narrow.columns) == ["method", "series", "VUS-PR"]
    assert narrow.rows[0][1:] == [5, table.rows[0][2]]
    assert "| pca | 5 | **0.355** |" in narrow.to_markdown()
    with pytest.raises(ConfigError, match=r"there is no 'VUS'; there are category, method, VUS-PR"):
        table.only(["VUS"])


def test_series_beside_the_published_ones(tmp_path):
    run = make_run(tmp_path, full_rows(["vace", "pca"]))
    table = TABLES["series"](Results.load(run, "test-only"))
    assert list(table.columns) == ["series", "vace", "VACE (published)", "pca"]
    lines = {row[0]: row for row in table.rows}
    assert lines["MSL id_1"][2] == 0.665
    assert lines["Genesis id_1"][2] is None
    assert lines["mean"][2] == pytest.approx((0.665 + 0.117) / 2)
    beside = TABLES["series"](Results.load(run, "tsb-ad"))
    assert list(beside.columns) == ["series", "vace", "pca", "PCA (published)"]
