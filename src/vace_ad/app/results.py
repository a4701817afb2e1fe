"""The results folder of a run: its tables, model, record and report, written atomically."""

from __future__ import annotations

import errno
import json
import math
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from safetensors import SafetensorError

from vace_ad.alarms import Event
from vace_ad.alarms.events import event_columns
from vace_ad.app.loading import Loaded
from vace_ad.app.lookout import prediction_lines
from vace_ad.atomic import clean_up, whole_file, whole_folder
from vace_ad.detection import Detection
from vace_ad.errors import ConfigError, InputError, VaceError, needs
from vace_ad.frames.table import Table
from vace_ad.frames.timestamps import local_time, zoned
from vace_ad.progress import Progress, silent
from vace_ad.report import write_report
from vace_ad.settings import option
from vace_ad.version import __version__
from vace_ad.views.report import report_data

if TYPE_CHECKING:
    from vace_ad.app.run import Run

RUN = "run.json"  # marks a folder of results
_ISO = "%Y-%m-%dT%H:%M:%S%.f"
_SHEET_ROWS = 1_048_576
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def check_out(out: Path, inputs: Iterable[str] = ()) -> None:
    """Refuse a place where results cannot go, before any work is done.

    `inputs` are the tables that are read, which results must not replace.
    """
    clean_up(Path(os.path.realpath(out)).parent)
    if out.exists() and not out.is_dir():
        raise InputError(f"{option('out')} {out} is a file; give a folder")
    if out.is_dir() and any(out.iterdir()) and not (out / RUN).is_file():
        raise InputError(
            f"{option('out')} {out} holds other files; give a new folder, or one of an earlier run"
        )
    place = out.resolve()
    for name in inputs:
        if place in Path(name).resolve().parents:
            raise InputError(
                f"{option('out')} {out} holds {name}, which is read, and would be replaced; "
                "give another folder"
            )


@contextmanager
def results_folder(out: Path) -> Iterator[Path]:
    """A folder to write into, which becomes `out` at the end and vanishes on any failure.

    Results of an earlier run are replaced in one step.
    """
    check_out(out)
    with writing(str(out)), whole_folder(out) as folder:
        yield folder


@contextmanager
def writing(place: str) -> Iterator[None]:
    """Turn the errors of writing into one clear message.

    polars and safetensors wrap the errors of the system in their own.
    """
    try:
        yield
    except (OSError, pl.exceptions.PolarsError, SafetensorError) as error:
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if full or "No space left" in str(error):
            raise VaceError(
                f"no space left to write {place}; nothing was kept: free some, or give another "
                "place"
            ) from error
        if not isinstance(error, OSError) and "os error" not in str(error):
            raise
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise VaceError(f"{place} cannot be written: {reason}") from error


def score_frame(table: Table, found: Detection, zone: str | None = None) -> pl.DataFrame:
    """Scores and evidence row by row, with time, signals and whether the row is in an event."""
    columns: dict[str, Any] = {"row": np.arange(len(table))}
    if table.time is not None:
        columns["time"] = zoned("time", table.time, zone)
    columns["score"] = found.scores
    columns["unit_score"] = found.unit_scores
    columns["evidence"] = found.evidence
    columns["surprise"] = found.surprise
    columns |= {name: rows for name, rows in found.signals.items() if name not in columns}
    columns["alarm"] = found.predictions
    return pl.DataFrame(columns).with_columns(pl.col(pl.Float64).fill_nan(None))


def event_frame(events: Sequence[Event], zone: str | None = None) -> pl.DataFrame:
    """Events as a table, their times in their zone."""
    columns = event_columns(events)
    for name in _TIMES:
        if name in columns:
            columns[name] = zoned(name, columns[name], zone)
    return pl.DataFrame(columns).with_columns(pl.col(pl.Float64).fill_nan(None))


def write_results(
    run: Run,
    out: Path,
    kind: str,
    progress: Progress = silent,
    *,
    report: bool = True,
    excel: bool = False,
    add: Callable[[Path], None] | None = None,
) -> None:
    """Write scores, events, model, run and report into a folder that appears whole.

    `add` writes more into it.
    """
    if any(is_formula(name) for name in run.loaded.table.names):
        run.notes.append(
            "names that begin with =, +, - or @ get a ' in front in CSV files, so that no "
            "spreadsheet runs them"
        )
    with results_folder(out) as folder:
        progress("writing", 0, 3)
        write_tables(folder, run.loaded, run.found, kind, excel=excel)
        progress("writing", 1, 3)
        run.detector.save(folder / "model.vace")
        write_run(folder, run.record())
        progress("writing", 2, 3)
        if report:
            write_page(run, folder / "report.html")
        if add is not None:
            add(folder)
        progress("writing", 3, 3)


def write_page(run: Run, path: Path) -> None:
    """Write the report of a run."""
    source = run.loaded.source
    facts = {
        "input": source.words(),
        "checksum": f"sha256 {source.sha256}",
        "seed": str(run.detector.config.random_state),
        "engine": str(run.detector.facts_.get("engine", "")),
        "vace-ad": __version__,
    }
    data = report_data(
        Path(source.source).name,
        run.found,
        training=None if run.training.rows is None else (0, run.training.rows),
        notes=run.notes,
        facts=facts,
        command=run.command,
        rules=run.alarming.rules,
        units=source.units,
    )
    write_report(data, path)


def write_tables(
    folder: Path, loaded: Loaded, found: Detection, kind: str, *, excel: bool = False
) -> None:
    """Write the scores and the events, on request also for a spreadsheet."""
    zone = loaded.clock.zone
    if kind == "lookout":
        lines = "".join(f"{line}\n" for line in prediction_lines(loaded.table, found))
        (folder / "scores.jsonl").write_text(lines, encoding="utf-8")
    else:
        write_frame(score_frame(loaded.table, found, zone), folder / f"scores.{kind}")
    events = event_frame(found.events, zone)
    write_frame(events, folder / "events.csv")
    if excel:
        write_frame(events, folder / "events.xlsx")


def write_run(folder: Path, facts: dict[str, Any]) -> None:
    """Write run.json: how the results were made."""
    text = json.dumps(plain({**facts, "versions": versions()}), indent=2, allow_nan=False)
    (folder / RUN).write_text(text + "\n", encoding="utf-8")


def versions() -> dict[str, str]:
    """The versions that results depend on."""
    packages = ("vace-ad", "numpy", "openvino", "polars", "scikit-learn", "torch")
    found = {
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
    }
    for name in packages:
        with suppress(PackageNotFoundError):  # of an extra
            found[name] = version(name)
    return found


_TIMES = ("start_time", "end_time", "peak_time", "alarm_time")
_FIELDS = (
    *("kind", "start", "end", "peak", *_TIMES, "score", "ratio", "unit_score", "severity"),
    *("level", "probability", "probability_upper", "normal_rows", "signal", "conditions"),
    *("shares", "components", "readings", "partner", "lasting"),
)


def event_record(event: Event, zone: str | None = None) -> dict[str, Any]:
    """An event for JSON, its times in their zone."""
    record = {name: getattr(event, name) for name in _FIELDS}
    for name in _TIMES:
        record[name] = None if record[name] is None else iso_time(record[name], zone)
    record["shares"], record["components"] = dict(event.shares), dict(event.components)
    record["readings"] = [reading._asdict() for reading in event.readings]
    return record


def iso_time(time: np.datetime64, zone: str | None) -> str:
    """A time in ISO 8601: local with its offset where the zone is known, else as it stands."""
    local, offset = local_time(time, zone)
    return str(local).removesuffix(".000000000") + offset


def nanoseconds(stamp: str) -> int:
    """Nanoseconds since 1970 of a time that `iso_time` wrote."""
    clock, offset = split_offset(stamp)
    count = int(np.datetime64(clock, "ns").astype(np.int64))
    if not offset:
        return count
    minutes = int(offset[1:3]) * 60 + int(offset[4:])
    return count - (minutes if offset[0] == "+" else -minutes) * 60 * 10**9


def split_offset(stamp: str) -> tuple[str, str]:
    """An ISO time and the offset from UTC at its end, empty where there is none."""
    if len(stamp) > 6 and stamp[-6] in "+-" and stamp[-3] == ":":
        return stamp[:-6], stamp[-6:]
    return stamp, ""


def plain(value: Any) -> Any:
    """A value as JSON knows it: NaN becomes null, NumPy's numbers become Python's."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """Write a table as its suffix says, .parquet, .csv or .xlsx: whole, or not at all."""
    if path.suffix not in (".parquet", ".csv", ".xlsx"):
        raise ConfigError(f"{path.name!r}: a table is written as .parquet, .csv or .xlsx")
    with whole_file(path) as draft:
        if path.suffix == ".parquet":
            frame.write_parquet(draft)
        elif path.suffix == ".xlsx":
            _write_sheet(frame, draft)
        else:
            _for_csv(frame).write_csv(draft, datetime_format=_ISO)


def _write_sheet(frame: pl.DataFrame, path: Path) -> None:
    """One sheet with names in bold; times as dates in their zone, text never as formulas."""
    import polars.selectors as cs

    with needs("openpyxl", "excel", "writing an Excel workbook"):
        import openpyxl
    zoned = cs.datetime(time_zone="*")
    local = frame.with_columns(zoned.dt.replace_time_zone(None))  # a cell has no zone
    if frame.height >= _SHEET_ROWS:
        raise InputError(
            f"got {frame.height:,} rows; a sheet has {_SHEET_ROWS:,}, its header included: write "
            ".parquet or .csv"
        )
    book, bold = openpyxl.Workbook(), openpyxl.styles.Font(bold=True)
    sheet = book.active
    sheet.freeze_panes = "A2"
    for i, row in enumerate([frame.columns, *local.iter_rows()], 1):
        for j, value in enumerate(row, 1):
            cell = sheet.cell(i, j, value)
            if isinstance(value, str):
                cell.data_type = "s"  # words that begin like a formula stay words
            if i == 1:
                cell.font = bold
    with path.open("wb") as file:
        book.save(file)


def as_csv(frame: pl.DataFrame) -> str:
    """A table as CSV: times in ISO 8601 with their offset where the zone is known."""
    return _for_csv(frame).write_csv(datetime_format=_ISO)


def is_formula(text: str) -> bool:
    """Whether a spreadsheet that opens a CSV file would run a cell of this text."""
    return text.startswith(_FORMULA)


def _for_csv(frame: pl.DataFrame) -> pl.DataFrame:
    """Times and words as CSV takes them; words that begin like a formula get a quote in front."""
    import polars.selectors as cs

    return frame.with_columns(
        cs.string().str.replace(r"^([=+\-@\t\r])", "'$1"),
        cs.datetime(time_zone="*").dt.strftime(f"{_ISO}%:z"),
    )
