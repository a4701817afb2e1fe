"""One file, pipe or query to a table, whatever its format."""

from __future__ import annotations

import hashlib
import io
import os
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from vace_ad.errors import TableReadError
from vace_ad.frames.read_options import ReadOptions, names_of, parse_size, size_words
from vace_ad.frames.text import read_text
from vace_ad.settings import option

_DATABASES = ("sqlite://", "duckdb://", "postgresql://", "postgres://")
_HEAD_BYTES = 64 * 1024  # from which the format of a file is recognised

# The first bytes decide what a file is, whatever its name says.
_FORMATS = (
    (b"PAR1", "Parquet"),
    (b"ARROW1", "Arrow"),
    (b"\xff\xff\xff\xff", "Arrow stream"),
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "Excel"),
    (b"\xd0\xcf\x11\xe0", "Excel"),
)
_FOREIGN = (
    (b"\x89HDF", "an HDF5 file"),
    (b"FEA1", "a Feather file of the first version"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ", "an xz file"),
    (b"MATLAB", "a MATLAB file"),
)
_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*(\{\s*[\"}]|\[\s*[\[{\]])")
_TYPED = ("Parquet", "Arrow", "Arrow stream")


@dataclass(frozen=True)
class ReadReport:
    """What was recognised while reading a file."""

    source: str
    format: str  # "CSV", "Parquet", "Arrow", "Excel", "JSON", "SQL", …
    rows: int
    columns: int
    sha256: str
    compression: str | None = None  # "gzip", "zstd"
    encoding: str | None = None  # of text only, as the next three
    delimiter: str | None = None
    decimal: str | None = None
    header: bool | None = None
    notes: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)  # of channels whose unit is written

    @classmethod
    def of_table(cls, name: str, frame: pl.DataFrame) -> ReadReport:
        """The report of a table that was in memory already."""
        return cls(name, "table", frame.height, frame.width, "")

    def words(self) -> str:
        """The report in one line, for people."""
        parts = [f"{self.format}, {self.compression}" if self.compression else self.format]
        if self.delimiter is not None:
            signs = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar"}
            parts += [
                str(self.encoding),
                f"delimiter {signs.get(self.delimiter, self.delimiter)}",
                f"decimal {'comma' if self.decimal == ',' else 'point'}",
                "header" if self.header else "no header",
            ]
        return f"{self.rows:,} rows × {self.columns} columns ({', '.join(parts)})"


def is_connection(place: str) -> bool:
    """Whether this is the connection string of a database and not a path."""
    return place.startswith(_DATABASES)


_TEXT = ("delimiter", "decimal", "encoding", "header")
_BOOK = ("sheet", "header_row")
NO_WRITER_SECONDS = 10.0  # that a pipe may stay without a writer
_COLUMN = 100_000  # bytes that a column counts at least


@dataclass(frozen=True)
class MemoryLimit:
    """How large a table may become in memory, so that a small file cannot fill the machine."""

    name: str  # of what is read, for messages
    most: int  # bytes

    def check_cells(self, rows: int, columns: int, *, cell: int = 8) -> None:
        """Refuse a table that would need more memory as numbers, or has too many columns.

        `cell` is what one of them takes. A column counts as 100 kB at least: that is about what it
        costs in time and memory on the way.
        """
        size = max(cell * rows, _COLUMN) * columns
        if size > self.most:
            raise TableReadError(
                f"{self.name} has {rows:,} rows × {columns:,} columns, {size_words(size)} in "
                f"memory; the limit is {size_words(self.most)}: {_larger(size)} lifts it; if it "
                f"has fewer columns than this, {option('delimiter')} says how they are divided"
            )

    def too_large(self) -> TableReadError:
        """The error for something whose end was not reached within the limit."""
        return TableReadError(
            f"{self.name} unpacks to more than {size_words(self.most)}; if that is meant, "
            f"{_larger(4 * self.most)} lifts the limit"
        )

    def empty(self) -> TableReadError:
        """The error for a file without any text."""
        return TableReadError(f"{self.name} is empty; give a table with at least one row of values")

    def read_all(self, file: BinaryIO) -> bytes:
        """Everything of a file or a pipe, within the limit."""
        data = file.read(self.most + 1)
        if len(data) > self.most:
            raise self.too_large()
        return data


def _larger(size: int) -> str:
    """The setting that allows so many bytes."""
    return option("max_size", f"{-(-size // 10**9)}GB")


@dataclass(frozen=True)
class RawFile(MemoryLimit):
    """What is to be read: the path of a file, or the bytes of what can be read only once."""

    data: bytes | Path

    def open(self) -> BinaryIO:
        """The bytes as a file."""
        return io.BytesIO(self.data) if isinstance(self.data, bytes) else self.data.open("rb")

    def read(self, size: int = -1) -> bytes:
        """The first bytes, or all, however many."""
        with self.open() as file:
            return file.read(size)

    def content(self) -> bytes:
        """All bytes, within the limit."""
        with self.open() as file:
            return self.read_all(file)

    def digest(self) -> str:
        """A checksum of all bytes."""
        with self.open() as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def read_table(
    source: str | Path, how: ReadOptions | None = None, **options: Any
) -> tuple[pl.DataFrame, ReadReport]:
    """Read a file, or standard input for "-", as a table, and report what was recognised.

    Format and compression are told from the first bytes; delimiter, decimal sign, encoding and
    header of a text are recognised unless given. Columns of numbers come as Float64, other text
    as String; typed files keep their types. The options are the fields of `ReadOptions`.
    """
    how = ReadOptions(**options) if how is None else how
    most = parse_size(how.max_size)
    if is_connection(str(source)):
        from vace_ad.frames.sql import read_sql, safe_name

        name = safe_name(str(source))
        frame = read_sql(MemoryLimit(name, most), str(source), how.query)
        digest = hashlib.sha256(str(how.query).encode()).hexdigest()
        report = ReadReport(name, "SQL", frame.height, frame.width, digest)
    else:
        file = _open(source, most)
        frame, report = _read_any(file, how)
        file.check_cells(frame.height, frame.width)
    if frame.width == 0 or frame.height == 0:
        raise TableReadError(
            f"{report.source} has no rows; give a table with at least one row of values"
        )
    return frame, report


def _read_any(file: RawFile, how: ReadOptions) -> tuple[pl.DataFrame, ReadReport]:
    """Choose the reader by the first bytes, and import only that one.

    What gzip holds is looked at in the same way.
    """
    digest = file.digest()
    compression, kind = None, _kind(file)
    if kind == "gzip":
        from vace_ad.frames.compression import gunzip

        file, compression = gunzip(file), "gzip"
        if not file.read().strip():
            raise file.empty()
        kind = _kind(file)
    facts: dict[str, Any] = {}
    if kind in _TYPED:
        from vace_ad.frames.columnar import read_typed

        how.refuse(kind, _TEXT + _BOOK)
        frame, facts["notes"] = read_typed(file, kind)
        kind = kind.split()[0]
    elif kind == "Excel":
        from vace_ad.frames.excel import read_excel

        how.refuse(kind, _TEXT)
        frame, facts = read_excel(file, how)
    elif kind == "JSON":
        from vace_ad.frames.json_tables import read_json

        how.refuse(kind, _TEXT + _BOOK)
        frame, kind = read_json(file, names_of(how.by) or ())
    elif kind == "line protocol":
        from vace_ad.frames.line_protocol import read_line_protocol

        how.refuse(kind, _TEXT + _BOOK)
        frame = read_line_protocol(file)
    else:
        how.refuse("text", ["sheet"])
        if kind == "zstd":
            from vace_ad.frames.compression import zstd_bytes

            compression = kind
            with file.open() as packed:
                if zstd_bytes(packed) > file.most:
                    raise file.too_large()
        if how.delimiter == "\\t":
            how = replace(how, delimiter="\t")
        frame, facts = read_text(file, how, zstd=kind == "zstd")
        kind = "CSV"
    report = ReadReport(file.name, kind, frame.height, frame.width, digest, compression, **facts)
    return frame, report


def _kind(file: RawFile) -> str:
    """What the first bytes say a file is; "CSV" where they say nothing else."""
    head = file.read(_HEAD_BYTES)
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            raise TableReadError(f"{file.name} is {what}; save the table as CSV or Parquet")
    kind = next((kind for magic, kind in _FORMATS if head.startswith(magic)), "CSV")
    if kind == "Excel" and head.startswith(b"PK") and not _is_workbook(file):
        raise TableReadError(f"{file.name} is a ZIP archive; unpack it and name the table in it")
    if kind == "CSV" and _JSON.match(head):
        return "JSON"
    if kind == "CSV" and b"=" in head:
        from vace_ad.frames.line_protocol import is_line_protocol

        if is_line_protocol(head.decode("utf-8", "replace").splitlines()[:-1]):
            return "line protocol"
    return kind


def _is_workbook(file: RawFile) -> bool:
    import zipfile

    try:
        with file.open() as packed, zipfile.ZipFile(packed) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, EOFError):
        return True  # truncated: the reader reports it
    return any(name.startswith("xl/") or name == "content.xml" for name in names)


def _open(source: str | Path, most: int) -> RawFile:
    """A file by its path; standard input, a pipe or a device by their bytes, read once."""
    if str(source) == "-":
        name = "standard input"
        data = MemoryLimit(name, most).read_all(sys.stdin.buffer)
        if not data.strip():
            raise TableReadError("standard input is empty; pipe a table into the command")
        return RawFile(name, most, data)
    path = Path(source)
    file = RawFile(str(path), most, path)
    try:
        if path.is_dir():
            raise TableReadError(f"{path} is a folder; name the table file in it")
        if not path.is_file() and path.exists():  # a pipe or a device: opened once
            return replace(file, data=_read_pipe(path, file))
        if not file.read(1):
            raise file.empty()
    except TableReadError:
        raise
    except FileNotFoundError as error:
        raise TableReadError(f"{path} does not exist; check the path") from error
    except PermissionError as error:
        raise TableReadError(f"{path} may not be read; check its permissions") from error
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or error
        raise TableReadError(f"{path} cannot be read: {reason}") from error
    return file


def _read_pipe(path: Path, limit: MemoryLimit) -> bytes:
    """Everything of a named pipe or a device, within the limit; refuses a pipe without a writer.

    A writer that is there may take its time.
    """
    with open(path, "rb", buffering=0, opener=_without_waiting) as file:
        until = time.monotonic() + NO_WRITER_SECONDS
        first = file.read(1)  # None: a writer is connected; empty: none is
        while first == b"" and path.is_fifo():
            if time.monotonic() > until:
                raise TableReadError(
                    f"{limit.name} is a pipe without a writer (for {NO_WRITER_SECONDS:g} s); start "
                    "its writer first, or give a file"
                )
            time.sleep(0.02)
            first = file.read(1)
        os.set_blocking(file.fileno(), True)
        with io.BufferedReader(file) as rest:
            data = (first or b"") + limit.read_all(rest)
    if not data:
        raise TableReadError(f"{limit.name} is empty; give a table with at least one row")
    return data


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
