"""`--by` on the command line: many machines in one run, and what is said about them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vace_ad.cli.finish import EVENTS_FOUND, command_line
from vace_ad.cli.output import Output
from vace_ad.errors import ConfigError
from vace_ad.plain import plain_text, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vace_ad.app.loading import Reading
    from vace_ad.app.run import Alarming
    from vace_ad.config import VACEConfig
    from vace_ad.fleet.runner import FleetRun
    from vace_ad.fleet.task import Choice

_FLEET = "Many machines (with --by)"
_SHOWN = 20  # machines and incidents on a terminal


class Where(StrEnum):
    """Where machines are worked on."""

    local = "local"
    ray = "ray"


Jobs = Annotated[
    int, typer.Option(help="Machines worked on at a time.", min=1, rich_help_panel=_FLEET)
]
Shared = Annotated[
    bool,
    typer.Option("--shared", help="One model for all machines.", rich_help_panel=_FLEET),
]
Group = Annotated[
    str | None,
    typer.Option(
        help="One model for all machines with the same value in this column, which --by names "
        "too, e.g. --by site,machine --group site.",
        rich_help_panel=_FLEET,
    ),
]
On = Annotated[
    Where,
    typer.Option(
        "--engine", help="local: processes here; ray: a Ray cluster.", rich_help_panel=_FLEET
    ),
]
Address = Annotated[
    str | None, typer.Option(help="Of the Ray cluster, e.g. auto.", rich_help_panel=_FLEET)
]
Models = Annotated[
    Path | None,
    typer.Option(help="Folder of a model for each machine.", rich_help_panel=_FLEET),
]


def refuse_without_by(by: str | None, **given: Any) -> None:
    """Options for fleets mean nothing for one table."""
    for name, value in given.items():
        if by is None and value:
            raise ConfigError(f"--{name} came without --by; say which column names the machine")


def detect_fleet(
    paths: Sequence[str],
    how: Reading,
    config: VACEConfig,
    alarming: Alarming,
    choice: Choice,
    *,
    out: Path | None,
    kind: str,
    jobs: int,
    engine: Where,
    address: str | None,
    shared: bool = False,
    group: str | None = None,
    models: Path | None = None,
    train: str | None = None,
    output: Output,
    fail_on_events: bool,
) -> None:
    """Find the events of every machine; say and write the overview."""
    from vace_ad.fleet.overview import incident_frame, overview_frame, write_overview
    from vace_ad.fleet.runner import Engine, run_fleet
    from vace_ad.fleet.task import Job

    if shared and group is not None:
        raise ConfigError("--shared and --group both came; give one of them")
    with _folder(out) as folder:
        job = Job(
            how,
            config,
            alarming,
            choice,
            machines=None if out is None else str(folder / "machines"),
            kind=kind,
            command=command_line(),
        )
        place = Engine(engine.value, jobs, address=address)
        with output.progress() as progress:
            run = run_fleet(
                paths,
                job,
                folder,
                engine=place,
                shared=shared,
                group=group,
                models=models,
                train=train,
                progress=progress,
            )
        words = budget_words(alarming)
        if out is not None:
            facts = {"command": job.command, "machines": len(run.rows), "budget": words}
            write_overview(run, folder, facts, words)
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
    _leave(run, fail_on_events)


def fit_fleet(
    paths: Sequence[str],
    how: Reading,
    config: VACEConfig,
    models: Path,
    *,
    jobs: int,
    engine: Where,
    address: str | None,
    group: str | None,
    output: Output,
) -> None:
    """Learn a model for each machine or group, and the shared one."""
    from vace_ad.app.loading import names_of
    from vace_ad.fleet.runner import Engine, run_fleet, write_models
    from vace_ad.fleet.task import Job

    job = Job(how, config, None, models=str(models), command=command_line())
    with output.progress() as progress:
        run = run_fleet(
            paths,
            job,
            models,
            engine=Engine(engine.value, jobs, address=address),
            group=group,
            progress=progress,
        )
    write_models(models, run.rows, names_of(how.by) or [])
    output.say(f"{models}: models of {run.count('ok'):,} machines", "bold")
    output.notes(run.notes)
    _failures(run, output)
    output.json(
        {
            "models": str(models),
            "machines": [
                {"machine": r.machine, "status": r.status, "error": r.error} for r in run.rows
            ],
            "notes": run.notes,
        }
    )


def budget_words(alarming: Alarming) -> str:
    """The fleet's budget for people."""
    budget = alarming.budget
    each = budget.per in ("threshold", "share")
    return f"{budget.words} {'on each machine' if each else 'over all machines'}"


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    if out is not None:
        yield out
        return
    with TemporaryDirectory(prefix="vace-fleet-") as folder:
        yield Path(folder)


def _say(run: FleetRun, budget: str, out: Path | None, output: Output) -> None:
    from vace_ad.fleet.page import headline

    output.say(headline(run), "bold")
    output.say(f"  {budget}")
    output.notes(run.notes)
    _incidents(run, output)
    _machines(run, output)
    _failures(run, output)
    if out is not None:
        output.say(f"results in {out}; open {out / 'index.html'}")


def _incidents(run: FleetRun, output: Output) -> None:
    from vace_ad.fleet.clock import short_time

    lines = []
    for number, one in enumerate(run.incidents[:_SHOWN], 1):
        more = f" and {len(one.machines) - 3:,} more" if len(one.machines) > 3 else ""
        lines.append(
            [
                str(number),
                short_time(one.start),
                f"{one.severity:.0f}",
                f"{len(one.machines):,}",
                ", ".join(one.machines[:3]) + more,
                ", ".join(one.sensors[:2]),
            ]
        )
    _print(("incident", "from", "severity", "machines", "which", "sensors"), lines, output)
    if len(run.incidents) > _SHOWN:
        output.say(f"  and {len(run.incidents) - _SHOWN:,} less severe ones; --out keeps them all")


def _machines(run: FleetRun, output: Output) -> None:
    from vace_ad.fleet.clock import short_time
    from vace_ad.fleet.overview import sensors_of, since

    troubled = [row for row in run.rows if row.anomalies]
    lines = [
        [
            row.machine,
            f"{row.severity:.0f}",
            str(len(row.anomalies)),
            short_time(since(row)),
            ", ".join(sensors_of(row)[:2]),
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
