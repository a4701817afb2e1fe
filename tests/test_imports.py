"""What may not be imported where, checked in fresh interpreters; layers: `lint-imports`."""

import importlib
import json
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from vace_ad.alarms.suspects import Blame

PACKAGE = Path(__file__).parents[1] / "src" / "vace_ad"
SCORING = [
    "vace_ad.tensor_file",
    "vace_ad.engine.openvino",
    "vace_ad.engine.numpy",
    "vace_ad.model",
    "vace_ad.stream",
    "vace_ad.detector",
    *(
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for name in ("signals", "alarms", "metrics", "frames", "report", "app")
        for path in sorted((PACKAGE / name).rglob("*.py"))
        if path.stem != "__init__"
    ),
]


def modules_after(code):
    listing = "import sys; print('\\n'.join(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}; {listing}"], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def test_scoring_never_imports_torch():
    assert "torch" not in modules_after(f"import {', '.join(SCORING)}")


def test_the_package_imports_nothing_heavy():
    heavy = {"torch", "sklearn", "scipy", "openvino", "polars", "numpy", "pandas", "rich"}
    assert not heavy & modules_after("import vace_ad")


def test_the_command_starts_without_the_heavy_ones():
    heavy = {"torch", "sklearn", "openvino", "polars", "matplotlib", "ray"}
    assert not heavy & modules_after("import vace_ad.cli.main")


def test_a_whole_fit_and_score_without_torch():
    code = (
        "import numpy as np; from vace_ad import VACE; x = np.random.default_rng(0)"
        ".normal(size=(400, 2)); VACE(encoders=1).fit(x).score(x)"
    )
    assert "torch" not in modules_after(code)


def test_a_documented_module_that_moved_still_imports_with_a_warning():
    sys.modules.pop("vace_ad.alarms.blame", None)
    with pytest.warns(DeprecationWarning, match=r"is now vace_ad\.alarms\.suspects"):
        moved = importlib.import_module("vace_ad.alarms.blame")
    assert moved.Blame is Blame


# Every import that happens, also within functions and by name, as (who, whom).
WATCHED = """
import builtins, importlib, json, sys
seen, plain, named = set(), builtins.__import__, importlib.import_module

def note(who, whom):
    if who.startswith("vace_ad.") and whom.startswith("vace_ad."):
        seen.add((who.split(".")[1], whom.split(".")[1]))

def watched(name, given=None, local=None, fromlist=(), level=0):
    who = (given or {}).get("__name__") or ""
    for whom in [name, *(f"{name}.{each}" for each in fromlist or ())]:
        note(who, whom)
    return plain(name, given, local, fromlist, level)

def by_name(name, package=None):
    note(sys._getframe(1).f_globals["__name__"], name)
    return named(name, package)

builtins.__import__, importlib.import_module = watched, by_name
"""
WORK = """
import tempfile, numpy as np, polars as pl
from vace_ad import VACE, load
from vace_ad.cli.main import app
from typer.testing import CliRunner
x = pl.DataFrame(np.random.default_rng(0).normal(size=(500, 2)), schema=["a", "b"])
folder = tempfile.mkdtemp()
x.write_csv(f"{folder}/t.csv")
detector = VACE(encoders=1, patch_length=16).fit(x)
found = detector.detect(x)
repr(detector), detector._repr_html_(), repr(found), found._repr_html_(), found.to_frame()
found.report(f"{folder}/r.html")
detector.save(f"{folder}/m.vace")
load(f"{folder}/m.vace").stream().add(x)
for command in (["detect", f"{folder}/t.csv", "--out", f"{folder}/o", "--patch-length", "16"],
                ["score", f"{folder}/t.csv", "--model", f"{folder}/m.vace"],
                ["update", f"{folder}/m.vace", f"{folder}/t.csv"]):
    assert CliRunner().invoke(app, command).exit_code == 0, command
print(json.dumps(sorted(seen)))
"""


def test_no_part_imports_one_that_imports_it():
    run = subprocess.run(
        [sys.executable, "-c", WATCHED + WORK], capture_output=True, text=True, check=True
    )
    graph: dict[str, set[str]] = {}
    for who, whom in json.loads(run.stdout.splitlines()[-1]):
        if who != whom and not whom.startswith("_"):
            graph.setdefault(who, set()).add(whom)
    assert {"cli", "app", "detector", "views", "alarms"} <= set(graph)
    order = list(TopologicalSorter(graph).static_order())  # a cycle is an error that names it
    assert order.index("alarms") < order.index("views") < order.index("detector")
