"""The rooms stay separate: what may not be imported where, checked in fresh interpreters."""

import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "vace_ad"
SCORING = [
    "vace_ad.files",
    "vace_ad.engine.openvino",
    "vace_ad.engine.numpy",
    *(
        f"vace_ad.method.{path.stem}"
        for path in sorted((PACKAGE / "method").glob("*.py"))
        if path.stem not in ("__init__",)
    ),
    *(
        f"vace_ad.{room}.{path.stem}"
        for room in ("alarms", "metrics", "frames", "report")
        for path in sorted((PACKAGE / room).glob("*.py"))
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


def test_methods_are_listed_without_torch():
    code = "from vace_ad.baselines import names, resolve; [resolve(n).config_hash for n in names()]"
    assert "torch" not in modules_after(code)


def test_a_whole_fit_and_score_without_torch():
    code = (
        "import numpy as np; from vace_ad import VACE; x = np.random.default_rng(0)"
        ".normal(size=(400, 2)); VACE(encoders=1).fit(x).score(x)"
    )
    assert "torch" not in modules_after(code)


ORDER = ["frames", "method", "alarms", "report"]  # a room imports only from rooms to its left


@pytest.mark.parametrize("room", ORDER)
def test_rooms_import_only_from_their_left(room):
    later = [*ORDER[ORDER.index(room) + 1 :], "cli", "bench", "baselines", "compat", "detector"]
    for path in (PACKAGE / room).glob("*.py"):
        text = path.read_text()
        for name in later:
            found = f"from vace_ad.{name}" in text or f"import vace_ad.{name}" in text
            guarded = "TYPE_CHECKING" in text  # names for annotations only
            assert not found or guarded, f"{path.name} imports from {name}"
