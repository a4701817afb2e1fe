"""Locations of tables: files, folders, globs, patterns with names in braces, pipes, databases."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vace_ad.errors import TableReadError

_SUFFIXES = (
    *(".csv", ".tsv", ".txt", ".parquet", ".pq", ".arrow", ".feather", ".ipc"),
    *(".xlsx", ".xlsm", ".xls", ".ods", ".json", ".jsonl", ".ndjson", ".lp"),
)
_PACKED = (".gz", ".zst")
CONNECTION = re.compile(r"(sqlite|duckdb|postgresql|postgres)://(.*)", re.DOTALL)
_HOLE = re.compile(r"\{(\w+)\}")
_HIVE = re.compile(r"([^=/]+)=([^/]*)")


@dataclass(frozen=True)
class TableSource:
    """One place to read from, and what its path says of its rows."""

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
    return [TableSource(place)]  # whoever opens it says that it does not exist


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


def is_connection(place: str) -> bool:
    """Whether this is a connection string and not a path."""
    return CONNECTION.match(place) is not None


def safe_name(place: str) -> str:
    """A connection string without its password."""
    return re.sub(r"(://[^:/@]*):.*@", r"\1:…@", place)
