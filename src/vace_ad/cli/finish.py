"""The end of a run: say what was found, write the results folder, choose the exit status."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vace_ad.cli.output import Output, event_record, stamp
from vace_ad.cli.results import (
    results_folder,
    score_frame,
    write_run,
    write_tables,
    writing,
)

if TYPE_CHECKING:
    from vace_ad.alarms import Budget, Rules
    from vace_ad.alarms.detection import Detection
    from vace_ad.cli.fitting import Training
    from vace_ad.cli.tables import Loaded
    from vace_ad.detector import VACE
    from vace_ad.frames.table import Table

EVENTS_FOUND = 3  # exit status under --fail-on-events

Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for scores, events.csv, model.vace, run.json and report.html; results of an "
        "earlier run there are replaced.",
    ),
]


class ScoreFormat(StrEnum):
    """How scores are written."""

    parquet = "parquet"
    csv = "csv"


Format = Annotated[ScoreFormat, typer.Option("--format", help="Of the scores in --out.")]
FailOnEvents = Annotated[
    bool,
    typer.Option(
        "--fail-on-events", help=f"Exit with status {EVENTS_FOUND} when events were found."
    ),
]


@dataclass(frozen=True)
class Run:
    """One run of `detect` or `score`, for all that is written about it."""

    loaded: Loaded
    detector: VACE
    found: Detection
    budget: Budget
    rules: Rules
    training: Training
    notes: list[str]
    started: float  # of time.perf_counter

    def record(self) -> dict[str, Any]:
        """The run for programs."""
        source, table = self.loaded.source, self.loaded.table
        return {
            "command": command_line(),
            "input": {**asdict(source), "rows": len(table), "channels": list(table.names)},
            "time": asdict(self.loaded.clock),
            "training": self.training.record(),
            "config": self.detector.config.to_dict(),
            "seed": self.detector.config.random_state,
            "fit": self.detector.facts_,
            "geometry": asdict(self.detector.geometry_),
            "budget": asdict(self.budget),
            "rules": asdict(self.rules),
            "threshold": asdict(self.found.threshold),
            "notes": self.notes,
            "seconds": round(time.perf_counter() - self.started, 3),
            "events": [event_record(event) for event in self.found.events],
        }


def command_line() -> str:
    """What to type to run this again."""
    return shlex.join(["vace", *sys.argv[1:]])


def finish(
    run: Run, out: Path | None, kind: ScoreFormat, output: Output, fail_on_events: bool
) -> None:
    """Say and write everything about a run; leave with its exit status."""
    record = run.record()
    if out is not None:
        with results_folder(out) as folder, output.progress() as progress:
            progress("writing", 0, 3)
            write_tables(folder, run.loaded.table, run.found, kind.value)
            progress("writing", 1, 3)
            run.detector.save(folder / "model.vace")
            write_run(folder, record)
            progress("writing", 2, 3)
            _write_report(run, folder)
            progress("writing", 3, 3)
    _say(run, out, output)
    output.json({**record, "out": None if out is None else str(out)})
    if run.found.events and fail_on_events:
        raise typer.Exit(EVENTS_FOUND)


def write_scores(place: str, table: Table, found: Detection) -> None:
    """Write the scores to a file, or as CSV to standard output."""
    from vace_ad.frames.write import write_frame

    frame = score_frame(table, found)
    if place == "-":
        sys.stdout.write(frame.write_csv(datetime_format="%Y-%m-%dT%H:%M:%S%.f"))
        return
    with writing(place):
        write_frame(frame, Path(place))


def _write_report(run: Run, folder: Path) -> None:
    from vace_ad import __version__
    from vace_ad.cli.page import report_data
    from vace_ad.report import write_report

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
        run.detector,
        run.loaded.table,
        run.found,
        training=None if run.training.rows is None else (0, run.training.rows),
        zone=run.loaded.clock.zone,
        notes=run.notes,
        facts=facts,
        command=command_line(),
    )
    write_report(data, folder / "report.html")


def _say(run: Run, out: Path | None, output: Output) -> None:
    from vace_ad.frames.time import duration_words

    table, clock, found = run.loaded.table, run.loaded.clock, run.found
    name = Path(run.loaded.source.source).name
    parts = [f"{len(table):,} rows × {len(table.names)} channels"]
    if table.time is not None and clock.step is not None:
        parts.append(f"a row every {duration_words(clock.step)}")
        parts.append(f"{stamp(table.time[0])} to {stamp(table.time[-1])}")
    output.say(f"{name}: {', '.join(parts)}", "bold")
    output.say(f"  trained on {run.training.words}")
    output.say(f"  alarm above {found.threshold.value:.3g}: {found.threshold.words}")
    output.notes(run.notes)
    output.sparkline(found.scores, found.threshold.value, found.predictions)
    silent = len(found.events) - len(found.anomalies)
    words = f"{len(found.anomalies)} anomal{'y' if len(found.anomalies) == 1 else 'ies'}"
    words += f", {silent} time{'s' * (silent != 1)} without data" if silent else ""
    output.say(words if found.events else "nothing found", "bold")
    output.events(found.events, clock.step)
    if out is not None:
        output.say(f"results in {out}; open {out / 'report.html'}")
