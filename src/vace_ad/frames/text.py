"""Text tables: bytes to columns of numbers and text, in any CSV dialect."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

import polars as pl

from vace_ad.errors import ConfigError, TableReadError
from vace_ad.frames.read_options import ReadOptions
from vace_ad.frames.sniff import (
    DELIMITERS,
    GROUP_SIGNS,
    GROUPED,
    MISSING,
    Dialect,
    is_missing,
    is_number,
    sniff_dialect,
    split,
)
from vace_ad.settings import option

if TYPE_CHECKING:
    from vace_ad.frames.read import RawFile

_SAMPLE_BYTES = 256 * 1024
_LONG_SAMPLE_BYTES = 32 * 1024 * 1024  # where lines are so long that fewer than …
_LEAST_LINES = 20  # … of them lie in the first sample
_SAMPLE_LINES = 500

# Byte order marks, the longer first: UTF-16's is the beginning of UTF-32's.
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)

# A column is one of numbers when this share of its cells are; the others count as missing.
_NUMBERS_SHARE = 0.9


def read_text(
    file: RawFile, how: ReadOptions, *, zstd: bool = False
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Read a text table whose dialect is recognised where it is not given, and what was.

    Plain UTF-8 files are read from their path; anything else is first turned into UTF-8 bytes.
    polars unpacks zstd by itself, but only as UTF-8.
    """
    if zstd:
        lines, found = _zstd_lines(file), "utf-8"
    else:
        lines, file, found = _decode(file, how.encoding)
    if not any(line.strip() for line in lines):
        raise file.empty()
    # Before every cell of a line is looked at.
    signs = DELIMITERS if how.delimiter is None else (how.delimiter,)
    plain = [line for line in lines if '"' not in line]
    file.check_cells(1, 1 + max((x.count(s) for x in plain for s in signs), default=0))
    dialect = sniff_dialect(lines, how)
    try:
        rows = split(lines, dialect.delimiter)[dialect.head.rows :]
        file.check_cells(len(rows), max(map(len, rows), default=1))
        frame = _parse(file, dialect, rows)
    except UnicodeError as error:
        if how.encoding is not None or zstd:
            raise TableReadError(
                f"{file.name} is not in {found}; name its encoding, for example "
                f"{option('encoding', 'cp1252')}"
            ) from error
        # The sample was plain ASCII and other bytes come later: examine the whole file.
        whole = _sniff_encoding(file.read(), complete=True)
        return read_text(file, replace(how, encoding=whole))
    notes = list(dialect.head.notes)
    frame = with_numbers(frame, dialect.decimal, notes)
    return frame, {
        "encoding": found,
        "delimiter": dialect.delimiter,
        "decimal": dialect.decimal,
        "header": bool(dialect.head.names),
        "notes": tuple(notes),
        "units": units_of(frame.columns, dialect.head.units),
    }


def _sniff_encoding(sample: bytes, *, complete: bool) -> str:
    """Name the encoding of a text from its first bytes.

    A byte order mark decides; else UTF-8 where it decodes (a character cut by the end of an
    incomplete sample is forgiven); else Windows-1252, which western spreadsheets write.
    """
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return name
    if b"\x00" in sample:
        raise TableReadError(
            "the file holds binary data, not text; give CSV, Parquet or Arrow, "
            f"or name the text's encoding, for example {option('encoding', 'utf-16-le')}"
        )
    for name in ("utf-8", "cp1252"):
        try:
            sample.decode(name)
        except UnicodeDecodeError as error:
            cut = not complete and name == "utf-8" and error.start > len(sample) - 4
            if not cut:
                continue
        return name
    raise TableReadError(
        "the text is in neither UTF-8 nor Windows-1252; "
        f"name its encoding, for example {option('encoding', 'shift_jis')}"
    )


def _zstd_lines(file: RawFile) -> list[str]:
    """The first lines of a zstd file, as polars unpacks them."""
    try:
        frame = pl.read_csv(
            file.data,
            has_header=False,
            separator="\x01",
            quote_char=None,
            infer_schema=False,
            n_rows=_SAMPLE_LINES,
        )
    except pl.exceptions.NoDataError:
        return []
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise TableReadError(
            f"{file.name} begins like zstd but cannot be read as UTF-8 text; "
            "write it again, or give it uncompressed"
        ) from error
    return [line or "" for line in frame.to_series().to_list()]


def _decode(file: RawFile, encoding: str | None) -> tuple[list[str], RawFile, str]:
    """The first lines, the file with its bytes in UTF-8, and the encoding they came in."""
    sample, complete = _sample(file)
    found = encoding or _sniff_encoding(sample, complete=complete)
    if found.lower() not in ("utf-8", "utf8"):
        try:
            file = replace(file, data=file.read().decode(found).encode())
        except LookupError as error:
            raise ConfigError(
                f"encoding={found!r} is not known; use a name such as utf-8 or cp1252"
            ) from error
        except UnicodeError as error:
            raise TableReadError(
                f"{file.name} is not in {found}; leave {option('encoding')} out to have it found, "
                "or name another"
            ) from error
        sample, complete = _sample(file)
    lines = sample.decode("utf-8", "replace").splitlines()
    if not complete and len(lines) > 1:
        lines.pop()  # cut by the end of the sample
    return lines[:_SAMPLE_LINES], file, found


def _sample(file: RawFile) -> tuple[bytes, bool]:
    """The first bytes, and whether they are all; more of them where lines are long."""
    for size in (_SAMPLE_BYTES, _LONG_SAMPLE_BYTES):
        first = file.read(size + 1)
        sample, complete = first[:size], len(first) <= size
        if complete or sample.count(b"\n") >= _LEAST_LINES:
            break
    return sample, complete


def _parse(file: RawFile, dialect: Dialect, rows: list[list[str]]) -> pl.DataFrame:
    """Split the text into columns: Float64 where the sample holds numbers only, else String."""
    width, head = dialect.width, dialect.head
    numeric = [_all_numbers(rows, i, dialect.decimal) for i in range(width)]
    names = [str(i) for i in range(width)]
    kinds: list[list[type[pl.DataType]]] = [
        [pl.Float64 if number else pl.String for number in numeric],
        [pl.String] * width,  # for a word further down in a column of numbers
    ]
    for schema in kinds:
        try:
            frame = pl.read_csv(
                file.data,
                separator=dialect.delimiter,
                has_header=False,
                skip_rows=head.rows,
                schema=dict(zip(names, schema, strict=True)),
                null_values=list(MISSING),
            )
        except pl.exceptions.NoDataError:
            return pl.DataFrame()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            message = str(error)
            if "utf-8" in message:
                raise UnicodeError(message) from error
            if "could not parse" in message and schema is kinds[0]:
                continue
            raise TableReadError(_parse_error(file, dialect, width, message)) from error
        if 0 < len(head.names) < width and frame[names[-1]].null_count() == frame.height:
            frame = frame.drop(names[-1])  # lines end with a delimiter that their header lacks
        frame.columns = column_names(head.names, frame.width)
        return _without_empty_end(frame)
    raise AssertionError("the all-text schema parses or raises")


def _all_numbers(rows: list[list[str]], column: int, decimal: str) -> bool:
    """Whether polars may read a column as numbers; it takes the point in 1.234 for a decimal."""
    if decimal == ",":
        return False
    cells = [row[column] for row in rows if column < len(row) and not is_missing(row[column])]
    return bool(cells) and all(is_number(cell, decimal) for cell in cells)


def column_names(first: Sequence[str], width: int) -> list[str]:
    """One name a column: empty ones are numbered, repeated ones get a number behind them."""
    names: dict[str, None] = {}  # ordered, and quick to look up
    copies: Counter[str] = Counter()
    for i in range(width):
        base = name = (first[i] if i < len(first) else "") or f"column_{i + 1}"
        while name in names:
            copies[base] += 1
            name = f"{base}_{copies[base] + 1}"
        names[name] = None
    return list(names)


def _without_empty_end(frame: pl.DataFrame) -> pl.DataFrame:
    """Drop rows without any value at the end: blank lines, not missing measurements."""
    filled = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series().arg_true()
    last = filled.last()
    return frame.head(int(last) + 1) if isinstance(last, int) else frame.clear()


def _parse_error(file: RawFile, dialect: Dialect, width: int, message: str) -> str:
    """The message for a text that cannot be split into columns."""
    with suppress(csv.Error):  # a cell without end: the reason below says as much
        for number, row in enumerate(csv.reader(_lines(file), delimiter=dialect.delimiter), 1):
            if number > dialect.head.rows and len(row) > width:
                return (
                    f"{file.name}, line {number}: {len(row)} cells, but most lines have {width}; "
                    f"correct that line, or name the {option('delimiter')}"
                )
    return f"{file.name} cannot be read as a table: {first_line(message)}"


def _lines(file: RawFile) -> Iterator[str]:
    with file.open() as data, TextIOWrapper(data, "utf-8", "replace", newline="") as lines:
        yield from lines


def with_numbers(frame: pl.DataFrame, decimal: str, notes: list[str]) -> pl.DataFrame:
    """Turn columns of words into numbers where nearly all words are numbers or truth values."""
    texts = frame.select(pl.col(pl.String).str.strip_chars())
    if not texts.width or not texts.height:
        return frame
    points = pl.all().str.replace(",", ".", literal=True) if decimal == "," else pl.all()
    found = texts.select(points.cast(pl.Float64, strict=False)).get_columns()
    grouped: dict[str, str] = {}  # column and an example of thousands that are set apart
    groups = texts.select(pl.all().str.contains(GROUPED[decimal]).any()).row(0)
    truths = texts.select(pl.all().str.to_lowercase().is_in(["true", "false"]).all()).row(0)
    columns: list[pl.Series] = []
    each = zip(texts.get_columns(), found, groups, truths, strict=True)
    for words, numbers, has_groups, truth in each:
        given = words.len() - words.null_count()
        read = numbers.len() - numbers.null_count()
        if has_groups or (truth and read < given):  # a closer look takes 2 ms
            numbers, example = _numbers_in(words, numbers, decimal)
            read = numbers.len() - numbers.null_count()
            if example is not None and read >= _NUMBERS_SHARE * given:
                grouped[words.name] = example
        if not given or read < _NUMBERS_SHARE * given:
            continue
        if read < given:
            odd = words.filter(words.is_not_null() & numbers.is_null()).first()
            notes.append(
                f"column {words.name!r}: no number in {given - read:,} of {given:,} cells, "
                f"such as {odd!r}; they count as missing"
            )
        columns.append(numbers)
    if grouped:
        name, example = next(iter(grouped.items()))
        plain = re.sub(GROUP_SIGNS[decimal], "", example).replace(",", ".")
        others = len(grouped) - 1
        more = f", and so in {others} more column{'s' * (others > 1)}" if others else ""
        notes.append(f"column {name!r}: thousands are set apart, {example} is {plain}{more}")
    return frame.with_columns(columns)


def _numbers_in(words: pl.Series, numbers: pl.Series, decimal: str) -> tuple[pl.Series, str | None]:
    """Truth values as 0 and 1, and numbers whose thousands are set apart, with an example of these.

    A column in which a sign between thousands stands elsewhere too stays as it is.
    """
    lower = words.str.to_lowercase()
    if lower.drop_nulls().is_in(["true", "false"]).all():
        return (lower == "true").cast(pl.Float64).alias(words.name), None
    matches = words.str.contains(GROUPED[decimal]).fill_null(False)
    signs = GROUP_SIGNS[decimal]
    if not matches.any() or (words.str.contains(rf"\d{signs}\d") & ~matches).any():
        return numbers, None
    plain = words.str.replace_all(signs, "").str.replace(",", ".", literal=True)
    return plain.cast(pl.Float64, strict=False).zip_with(matches, numbers), words.filter(matches)[0]


def units_of(names: Sequence[str], units: Sequence[str]) -> dict[str, str]:
    """The unit of each column that has one."""
    return {name: unit for name, unit in zip(names, units, strict=False) if unit}


def first_line(error: object) -> str:
    """The first line of an error's text, without its closing full stop."""
    return (str(error).strip().splitlines() or ["no reason given"])[0].rstrip(".")
