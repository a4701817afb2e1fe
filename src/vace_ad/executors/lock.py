"""A file lock for one writer; the operating system releases it when the holder dies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from vace_ad.errors import VaceError


class BusyError(VaceError, RuntimeError):
    """Another process holds the lock."""


class FileLock:
    """A lock for the length of a `with` block; refuses at once where another process has it."""

    def __init__(self, path: Path, words: str = "") -> None:
        self.path = path
        self._words = words or (
            f"another process is writing to {path.parent}; wait until it ends, or choose another "
            "folder"
        )
        self._handle: int | None = None

    def __enter__(self) -> FileLock:
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)  # not inherited by children
        try:
            _take(handle)
        except OSError as error:
            os.close(handle)
            raise BusyError(self._words) from error
        self._handle = handle
        return self

    def __exit__(self, *error: object) -> None:
        assert self._handle is not None
        os.close(self._handle)  # closing drops the lock; the file stays, so that no two can exist
        self._handle = None


if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
