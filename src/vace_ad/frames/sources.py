"""Sources of tables: files, folders, globs, patterns with names in braces; several as one table.

A column, or what a path says, may tell which machine a row belongs to.
"""

from __future__ import annotations

import glob
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from vace_ad.errors import InputError, TableReadError
from vace_ad.frames.columns import no_column
from vace_ad.frames.read import ReadReport, is_connection
from vace_ad.settings import option
from vace_ad.wording import plural

_SUFFIXES = (
    *(".csv", ".tsv", ".txt", ".parquet", ".pq", ".arrow", ".feather", ".ipc"),
    *(".xlsx", ".xlsm", ".xls", ".ods", ".json", ".jsonl", ".ndjson", ".lp"),
)
_PACKED = (".gz", ".zst")
_HOLE = re.compile(r"\{(\w+)\}")
_HIVE = re.compile(r"([^=/]+)=([^/]*)")


@dataclass(frozen=True)
class TableSource:
    """One place to read from, and the keys in its path."""

    place: str  # a path, a connection string, or "-" for standard input
    keys: tuple[tuple[str, str], ...] = ()  # column and value, from the path


def find_sources(places: str | Path | Iterable[str | Path]) -> list[TableSource]:
    """Every source behind the given paths, in a fixed order.

    A folder stands for the tables in it and below it; folders called `machine=p1` give their
    tables a column `machine`. `data/{machine}.csv` takes the column from the path too. A path
    with `*` or `?` stands for the files that it matches.
    """
    given = [places] if isinstance(places, str | Path) else list(places)
    found = [source for place in given for source in _behind(str(place))]
    if not found:
        raise TableReadError("no table was named; give the path of one")
    seen: dict[str, TableSource] = {}
    for source in found:
        seen.setdefault(source.place, source)
    return list(seen.values())


def _behind(place: str) -> list[TableSource]:
    if place == "-" or is_connection(place):
        return [TableSource(place)]
    path = Path(place)
    if path.is_dir():
        return _in_folder(path)
    if path.exists():
        return [TableSource(place)]
    if _HOLE.search(place):
        return _by_pattern(place)
    if glob.has_magic(place):
        matches = sorted(glob.glob(place, recursive=True))
        if not matches:
            raise TableReadError(f"no file matches {place}; check the pattern")
        root = re.split(r"[^/]*[*?\[]", place, maxsplit=1)[0]  # the folders before the first sign
        return [
            TableSource(source.place, _hive_keys(source.place[len(root) :]))
            for match in matches
            for source in _behind(match)
        ]
    return [TableSource(place)]  # the reader reports that it does not exist


def _in_folder(folder: Path) -> list[TableSource]:
    files = sorted(path for path in folder.rglob("*") if _is_table(path, folder))
    if not files:
        raise TableReadError(
            f"{folder} is a folder without a table in it; tables end in "
            f"{', '.join(_SUFFIXES[:5])}, …"
        )
    return [TableSource(str(path), _hive_keys(str(path.relative_to(folder)))) for path in files]


def _is_table(path: Path, folder: Path) -> bool:
    parts = path.relative_to(folder).parts
    if any(part.startswith((".", "_")) for part in parts) or not path.is_file():
        return False
    name = path.name.lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    return name.endswith(_SUFFIXES)


def _hive_keys(path: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        (match[1], match[2])
        for part in Path(path).parts[:-1]
        if (match := _HIVE.fullmatch(part)) is not None
    )


def _by_pattern(place: str) -> list[TableSource]:
    """Files that a path with names in braces matches, and what stands in place of the names."""
    pieces = _HOLE.split(place)  # text, name, text, name, …, text
    names = pieces[1::2]
    if len(set(names)) < len(names):
        raise TableReadError(f"{place} names {{{names[0]}}} twice; a name stands for one thing")
    looking = "*".join(pieces[::2])
    expression = "".join(
        f"(?P<{piece}>[^/]+?)" if i % 2 else _as_expression(piece) for i, piece in enumerate(pieces)
    )
    sources = []
    for match in sorted(glob.glob(looking, recursive=True)):
        keys = re.fullmatch(expression, match)
        if keys is not None and Path(match).is_file():
            sources.append(TableSource(match, tuple(keys.groupdict().items())))
    if not sources:
        raise TableReadError(f"no file matches {place} with something for {{{names[0]}}}")
    return sources


def _as_expression(text: str) -> str:
    """A piece of a glob as a regular expression."""
    signs = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(signs.get(part, re.escape(part)) for part in re.split(r"(\*\*|\*|\?)", text))


FILE = "\0file"  # the column that says which source a row came from

Reader = Callable[[str], "tuple[pl.DataFrame, ReadReport]"]


def read_sources(sources: Sequence[TableSource], read: Reader) -> tuple[pl.DataFrame, ReadReport]:
    """Read every source with `read`; columns from paths are added.

    Of several sources, the column FILE gives the number of each row's.
    """
    frames: list[pl.DataFrame] = []
    reports: list[ReadReport] = []
    for number, source in enumerate(sources):
        frame, report = read(source.place)
        for name, value in source.keys:
            if name in frame.columns:
                raise TableReadError(
                    f"{source.place} has a column {name!r}, and its path names one too; rename "
                    "one of them"
                )
            frame = frame.with_columns(pl.lit(value).alias(name))
        if len(sources) > 1:
            frame = frame.with_columns(pl.lit(number, dtype=pl.UInt32).alias(FILE))
        if frames:
            _same_columns(sources[0].place, frames[0], source.place, frame)
        frames.append(frame)
        reports.append(report)
    if len(frames) == 1:
        return frames[0], reports[0]
    whole = pl.concat([frame.select(frames[0].columns) for frame in frames], how="vertical_relaxed")
    return whole, _one_report(sources, reports, whole)


def _same_columns(first: str, expected: pl.DataFrame, place: str, frame: pl.DataFrame) -> None:
    missing = [name for name in expected.columns if name not in frame.columns]
    extra = [name for name in frame.columns if name not in expected.columns]
    if missing or extra:
        what = f"lacks {missing[0]!r}" if missing else f"has {extra[0]!r}, which {first} lacks"
        raise TableReadError(f"{place} {what}; tables that are read as one need the same columns")
    for name, kind in expected.schema.items():
        other = frame.schema[name]
        if kind != other and kind.is_numeric() != other.is_numeric():
            raise TableReadError(
                f"column {name!r} is {kind} in {first} and {other} in {place}; convert one, "
                f"or leave it out with {option('drop', name)}"
            )


def _one_report(
    sources: Sequence[TableSource], reports: Sequence[ReadReport], whole: pl.DataFrame
) -> ReadReport:
    digest = hashlib.sha256("".join(report.sha256 for report in reports).encode()).hexdigest()
    counts = Counter(note for report in reports for note in dict.fromkeys(report.notes))
    notes = [
        note if count == len(reports) else f"{note} (in {count:,} of {len(reports):,} files)"
        for note, count in counts.items()
    ]
    formats = sorted({report.format for report in reports})
    return replace(
        reports[0],
        source=f"{len(sources):,} files",
        format=" and ".join(formats),
        rows=whole.height,
        columns=whole.width - 1,  # without FILE
        sha256=digest,
        notes=tuple(notes),
    )


def order_files(
    frame: pl.DataFrame, time: NDArray[np.datetime64], places: Sequence[str], *, sort: bool
) -> tuple[pl.DataFrame, NDArray[np.datetime64]]:
    """Put whole files in order of time, whatever their names say; refuse files that overlap.

    Rows inside a file stay as they are. With `sort` overlapping rows are merged later.
    """
    files = frame[FILE].to_numpy()
    frame = frame.drop(FILE)
    starts = np.flatnonzero(np.diff(files, prepend=-1))
    spans = [
        (time[a:b].min(), time[a:b].max(), a, b)
        for a, b in zip(starts.tolist(), [*starts[1:].tolist(), len(files)], strict=True)
    ]
    spans.sort(key=lambda span: (span[0], span[1]))
    for (_, end, a, _), (begin, _, c, _) in pairwise(spans):
        if begin <= end and not sort:
            one, other = places[int(files[a])], places[int(files[c])]
            raise InputError(
                f"{one} and {other} cover the same time; if each is a machine of its own, pass "
                f"{option('by', 'file')}; if they belong together, {option('sort', True)} merges "
                "them"
            )
    order = np.concatenate([np.arange(a, b) for _, _, a, b in spans])
    if (np.diff(order) == 1).all():
        return frame, time
    return frame[order], time[order]


BY_FILE = "file"  # `--by file`: each file is a machine, where no column is called so
FEW_ROWS = 8  # a key whose values have fewer rows each, as a rule, does not identify machines
MANY = 1000  # fewer values than this are taken for machines, however short


def by_file(sources: Sequence[TableSource]) -> list[TableSource]:
    """Each file a machine, named after it."""
    stems = [Path(one.place).name.split(".")[0] for one in sources]
    names = stems if len(set(stems)) == len(stems) else [one.place for one in sources]
    return [
        TableSource(one.place, (*one.keys, (BY_FILE, name)))
        for one, name in zip(sources, names, strict=True)
    ]


def with_keys(frame: pl.DataFrame, by: Sequence[str]) -> tuple[pl.DataFrame, list[str]]:
    """Rows with a machine, keys as text in the first columns; and a note on rows without one."""
    for name in by:
        if name not in frame.columns:
            error = no_column(name, frame.columns)
            raise InputError(f"{error}; {option('by', BY_FILE)} takes each file as a machine")
    keys = [_as_words(frame[name]) for name in by]
    frame = frame.with_columns(keys).select(*by, pl.exclude(by))
    nameless = frame.select(pl.any_horizontal(pl.col(by).is_null())).to_series()
    notes = []
    if nameless.all():
        raise InputError(f"no row names its {' and '.join(by)}; name another column")
    if nameless.any():
        frame = frame.filter(~nameless)
        notes.append(f"{int(nameless.sum()):,} rows left out: they name no {' and '.join(by)}")
    return frame, notes


def refuse_no_key(counts: Sequence[int], by: Sequence[str]) -> None:
    """Refuse a column that identifies rows, not machines: many values with few rows each."""
    median = sorted(counts)[len(counts) // 2]
    if len(counts) > MANY and median < FEW_ROWS:
        raise InputError(
            f"{' and '.join(map(repr, by))} has {len(counts):,} different values, typically "
            f"with {plural(median, 'row')} each, so it does not identify machines; name another "
            f"column with {option('by')}"
        )


def _as_words(column: pl.Series) -> pl.Series:
    """Keys as text: whole numbers without a fraction, null for empty ones."""
    if column.dtype.is_float():
        known = column.drop_nulls()
        if bool((known == known.floor()).all()) and not bool(known.is_infinite().any()):
            column = column.fill_nan(None).cast(pl.Int64, strict=False)
    words = column.cast(pl.String).str.strip_chars()
    return words.replace({"": None}).alias(column.name)
