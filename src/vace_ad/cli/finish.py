"""The end of a run: say what was found, write the results folder, choose the exit status."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vace_ad.cli.output import Output
from vace_ad.errors import ConfigError, InputError, needs

if TYPE_CHECKING:
    from vace_ad.app.run import Run
    from vace_ad.frames.idle import Stretch
    from vace_ad.metrics.forewarning import Forewarning

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
Excel = Annotated[
    bool,
    typer.Option("--excel", help="Also write events.xlsx into --out, for a spreadsheet."),
]
FailOnEvents = Annotated[
    bool,
    typer.Option(
        "--fail-on-events", help=f"Exit with status {EVENTS_FOUND} when events were found."
    ),
]


def check_excel(excel: bool, out: Path | None, by: str | None) -> None:
    """Refuse --excel where it could not be followed, before any work is done."""
    if not excel:
        return
    if out is None or by is not None:
        raise ConfigError(
            "--excel needs --out, the folder to write into"
            if out is None
            else "--excel and --by both came; the events of a fleet are written as CSV alone"
        )
    with needs("openpyxl", "excel", "writing an Excel workbook"):
        import openpyxl  # noqa: F401


def command_line() -> str:
    """What to type to run this again."""
    return shlex.join(["vace", *sys.argv[1:]])


def finish(
    run: Run,
    out: Path | None,
    kind: ScoreFormat,
    output: Output,
    fail_on_events: bool,
    excel: bool = False,
) -> None:
    """Say and write everything about a run; leave with its exit status."""
    from vace_ad.app.run import write_results

    if out is not None:
        with output.progress() as progress:
            write_results(run, out, kind.value, progress, excel=excel)
    _say(run, out, output)
    output.json({**run.record(), "out": None if out is None else str(out)})
    if run.found.events and fail_on_events:
        raise typer.Exit(EVENTS_FOUND)


def check_scores(place: str, inputs: Iterable[str]) -> None:
    """Refuse to write scores over a table that is read."""
    if place != "-" and Path(place).resolve() in {Path(name).resolve() for name in inputs}:
        raise InputError(f"--scores {place} is a table that is read; give another file")


def write_scores(place: str, run: Run) -> None:
    """Write the scores to a file, or as CSV to standard output."""
    from vace_ad.app.results import score_frame, writing
    from vace_ad.frames.write import as_csv, write_frame

    frame = score_frame(run.loaded.table, run.found, run.loaded.clock.zone)
    if place == "-":
        sys.stdout.write(as_csv(frame))
        return
    with writing(place):
        write_frame(frame, Path(place))


def say_data(facts: Mapping[str, Any], output: Output, most: int = 3) -> None:
    """The verdict on the training data, and the sensors that are not good."""
    data = facts.get("data")
    if data is None:
        return
    output.say(f"  training data: {data['grade']}" + (f" ({data['why']})" if data["why"] else ""))
    worse = sorted(
        (one for one in data["sensors"] if one["grade"] != "good"),
        key=lambda one: one["grade"] != "poor",
    )
    for one in worse[:most]:
        output.say(f"    {one['name']}: {one['grade']}, {', '.join(one['found'])}")
    if len(worse) > most:
        output.say(f"    and {len(worse) - most} more; `vace inspect MODEL` lists them all")


def idle_words(stretches: Sequence[Stretch]) -> str:
    """How long a machine was off or under maintenance."""
    words = []
    for kind in dict.fromkeys(one.kind for one in stretches):
        own = [one for one in stretches if one.kind == kind]
        rows = sum(one.end - one.start for one in own)
        words.append(f"{kind}: {rows:,} rows in {len(own)} stretch{'es' * (len(own) > 1)}")
    return f"not judged: {'; '.join(words)}"


def forewarning_words(found: Forewarning) -> str:
    """What events were worth against labels."""
    from vace_ad.frames.time import duration_words

    words = f"labels: {found.found} of {len(found.faults)} faults found"
    if found.median_seconds is not None:
        lead = duration_words(round(found.median_seconds * 1e9))
        words += f", known {lead} before the failure (median)"
    words += f"; {found.false_alarms} false alarm{'s' * (found.false_alarms != 1)}"
    if found.false_alarms_per_week is not None:
        words += f", {found.false_alarms_per_week:.2g} a week"
    return words


def _say(run: Run, out: Path | None, output: Output) -> None:
    from vace_ad.frames.time import duration_words
    from vace_ad.frames.zones import time_words, zone_words
    from vace_ad.plain import plural

    table, clock, found = run.loaded.table, run.loaded.clock, run.found
    name = Path(run.loaded.source.source).name
    parts = [f"{len(table):,} rows × {len(table.names)} channels"]
    if table.time is not None and clock.step is not None:
        parts.append(f"a row every {duration_words(clock.step)}")
        first, last = (time_words(table.time[row], clock.zone) for row in (0, -1))
        parts.append(f"{first} to {last} {zone_words(clock.zone)}".rstrip())
    output.say(f"{name}: {', '.join(parts)}", "bold")
    output.say(f"  trained on {run.training.words}")
    output.say(f"  alarms: {found.threshold.words}")
    say_data(run.detector.facts_, output)
    if found.idle:
        output.say(f"  {idle_words(found.idle)}")
    output.notes(run.notes)
    output.sparkline(found.evidence, 1.0, found.predictions)
    silent, outside = found.count("no data"), found.count("conditions")
    words = plural(len(found.anomalies), "anomaly", "anomalies")
    words += f", {plural(silent, 'time')} without data" if silent else ""
    words += f", {outside} under conditions outside training" if outside else ""
    output.say(words if found.events else "nothing found", "bold")
    output.events(found.events, clock.step, clock.zone, run.loaded.source.units)
    if run.forewarning is not None:
        output.say(forewarning_words(run.forewarning))
    if out is not None:
        output.say(f"results in {out}; open {out / 'report.html'}")
