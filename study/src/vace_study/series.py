"""One series of TSB-AD-M: what its file name says, its content, and whether the two agree.

A name reads `002_MSL_id_1_Sensor_tr_500_1st_900`: number, family, number within the family,
domain, training rows, first anomalous row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vace_ad.errors import InputError, TableReadError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

SUFFIXES = (".parquet", ".csv", ".csv.gz", ".csv.zst")
LABEL = "Label"
_NAME = re.compile(
    r"(?P<number>\d+)_(?P<family>[^_]+)_id_(?P<member>\d+)_(?P<domain>[^_]+)"
    r"_tr_(?P<train_rows>\d+)_1st_(?P<first_anomaly>\d+)"
)


@dataclass(frozen=True)
class SeriesName:
    """What a file name says."""

    stem: str  # the name without suffix, the same for every file format
    family: str
    member: int
    domain: str
    train_rows: int
    first_anomaly: int  # row of the first anomaly

    @property
    def short(self) -> str:
        """The name as papers write it, such as `MSL id_1`."""
        return f"{self.family} id_{self.member}"

    @classmethod
    def parse(cls, file: str | Path) -> SeriesName:
        """Read a file's name; its folder does not matter."""
        name = Path(file).name
        stem = name
        for suffix in sorted(SUFFIXES, key=len, reverse=True):
            if name.endswith(suffix):
                stem = name.removesuffix(suffix)
                break
        found = _NAME.fullmatch(stem)
        if found is None:
            raise InputError(
                f"{name!r} is not a TSB-AD-M file name; expected is "
                "<number>_<family>_id_<n>_<domain>_tr_<training rows>_1st_<first anomaly>"
                f" with {', '.join(SUFFIXES)}"
            )
        return cls(
            stem,
            found["family"],
            int(found["member"]),
            found["domain"],
            int(found["train_rows"]),
            int(found["first_anomaly"]),
        )


@dataclass(frozen=True)
class Series:
    """A labelled series, rows with missing values dropped."""

    name: SeriesName
    values: NDArray[np.float64]  # (n_rows, n_channels)
    labels: NDArray[np.int8]  # (n_rows,), 1 where anomalous
    notes: tuple[str, ...]  # where name and content disagree
    channels: tuple[str, ...] = ()  # their names


def load(path: str | Path) -> Series:
    """Read a series and compare it with its name."""
    import numpy as np

    name = SeriesName.parse(path)
    frame = _read(Path(path))
    if frame.columns[-1:] != [LABEL]:
        raise InputError(
            f"{name.stem}: the last column is {frame.columns[-1:]}, expected is {LABEL!r}"
        )
    table = frame.to_numpy().astype(np.float64)  # (n_rows, n_channels + 1)
    if table.shape[1] < 2:
        raise InputError(f"{name.stem}: there is no channel beside the column {LABEL!r}")
    whole = ~np.isnan(table).any(axis=1)
    values, labels = np.ascontiguousarray(table[whole, :-1]), table[whole, -1]
    if not np.isin(labels, (0, 1)).all():
        strange = np.setdiff1d(labels, (0, 1))[:3].tolist()
        raise InputError(f"{name.stem}: {LABEL} holds {strange}, expected are 0 and 1 only")
    if not 0 < name.train_rows < len(values):
        raise InputError(
            f"{name.stem}: the name says {name.train_rows} training rows, the file has "
            f"{len(values)} rows in all"
        )
    flags = labels.astype(np.int8)
    notes = _disagreements(name, flags, int((~whole).sum()))
    return Series(name, values, flags, notes, tuple(frame.columns[:-1]))


def _disagreements(name: SeriesName, labels: NDArray[np.int8], dropped: int) -> tuple[str, ...]:
    """What the name promises and the content does not keep, in words."""
    notes = []
    if dropped:
        notes.append(f"{dropped} rows with missing values dropped")
    if not labels.any():
        notes.append(f"the name says the first anomaly is row {name.first_anomaly}, there is none")
    elif (first := int(labels.argmax())) != name.first_anomaly:
        notes.append(f"the first anomaly is row {first}, the name says {name.first_anomaly}")
    return tuple(notes)


def _read(path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path)
        return pl.read_csv(path, infer_schema_length=None)  # gzip and zstd are recognised
    except (pl.exceptions.PolarsError, OSError) as error:
        raise TableReadError(f"{path.name} cannot be read: {error}") from error
