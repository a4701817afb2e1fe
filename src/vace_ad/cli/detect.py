"""`vace detect`: train on the first part of a table, find the events of the rest."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from vace_ad.cli import alarm_options as alarm
from vace_ad.cli import finish as end
from vace_ad.cli import fitting as fit
from vace_ad.cli import fleet as many
from vace_ad.cli import output as say
from vace_ad.cli import tables as read
from vace_ad.cli.tables import MAX_SIZE
from vace_ad.errors import ConfigError


@say.interruptible
def detect_command(
    paths: read.TablePaths,
    out: end.Out = None,
    train_share: Annotated[
        float | None,
        typer.Option(help="Train on this first share of rows.", rich_help_panel=read.TRAINING),
    ] = None,
    train_rows: Annotated[
        int | None,
        typer.Option(help="Train on so many first rows.", rich_help_panel=read.TRAINING),
    ] = None,
    train_until: Annotated[
        str | None,
        typer.Option(
            help="Train on the rows before this time, for example 2026-03-01.",
            rich_help_panel=read.TRAINING,
        ),
    ] = None,
    train_file: Annotated[
        str | None,
        typer.Option(help="Train on this table instead.", rich_help_panel=read.TRAINING),
    ] = None,
    train_range: Annotated[
        list[str] | None,
        typer.Option(
            help="Train on this range of time, for example 2026-01-01..2026-02-01; may be given "
            "several times. All rows are then looked at.",
            metavar="FROM..TO",
            rich_help_panel=read.TRAINING,
        ),
    ] = None,
    train_skip: read.TrainSkip = None,
    where: read.Where = None,
    budget: alarm.BudgetOption = None,
    false_alarm_rate: alarm.FalseAlarmRate = None,
    threshold: alarm.ThresholdOption = None,
    step: alarm.Step = None,
    join: alarm.Join = 0,
    min_length: alarm.MinLength = 1,
    cooldown: alarm.Cooldown = 0,
    preset: fit.Preset = None,
    patch_length: fit.PatchLength = None,
    seed: fit.Seed = 0,
    settings: fit.Set = None,
    off: fit.Off = None,
    run_up: fit.RunUp = None,
    run_down: fit.RunDown = None,
    context: fit.Context = None,
    watch: fit.Watch = None,
    maintenance: fit.Maintenance = None,
    labels: fit.Labels = None,
    time_column: read.TimeColumn = None,
    time_zone: read.TimeZone = None,
    sort: read.Sort = False,
    resample: read.Resample = None,
    columns: read.Columns = None,
    drop: read.Drop = None,
    delimiter: read.Delimiter = None,
    decimal: read.Decimal = None,
    encoding: read.Encoding = None,
    header: read.Header = None,
    long: read.Long = None,
    by: read.By = None,
    sheet: read.Sheet = None,
    header_row: read.HeaderRow = None,
    query: read.Query = None,
    max_size: read.MaxSize = MAX_SIZE,
    shared: many.Shared = False,
    group: many.Group = None,
    jobs: many.Jobs = 1,
    engine: many.On = many.Where.local,
    address: many.Address = None,
    score_format: end.Format = end.ScoreFormat.parquet,
    excel: end.Excel = False,
    fail_on_events: end.FailOnEvents = False,
    as_json: say.Json = False,
    quiet: say.Quiet = False,
    debug: say.Debug = False,
) -> None:
    """Find what went wrong in a table of sensors, when, how rare that is, and in which sensors.

    The first 30 % of the rows are taken as normal operation, unless told otherwise.

    Examples:

    vace detect plant.csv

    vace detect plant.csv --train-until 2026-03-01 --budget '1 per week' --out results/

    vace detect today.csv --train-file last-month.parquet --fail-on-events || page-someone

    vace detect fleet/*.parquet --by machine --budget '3 per week' --jobs 4 --out results/
    """
    from vace_ad.app.loading import Reading, load_table
    from vace_ad.app.results import check_out
    from vace_ad.app.run import fit_and_detect
    from vace_ad.app.training import choose_training
    from vace_ad.frames.idle import word_columns

    started = time.perf_counter()
    output = say.Output(as_json=as_json, quiet=quiet)
    end.check_excel(excel, out, by)
    config = fit.make_config(preset, patch_length, seed, settings, locals())
    how = Reading.at_the_command_line({**locals(), "states": word_columns(config)})
    alarming = alarm.make_alarming(
        alarm.make_budget(budget, false_alarm_rate, threshold), join, min_length, cooldown, step
    )
    alarming.rules()  # refuses nonsense before any table is read
    if by is not None:
        from vace_ad.fleet.task import Choice

        given = {"share": train_share, "rows": train_rows, "until": train_until}
        also = next((name for name, value in given.items() if value is not None), None)
        if train_range or train_skip:
            raise ConfigError("--train-range and --train-skip are for one machine; --by came")
        if train_file is not None and also is not None:
            raise ConfigError(f"--train-{also} and --train-file both came; give one of them")
        many.detect_fleet(
            paths,
            how,
            config,
            alarming,
            Choice(train_share, train_rows, train_until),
            out=out,
            kind=score_format.value,
            jobs=jobs,
            engine=engine,
            address=address,
            shared=shared,
            group=group,
            train=train_file,
            output=output,
            fail_on_events=fail_on_events,
        )
        return
    many.refuse_without_by(by, shared=shared, group=group, address=address)
    if out is not None:
        check_out(out, paths)

    loaded = load_table(paths, how)
    training = choose_training(
        loaded,
        config,
        share=train_share,
        rows=train_rows,
        until=train_until,
        file=train_file,
        how=how,
        ranges=train_range or (),
        skip=train_skip or (),
    )
    with output.progress() as progress:
        run = fit_and_detect(
            loaded,
            training,
            config,
            alarming,
            command=end.command_line(),
            progress=progress,
            started=started,
        )
    end.finish(run, out, score_format, output, fail_on_events, excel)
