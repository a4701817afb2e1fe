"""One file, pipe or query to a table, whatever its format."""

from __future__ import annotations

import hashlib
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from vace_ad.errors import TableReadError
from vace_ad.frames import limits
from vace_ad.frames.read_options import ReadOptions, names_of
from vace_ad.frames.text import read_text

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


def read_table(
    source: str | Path, how: ReadOptions | None = None, **options: Any
) -> tuple[pl.DataFrame, ReadReport]:
    """Read a file, or standard input for "-", as a table, and report what was recognised.

    Format and compression are told from the first bytes; delimiter, decimal sign, encoding and
    header of a text are recognised unless given. Columns of numbers come as Float64, other text
    as String; typed files keep their types. The options are the fields of `ReadOptions`.
    """
    how = ReadOptions(**options) if how is None else how
    most = limits.parse_size(how.max_size)
    if is_connection(str(source)):
        from vace_ad.frames.sql import read_sql, safe_name

        frame = read_sql(str(source), how.query, most)
        digest = hashlib.sha256(str(how.query).encode()).hexdigest()
        report = ReadReport(safe_name(str(source)), "SQL", frame.height, frame.width, digest)
    else:
        name, data = _open(source, most)
        frame, report = _read_any(name, data, how, most)
        limits.check_cells(name, frame.height, frame.width, most)
    if frame.width == 0 or frame.height == 0:
        raise TableReadError(
            f"{report.source} has no rows; give a table with at least one row of values"
        )
    return frame, report


def _read_any(
    name: str, data: bytes | Path, how: ReadOptions, most: int
) -> tuple[pl.DataFrame, ReadReport]:
    """Choose the reader by the first bytes, and import only that one.

    What gzip holds is looked at in the same way.
    """
    digest = _digest(data)
    compression, kind = None, _kind(name, data)
    if kind == "gzip":
        data, compression = limits.gunzip(name, data, most), "gzip"
        if not data.strip():
            raise TableReadError(f"{name} is empty; give a table with at least one row of values")
        kind = _kind(name, data)
    facts: dict[str, Any] = {}
    if kind in _TYPED:
        from vace_ad.frames.columnar import read_typed

        how.refuse(kind, _TEXT + _BOOK)
        frame, facts["notes"] = read_typed(name, data, kind, most)
        kind = kind.split()[0]
    elif kind == "Excel":
        from vace_ad.frames.excel import read_excel

        how.refuse(kind, _TEXT)
        frame, facts = read_excel(name, data, how, most)
    elif kind == "JSON":
        from vace_ad.frames.json_tables import read_json

        how.refuse(kind, _TEXT + _BOOK)
        frame, kind = read_json(name, _all_bytes(name, data, most), most, names_of(how.by) or ())
    elif kind == "line protocol":
        from vace_ad.frames.line_protocol import read_line_protocol

        how.refuse(kind, _TEXT + _BOOK)
        frame = read_line_protocol(name, _all_bytes(name, data, most), most)
    else:
        how.refuse("text", ["sheet"])
        if kind == "zstd":
            compression = kind
            if limits.zstd_bytes(data) > most:
                raise limits.too_large(name, most)
        if how.delimiter == "\\t":
            how = replace(how, delimiter="\t")
        frame, facts = read_text(name, data, how, most, zstd=kind == "zstd")
        kind = "CSV"
    return frame, ReadReport(name, kind, frame.height, frame.width, digest, compression, **facts)


def _kind(name: str, data: bytes | Path) -> str:
    """What the first bytes say a file is; "CSV" where they say nothing else."""
    head = data[:_HEAD_BYTES] if isinstance(data, bytes) else _head(data, _HEAD_BYTES)
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            raise TableReadError(f"{name} is {what}; save the table as CSV or Parquet")
    kind = next((kind for magic, kind in _FORMATS if head.startswith(magic)), "CSV")
    if kind == "Excel" and head.startswith(b"PK") and not _is_workbook(data):
        raise TableReadError(f"{name} is a ZIP archive; unpack it and name the table in it")
    if kind == "CSV" and _JSON.match(head):
        return "JSON"
    if kind == "CSV" and b"=" in head:
        from vace_ad.frames.line_protocol import is_line_protocol

        if is_line_protocol(head.decode("utf-8", "replace").splitlines()[:-1]):
            return "line protocol"
    return kind


def _is_workbook(data: bytes | Path) -> bool:
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data) if isinstance(data, bytes) else data) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, EOFError):
        return True  # truncated: the reader reports it
    return any(name.startswith("xl/") or name == "content.xml" for name in names)


def _all_bytes(name: str, data: bytes | Path, most: int) -> bytes:
    if isinstance(data, bytes):
        return data
    with data.open("rb") as file:
        return limits.read_all(name, file, most)


def _open(source: str | Path, most: int) -> tuple[str, bytes | Path]:
    """A name for messages, and the path of a file, or the bytes of what can be read only once."""
    if str(source) == "-":
        data = limits.read_all("standard input", sys.stdin.buffer, most)
        if not data.strip():
            raise TableReadError("standard input is empty; pipe a table into the command")
        return "standard input", data
    path = Path(source)
    try:
        if path.is_dir():
            raise TableReadError(f"{path} is a folder; name the table file in it")
        if not path.is_file() and path.exists():  # a pipe or a device: opened once
            return str(path), limits.read_pipe(path, most)
        if not _head(path, 1):
            raise TableReadError(f"{path} is empty; give a table with at least one row of values")
    except TableReadError:
        raise
    except FileNotFoundError as error:
        raise TableReadError(f"{path} does not exist; check the path") from error
    except PermissionError as error:
        raise TableReadError(f"{path} may not be read; check its permissions") from error
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or error
        raise TableReadError(f"{path} cannot be read: {reason}") from error
    return str(path), path


def _head(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        return file.read(size)


def _digest(data: bytes | Path) -> str:
    if isinstance(data, bytes):
        return hashlib.sha256(data).hexdigest()
    with data.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def without_panic_words() -> Iterator[None]:
    """Keep the backtrace that polars prints on a panic off the terminal."""
    sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # standard error is closed
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
