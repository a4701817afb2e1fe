"""Scores against those kept in golden.json: nothing changes them by accident."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import golden

KEPT = json.loads(golden.FILE.read_text())


def test_every_case_is_kept():
    assert set(KEPT) == {f"{case} {preset}" for case, preset in golden.KEPT}
    many = {"real": {"surge"}, "synthetic": set()}  # surges need many channels
    for name in golden.CASES:
        assert set(KEPT[f"{name} shape"]) == many[name] | {
            "position",
            "direction",
            "level",
            "scale",
            "spike",
            "relation",
            "forecast",
            "distance",
        }


@pytest.mark.parametrize(("case", "preset"), golden.KEPT)
def test_scores_are_those_that_were_kept(case, preset):
    found = golden.computed(case, preset)
    if found is None:
        pytest.skip("no real series: set VACE_DATA to the folder that holds TSB-AD-M")
    wanted = KEPT[f"{case} {preset}"]
    assert set(found) <= set(wanted)
    for name, line in wanted.items():
        # A preset without amplitude has no such lines; what was kept of them is zeros.
        ours = found.get(name, np.zeros(len(line)))
        within = golden.tolerance(preset, name)
        np.testing.assert_allclose(ours, line, rtol=within, atol=within, err_msg=name)


@pytest.mark.parametrize("case", golden.CASES)
def test_scores_do_not_depend_on_the_processor(case):
    """The matrix products of an old processor, where this one can do them, round otherwise."""
    ours = golden.computed(case, "shape")
    if ours is None:
        pytest.skip("no real series: set VACE_DATA to the folder that holds TSB-AD-M")
    ask = f"import golden, json; print(json.dumps(golden.computed({case!r}, 'shape')))"
    env = {**os.environ, "OPENBLAS_CORETYPE": "Nehalem", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", ask], env=env, stdout=subprocess.PIPE, check=True)
    for name, line in json.loads(done.stdout).items():
        within = golden.tolerance("shape", name)
        np.testing.assert_allclose(ours[name], line, rtol=within, atol=within, err_msg=name)
