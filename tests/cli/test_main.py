"""Commands that other packages add, and what is said where the study is not installed."""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib.metadata import EntryPoints
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vace_ad.cli import main as module
from vace_ad.errors import MissingExtraError

SHOUT = """
import typer

app = typer.Typer(help="Say it loudly.", add_completion=False)


@app.command("word")
def word(text: str) -> None:
    print(text.upper())


@app.callback()
def shout() -> None:
    '''Say it loudly.'''
"""


@pytest.fixture
def shouting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that adds `vace shout`."""
    (tmp_path / "shouting.py").write_text(SHOUT)
    record = tmp_path / "shouting-1.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1\n")
    (record / "entry_points.txt").write_text("[vace_ad.commands]\nshout = shouting:app\n")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("shouting")
def test_a_package_adds_a_command() -> None:
    said = CliRunner().invoke(module.app, ["shout", "word", "hello"])
    assert (said.exit_code, said.output) == (0, "HELLO\n")
    listed = CliRunner().invoke(module.app, ["--help"]).output
    assert "shout" in listed
    assert "Say it loudly." in listed


def test_an_unknown_command_is_refused() -> None:
    said = CliRunner().invoke(module.app, ["shout"])
    assert said.exit_code == 2
    assert "No such command" in said.output


def test_without_the_study_bench_names_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "entry_points", lambda **_: EntryPoints())
    said = CliRunner().invoke(module.app, ["bench", "run", "--seeds", "3"])
    assert isinstance(said.exception, MissingExtraError)
    assert "pip install vace-ad-study" in str(said.exception)
    assert "bench" not in CliRunner().invoke(module.app, ["--help"]).output


def test_its_exit_status_is_2() -> None:
    code = (
        "import importlib.metadata as m; m.entry_points = lambda **_: m.EntryPoints(); "
        "import sys; sys.argv = ['vace', 'bench', 'methods']; "
        "from vace_ad.cli.main import main; main()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "pip install vace-ad-study, or in a clone of the repository pip install ./study" in (
        " ".join(run.stderr.split())
    )
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("name", ["vace_ad.baselines", "vace_ad.bench", "vace_ad.bench.catalog"])
def test_old_names_say_where_they_went(name: str) -> None:
    with pytest.raises(ImportError, match=r"vace_study.*pip install vace-ad-study"):
        importlib.import_module(name)
