import pytest

from made_runs import STEMS, full_rows, made_row, make_run
from vace_ad.errors import ConfigError, InputError
from vace_study.results import Results


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run", full_rows(["vace", "pca"]))


def test_seeds_are_averaged_before_series(run):
    results = Results.load(run)
    values = results.values("pca", "VUS-PR")
    assert list(values) == list(STEMS)
    assert values[STEMS[0]] == pytest.approx(0.1 + 0.05 + 0.005)
    assert results.by_seed("vace", "VUS-PR") == pytest.approx({0: 0.3, 1: 0.31})
    assert results.seeds("vace") == 2
    assert results.seeds("usad") == 0
    assert not [note for note in results.notes() if "seeds" in note]


def test_seed_means_are_over_the_series_that_every_seed_has(tmp_path):
    rows = [r for r in full_rows(["vace"]) if not (r.seed == 1 and r.series == STEMS[4])]
    results = Results.load(make_run(tmp_path, rows))
    assert results.by_seed("vace", "VUS-PR") == pytest.approx({0: 0.25, 1: 0.26})
    assert results.seeds("vace") == "1 to 2"
    (note,) = [note for note in results.notes() if "seeds" in note]
    assert note.startswith("vace: 2 seeds on 4 of 5 series, fewer on the others")


def test_one_protocol_and_split_at_a_time(run):
    assert Results.load(run).protocol == "tsb-ad"
    assert {row.protocol for row in Results.load(run, "test-only").rows} == {"test-only"}
    assert list(Results.load(run, split="tuning").families) == [STEMS[3]]
    assert STEMS[3] not in Results.load(run, split="eval").families


def test_what_is_not_there(run, tmp_path):
    with pytest.raises(ConfigError, match="tsb-ad, test-only"):
        Results.load(run, "mine")
    only = make_run(tmp_path / "only", full_rows(["pca"], protocols=("test-only",)))
    assert Results.load(only).protocol == "test-only"
    with pytest.raises(InputError, match="only of test-only"):
        Results.load(only, "tsb-ad")
    with pytest.raises(InputError, match="no row of the split"):
        Results.load(
            make_run(tmp_path / "eval", full_rows(["pca"], stems=STEMS[:2])), None, "tuning"
        )


def test_notes_say_what_a_mean_hides(tmp_path):
    rows = [
        made_row("pca", STEMS[0]),
        made_row("pca", STEMS[1], status="failed", error="ValueError: no", measures={}),
        made_row("pca", STEMS[2], status="no-anomaly", measures={}),
        made_row("vace", STEMS[0]),
        made_row("vace", STEMS[1]),
    ]
    results = Results.load(make_run(tmp_path, rows))
    notes = " / ".join(results.notes())
    assert "pca: 1 rows failed, first 002_MSL" in notes
    assert "ValueError: no" in notes
    assert "no anomaly in the evaluated rows: 003_MSL" in notes
    assert "different numbers of series: pca 1, vace 2" in notes
    assert list(results.common().families) == [STEMS[0]]
    assert not results.common().notes()


def test_common_leaves_out_the_methods_with_fewest_series_until_enough_are_shared():
    rows = [
        *full_rows(["vace", "pca"], seeds=1, protocols=("tsb-ad",)),
        *full_rows(["usad"], seeds=1, stems=STEMS[:3], protocols=("tsb-ad",)),
        *full_rows(["catch"], seeds=1, stems=STEMS[3:], protocols=("tsb-ad",)),
    ]
    common = Results("tsb-ad", rows).common(least=3)
    assert common.methods == ("vace", "pca", "usad")
    assert set(common.families) == set(STEMS[:3])
    assert "left out, with too few series: catch" in common.notes()
    assert Results("tsb-ad", rows).common(least=4).methods == ("vace", "pca")


def test_matched_keeps_the_series_and_seeds_that_all_have():
    rows = [
        *full_rows(["vace"], seeds=3, protocols=("tsb-ad",)),
        *full_rows(["pca"], seeds=1, stems=STEMS[:2], protocols=("tsb-ad",)),
        *full_rows(["iforest"], seeds=1, stems=STEMS[4:], protocols=("tsb-ad",)),
    ]
    matched = Results("tsb-ad", rows).matched(["vace", "pca", "usad"])
    assert matched.methods == ("vace", "pca")  # usad has not run, iforest is not asked for
    assert {(row.series, row.seed) for row in matched.good} == {(stem, 0) for stem in STEMS[:2]}
