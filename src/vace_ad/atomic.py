"""Atomic writes: files and folders are written to a temporary name and renamed.

A draft is locked while its process lives; the system drops the lock with the process. So what has
the name of a draft and no lock was left by a process that was killed, and the next one to write to
the same folder removes it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

Kind = Literal["new", "old"]  # on its way in, or moved out of the way
_NAME = re.compile(r"\.(?P<place>.+)\.[0-9a-f]{16}\.vace-(?P<kind>new|old)")
_HERE = -100  # AT_FDCWD: paths are relative to the working folder
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
_LONGEST = 40  # characters of a file's name that its draft repeats: names have a limit


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A place to write to, which becomes `path` at the end and vanishes on any failure.

    A link is followed, so that what it points to is replaced and not the link.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        yield path  # a pipe or a device takes what comes
        return
    clean_up(path.parent)
    with _created(path.with_name(path.name[:_LONGEST]), folder=False) as draft:
        yield draft
        os.replace(draft, path)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file in UTF-8, whole or not at all; half a surrogate pair becomes a question mark."""
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8", errors="replace")


@contextmanager
def whole_folder(place: Path) -> Iterator[Path]:
    """A folder to write into, which becomes `place` at the end and vanishes on any failure.

    A link is followed. What was there before is exchanged in one step where the system can do
    it, so that a process killed at any moment leaves the earlier results or the new ones.
    """
    place = Path(os.path.realpath(place))
    with new_folder(place) as draft:
        yield draft
        if not place.exists():
            draft.rename(place)
        elif not _exchange(draft, place):  # else the draft now holds what was there before
            with moved_away(place):
                draft.rename(place)


@contextmanager
def new_folder(place: Path) -> Iterator[Path]:
    """A folder beside a place, to write into; what has its name at the end is removed."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with _created(place, folder=True) as draft:
        yield draft


@contextmanager
def moved_away(place: Path) -> Iterator[Path]:
    """Move a folder out of the way; back if something fails, else it is removed."""
    old = beside(place, "old")
    handle = _lock(place, wait=False)  # nobody puts back what is on its way out
    try:
        place.rename(old)
        try:
            yield old
        except OSError:
            old.rename(place)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        _close(handle)


def clean_up(folder: Path) -> None:
    """Remove what dead processes left in a folder, and put back what they had moved away."""
    names: list[str] = []
    with suppress(FileNotFoundError, PermissionError):  # one may write where one may not list
        names = sorted(os.listdir(folder))
    for name in names:
        match = _NAME.fullmatch(name) if name.startswith(".") else None
        if match is None:
            continue
        found, place = folder / name, folder / match["place"]
        handle = _lock(found, wait=False)
        if handle is None:
            continue  # somebody writes to it
        try:
            if match["kind"] == "old" and not place.exists():
                found.rename(place)
            else:
                _remove(found)
        finally:
            _close(handle)


def beside(place: Path, kind: Kind) -> Path:
    """A new name for a draft of a place."""
    return place.with_name(f".{place.name}.{secrets.token_hex(8)}.vace-{kind}")


@contextmanager
def _created(place: Path, *, folder: bool) -> Iterator[Path]:
    while True:
        draft = beside(place, "new")
        if folder:
            draft.mkdir()
        else:
            draft.touch(exist_ok=False)
        handle = _lock(draft, wait=True)
        if draft.exists() if handle is None else _is_at(handle, draft):
            break
        _close(handle)  # taken for a left-over before it was locked
    try:
        yield draft
    finally:
        _remove(draft)  # nothing there once it was moved in
        _close(handle)


def _remove(draft: Path) -> None:
    if draft.is_dir() and not draft.is_symlink():
        shutil.rmtree(draft, ignore_errors=True)
    else:
        draft.unlink(missing_ok=True)


def _is_at(handle: int, path: Path) -> bool:
    """Whether what was opened still has its name."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _lock(path: Path, *, wait: bool) -> int | None:
    """A lock on a file or folder; None where another has it or where locks are unknown."""
    if sys.platform == "win32":
        return None
    import fcntl

    handle = None
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return handle
    _close(handle)
    return None


def _close(handle: int | None) -> None:
    if handle is not None:
        os.close(handle)


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
