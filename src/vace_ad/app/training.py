"""Choose the training rows of a table, and fit a detector on them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from vace_ad.app.loading import Loaded, Reading, load_table
from vace_ad.caller import option
from vace_ad.errors import ConfigError, InputError, TooShortError, VaceWarning
from vace_ad.progress import Progress

if TYPE_CHECKING:
    from vace_ad.config import VACEConfig
    from vace_ad.detector import VACE
    from vace_ad.frames.table import Table

DEFAULT_SHARE = 0.3


@dataclass(frozen=True)
class Training:
    """What a detector learns from."""

    tables: Sequence[Loaded]
    rows: int | None  # the first so many rows of the table; None for all of other tables
    words: str

    def record(self) -> dict[str, Any]:
        """The training rows for programs."""
        if self.rows is not None:
            return {"rows": [0, self.rows]}
        return {"files": [asdict(table.source) for table in self.tables]}


def choose_training(
    loaded: Loaded,
    config: VACEConfig,
    *,
    share: float | None,
    rows: int | None,
    until: str | None,
    file: str | None,
    how: Reading,
) -> Training:
    """Training rows by the one way that was given: the first ones, or those of another file."""
    given = {"train_share": share, "train_rows": rows, "train_until": until, "train_file": file}
    chosen = [option(name) for name, value in given.items() if value is not None]
    if len(chosen) > 1:
        raise ConfigError(f"{chosen[0]} and {chosen[1]} both came; give one of them")
    if file is not None:
        other = load_table(file, how, loaded.table.names)
        return Training([other], None, f"{len(other.table):,} rows of {file}")
    count = _first_rows(loaded.table, config, share, rows, until)
    part = count / len(loaded.table)
    return Training([loaded], count, f"the first {count:,} rows ({part:.0%})")


def _first_rows(
    table: Table, config: VACEConfig, share: float | None, rows: int | None, until: str | None
) -> int:
    """How many first rows train; refuses too few, and all."""
    if until is not None:
        count, words = _rows_until(table, until), f"rows before {until}"
    elif rows is not None:
        count, words = rows, f"first {rows:,} rows"
    else:
        part = DEFAULT_SHARE if share is None else share
        if not 0 < part < 1:
            raise ConfigError(f"{option('train_share', part)} came; it is a share between 0 and 1")
        count, words = int(part * len(table)), f"first {part:.0%} of rows"
    needed = config.length + config.offset + 1
    if count < needed:
        raise TooShortError(
            f"the {words} are {count:,} rows to train on, of {len(table):,}; at least {needed} are "
            f"needed: train on more ({option('train_share')}, {option('train_rows')}, "
            f"{option('train_file')}), or give a smaller {option('patch_length')}"
        )
    if count >= len(table):
        raise InputError(
            f"the {words} are all {len(table):,} rows; leave some to look at, or train on another "
            f"file with {option('train_file')}"
        )
    return count


def _rows_until(table: Table, until: str) -> int:
    import numpy as np

    from vace_ad.frames.stamps import moment

    if table.time is None:
        raise InputError(
            f"{option('train_until')} needs a time column, and none was found; name it with "
            f"{option('time_column')}, or use {option('train_rows')}"
        )
    limit = moment(until, table.zone)
    if np.isnat(limit):
        raise ConfigError(
            f"{option('train_until')} {until!r} is no time; write 2026-03-01 or 2026-03-01T12:00"
        )
    return int(np.searchsorted(table.time, limit))


def fit_detector(
    config: VACEConfig, training: Training, progress: Progress
) -> tuple[VACE, list[str]]:
    """Fit a detector; also what the reader should know about the fit."""
    from vace_ad.detector import VACE

    tables = [part.table[: training.rows] for part in training.tables]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VaceWarning)
        detector = VACE(**config.to_dict()).fit(tables, progress=progress)
    notes = [str(w.message) for w in caught if issubclass(w.category, VaceWarning)]
    for other in caught:
        if not issubclass(other.category, VaceWarning):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    return detector, notes + training_notes(detector)


def training_notes(detector: VACE) -> list[str]:
    """What a person should know about the rows that a detector learned from, in words."""
    return [str(note["words"]) for note in detector.facts_.get("training", ())]
