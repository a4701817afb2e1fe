"""Standard input and growing files: CSV, JSON lines, Influx line protocol; rotation, truncation."""

from __future__ import annotations

import hashlib
import os
import select
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from vace_ad.live.records import CsvRecords, Names, Record, from_influx, from_json
from vace_ad.live.settings import FilePath, Settings, Text, key
from vace_ad.live.sources import Batch, NameSettings, Source, parse_all

_PIECE = 1 << 18  # bytes at a time
_CHECKED = 64  # bytes before the position that must still be the same
_LONGEST_LINE = 1 << 22
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".lz4")  # what a rotation may make of an old file


class _Lines:
    """Whole lines of a growing file, and the position after them."""

    def __init__(self, path: Path, follow: bool) -> None:
        self._path, self._follow = path, follow
        self._file: BinaryIO | None = None
        self._rest = b""
        self.offset = 0  # of the first byte that no line was made of
        self.problem: str | None = None
        self.notes: list[str] = []  # what happened to the file, for the log
        self.fresh = True  # whether the next line is the first of its file

    def open(self, position: Mapping[str, Any] | None) -> None:
        found = None if position is None else self._find(position)
        if position is None or found is None:
            if position is not None:
                self.notes.append(f"{self._path}: another file than before; read from its start")
            self._open_new()
            return
        self._file = found
        self.offset, self.fresh = position["offset"], position["offset"] == 0
        found.seek(self.offset)

    def _find(self, position: Mapping[str, Any]) -> BinaryIO | None:
        """The file of a position, also under another name beside it."""
        beside = sorted(self._path.parent.glob(f"{self._path.name}*"))
        for path in [self._path, *(p for p in beside if p != self._path)]:
            if not path.is_file():
                continue
            try:
                file = path.open("rb")
            except OSError:
                continue
            same = os.fstat(file.fileno()).st_ino == position["inode"]
            if same and _mark(file, position["offset"]) == position["mark"]:
                return file
            file.close()
        return None

    def _open_new(self, path: Path | None = None) -> None:
        self.close()
        path = path or self._path
        if path.exists() and not path.is_file():  # opening a pipe might never end
            self.problem = f'{path} is not a file; a pipe is read with path = "-" and < PIPE'
            return
        try:
            self._file = path.open("rb")
        except OSError as error:
            self.problem = f"{path} cannot be read: {error.strerror}"
            return
        self.problem = None
        self.offset, self._rest, self.fresh = 0, b"", True

    def read(self, timeout: float = 0.0) -> tuple[list[bytes], bool]:
        """The lines that are there now, and whether the file is over for good."""
        lines, end = self._read()
        if timeout and not lines and not end:
            time.sleep(min(timeout, 0.1))
        return lines, end

    def _read(self) -> tuple[list[bytes], bool]:
        if self._file is None:
            self._open_new()
        if self._file is None:
            return [], False
        if os.fstat(self._file.fileno()).st_size < self.offset + len(self._rest):
            self.notes.append(f"{self._path}: was cut short; read from its start")
            self._file.seek(0)
            self.offset, self._rest, self.fresh = 0, b"", True
        piece = self._file.read(_PIECE)
        if piece:
            return self._cut(piece), False
        if not self._follow:
            rest, self._rest = self._rest, b""
            self.offset += len(rest)
            return [rest] if rest.strip() else [], True
        if not self._rotated():
            return [], False
        piece = self._file.read(_PIECE)
        if piece:  # written after our last look and before the file was moved away
            return self._cut(piece), False
        self.notes.append(f"{self._path}: rotated; on to the next file")
        rest, following = self._rest, self._following()
        self._open_new(following)
        return ([rest], False) if rest.strip() else self._read()

    def _following(self) -> Path:
        """The file after the current one; it may itself have been rotated meanwhile."""
        assert self._file is not None
        mine = os.fstat(self._file.fileno())
        later = []
        for path in self._path.parent.glob(f"{self._path.name}*"):
            if path.suffix in _COMPRESSED or not path.is_file():
                continue
            found = path.stat()
            if found.st_ino != mine.st_ino and found.st_mtime_ns > mine.st_mtime_ns:
                later.append((path == self._path, found.st_mtime_ns, path))
        return min(later)[2] if later else self._path

    def _cut(self, piece: bytes) -> list[bytes]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            lines.append(self._rest)
            self._rest, skipped = b"", len(lines[-1])
            self.offset += skipped - 1
        self.offset += sum(len(line) + 1 for line in lines)
        return lines

    def _rotated(self) -> bool:
        assert self._file is not None
        try:
            return os.stat(self._path).st_ino != os.fstat(self._file.fileno()).st_ino
        except OSError:
            return False  # moved away, and nothing new yet

    def position(self) -> dict[str, Any] | None:
        if self._file is None:
            return None
        where = self._file.tell()
        mark = _mark(self._file, self.offset)
        self._file.seek(where)
        inode = os.fstat(self._file.fileno()).st_ino
        return {"inode": inode, "offset": self.offset, "mark": mark}

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _mark(file: BinaryIO, offset: int) -> str:
    """A digest of the bytes before an offset, by which a file is known again."""
    start = max(0, offset - _CHECKED)
    file.seek(start)
    return hashlib.sha256(file.read(offset - start)).hexdigest()[:16]


class _StandardInput:
    """Whole lines of standard input; what was read cannot be read again."""

    def __init__(self) -> None:
        self._rest = b""
        self.problem: str | None = None
        self.notes: list[str] = []
        self.fresh = False
        self._count = 0

    def open(self, position: Any) -> None:
        self._count = (position or {}).get("lines", 0)

    def read(self, timeout: float = 0.0) -> tuple[list[bytes], bool]:
        ready, _, _ = select.select([sys.stdin], [], [], timeout)
        if not ready:
            return [], False
        piece = os.read(sys.stdin.fileno(), _PIECE)
        if not piece:
            rest, self._rest = self._rest, b""
            return [rest] if rest.strip() else [], True
        *lines, self._rest = (self._rest + piece).split(b"\n")
        self._rest = self._rest[:_LONGEST_LINE]
        self._count += len(lines)
        return lines, False

    def position(self) -> dict[str, Any]:
        return {"lines": self._count}

    def close(self) -> None:
        pass


class LineSettings(Settings):
    """Keys of all sources of lines."""

    path: FilePath = key(..., 'the file; "-" is standard input', '"plant.csv"')
    follow: bool = key(True, "wait for more at the end of the file")

    def names(self, default: str | None = None) -> Names:
        """Which parts of a line hold what."""
        raise NotImplementedError


L = TypeVar("L", bound=LineSettings)


class FileSettings(NameSettings, LineSettings):
    """Keys of the source."""


class LineSource(Source[L]):
    """Lines of a file or of standard input."""

    def __init__(self, settings: L) -> None:
        super().__init__(settings)
        self._stdin = str(settings.path) == "-"
        self.live = self._stdin or settings.follow
        self.rereadable = not self._stdin
        self._names = settings.names("stdin" if self._stdin else settings.path.stem)
        self._lines: Any = (
            _StandardInput() if self._stdin else _Lines(settings.path, settings.follow)
        )
        self.notes = self._lines.notes

    def open(self, position: Any) -> Any:
        """Continue after a position; the first start returns its own: the file may be renamed."""
        self._lines.open((position or {}).get("file"))
        self.problem = self._lines.problem
        begins = position is None and self._lines.position() is not None
        return self._position() if begins else None

    def read(self, timeout: float) -> Batch | None:
        """The records of the next lines."""
        lines, end = self._lines.read(timeout)
        self.problem = self._lines.problem
        if not lines and not end:
            return None
        records, bad, why = parse_all(lines, lambda line: self._records(line.decode("utf-8")))
        return Batch(records, self._position(), bad, why, end)

    def _records(self, line: str) -> list[Record]:
        raise NotImplementedError

    def _position(self) -> dict[str, Any]:
        return {"file": self._lines.position()}

    def look_back(self, start: int, end: int) -> Source[L]:
        """The whole file as it is now; standard input has no past."""
        if self._stdin:
            return super().look_back(start, end)
        return type(self)(self.settings.model_copy(update={"follow": False}))

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


class CsvSource(LineSource[FileSettings]):
    """Lines of CSV with a header."""

    SETTINGS = FileSettings

    def __init__(self, settings: FileSettings) -> None:
        super().__init__(settings)
        self._csv = CsvRecords(self._names)

    def open(self, position: Any) -> Any:
        """Continue after a position, with the header that was read then."""
        begins = super().open(position)
        if not self._lines.fresh and position:
            self._csv = CsvRecords(self._names, position.get("header"))
        return begins

    def _records(self, line: str) -> list[Record]:
        if self._lines.fresh:  # a new file has its own header
            self._csv, self._lines.fresh = CsvRecords(self._names), False
        record = self._csv.add(line)
        return [] if record is None else [record]

    def _position(self) -> dict[str, Any]:
        return {**super()._position(), "header": self._csv.header}


class JsonLinesSource(LineSource[FileSettings]):
    """One JSON object on each line."""

    SETTINGS = FileSettings

    def _records(self, line: str) -> list[Record]:
        return from_json(line, self._names) if line.strip() else []


class InfluxSettings(LineSettings):
    """Keys of the source."""

    entity: Text = key("host", "the tag that names the entity")
    name: Text | None = key(None, "the entity of points without this tag", '"pump"')
    echo: bool = key(False, "also write each line to standard output, for a processor")

    def names(self, default: str | None = None) -> Names:
        """The same for the parser."""
        return Names(entity=self.entity, fixed=self.name or default)


class InfluxSource(LineSource[InfluxSettings]):
    """One point of Influx line protocol on each line, as Telegraf's execd writes it."""

    SETTINGS = InfluxSettings
    needs_step = True

    def _records(self, line: str) -> list[Record]:
        if self.settings.echo and line.strip():
            sys.stdout.write(f"{line.rstrip()}\n")
            sys.stdout.flush()
        return from_influx(line, self._names, time.time_ns())
