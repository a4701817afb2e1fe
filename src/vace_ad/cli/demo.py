"""`vace demo`: find the faults of a simulated plant, and evaluate the result."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from vace_ad.cli.output import Output
from vace_ad.errors import MissingExtraError
from vace_ad.wording import plural

if TYPE_CHECKING:
    from vace_ad.alarms import Event
    from vace_ad.demo import Plant

TABLE = "plant.csv"


def demo_command(
    out: Annotated[
        Path, typer.Option(help="Folder for the report, events, scores and the model.")
    ] = Path("demo-results"),
    seed: Annotated[
        int, typer.Option(help="Random seed of the plant, its faults and the detector.")
    ] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
) -> None:
    """Detect the faults of a simulated plant, in under a minute.

    Twelve sensors of a pumping station, a row every five minutes for thirty days. The first
    twelve days are normal and train the detector; then come six faults of different kinds.
    """
    from vace_ad.alarms import Budget
    from vace_ad.app.loading import load_table
    from vace_ad.app.results import check_out, write_results
    from vace_ad.app.run import Alarming, choose_training, fit_and_detect
    from vace_ad.config import VACEConfig
    from vace_ad.demo import simulate
    from vace_ad.demo.picture import draw
    from vace_ad.frames.read_options import ReadOptions, TrainingOptions
    from vace_ad.metrics import evaluate, operational

    check_out(out)
    output = Output(as_json=False, quiet=quiet)
    plant = simulate(seed=seed)
    first, config = plant.train_rows, VACEConfig(random_state=seed)
    command = f"vace detect {out / TABLE} --train-rows {first}" + f" --seed {seed}" * (seed != 0)
    started = time.perf_counter()
    with TemporaryDirectory() as folder, output.progress() as progress:
        table = Path(folder) / TABLE
        plant.frame().write_csv(table)
        loaded = load_table(table, ReadOptions(options=True))
        ways = TrainingOptions(train_rows=first)
        training = choose_training(loaded, config, ways, ReadOptions())
        run = fit_and_detect(loaded, training, config, Alarming(Budget()), progress)
    run = replace(run, command=command)
    found, rows = run.found, len(plant.values)
    output.say(
        f"{rows:,} rows of {len(plant.names)} sensors: fitted on {first:,}, scored "
        f"{rows - first:,}, explained {len(found.anomalies)} events, in "
        f"{time.perf_counter() - started:.1f} s"
    )
    output.say(f"alarms: {found.threshold.words}\n")
    _print_events(output, plant, found.anomalies)
    labels = plant.labels[first:]
    measures = evaluate(labels, found.scores[first:], window=96)
    output.say(
        f"\nVUS-PR {measures['VUS-PR']:.2f}, VUS-ROC {measures['VUS-ROC']:.2f}, "
        f"AUC-PR {measures['AUC-PR']:.2f}"
    )
    work = operational(labels, found.predictions[first:], step_seconds=300)
    output.say(
        f"{work.events_found} of {work.events} faults found, "
        f"{plural(work.false_alarms, 'false alarm')} in {len(labels) * 300 / 86400:.0f} days"
    )

    def add(folder: Path) -> None:
        plant.frame().write_csv(folder / TABLE)
        spans = [(event.start, event.end) for event in found.anomalies]
        with suppress(MissingExtraError):  # the report shows the same without matplotlib
            draw(plant, found.evidence[first:], found.limits[first:], spans, folder / "picture.png")

    write_results(run, out, "csv", add=add)
    output.say(f"\nopen {out / 'report.html'}; scores, events and the model lie beside it", "bold")
    output.say(f"the same from the table: {command}")


def _print_events(output: Output, plant: Plant, events: Sequence[Event]) -> None:
    """What was found, when, how strong, and which fault it was; then what was missed."""
    from rich.table import Table as Printed

    from vace_ad.frames.timestamps import time_words

    printed = Printed(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("from", "to", "severity", "fault", "sensor at fault", "sensors blamed"):
        printed.add_column(name, justify="right" if name == "severity" else "left")
    seen = set()
    for event in events:
        start, end = event.start, event.end
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
