"""A file lock for one writer; the operating system releases it when the holder dies."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vace_ad.errors import VaceError


class BusyError(VaceError, RuntimeError):
    """Another process holds the lock."""


@contextmanager
def file_lock(path: Path, words: str) -> Iterator[None]:
    """Hold a lock for the length of a `with` block.

    Raises BusyError with these `words` at once where another process has it.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)  # not inherited by children
    try:
        try:
            _take(handle)
        except OSError as error:
            raise BusyError(words) from error
        yield
    finally:
        os.close(handle)  # this releases the lock; the file stays, so that no two can exist


if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
