"""`vace detect`: train on the first part of a table, find the events of the rest."""

from __future__ import annotations

import time
from dataclasses import replace

from vace_ad.cli import fleet as many
from vace_ad.cli import options as opt
from vace_ad.cli import output as end
from vace_ad.cli.options import parameters
from vace_ad.cli.output import Output
from vace_ad.frames.read_options import TrainingOptions


@parameters
def detect_command(
    paths: opt.TablePaths,
    results: end.ResultOptions,
    training: TrainingOptions,
    alarms: opt.AlarmOptions,
    settings: opt.DetectorOptions,
    how: opt.TableOptions,
    fleet: opt.DetectFleet,
    shown: end.OutputOptions,
) -> None:
    """Find the anomalous events of a table: when, how rare, and in which sensors.

    By default the first 30 % of the rows are used for training and must be normal operation.

    Examples:

    vace detect plant.csv

    vace detect plant.csv --train-until 2026-03-01 --budget '1 per week' --out results/

    vace detect today.csv --train-file last-month.parquet --fail-on-events || page-someone

    vace detect fleet/*.parquet --by machine --budget '3 per week' --jobs 4 --out results/
    """
    from vace_ad.app.loading import load_table
    from vace_ad.app.results import check_out
    from vace_ad.app.run import choose_training, fit_and_detect
    from vace_ad.frames.idle import word_columns

    started = time.perf_counter()
    output = Output.of(shown)
    end.check_excel(results, how)
    config, alarming = settings.config(), alarms.alarming()
    how = replace(how, states=word_columns(config))
    if how.by is not None:
        many.detect_fleet(paths, how, config, alarming, training, fleet, results, output)
        return
    fleet.refuse_without_by()
    if results.out is not None:
        check_out(results.out, paths)

    loaded = load_table(paths, how)
    chosen = choose_training(loaded, config, training, how)
    with output.progress() as progress:
        run = fit_and_detect(loaded, chosen, config, alarming, progress)
    run = replace(run, command=end.command_line(), started=started)
    end.finish(run, results, output)
