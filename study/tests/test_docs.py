"""The detector shown in docs/bench.md does what the page says."""

import re
from pathlib import Path

import numpy as np

from vace_study.baselines.registry import _as_method

PAGE = Path(__file__).parents[2] / "docs" / "bench.md"


def test_the_example_detector_keeps_the_contract(rng):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    names: dict[str, type] = {"__name__": "example"}
    exec(code, names)
    method = _as_method("example:FarFromMean", names["FarFromMean"])
    table = rng.normal(size=(50, 3))
    table[30] += 20
    detector = method.make(0)
    detector.fit(table[:20])
    assert method.seeded
    assert np.argmax(detector.score(table)) == 30
