import sys

import numpy as np
import pytest

from vace_study.memory import peak_mb, reset_peak


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can reset the peak")
def test_the_peak_is_that_since_the_reset():
    held = np.ones(40_000_000)  # 320 MB
    high = peak_mb()
    del held
    reset_peak()
    low = peak_mb()
    assert high > 320
    assert low < high - 250
