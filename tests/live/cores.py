"""The detectors that live operation is tested with: a tiny one and the real one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from live import real
from live.fakes import FakeCore
from live.feeds import model


class Kind(NamedTuple):
    """How to make a core, and to write its model."""

    make: Callable[[], Any]
    save: Callable[[Path], None]


CORES = {
    "fake": Kind(FakeCore, lambda path: model().save(path)),
    "vace": Kind(real.core, real.save_model),
}
