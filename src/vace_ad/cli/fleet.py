"""`--by` on the command line: many machines in one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from vace_ad.cli.options import FleetOptions, TableOptions
from vace_ad.cli.output import EVENTS_FOUND, Output, ResultOptions, command_line
from vace_ad.errors import ConfigError
from vace_ad.frames.read_options import TrainingOptions, at_most_one, names_of
from vace_ad.wording import listed, plain_text, plural

if TYPE_CHECKING:
    from vace_ad.app.run import Alarming
    from vace_ad.config import VACEConfig
    from vace_ad.fleet.fleet import Fleet
    from vace_ad.fleet.runner import FleetRun

_SHOWN = 20  # machines and incidents on a terminal


def detect_fleet(
    paths: Sequence[str],
    how: TableOptions,
    config: VACEConfig,
    alarming: Alarming,
    training: TrainingOptions,
    fleet: FleetOptions,
    results: ResultOptions,
    output: Output,
) -> None:
    """Find the events of every machine; print and write the overview."""
    from vace_ad.fleet.fleet import Fleet
    from vace_ad.fleet.overview import incident_frame, overview_frame, write_overview

    if training.train_range or training.train_skip:
        raise ConfigError("--train-range and --train-skip cannot be combined with --by")
    training.check()
    at_most_one(fleet, "shared", "group")
    out = results.out
    words = budget_words(alarming)
    with output.progress() as progress:
        common: dict[str, Any] = {
            "budget": alarming.budget,
            "rules": alarming.rules,
            "step": alarming.step,
            "folder": out,
            "score_format": results.score_format.value,
            "command": command_line(),
            "progress": progress,
        }
        if fleet.models is not None and config.calendar:
            raise ConfigError(
                "--calendar and --models cannot be combined: each model has the calendar that it "
                "was fitted with; fit them again for another one"
            )
        if fleet.models is not None:
            known = Fleet.load(
                fleet.models,
                names_of(how.by) or [],
                jobs=fleet.jobs,
                cluster=fleet.cluster,
                reading=how,
                maintenance=config.maintenance,
            )
            run = known.detect(paths, **common).run
        else:
            new = _fleet(how, config, fleet)
            leading = replace(training, train_file=None)
            found = new.fit_detect(paths, train=training.train_file, training=leading, **common)
            run = found.run
    if out is not None:
        facts = {"command": command_line(), "machines": len(run.rows), "budget": words}
        write_overview(run, out, facts, words)
    _say(run, words, out, output)
    output.json(
        {
            "command": command_line(),
            "out": None if out is None else str(out),
            "machines": overview_frame(run).to_dicts(),
            "incidents": incident_frame(run.incidents).to_dicts(),
            "notes": run.notes,
        }
    )
    _leave(run, results.fail_on_events)


def fit_fleet(
    paths: Sequence[str],
    how: TableOptions,
    config: VACEConfig,
    fleet: FleetOptions,
    output: Output,
) -> None:
    """Fit a model for each machine or group, and the shared one."""
    with output.progress() as progress:
        new = _fleet(how, config, fleet)
        run = new.fit(paths, folder=fleet.models, progress=progress).run_
    output.say(f"{fleet.models}: models of {run.count('ok'):,} machines", "bold")
    output.notes(run.notes)
    _failures(run, output)
    output.json(
        {
            "models": str(fleet.models),
            "machines": [
                {"machine": r.machine, "status": r.status, "error": r.error} for r in run.rows
            ],
            "notes": run.notes,
        }
    )


def _fleet(how: TableOptions, config: VACEConfig, fleet: FleetOptions) -> Fleet:
    from vace_ad.fleet.fleet import Fleet

    return Fleet(
        names_of(how.by) or [],
        shared=fleet.shared,
        group=fleet.group,
        jobs=fleet.jobs,
        cluster=fleet.cluster,
        reading=how,
        **config.to_dict(),
    )


def budget_words(alarming: Alarming) -> str:
    """The budget of the fleet for display."""
    budget = alarming.budget
    each = budget.per in ("threshold", "share")
    return f"{budget.words} {'on each machine' if each else 'over all machines'}"


def _say(run: FleetRun, budget: str, out: Path | None, output: Output) -> None:
    from vace_ad.fleet.overview import headline

    output.say(headline(run), "bold")
    output.say(f"  {budget}")
    output.notes(run.notes)
    _incidents(run, output)
    _machines(run, output)
    _failures(run, output)
    if out is not None:
        output.say(f"results in {out}; open {out / 'index.html'}")


def _incidents(run: FleetRun, output: Output) -> None:
    from vace_ad.fleet.incidents import short_time

    lines = []
    for number, one in enumerate(run.incidents[:_SHOWN], 1):
        lines.append(
            [
                str(number),
                short_time(one.start),
                f"{one.severity:.0f}",
                f"{len(one.machines):,}",
                listed(one.machines, 3),
                ", ".join(one.sensors[:2]),
            ]
        )
    _print(("incident", "from", "severity", "machines", "which", "sensors"), lines, output)
    if len(run.incidents) > _SHOWN:
        output.say(f"  and {len(run.incidents) - _SHOWN:,} less severe ones; --out keeps them all")


def _machines(run: FleetRun, output: Output) -> None:
    from vace_ad.fleet.incidents import short_time

    troubled = [row for row in run.rows if row.anomalies]
    lines = [
        [
            row.machine,
            f"{row.severity:.0f}",
            str(len(row.anomalies)),
            short_time(row.since),
            ", ".join(row.sensors[:2]),
        ]
        for row in troubled[:_SHOWN]
    ]
    _print(("machine", "severity", "events", "worst since", "sensors"), lines, output)
    if len(troubled) > _SHOWN:
        output.say(f"  and {len(troubled) - _SHOWN:,} more machines; --out keeps them all")


def _failures(run: FleetRun, output: Output) -> None:
    failed = [row for row in run.rows if row.status in ("failed", "short")]
    if failed:
        output.say(
            f"{len(failed):,} of {plural(len(run.rows), 'machine')} without a result:", "yellow"
        )
    for row in failed[:5]:
        output.say(f"  {row.machine}: {row.error}", "yellow")
    if len(failed) > 5:
        output.say(f"  and {len(failed) - 5:,} more", "yellow")


def _leave(run: FleetRun, fail_on_events: bool) -> None:
    if all(row.status in ("failed", "short") for row in run.rows):
        raise typer.Exit(2)
    if fail_on_events and any(row.events for row in run.rows):
        raise typer.Exit(EVENTS_FOUND)


def _print(head: Sequence[str], lines: Sequence[Sequence[str]], output: Output) -> None:
    from rich.table import Table
    from rich.text import Text

    if not lines:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in head:
        table.add_column(title, overflow="fold")
    for line in lines:
        table.add_row(*(Text(plain_text(cell)) for cell in line))
    output.console.print(table)
