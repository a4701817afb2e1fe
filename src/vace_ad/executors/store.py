"""Results in an append-only file of JSON lines, by one writer at a time.

A line counts once its end is on disk. A process killed at any moment leaves at most one line
without an end, which the next writer cuts off; nothing written before can be lost or change. The
lock of the writer is released by the operating system when its holder dies.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from vace_ad.errors import InputError, VaceError

_FILE = "rows.jsonl"
_LOCK = "rows.lock"
_BUSY = "another process is writing to {}; wait until it ends, or choose another folder"


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


class ResultLine(Protocol):
    """A result that is kept as a line."""

    @property
    def key(self) -> Hashable:
        """What this is the result of; a run holds each once."""

    def to_json(self) -> str:
        """One line of JSON, without its end."""


R = TypeVar("R", bound=ResultLine)
FromJson = Callable[[bytes], R]


def read_lines(folder: str | Path, from_json: FromJson[R]) -> list[R] | None:
    """The rows of a run, also while it is being written; None where there is no run.

    A repeated row replaces the earlier one.
    """
    path = Path(folder) / _FILE
    if not path.is_file():
        return None
    whole, _ = _split(path.read_bytes())
    return list(_parse(whole, path, from_json).values())


class LineStore(Generic[R]):
    """The one writer of a run folder."""

    def __init__(self, folder: str | Path, from_json: FromJson[R]) -> None:
        self.folder = Path(folder)
        self.rows: dict[Any, R] = {}
        self._from_json = from_json
        self._opened, self._handle = ExitStack(), -1  # no file is open

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            opened.enter_context(file_lock(self.folder / _LOCK, _BUSY.format(self.folder)))
            path = self.folder / _FILE
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            opened.callback(os.close, self._handle)
            whole, torn = _split(path.read_bytes())
            if torn:
                os.ftruncate(self._handle, len(whole))
            os.fsync(self._handle)
            _sync_folder(self.folder)
            self.rows = _parse(whole, path, self._from_json)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()
        self._handle = -1

    def append(self, rows: Sequence[R], replace: bool = False) -> None:
        """Add rows, all in one write; when this returns they are on disk.

        A row that is there already is refused, unless it is meant to replace the earlier one.
        """
        for row in rows:
            if row.key in self.rows and not replace:
                raise InputError(f"the run holds {row.key} already; a row is written once")
        text = "".join(f"{row.to_json()}\n" for row in rows)
        end = os.fstat(self._handle).st_size
        try:
            _write_all(self._handle, text.encode())
            os.fsync(self._handle)
        except BaseException:
            os.ftruncate(self._handle, end)  # the next row must not follow half a line
            raise
        self.rows.update({row.key: row for row in rows})


def _split(content: bytes) -> tuple[bytes, bytes]:
    """The whole lines, and what follows the last of them."""
    end = content.rfind(b"\n") + 1
    return content[:end], content[end:]


def _parse(content: bytes, path: Path, from_json: FromJson[R]) -> dict[Any, R]:
    rows: dict[Any, R] = {}
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        try:
            row = from_json(line)
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(
                f"{path}, line {number} is not a row of a run ({error}); it was changed by "
                "something else, or written by another version: use another folder"
            ) from error
        rows[row.key] = row
    return rows


def _write_all(handle: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]


def _sync_folder(folder: Path) -> None:
    """Put the file's name on disk too, where folders can be synced."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
