"""A folder that appears whole: written beside its place and exchanged with it in one step."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vace_ad.drafts import moved_away, new_folder

_HERE = -100  # AT_FDCWD: paths are relative to the working folder
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS


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
