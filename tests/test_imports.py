"""What may not be imported where, checked in fresh interpreters; layers: `lint-imports`."""

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "vace_ad"
SCORING = [
    "vace_ad.files",
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
