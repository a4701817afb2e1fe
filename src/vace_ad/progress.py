"""How long work says where it stands: a callable that takes a stage's name, done and total."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """Say nothing."""
