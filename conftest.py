import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# Ray's workers would give way to everything else on a busy machine, and tests would wait for them.
os.environ.setdefault("RAY_worker_niceness", "0")

# The machine may be busy: an example that is slow once is no failure.
settings.register_profile("default", deadline=None, max_examples=30)
settings.load_profile("default")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def data_folder():
    """The real series, or a skip that says why."""
    default = Path(__file__).parents[1] / "shared" / "data"
    folder = Path(os.environ.get("VACE_DATA", default))
    if not (folder / "TSB-AD-M").is_dir():
        pytest.skip(f"no real series: neither VACE_DATA nor {default.name} holds TSB-AD-M")
    return folder / "TSB-AD-M"
