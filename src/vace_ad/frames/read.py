"""Files to tables: CSV in any dialect, plain or compressed, Parquet, Arrow, standard input."""

from __future__ import annotations

import hashlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vace_ad.errors import ConfigError, TableReadError
from vace_ad.frames.text import first_line, read_text

if TYPE_CHECKING:
    import polars as pl

# The first bytes decide what a file is, whatever its name says.
_FORMATS = (
    (b"PAR1", "Parquet"),
    (b"ARROW1", "Arrow"),
    (b"\xff\xff\xff\xff", "Arrow stream"),
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
_FOREIGN = (
    (b"PK\x03\x04", "an Excel workbook or a ZIP archive"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook"),
    (b"\x89HDF", "an HDF5 file"),
    (b"FEA1", "a Feather file of the first version"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ", "an xz file"),
    (b"MATLAB", "a MATLAB file"),
)


@dataclass(frozen=True)
class ReadReport:
    """What was found out about a file while reading it."""

    source: str
    format: str  # "CSV", "Parquet", "Arrow"
    rows: int
    columns: int
    sha256: str
    compression: str | None = None  # "gzip", "zstd"
    encoding: str | None = None  # of text only, as the next three
    delimiter: str | None = None
    decimal: str | None = None
    header: bool | None = None
    notes: tuple[str, ...] = ()

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


def read_table(
    source: str | Path,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
) -> tuple[pl.DataFrame, ReadReport]:
    """Read a file, or standard input for "-", as a table; say what was found out.

    Format and compression are told from the first bytes; delimiter, decimal sign, encoding and
    header of a text are found out unless given. Columns of numbers come as Float64, other text
    as String; typed files keep their types.
    """
    name, data = _open(source)
    start = data[:8] if isinstance(data, bytes) else _head(data, 8)
    for magic, what in _FOREIGN:
        if start.startswith(magic):
            raise TableReadError(f"{name} is {what}; save the table as CSV or Parquet")
    kind = next((kind for magic, kind in _FORMATS if start.startswith(magic)), "CSV")
    options = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding, "header": header}
    if kind in ("Parquet", "Arrow", "Arrow stream"):
        for option, value in options.items():
            if value is not None:
                raise ConfigError(f"{option}={value!r}: a {kind} file has none; leave it out")
        frame = _read_typed(name, data, kind)
        report = ReadReport(name, kind.split()[0], frame.height, frame.width, _digest(data))
    else:
        compression = kind if kind != "CSV" else None
        text = read_text(
            name,
            data,
            compression=compression,
            delimiter=delimiter,
            decimal=decimal,
            encoding=encoding,
            header=header,
        )
        frame, dialect = text.frame, text.dialect
        report = ReadReport(
            name,
            "CSV",
            frame.height,
            frame.width,
            _digest(data),
            compression=compression,
            encoding=text.encoding,
            delimiter=dialect.delimiter,
            decimal=dialect.decimal,
            header=dialect.header,
            notes=tuple(text.notes),
        )
    if frame.width == 0 or frame.height == 0:
        raise TableReadError(f"{name} has no rows; give a table with at least one row of values")
    return frame, report


def _open(source: str | Path) -> tuple[str, bytes | Path]:
    """A name for messages, and the bytes of standard input or the path of a readable file."""
    if str(source) == "-":
        data = sys.stdin.buffer.read()
        if not data.strip():
            raise TableReadError("standard input is empty; pipe a table into the command")
        return "standard input", data
    path = Path(source)
    try:
        if path.is_dir():
            raise TableReadError(f"{path} is a folder; name the table file in it")
        if not _head(path, 1):
            raise TableReadError(f"{path} is empty; give a table with at least one row of values")
    except FileNotFoundError as error:
        raise TableReadError(f"{path} does not exist; check the path") from error
    except PermissionError as error:
        raise TableReadError(f"{path} may not be read; check its permissions") from error
    except OSError as error:
        raise TableReadError(f"{path} cannot be read: {error.strerror or error}") from error
    return str(path), path


def _head(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        return file.read(size)


def _digest(data: bytes | Path) -> str:
    if isinstance(data, bytes):
        return hashlib.sha256(data).hexdigest()
    with data.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_typed(name: str, data: bytes | Path, kind: str) -> pl.DataFrame:
    import polars as pl

    source = io.BytesIO(data) if isinstance(data, bytes) else data
    try:
        if kind == "Parquet":
            return pl.read_parquet(source)
        if kind == "Arrow stream":
            return pl.read_ipc_stream(source)
        return pl.read_ipc(source)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise TableReadError(
            f"{name} begins like {kind} but cannot be read ({first_line(error)}); "
            "it may be cut short or damaged, write it again"
        ) from error
