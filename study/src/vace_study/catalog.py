"""The series of a folder: found, split into evaluation and tuning, and chosen."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, get_args

from vace_ad.errors import ConfigError, InputError
from vace_study import published
from vace_study.series import SUFFIXES, SeriesName

Split = Literal["eval", "tuning"]
_FOLDERS = ("", "TSB-AD-M", "Datasets/TSB-AD-M")  # where series lie below the folder named
_LISTS = ("", "..", "File_List", "../File_List")  # where the list of tuning series may lie
_TUNING = ("tsb-ad-m-tuning.csv", "TSB-AD-M-Tuning.csv")  # a list, one column `file_name`


@dataclass(frozen=True)
class Entry:
    """A series that lies on disk."""

    name: SeriesName
    path: Path
    split: Split
    size: int  # bytes, a first guess at how long it takes


def find_series(
    folder: str | Path,
    split: Literal["eval", "tuning", "all"] = "all",
    families: Sequence[str] = (),
    globs: Sequence[str] = (),
) -> list[Entry]:
    """The series below a folder that are asked for, in the benchmark's order.

    `globs` match the name without suffix, such as `*_SMAP_id_2?_*`. A series that is in neither
    list counts as one for evaluation.
    """
    if split not in ("all", *get_args(Split)):
        raise ConfigError(f"split={split!r}: must be eval, tuning or all")
    home, files = _files(Path(folder))
    tuning = _tuning_names(home)
    entries = []
    for path in files:
        name = SeriesName.parse(path)
        part: Split = "tuning" if name.stem in tuning else "eval"
        entries.append(Entry(name, path, part, path.stat().st_size))
    _refuse_doubles(entries)
    _refuse_unknown(families, {entry.name.family for entry in entries})
    wanted = {family.lower() for family in families}
    chosen = [
        entry
        for entry in entries
        if split in ("all", entry.split)
        and (not wanted or entry.name.family.lower() in wanted)
        and (not globs or any(fnmatchcase(entry.name.stem, glob) for glob in globs))
    ]
    if not chosen:
        raise InputError(
            f"none of the {len(entries)} series of {folder} is asked for by split={split}, "
            f"families={list(families)}, globs={list(globs)}"
        )
    return chosen


def _files(folder: Path) -> tuple[Path, list[Path]]:
    """The folder that holds series, and their files."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; `vace bench fetch tsb-ad-m DIR` makes one")
    for below in _FOLDERS:
        home = folder / below
        files = sorted(
            path
            for path in (home.iterdir() if home.is_dir() else ())
            if path.name.endswith(SUFFIXES) and "_tr_" in path.name
        )
        if files:
            return home, files
    raise InputError(
        f"{folder} holds no series; expected are files such as "
        f"002_MSL_id_1_Sensor_tr_500_1st_900.csv ({', '.join(SUFFIXES)})"
    )


def _tuning_names(home: Path) -> frozenset[str]:
    """The tuning series by the list beside the data, else by the benchmark's own list."""
    for place in _LISTS:
        for file in _TUNING:
            path = home / place / file
            if path.is_file():
                with path.open(newline="") as lines:
                    names = [row["file_name"] for row in csv.DictReader(lines)]
                return frozenset(SeriesName.parse(name).stem for name in names)
    return published.tuning_names()


def _refuse_doubles(entries: Sequence[Entry]) -> None:
    seen: dict[str, Path] = {}
    for entry in entries:
        if (other := seen.setdefault(entry.name.stem, entry.path)) != entry.path:
            raise InputError(
                f"one series, two files: {other.name} and {entry.path.name}; remove one"
            )


def _refuse_unknown(families: Sequence[str], known: set[str]) -> None:
    strange = [name for name in families if name.lower() not in {item.lower() for item in known}]
    if strange:
        raise ConfigError(
            f"no series of the family {', '.join(strange)} here; there are "
            f"{', '.join(sorted(known))}"
        )
