"""`vace bench`: run methods over TSB-AD-M, and make tables and figures of what came out."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from vace_ad.errors import ConfigError

bench_app = typer.Typer(
    help="Evaluate detectors on the TSB-AD-M benchmark, with the published numbers.",
    no_args_is_help=True,
    add_completion=False,
)


class Split(StrEnum):
    """The benchmark's own division of its series."""

    eval = "eval"
    tuning = "tuning"
    all = "all"


class EngineKind(StrEnum):
    """Where tasks run."""

    local = "local"
    ray = "ray"


class Format(StrEnum):
    """How a table is written."""

    table = "table"
    md = "md"
    csv = "csv"
    tex = "tex"


Run = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="Folder that `vace bench run` wrote, or a CSV file of its rows."
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(help="tsb-ad or test-only. Default: tsb-ad if the run contains it."),
]
Methods = Annotated[
    str,
    typer.Option(help="Comma-separated names; also published systems such as PCA or DeepAnT."),
]


@bench_app.command("run")
def run_command(
    data: Annotated[
        Path,
        typer.Option(help="Folder of TSB-AD-M: CSV, gzip or zstd CSV, or Parquet."),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the run; an existing run is resumed.")],
    methods: Annotated[
        str,
        typer.Option(
            help="Comma-separated names (`vace bench methods` lists them), the groups ablation "
            "and sensitivity, or package.module:Name for your own detector."
        ),
    ] = "vace,pca,iforest",
    protocol: Annotated[
        str, typer.Option(help="tsb-ad, test-only, or tsb-ad,test-only, which share a fit.")
    ] = "tsb-ad",
    seeds: Annotated[int, typer.Option(help="Number of seeds, counted from 0.")] = 1,
    split: Annotated[Split, typer.Option(help="Split of the benchmark.")] = Split.all,
    family: Annotated[
        str, typer.Option(help="Use only these families, for example SMAP,MSL.")
    ] = "",
    series: Annotated[
        str,
        typer.Option(help="Use only series whose name matches, for example '*_SMAP_id_2?_*'."),
    ] = "",
    jobs: Annotated[int, typer.Option(help="Number of tasks run in parallel.")] = 1,
    threads: Annotated[
        int | None,
        typer.Option(help="Threads per task. Default: number of cores divided by --jobs."),
    ] = None,
    engine: Annotated[
        EngineKind,
        typer.Option(
            help="Where to compute. local: processes on this machine; ray: a Ray cluster."
        ),
    ] = EngineKind.local,
    address: Annotated[
        str | None,
        typer.Option(help="Address of the Ray cluster, for example auto or ray://head:10001."),
    ] = None,
    keep_scores: Annotated[bool, typer.Option(help="Keep each row's scores as .npy.")] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help="Also evaluate the alarms of methods that raise them, at this budget, for example "
            "'1 in 10000 rows'; `vace bench table operating` shows them. Existing rows are not "
            "computed again.",
        ),
    ] = None,
    causes: Annotated[
        Path | None,
        typer.Option(help="With --budget: JSON file or folder of true channels, by series."),
    ] = None,
    retry_failed: Annotated[bool, typer.Option(help="Compute failed rows again.")] = False,
    stop_after: Annotated[
        float | None, typer.Option(metavar="MINUTES", help="Start no task after this time.")
    ] = None,
) -> None:
    """Run methods on series. A run that was stopped is resumed by the same command.

    Example: vace bench run --data TSB-AD-M --methods vace,pca --protocol tsb-ad,test-only
    --seeds 3 --jobs 2 --out runs/main
    """
    from rich.console import Console

    from vace_study.catalog import find_series
    from vace_study.progress import progress_for
    from vace_study.runner import Engine, Plan, run

    if ":" in methods:
        sys.path.insert(0, os.getcwd())  # detectors of the user's own lie here
    plan = Plan(
        series=find_series(data, split.value, _listed(family), _listed(series)),
        methods=_listed(methods),
        protocols=tuple(dict.fromkeys(_listed(protocol))),
        seeds=seeds,
        keep_scores=keep_scores,
        budget=budget,
        causes=None if causes is None else str(causes.resolve()),
    )
    if causes is not None:
        _check_causes(causes, budget)
    limit = inf if stop_after is None else 60 * stop_after
    place = Engine(engine.value, jobs, threads, address, limit)
    try:
        rows = run(plan, out, place, progress_for(Console(stderr=True)), retry_failed)
    except KeyboardInterrupt:
        typer.echo(f"stopped; rows so far are in {out}, the same command goes on", err=True)
        raise typer.Exit(130) from None
    good = sum(row.status == "ok" for row in rows)
    failed = sum(row.status == "failed" for row in rows)
    quiet = len(rows) - good - failed
    left = sum(len(task.keys) for task in plan.tasks()) - len(rows)
    typer.echo(
        f"{good} rows with measures, {failed} failed, {quiet} without anomalies in {out}"
        + (f"; {left} are left, the same command goes on" if left else ""),
        err=True,
    )
    for note in dict.fromkeys(f"{row.series}: {note}" for row in rows for note in row.notes):
        typer.echo(f"note: {note}", err=True)


@bench_app.command("table")
def table_command(
    name: Annotated[
        str,
        typer.Argument(
            help="main, ablation, sensitivity, category, geometry, msl, measures, operating, "
            "rivals or series."
        ),
    ],
    run: Run,
    format: Annotated[Format, typer.Option(help="Output format.")] = Format.table,
    protocol: Protocol = None,
    split: Annotated[
        Split | None,
        typer.Option(help="eval, tuning or all. Default: all; for the table sensitivity, tuning."),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(help="For the table main: method that others are compared with."),
    ] = None,
    measure: Annotated[
        str, typer.Option(help="For the table category: VUS-PR, PATE, DQE or another measure.")
    ] = "VUS-PR",
    common: Annotated[
        bool, typer.Option("--common", help="Use only series on which all methods have a result.")
    ] = False,
    columns: Annotated[
        str,
        typer.Option(
            help="Comma-separated names, or all. Default: all in md and csv; otherwise those that "
            "fit."
        ),
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="File to write to. Default: standard output.")
    ] = None,
) -> None:
    """Write a table of the paper from a run, with the published numbers.

    Example: vace bench table category runs/main --split eval --format csv
    """
    from vace_study.results import Results
    from vace_study.tables import SPLITS, TABLES
    from vace_study.tables.category import category_table
    from vace_study.tables.main import main_table

    _one_of(name, TABLES)
    part = split.value if split else SPLITS.get(name, "all")
    results = Results.load(run, protocol, part)
    if common:
        results = results.common()
    if name == "main":
        table = main_table(results, reference)
    elif name == "category":
        table = category_table(results, measure)
    else:
        table = TABLES[name](results)
    chosen = _listed(columns)
    if not chosen and format in (Format.table, Format.tex):
        chosen = list(table.narrow)
    if chosen and chosen != ["all"]:
        table = table.only(chosen)
    writers = {
        Format.table: table.to_text,
        Format.md: table.to_markdown,
        Format.csv: table.to_csv,
        Format.tex: table.to_latex,
    }
    text = writers[format]()
    if format is Format.csv:  # the cells alone go there, so say the rest here
        for line in (table.title, *table.notes):
            typer.echo(f"# {line}", err=True)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    else:
        typer.echo(text, nl=False)


@bench_app.command("figure")
def figure_command(
    name: Annotated[
        str,
        typer.Argument(
            help="scatter, density, geometry, categories, critical-difference, cost or series."
        ),
    ],
    run: Run,
    out: Annotated[Path, typer.Option(help="Folder for the PNG and the SVG.")],
    methods: Methods = "",
    protocol: Protocol = None,
    split: Annotated[Split, typer.Option(help="Split of the benchmark.")] = Split.all,
    data: Annotated[
        Path | None, typer.Option(help="For the figure series: folder of TSB-AD-M.")
    ] = None,
    series: Annotated[
        str, typer.Option(help="For the figure series: its name, for example 'MSL id_1'.")
    ] = "",
) -> None:
    """Draw a figure of the paper from a run, as PNG and SVG.

    scatter takes two or three methods and compares the first with the others; series needs a run
    with --keep-scores.

    Example: vace bench figure scatter runs/main --methods vace,pca,DeepAnT --out figures
    """
    from vace_study.figures import FIGURES
    from vace_study.figures.series import draw_series
    from vace_study.figures.style import save
    from vace_study.results import Results

    _one_of(name, [*FIGURES, "series"])
    results = Results.load(run, protocol, split.value)
    chosen = _listed(methods)
    if name == "series":
        if data is None or not series:
            raise ConfigError("the figure series needs --data DIR and --series NAME")
        figure, file = draw_series(results, chosen, run, data, series)
    else:
        figure, file = FIGURES[name](results, chosen), name
    for path in save(figure, out, f"{file}-{results.protocol}"):
        typer.echo(str(path))


@bench_app.command("fetch")
def fetch_command(
    dataset: Annotated[str, typer.Argument(help="tsb-ad-m")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Target folder.")],
) -> None:
    """Download the benchmark (540 MB, 2.4 GB unpacked) from its own address, and verify it.

    The same command resumes a download that was interrupted.
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    from vace_study.fetch import fetch

    _one_of(dataset, ["tsb-ad-m"])
    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        download = bar.add_task("download", total=None)
        paths = fetch(
            folder, told=lambda done, total: bar.update(download, completed=done, total=total)
        )
    typer.echo(f"{len(paths)} series in {paths[0].parent}")


@bench_app.command("methods")
def methods_command() -> None:
    """List the methods that can be run by name, and their groups."""
    from vace_study.baselines import names, resolve
    from vace_study.baselines.registry import groups

    for name in names():
        method = resolve(name)
        told = f"settings {method.config_hash}, version {method.version}"
        typer.echo(f"{name:28} {method.category:16} {told}")
    for group, members in groups().items():
        typer.echo(f"{group:28} {', '.join(members)}")


def _check_causes(causes: Path, budget: str | None) -> None:
    """Refuse a file without causes before any work is done."""
    from vace_ad.metrics.backtest import read_causes

    if budget is None:
        raise ConfigError("--causes came without --budget, which blame is judged with: add it")
    read_causes(causes)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _one_of(name: str, known: Collection[str]) -> None:
    if name not in known:
        raise ConfigError(f"there is no {name!r}; there are {', '.join(known)}")
