"""A folder that appears whole: written beside its place and exchanged with it in one step."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_HERE = -100  # AT_FDCWD: paths are relative to the working folder
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS


@contextmanager
def whole_folder(place: Path) -> Iterator[Path]:
    """A folder to write into, which becomes `place` at the end and vanishes on any failure.

    A link is followed. What was there before is exchanged in one step where the system can do
    it, so that a process killed at any moment leaves the earlier results or the new ones.
    """
    place = Path(os.path.realpath(place))
    partial = _beside(place, "partial")
    try:
        partial.mkdir(parents=True)
        with _held(partial):
            yield partial
            _move_in(partial, place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # by now it may hold what was there before


def clean_up(place: Path) -> None:
    """Remove what dead runs left beside a place, and put back what they had moved away."""
    place = Path(os.path.realpath(place))
    if not place.parent.is_dir():
        return
    pattern = re.compile(rf"\.{re.escape(place.name)}\.\d+\.(partial|old)")
    for found in sorted(place.parent.iterdir()):
        match = pattern.fullmatch(found.name)
        if match is None or not found.is_dir() or _is_alive(found):
            continue
        if match[1] == "old" and not place.exists():
            found.rename(place)
        else:
            shutil.rmtree(found, ignore_errors=True)


def _beside(place: Path, kind: str) -> Path:
    return place.with_name(f".{place.name}.{os.getpid()}.{kind}")


def _move_in(partial: Path, place: Path) -> None:
    if not place.exists():
        partial.rename(place)
    elif not _exchange(partial, place):
        old = _beside(place, "old")
        place.rename(old)
        try:
            partial.rename(place)
        except OSError:
            old.rename(place)  # the new folder did not make it: the earlier one stays
            raise
        shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; False where the system or the disk cannot."""
    libc = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    names = os.fsencode(one), os.fsencode(other)
    if sys.platform.startswith("linux") and hasattr(libc, "renameat2"):
        failed = libc.renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE)  # type: ignore[union-attr]
    elif sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        failed = libc.renamex_np(*names, _EXCHANGE)  # type: ignore[union-attr]
    else:
        return False
    if failed and ctypes.get_errno() not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(other))
    return not failed


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder while it is written; the system drops it with the process."""
    handle = _take(folder)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _is_alive(folder: Path) -> bool:
    """Whether a process still writes to a folder; where locks are unknown, yes."""
    handle = _take(folder)
    if handle is None:
        return True
    os.close(handle)
    return False


def _take(folder: Path) -> int | None:
    if sys.platform == "win32":
        return None
    import fcntl

    handle = None
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return handle
    if handle is not None:
        os.close(handle)
    return None
