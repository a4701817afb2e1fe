"""The documentation's code runs as it stands, its commands exist, and its site builds."""

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from vace_ad import VACE
from vace_ad.cli.main import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
SLOW = ("demo", "watch", "bench")  # their options are checked, they are not run
SHELL = ("|", "||", "&&", ";", ">", "<")
ROWS, TRAIN = 3000, 1500


def name_of(page):
    return str(page.relative_to(DOCS))


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), flags=re.S | re.M)


def commands(page):
    """The lines of bash blocks that call `vace`, from that word on."""
    for block in blocks(page, "bash"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if "vace" in words:
                yield line, words


def with_code(language):
    return [page for page in PAGES if blocks(page, language)]


def series(seed):
    """Three channels that hang together and never quite repeat, with a fault at row 1900."""
    rng = np.random.default_rng(seed)
    hidden = np.cumsum(rng.normal(size=ROWS))
    hidden -= np.convolve(hidden, np.ones(50) / 50, "same")
    values = hidden[:, None] * [1, 0.5, -0.7] + 0.3 * rng.normal(size=(ROWS, 3)) + [10, 20, 30]
    values[1900:1940, 1] += 15
    start = np.datetime64("2026-02-28", "ms")
    time = start + np.arange(ROWS) * np.timedelta64(60_000, "ms")
    return pl.DataFrame(
        {"time": time, **dict(zip(("flow", "speed", "power"), values.T, strict=True))}
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The files that pages speak of."""
    folder = tmp_path_factory.mktemp("files")
    plant = series(0)
    plant.write_csv(folder / "plant.csv")
    plant.write_parquet(folder / "plant.parquet")
    plant[:TRAIN].write_parquet(folder / "normal.parquet")
    plant[TRAIN:].write_csv(folder / "new.csv")
    (folder / "faults.csv").write_text("start,end,code\n2026-03-01T07:40,2026-03-01T08:20,F1\n")
    (folder / "windows.csv").write_text("2026-03-01T20:00,2026-03-01T22:00\n")
    asset = folder / "asset"
    (asset / "training-data" / "pump").mkdir(parents=True)
    plant.write_csv(asset / "training-data" / "pump" / "pump.csv")
    (asset / "label-data").mkdir()
    (asset / "label-data" / "labels.csv").write_text("2026-03-01T07:40,2026-03-01T08:20\n")
    machines = [series(seed).with_columns(machine=pl.lit(f"m{seed}")) for seed in (1, 2)]
    pl.concat(machines).write_csv(folder / "fleet.csv")
    times = plant["time"].dt.epoch("s").to_list()
    answers = [
        {
            "metric": {"__name__": name},
            "values": [[t, str(v)] for t, v in zip(times, plant[name], strict=True)],
        }
        for name in ("flow", "speed", "power")
    ]
    frame = {"status": "success", "data": {"resultType": "matrix", "result": answers}}
    (folder / "metrics.json").write_text(json.dumps(frame))
    VACE(random_state=0).fit(plant[:TRAIN]).save(folder / "plant.vace")
    return folder


@pytest.fixture
def place(files, tmp_path, monkeypatch):
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", with_code("python"), ids=name_of)
def test_python_runs(page, place):
    names = {}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), names)


@pytest.mark.parametrize("page", with_code("bash"), ids=name_of)
def test_commands_run(page, place):
    """Commands run in order, so that one may use what another wrote."""
    found = list(commands(page))
    assert found, "a bash block without a command of ours"
    for line, words in found:
        arguments = words[words.index("vace") + 1 :]
        if arguments[0] in SLOW or any(word in SHELL for word in words):
            check_options(arguments, line)
            continue
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"


def check_options(arguments, line):
    """Refuse a command or an option that does not exist."""
    arguments = arguments[: next((i for i, w in enumerate(arguments) if w in SHELL), None)]
    command, words = typer.main.get_command(app), list(arguments)
    while hasattr(command, "get_command"):
        inner = command.get_command(typer.Context(command), words.pop(0))
        assert inner is not None, line
        command = inner
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    for word in words:
        assert not word.startswith("--") or word.split("=")[0] in {*known, "--help"}, line


def test_the_watch_configurations_are_good(monkeypatch):
    import tomllib

    from vace_ad.errors import MissingExtraError
    from vace_ad.live.config import make_config
    from vace_ad.live.service import plan
    from vace_ad.live.sources.prometheus import PrometheusSource

    monkeypatch.setattr(PrometheusSource, "check", lambda self: [])  # no server is here
    found = [tomllib.loads(text) for page in PAGES for text in blocks(page, "toml")]
    watches = [data for data in found if "source" in data]
    assert watches
    monkeypatch.setenv("OPCUA_PASSWORD", "not a real one")
    for data in watches:
        config = make_config(data)
        try:
            lines = plan(config)
        except MissingExtraError:  # of one source; `make test` installs them
            continue
        assert any(line.startswith("trains") for line in lines)


@pytest.fixture
def made(monkeypatch):
    """The pages that are made from the code, by name."""
    monkeypatch.syspath_prepend(DOCS / "scripts")
    from pages import PAGES as MAKERS

    return {name: make() for name, make in MAKERS.items()}


def test_made_pages_name_every_setting_and_option(made):
    from vace_ad.config import Reproduction, VACEConfig

    settings = made["reference/settings.md"]
    for kind in (VACEConfig, Reproduction):
        for name in kind.__dataclass_fields__.keys() - {"reproduction"}:
            assert f"| `{name}` |" in settings
    assert "the period of the training rows where they have one, otherwise 96" in settings
    for words in ("## vace detect", "## vace bench run", "--budget", "--fail-on-events"):
        assert words in made["reference/cli.md"]
    assert (
        "| `--seed` | Random seed of the plant, its faults and the detector. | `0` |"
        in (made["reference/cli.md"])
    )
    assert '## [source] kind = "prometheus"' in made["reference/watch.md"]
    assert "TooShortError" in made["reference/errors.md"]


def test_made_code_runs(made, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", made["reference/errors.md"], flags=re.S)
    exec(code, {})
    assert "got 20 training rows" in capsys.readouterr().out


def test_the_import_graph_is_the_one_in_contributing(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "scripts")
    from imports import drawing, graph

    assert drawing(graph()) in (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_the_site_builds_strictly_and_fetches_nothing(tmp_path):
    pytest.importorskip("mkdocs", reason="pip install 'vace-ad[docs]'")
    pytest.importorskip("latex2mathml", reason="pip install 'vace-ad[docs]'")
    import subprocess

    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    fetched = re.compile(r'<(?:script|img|iframe)[^>]+src="https?:|<link[^>]+href="https?:[^>]*css')
    for page in tmp_path.rglob("*.html"):
        text = page.read_text("utf-8")
        assert not fetched.search(text), page
        assert "arithmatex" not in text, page
    assert "<math" in (tmp_path / "how" / "method" / "index.html").read_text("utf-8")
