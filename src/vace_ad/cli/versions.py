"""`vace retrain` and `vace models`: replace a model by a newer one, and return to earlier ones."""

from __future__ import annotations

from typing import Annotated

import typer

from vace_ad.cli import options as opt
from vace_ad.cli.model import existing
from vace_ad.cli.options import parameters
from vace_ad.cli.output import Output, OutputOptions
from vace_ad.errors import ConfigError


@parameters
def retrain_command(
    model: opt.ModelFile,
    paths: Annotated[
        list[str], typer.Argument(metavar="TABLE…", help="Recent rows, read as one table.")
    ],
    *,
    share: Annotated[
        float | None,
        typer.Option(
            help="Share of the rows used for training; the rest is used for evaluation. "
            "Default: 0.7."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Evaluate both models, and change nothing.")
    ] = False,
    alarms: opt.BudgetOption,
    how: opt.RecentTable,
    shown: OutputOptions,
) -> None:
    """Fit a new model on recent rows, and use it only if it is not worse than the current one.

    Both models are evaluated on the last rows, which the new one was not trained on. The new model
    is used if it finds as many of the faults in --labels, and of those marked by feedback, with no
    more false alarms. The current one is kept; `vace models MODEL --back` returns to it. A state
    of `vace watch` belongs to one model: use a new state with the new model.

    Examples:

    vace retrain plant.vace recent.csv --labels faults.csv

    vace retrain plant.vace recent.csv --dry-run
    """
    from vace_ad.app.loading import load_table
    from vace_ad.app.retraining import SHARE, retrain
    from vace_ad.detector import load

    share = SHARE if share is None else share
    if not 0.1 <= share <= 0.9:
        raise ConfigError(f"--share {share}: must lie between 0.1 and 0.9")
    output = Output.of(shown)
    present = load(existing(model))
    loaded = load_table(paths, how, present.channels_)
    with output.progress() as progress:
        found = retrain(
            model,
            present,
            loaded.table,
            alarms.alarming().budget,
            faults=loaded.faults,
            share=share,
            dry_run=dry_run,
            progress=progress,
        )
    worth = {"present": found.present, "new": found.new}
    for name, one in worth.items():
        output.say(f"  {name}: {one.words} in {found.rows:,} rows")
    if found.version is not None:
        output.say(f"{model}: version {found.version.number} is in use", "bold")
    else:
        why = "nothing was changed" if found.better else "the new one is worse, so it is not taken"
        output.say(f"{model}: {why}", "bold")
    plain = {name: one._asdict() for name, one in worth.items()}
    output.json({"model": str(model), "taken": found.version is not None, **plain})


@parameters
def models_command(
    model: opt.ModelFile,
    *,
    back: Annotated[bool, typer.Option("--back", help="Return to the previous version.")] = False,
    use: Annotated[int | None, typer.Option(metavar="N", help="Use version N.")] = None,
    shown: OutputOptions,
) -> None:
    """List the versions of a model kept by `vace retrain`, or return to one of them.

    Examples:

    vace models plant.vace

    vace models plant.vace --back
    """
    from dataclasses import asdict

    from vace_ad.app.retraining import Versions

    if back and use is not None:
        raise ConfigError("--back and --use cannot be combined; give one of them")
    output = Output.of(shown)
    versions = Versions(existing(model))
    if back or use is not None:
        chosen = versions.back() if use is None else versions.use(use)
        output.say(f"{model}: version {chosen.number} is in use", "bold")
    if not versions.every:
        output.say(f"{model}: no other version is kept; `vace retrain` makes one")
    for one in versions.every:
        mark = "*" if one.number == versions.active else " "
        span = "" if one.trained is None else f", {one.trained[0]} to {one.trained[1]}"
        worth = (
            f"; {one.found} faults found, {one.false_alarms} false alarms in {one.judged_rows:,}"
        )
        output.say(f"{mark} {one.number}  {one.when}  {one.rows:,} rows{span}{worth} rows")
    plain = [asdict(one) for one in versions.every]
    output.json({"model": str(model), "active": versions.active, "versions": plain})
