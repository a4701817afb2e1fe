import csv
import io

import pytest
from typer.testing import CliRunner

from made_runs import full_rows, make_run
from toys import make_folder
from vace_ad.errors import ConfigError, InputError
from vace_study.command import bench_app
from vace_study.store import read_rows


def call(*arguments):
    result = CliRunner().invoke(bench_app, [str(each) for each in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run", full_rows(["vace", "pca"]))


def test_from_a_folder_to_a_table(tmp_path):
    data, out = make_folder(tmp_path / "data"), tmp_path / "run"
    command = ["run", "--data", data, "--methods", "pca,toys:Distance", "--seeds", 2]
    said = call(*command, "--protocol", "tsb-ad,test-only", "--family", "MSL", "--out", out)
    assert "12 rows with measures, 0 failed, 0 without anomalies" in said.stderr
    assert len(read_rows(out)) == 12
    again = call(*command, "--protocol", "tsb-ad,test-only", "--family", "MSL", "--out", out)
    assert "0 tasks to do, 6 done before" in again.stderr
    table = call("table", "category", out, "--format", "csv")
    rows = list(csv.reader(io.StringIO(table.stdout)))
    assert rows[:2] == [["method", "MSL", "Overall"], ["n", "2", "2"]]
    assert "# VUS-PR by category, protocol tsb-ad" in table.stderr


def test_time_that_is_up_leaves_the_rest_for_later(tmp_path):
    data = make_folder(tmp_path / "data")
    arguments = ["--data", data, "--methods", "pca", "--stop-after", 0, "--out", tmp_path / "run"]
    assert "4 are left" in call("run", *arguments).stderr


@pytest.mark.parametrize("format", ["table", "md", "csv", "tex"])
def test_every_format_to_a_file(run, tmp_path, format):
    call("table", "main", run, "--format", format, "--out", tmp_path / "new" / "t", "--common")
    assert "VUS-PR" in (tmp_path / "new" / "t").read_text()


def test_a_terminal_and_a_page_get_few_columns_unless_more_are_asked_for(run):
    def head(*options):
        lines = call("table", "main", run, *options).stdout.splitlines()
        return next(line for line in lines if "VUS-PR" in line and "bold" not in line)

    assert "seconds" not in head()
    assert "seconds" not in head("--format", "tex")
    assert "seconds" in head("--format", "md")
    assert "seconds" in head("--columns", "all")
    assert head("--columns", "VUS-PR,seconds").split() == ["method", "VUS-PR", "seconds"]


def test_figures(run, tmp_path):
    pytest.importorskip("matplotlib")
    said = call("figure", "scatter", run, "--methods", "vace,pca", "--out", tmp_path / "figures")
    assert [path.name for path in sorted((tmp_path / "figures").iterdir())] == [
        "scatter-tsb-ad.png",
        "scatter-tsb-ad.svg",
    ]
    assert len(said.stdout.splitlines()) == 2
    with pytest.raises(ConfigError, match="--data DIR and --series NAME"):
        call("figure", "series", run, "--out", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("table", "nain", "RUN"), ConfigError, "there are main, ablation"),
        (("figure", "plot", "RUN", "--out", "x"), ConfigError, "there are scatter"),
        (("fetch", "tsb-ad-u", "x"), ConfigError, "tsb-ad-m"),
        (("table", "main", "nowhere"), InputError, "holds no run"),
        (("run", "--data", "nowhere", "--out", "x"), InputError, "not a folder"),
    ],
)
def test_what_cannot_be_done_is_said(run, arguments, error, message):
    with pytest.raises(error, match=message):
        call(*(run if each == "RUN" else each for each in arguments))


def test_methods_are_listed():
    listed = call("methods").stdout
    assert "vace-released" in listed
    assert "ablation" in listed
