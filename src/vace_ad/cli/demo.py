"""`vace demo`: find the faults of a simulated plant, and say how well."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vace_ad.cli.output import Output, Quiet
from vace_ad.errors import MissingExtraError

if TYPE_CHECKING:
    from vace_ad.alarms import Event
    from vace_ad.demo import Plant


def demo_command(
    out: Annotated[
        Path, typer.Option(help="Folder for the report, events, scores and the model.")
    ] = Path("demo-results"),
    seed: Annotated[int, typer.Option(help="Another plant, other faults, another detector.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Find the faults of a simulated plant: the whole job in under a minute.

    Twelve sensors of a pumping station, a row every five minutes for thirty days. The first
    twelve days are normal and train the detector; then come six faults of different kinds.
    """
    from vace_ad import VACE
    from vace_ad.alarms import Budget
    from vace_ad.app.page import write_detection
    from vace_ad.app.results import check_out, event_frame, results_folder, score_frame, write_run
    from vace_ad.app.thresholds import told
    from vace_ad.demo import simulate
    from vace_ad.demo.picture import draw
    from vace_ad.frames import Table
    from vace_ad.frames.write import write_frame
    from vace_ad.metrics import evaluate, operational

    check_out(out)
    output = Output(as_json=False, quiet=quiet)
    plant = simulate(seed=seed)
    table = Table(plant.values, plant.names, plant.time)
    first = plant.train_rows
    started = time.perf_counter()
    with output.progress() as progress:
        training = Table(plant.values[:first], plant.names, plant.time[:first])
        detector = VACE(random_state=seed).fit(training, progress=progress)
        test = Table(plant.values[first:], plant.names, plant.time[first:])
        found = detector.detect(test, budget=Budget(1, "week"), progress=progress)
    seconds = time.perf_counter() - started
    output.say(
        f"{len(table):,} rows of {len(plant.names)} sensors: fitted on {first:,}, scored "
        f"{len(test):,}, explained {len(found.anomalies)} events, in {seconds:.1f} s"
    )
    output.say(f"{told(found)}: {found.threshold.words}\n")
    _print_events(output, plant, found.anomalies)
    labels = plant.labels[first:]
    measures = evaluate(labels, found.scores, window=96)
    output.say(
        f"\nVUS-PR {measures['VUS-PR']:.2f}, VUS-ROC {measures['VUS-ROC']:.2f}, "
        f"AUC-PR {measures['AUC-PR']:.2f}"
    )
    work = operational(labels, found.predictions, step_seconds=300)
    output.say(
        f"{work.events_found} of {work.events} faults found, "
        f"{work.false_alarms} false alarms in {len(test) * 300 / 86400:.0f} days"
    )
    with results_folder(out) as folder:
        write_frame(score_frame(test, found), folder / "scores.csv")
        write_frame(event_frame(found.events), folder / "events.csv")
        detector.save(folder / "model.vace")
        write_run(folder, {"command": "vace demo", "seed": seed, "measures": measures})
        spans = [(event.start + first, event.end + first) for event in found.anomalies]
        write_detection(found, folder / "report.html", detector, title="A simulated plant")
        with suppress(MissingExtraError):  # the report shows the same without matplotlib
            draw(plant, found.scores, found.limits, spans, folder / "picture.png")
    output.say(f"\nopen {out / 'report.html'}; scores, events and the model lie beside it", "bold")


def _print_events(output: Output, plant: Plant, events: Sequence[Event]) -> None:
    """What was found, when, how strong, and which fault it was; then what was missed."""
    from rich.table import Table as Printed

    from vace_ad.frames.zones import time_words

    printed = Printed(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("from", "to", "severity", "fault", "sensor at fault", "sensors blamed"):
        printed.add_column(name, justify="right" if name == "severity" else "left")
    seen = set()
    for event in events:
        start, end = event.start + plant.train_rows, event.end + plant.train_rows
        faults = [f for f in plant.faults if f.start < end and start < f.end]
        seen.update(faults)
        blamed = ", ".join(f"{name} {share:.0%}" for name, share in event.shares[:2])
        printed.add_row(
            time_words(plant.time[start], None),
            time_words(plant.time[end - 1], None),
            f"{event.severity:.0f}",
            ", ".join(f.kind for f in faults) or "none: a false alarm",
            ", ".join(f.sensor for f in faults),
            blamed,
        )
    for fault in plant.faults:
        if fault not in seen:
            when = (
                time_words(plant.time[fault.start], None),
                time_words(plant.time[fault.end - 1], None),
            )
            printed.add_row(*when, "–", f"{fault.kind}: missed", fault.sensor, "", style="yellow")
    output.console.print(printed)
