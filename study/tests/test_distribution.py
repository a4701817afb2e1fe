"""The second distribution: its version, its command, and that it loads little."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import typer

import vace_ad

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


def test_it_has_the_version_of_the_product_and_asks_for_it():
    assert PROJECT["version"] == vace_ad.__version__
    assert PROJECT["dependencies"] == [f"vace-ad[paper]=={vace_ad.__version__}"]


def test_its_entry_point_is_the_command():
    ((name, place),) = PROJECT["entry-points"]["vace_ad.commands"].items()
    module, _, attribute = place.partition(":")
    assert name == "bench"
    assert isinstance(getattr(import_module(module), attribute), typer.Typer)


def test_methods_are_listed_without_torch():
    code = (
        "import sys; from vace_study.baselines import names, resolve; "
        "[resolve(name).config_hash for name in names()]; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_command_starts_without_the_heavy_ones():
    code = (
        "import sys; import vace_study.command; "
        "assert not {'torch', 'sklearn', 'polars', 'matplotlib', 'ray'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
