"""Output of commands: progress, a sparkline, a table of events, JSON, results."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import typer

from vace_ad.errors import ConfigError, InputError, needs
from vace_ad.progress import Progress, silent, terminal_bars
from vace_ad.settings import setting
from vace_ad.wording import plain_text, plural, rarity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from vace_ad.alarms import Event
    from vace_ad.alarms.forewarning import Forewarning
    from vace_ad.app.run import Run
    from vace_ad.frames.idle import Stretch
    from vace_ad.frames.read_options import ReadOptions

EVENTS_FOUND = 3  # exit status under --fail-on-events
_BLOCKS, _PLAIN_BLOCKS = "▁▂▃▄▅▆▇█", "_.-~=+*#"
_MOST_EVENTS = 20  # rows of the table on a terminal


class ScoreFormat(StrEnum):
    """How scores are written."""

    parquet = "parquet"
    csv = "csv"
    lookout = "lookout"


@dataclass(frozen=True)
class ResultOptions:
    """What is written, and the exit status."""

    out: Path | None = setting(
        None,
        "Folder for scores, events.csv, model.vace, run.json and report.html; results of an "
        "earlier run are replaced.",
    )
    score_format: ScoreFormat = setting(
        ScoreFormat.parquet,
        "File format of the scores in --out; lookout: JSON lines of Amazon Lookout for Equipment.",
        flag="--format",
    )
    excel: bool = setting(False, "Also write events.xlsx into --out.")
    fail_on_events: bool = setting(
        False, f"Exit with status {EVENTS_FOUND} when events were found."
    )


@dataclass(frozen=True)
class OutputOptions:
    """What is printed."""

    as_json: bool = setting(False, "Print one JSON object instead of text.", flag="--json")
    quiet: bool = setting(False, "Print errors only.", flag="--quiet,-q")
    debug: bool = setting(False, "Show the traceback of an error.")


class Output:
    """Prints results as text, as JSON, or not at all."""

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        from rich.console import Console

        self.as_json = as_json
        # A table that is piped on keeps its width; colours need a terminal (rich sees to that).
        width = None if sys.stdout.isatty() else 120
        self.console: Console = Console(
            quiet=quiet or as_json, highlight=False, soft_wrap=False, width=width
        )
        self.bars = not quiet and not as_json and sys.stderr.isatty()

    @classmethod
    def of(cls, options: OutputOptions, *, quiet: bool = False) -> Output:
        """By the options of a command."""
        return cls(as_json=options.as_json, quiet=options.quiet or quiet)

    def say(self, text: str, style: str | None = None) -> None:
        """Print a line of text."""
        text = plain_text(text)
        self.console.print(text, style=style, markup=False, emoji=False)

    def notes(self, notes: Sequence[str]) -> None:
        """Print notes."""
        for note in notes:
            told = plain_text(f"  note: {note}")
            for line in wrap(told, self.console.width, subsequent_indent=" " * 8):
                self.say(line, "yellow")

    def json(self, answer: dict[str, Any]) -> None:
        """Print the result as JSON, if that was asked for."""
        if self.as_json:
            from vace_ad.app.results import plain

            sys.stdout.write(json.dumps(plain(answer), indent=2, allow_nan=False) + "\n")

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Bars with the time left, one a stage, on standard error while it is a terminal."""
        if not self.bars:
            yield silent
            return
        with terminal_bars() as bars:
            yield bars

    def sparkline(
        self, scores: NDArray[np.float64], threshold: float, alarmed: NDArray[np.int8]
    ) -> None:
        """Draw the scores in one line, the highest of each span, alarms in red and marked."""
        from rich.text import Text

        blocks = _BLOCKS if self.console.encoding.lower().startswith("utf") else _PLAIN_BLOCKS
        line, marks = Text("  "), "  "
        for height, alarm in spark_heights(
            scores, threshold, alarmed, max(20, self.console.width - 4)
        ):
            line.append(" " if height is None else blocks[height], "red" if alarm else "cyan")
            marks += "^" if alarm else " "
        self.console.print(line)
        if marks.strip():
            self.say(marks.rstrip(), "red")

    def events(
        self,
        events: Sequence[Event],
        step: int | None,
        zone: str | None = None,
        units: Mapping[str, str] | None = None,
    ) -> None:
        """Print the most severe events as a table, in order of time, and what its signals mean."""
        from rich.table import Table
        from rich.text import Text

        from vace_ad.alarms.scan import WORDS

        if not events:
            return
        worst = sorted(  # missing data in the middle of the scale
            events, key=lambda one: -50.0 if math.isnan(one.severity) else -one.severity
        )[:_MOST_EVENTS]
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        table.add_column("")
        timed = any(event.start_time is not None for event in events)
        for name in ("start" if timed else "start row", "lasts"):
            table.add_column(name, no_wrap=True)
        for name in ("severity", "in normal operation"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("signal", no_wrap=True)
        table.add_column("sensors", overflow="fold")
        named = 3 if self.console.width >= 100 else 1
        for number, event in enumerate(events, 1):
            if event in worst:
                *cells, sensors = _cells(number, event, step, named, zone)
                told = [sensors, *_facts(event, units or {})]
                said = "\n".join(plain_text(line) for line in told if line)
                table.add_row(*(Text(plain_text(cell)) for cell in cells), Text(said))  # no markup
        self.console.print(table)
        for signal in dict.fromkeys(event.signal for event in events if event in worst):
            if signal in WORDS:
                self.say(f"  {signal}: {WORDS[signal]}", "dim")
        if len(events) > _MOST_EVENTS:
            self.say(f"  and {len(events) - _MOST_EVENTS} less severe ones; --out keeps them all")


def spark_heights(
    scores: NDArray[np.float64], threshold: float, alarmed: NDArray[np.int8], width: int
) -> Iterator[tuple[int | None, bool]]:
    """For each span of rows its highest score as a height from 0 to 7, None without any score.

    Heights follow the logarithm above the lowest score, so that a giant does not flatten the
    rest.
    """
    import numpy as np

    known = scores[np.isfinite(scores)]
    low = float(np.quantile(known, 0.05)) if len(known) else 0.0
    top = max(float(known.max()) if len(known) else 0.0, threshold) - low
    unit = max((threshold - low) / 4, top * 1e-6, 1e-12)
    edges = np.linspace(0, len(scores), min(width, len(scores)) + 1).astype(int)
    for a, b in pairwise(edges.tolist()):
        part = scores[a:b][np.isfinite(scores[a:b])]
        if not len(part):
            yield None, bool(alarmed[a:b].any())
            continue
        share = math.log1p(max(float(part.max()) - low, 0) / unit) / math.log1p(top / unit)
        yield min(7, int(8 * share)), bool(alarmed[a:b].any())


def _cells(number: int, event: Event, step: int | None, named: int, zone: str | None) -> list[str]:
    from vace_ad.frames.time import duration_words
    from vace_ad.frames.timestamps import time_words

    start = str(event.start) if event.start_time is None else time_words(event.start_time, zone)
    lasts = plural(event.rows, "row")
    if event.start_time is not None and event.end_time is not None and step is not None:
        whole = float(event.end_time - event.start_time) + (step if event.rows else 0)
        lasts = duration_words(whole)
    if math.isnan(event.severity):
        strength = ["", ""]
    else:
        strength = [f"{event.severity:.0f}", rarity(event.probability, event.normal_rows)]
    sensors = ", ".join(f"{name} {share:.0%}" for name, share in event.shares[:named])
    signal = event.signal or ("" if event.kind == "anomaly" else event.kind)
    signal = f"conditions: {event.conditions}" if event.conditions else signal
    return [f"{number}", start, lasts, *strength, signal, sensors]


def _facts(event: Event, units: Mapping[str, str]) -> list[str]:
    """The first suspect at the peak with its expected range, and further remarks."""
    from vace_ad.alarms.events import BECAME_NORMAL, pair_words, reading_words

    facts = [reading_words(one, units.get(one.channel, "")) for one in event.readings[:1]]
    return [*facts, pair_words(event), BECAME_NORMAL if event.lasting else ""]


def check_excel(results: ResultOptions, how: ReadOptions) -> None:
    """Refuse --excel where it cannot be used, before any work is done."""
    if not results.excel:
        return
    if results.out is None:
        raise ConfigError("--excel needs --out, the folder to write into")
    if how.by is not None:
        raise ConfigError("--excel and --by cannot be combined; a fleet's events are CSV")
    with needs("openpyxl", "excel", "writing an Excel workbook"):
        import openpyxl  # noqa: F401


def command_line() -> str:
    """The command that runs this again."""
    return shlex.join(["vace", *sys.argv[1:]])


def finish(run: Run, results: ResultOptions, output: Output) -> None:
    """Print and write the results of a run; exit with its status."""
    from vace_ad.app.results import write_results

    out = results.out
    if out is not None:
        with output.progress() as progress:
            write_results(run, out, results.score_format.value, progress, excel=results.excel)
    _say_run(run, out, output)
    if output.as_json:
        output.json({**run.record(), "out": None if out is None else str(out)})
    if run.found.events and results.fail_on_events:
        raise typer.Exit(EVENTS_FOUND)


def check_scores(place: str, inputs: Iterable[str]) -> None:
    """Refuse to write scores over a table that is read."""
    if place != "-" and Path(place).resolve() in {Path(name).resolve() for name in inputs}:
        raise InputError(f"--scores {place} is a table that is read; give another file")


def write_scores(place: str, run: Run) -> None:
    """Write the scores to a file, or as CSV to standard output."""
    from vace_ad.app.results import as_csv, score_frame, write_frame, writing

    frame = score_frame(run.loaded.table, run.found, run.loaded.clock.zone)
    if place == "-":
        sys.stdout.write(as_csv(frame))
        return
    with writing(place):
        write_frame(frame, Path(place))


def say_data(facts: Mapping[str, Any], output: Output, most: int = 3) -> None:
    """Print the grade of the training data, and the sensors that are not good."""
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
        words.append(f"{kind}: {rows:,} rows in {plural(len(own), 'stretch', 'stretches')}")
    return f"not judged: {'; '.join(words)}"


def forewarning_words(found: Forewarning) -> str:
    """How the events compare with labels."""
    from vace_ad.frames.time import duration_words

    words = f"labels: {found.found} of {len(found.faults)} faults found"
    if found.median_seconds is not None:
        lead = duration_words(round(found.median_seconds * 1e9))
        words += f", known {lead} before the failure (median)"
    words += f"; {plural(found.false_alarms, 'false alarm')}"
    if found.false_alarms_per_week is not None:
        words += f", {found.false_alarms_per_week:.2g} a week"
    return words


def _say_run(run: Run, out: Path | None, output: Output) -> None:
    from vace_ad.alarms.events import found_words
    from vace_ad.frames.time import duration_words
    from vace_ad.frames.timestamps import time_words, zone_words

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
    output.say(found_words(found.events), "bold")
    output.events(found.events, clock.step, clock.zone, run.loaded.source.units)
    if run.forewarning is not None:
        output.say(forewarning_words(run.forewarning))
    if out is not None:
        output.say(f"results in {out}; open {out / 'report.html'}")
