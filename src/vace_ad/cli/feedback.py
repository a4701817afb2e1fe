"""`vace feedback` and `vace update`: verdicts on events, and incremental training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vace_ad.cli import options as opt
from vace_ad.cli.model import check_target, existing, save
from vace_ad.cli.options import parameters
from vace_ad.cli.output import Output, OutputOptions
from vace_ad.errors import FeedbackError
from vace_ad.settings import setting

if TYPE_CHECKING:
    from vace_ad.feedback import Verdict

_SAY = "What to do (give one)"


@dataclass(frozen=True)
class FeedbackOptions:
    """A verdict on an event, or a question about earlier verdicts."""

    normal: tuple[str, str] | None = setting(
        None, "Mark this range of times or rows as normal.", "START END", panel=_SAY
    )
    fault: tuple[str, str] | None = setting(
        None, "Mark this range of times or rows as a fault.", "START END", panel=_SAY
    )
    events: str | None = setting(
        None,
        "Mark event N of a results folder or its run.json as normal, for example results/#3; "
        "with --is-fault, as a fault.",
        "RUN#N",
        panel=_SAY,
    )
    is_fault: bool = setting(
        False, "With --events: mark it as a fault.", flag="--is-fault", panel=_SAY
    )
    undo: str | None = setting(None, "Remove the feedback with this ID.", "ID", panel=_SAY)
    listing: bool = setting(False, "List active feedback.", flag="--list", panel=_SAY)
    export: Path | None = setting(
        None,
        "Write the faults of active feedback as CSV of start,end, the form of --labels.",
        "FILE",
        panel=_SAY,
    )
    table: str | None = setting(
        None,
        "Table that contains the rows; needed to recognise similar events later. Default with "
        "--events: the table of that run.",
    )
    note: str = setting("", "Comment.")
    who: str = setting("", "Author.")


@parameters
def feedback_command(
    model: opt.ModelFile, *, told: FeedbackOptions, how: opt.OneTable, shown: OutputOptions
) -> None:
    """Mark an event as normal or as a fault; feedback is kept beside MODEL, in .feedback.jsonl.

    An event marked as normal raises no alarm when it recurs (`vace score` and `vace watch` read
    the file), and `vace update` trains on it. A fault is never trained on.

    Examples:

    vace feedback plant.vace --events results/#3 --note "pump service"

    vace feedback plant.vace --normal 2026-03-02T10:00 2026-03-02T11:30 --table march.csv

    vace feedback plant.vace --fault 2026-03-09 2026-03-10

    vace feedback plant.vace --list

    vace feedback plant.vace --undo 1f3a9c02

    vace feedback plant.vace --export faults.csv
    """
    from vace_ad.app.loading import load_table
    from vace_ad.detector import load

    ways = (told.normal, told.fault, told.events, told.undo, told.export)
    if sum(way is not None for way in ways) + told.listing != 1:
        raise FeedbackError("give one of --normal, --fault, --events, --list, --undo and --export")
    output = Output.of(shown)
    detector = load(existing(model))
    if told.undo is not None:
        output.say(detector.undo(told.undo).words())
    elif told.export is not None:
        output.say(_exported(detector.feedback.active, told.export))
    elif not told.listing:
        table, verdict = told.table, "normal" if told.normal else "fault"
        if told.events is not None:
            what, source = _event(told.events)
            table, verdict = table or source, "fault" if told.is_fault else "normal"
        rows = None if table is None else load_table([table], how, detector.channels_).table
        if told.events is None:
            zone = how.time_zone if rows is None else rows.zone
            what = _range(told.normal or told.fault or ("", ""), zone)
        said = detector.accept(what, rows, verdict=verdict, note=told.note, who=told.who)
        output.say(said.words())
    active = detector.feedback.active
    if told.listing:
        output.say(f"{detector.feedback.path}: {len(active)} active", "bold")
        for line in active:
            output.say(f"  {line.words()}")
    output.json({"feedback": [{**x.to_plain(), "pattern": x.pattern is not None} for x in active]})


@parameters
def update_command(
    model: opt.ModelFile,
    paths: Annotated[
        list[str], typer.Argument(metavar="TABLE…", help="Tables of normal operation to add.")
    ],
    *,
    out: Annotated[
        Path | None, typer.Option(help="File to write the model to. Default: replace MODEL.")
    ] = None,
    how: opt.OneTable,
    shown: OutputOptions,
) -> None:
    """Update a model with more rows of normal operation; the earlier rows are not needed.

    Ranges that `vace feedback` marked as faults are left out; events marked as normal are trained
    on. A state of `vace watch` belongs to one model: use a new state with the new model.

    Examples:

    vace update plant.vace april.csv

    vace update plant.vace april.csv may.csv --out plant-may.vace
    """
    from vace_ad.app.loading import load_table
    from vace_ad.detector import load

    output = Output.of(shown)
    detector = load(existing(model))
    check_target(out or model)
    loaded = [load_table([path], how, detector.channels_) for path in paths]
    rows = sum(len(one.table) for one in loaded)
    with output.progress() as progress:
        detector.update([one.table for one in loaded], progress=progress)
    target = out or model
    save(detector, target)
    seconds = detector.facts_["seconds"]["update"]
    output.say(f"{target}: {rows:,} rows learned besides the old ones, {seconds:.1f} s", "bold")
    output.notes([note for one in loaded for note in one.notes])
    output.json({"model": str(target), "rows": rows, "facts": dict(detector.facts_)})


def _exported(active: Sequence[Verdict], file: Path) -> str:
    """Write the faults that have a time as labels; return a summary."""
    from vace_ad.app.results import writing
    from vace_ad.atomic import write_text
    from vace_ad.frames.spans import Span, span_rows

    faults = [one for one in active if one.verdict == "fault"]
    spans = [
        Span(str(one.start), str(one.end), one.id, one.note)
        for one in faults
        if one.start is not None and one.end is not None
    ]
    if not spans:
        raise FeedbackError("no fault with a time was said, so there is nothing to export")
    with writing(str(file)):
        write_text(file, span_rows(spans))
    left = f"; {len(faults) - len(spans)} without a time left out" * (len(spans) < len(faults))
    return f"{file}: {len(spans)} faults{left}"


def _range(pair: tuple[str, str], zone: str | None) -> tuple[Any, Any]:
    """Rows where both are whole numbers, else times in the zone of the table."""
    import numpy as np

    from vace_ad.frames.timestamps import moment

    if all(text.isdigit() and len(text) != 4 for text in pair):
        return int(pair[0]), int(pair[1])
    start, end = (moment(text, zone) for text in pair)
    return pair if np.isnat(start) or np.isnat(end) else (start, end)


def _event(place: str) -> tuple[Any, str | None]:
    """An event of a run, counted from 1, and the table of the run."""
    import numpy as np

    from vace_ad.alarms import Event
    from vace_ad.app.results import nanoseconds

    name, _, number = place.rpartition("#")
    path = Path(name)
    path = path / "run.json" if path.is_dir() else path
    try:
        run = json.loads(path.read_text("utf-8"))
        found = run["events"]
        one = found[int(number) - 1] if int(number) > 0 else None
        if one is None:
            raise IndexError
        ratio = one.get("ratio")
        start, end = (
            one[key] and np.datetime64(nanoseconds(one[key]), "ns")
            for key in ("start_time", "end_time")
        )
        event = Event(
            int(one["start"]),
            int(one["end"]),
            int(one["peak"]),
            ratio=float("nan") if ratio is None else float(ratio),
            shares=tuple((str(k), float(v)) for k, v in one["shares"].items()),
            start_time=start,
            end_time=end,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FeedbackError(
            f"--events {place}: no run can be read there ({type(error).__name__}); write results/#3"
        ) from error
    except IndexError:
        raise FeedbackError(f"--events {place}: the run has {len(found)} events") from None
    source = run.get("input", {}).get("source")
    return event, source if isinstance(source, str) and Path(source).is_file() else None
