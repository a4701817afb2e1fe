"""`vace fit`, `vace score`, `vace inspect`: a model kept in a file between runs."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vace_ad.cli import fleet as many
from vace_ad.cli import options as opt
from vace_ad.cli import output as end
from vace_ad.cli.options import parameters
from vace_ad.cli.output import Output
from vace_ad.errors import ConfigError, ModelFileError, VaceError
from vace_ad.frames.read_options import TrainingOptions

if TYPE_CHECKING:
    from vace_ad.detector import VACE

_SUFFIX = ".vace"
_TRUST = {
    "healthy": "the shapes of the curves were learned well",
    "collapsed": "the shapes of the curves can hardly be told apart; other evidence counts more",
    "isotropic": "the curves look like noise; there may be little to learn from their shapes",
}


@parameters
def fit_command(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE…",
            help="Tables of normal operation, in any format that `vace detect` reads; - for "
            "standard input. No patch spans two tables.",
        ),
    ],
    *,
    model: Annotated[
        Path | None, typer.Option(help=f"File to write the model to, *{_SUFFIX}.")
    ] = None,
    settings: opt.DetectorOptions,
    training: opt.SkipOptions,
    how: opt.TableOptions,
    fleet: opt.FitFleet,
    shown: end.OutputOptions,
) -> None:
    """Fit a detector on tables of normal operation and write it to a file.

    Examples:

    vace fit normal.parquet --model plant.vace

    vace fit january.csv february.csv --model plant.vace --drop operator_note

    vace fit fleet/ --by machine --models models/ --jobs 4
    """
    from vace_ad.app.loading import load_tables
    from vace_ad.app.run import TrainingRows, fit_detector, within
    from vace_ad.frames.idle import word_columns

    output = Output.of(shown)
    config = settings.config()
    how = replace(how, states=word_columns(config))
    if _one_of(model, fleet, how) is None:
        many.fit_fleet(paths, how, config, fleet, output)
        return
    fleet.refuse_without_by()
    assert model is not None
    check_target(model)
    skip = training.train_skip or ()
    tables = [within(loaded, skip=skip) for loaded in load_tables(paths, how)]
    rows = sum(len(loaded.table) for loaded in tables)
    with output.progress() as progress:
        detector, notes = fit_detector(
            config, TrainingRows(tables, None, f"{rows:,} rows"), progress
        )
    save(detector, model)
    notes = [note for loaded in tables for note in loaded.notes] + notes
    output.say(f"{model}: {rows:,} rows × {len(detector.channels_)} channels learned", "bold")
    output.notes(notes)
    end.say_data(detector.facts_, output)
    _describe(detector, output)
    output.json({"model": str(model), "notes": notes, **_record(detector)})


@parameters
def score_command(
    paths: opt.TablePaths,
    *,
    model: Annotated[
        Path | None, typer.Option(help="Model file, from `vace fit` or a results folder.")
    ] = None,
    scores: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write the scores here, as .parquet, .csv or .xlsx; - prints CSV."
        ),
    ] = None,
    results: end.ResultOptions,
    alarms: opt.AlarmOptions,
    settings: opt.PlannedOptions,
    how: opt.KnownTable,
    fleet: opt.ScoreFleet,
    shown: end.OutputOptions,
) -> None:
    """Score a table with a model from `vace fit`, and find its events.

    Examples:

    vace score new.csv --model plant.vace

    vace score new.csv --model plant.vace --scores - | head

    vace score new.csv --model plant.vace --budget '1 per month' --out results/ --fail-on-events
    """
    from vace_ad.app.loading import load_table
    from vace_ad.app.results import check_out
    from vace_ad.app.run import TrainingRows, detect_with
    from vace_ad.config import VACEConfig
    from vace_ad.detector import load

    started = time.perf_counter()
    output = Output.of(shown, quiet=scores == "-")
    end.check_excel(results, how)
    alarming, planned = alarms.alarming(), settings.planned()
    if _one_of(model, fleet, how) is None:
        if scores is not None:
            raise ConfigError("--scores and --by cannot be combined; use --out for scores")
        training, config = TrainingOptions(), VACEConfig(**planned)
        many.detect_fleet(paths, how, config, alarming, training, fleet, results, output)
        return
    assert model is not None
    if results.out is not None:
        check_out(results.out, paths)
    if scores is not None:
        end.check_scores(scores, paths)
    detector = load(existing(model), **planned)
    if detector.feedback.active:
        output.say(f"  with {len(detector.feedback.active)} verdicts of {detector.feedback.path}")
    loaded = load_table(paths, how, detector.channels_)
    learned = TrainingRows([], None, f"{detector.facts_['rows']:,} rows, in {model}")
    with output.progress() as progress:
        run = detect_with(detector, loaded, learned, alarming, progress)
    run = replace(run, command=end.command_line(), started=started)
    if scores is not None:
        end.write_scores(scores, run)
    end.finish(run, results, output)


@parameters
def inspect_command(
    model: opt.ModelFile,
    shown: end.OutputOptions,
) -> None:
    """Describe a model file: channels, settings, training, geometry, alarms.

    Example: vace inspect plant.vace
    """
    from vace_ad.detector import load

    output = Output.of(shown)
    detector = load(existing(model))
    rows = detector.facts_["rows"]
    output.say(f"{model}: {len(detector.channels_)} channels, learned from {rows:,} rows", "bold")
    output.say(f"  channels: {', '.join(detector.channels_)}")
    output.say(f"  settings: {detector.settings_text}")
    end.say_data(detector.facts_, output, most=len(detector.channels_))
    _describe(detector, output)
    output.json({"model": str(model), **_record(detector)})


def _one_of(model: Path | None, fleet: opt.FleetOptions, how: opt.TableOptions) -> Path | None:
    """The one model file, None for a folder of models; refuses what does not go together."""
    if how.by is None and fleet.models is not None:
        raise ConfigError("--models needs --by; say which column names the machine")
    if how.by is not None and fleet.models is None:
        raise ConfigError("--by needs --models, a folder for a model of each machine")
    if how.by is None and model is None:
        raise ConfigError("no model was named; give --model FILE, or --by with --models FOLDER")
    if model is not None and fleet.models is not None:
        raise ConfigError("--model and --models cannot be combined; give one of them")
    return model


def existing(model: Path) -> Path:
    """The file of a model; refuses a path that is not a file."""
    if not model.is_file():
        raise ModelFileError(
            f"{model} {'is a folder' if model.is_dir() else 'does not exist'}; give a model file "
            "that `vace fit` wrote"
        )
    return model


def check_target(model: Path) -> None:
    """Refuse a place where no model can be written; called before any work is done."""
    from vace_ad.model import KIND
    from vace_ad.tensor_file import is_kind

    if not model.absolute().parent.is_dir():
        raise VaceError(f"the folder of {model} does not exist; create it, or give another place")
    if model.is_file() and model.stat().st_size and not is_kind(model, KIND):
        raise VaceError(
            f"{model} exists and is not a model, so it is not overwritten; give another name, "
            f"*{_SUFFIX}"
        )


def save(detector: VACE, model: Path) -> None:
    """Write a model, or raise one clear error."""
    from vace_ad.app.results import writing

    check_target(model)
    with writing(str(model)):
        detector.save(model)


def _describe(detector: VACE, output: Output) -> None:
    """Print a summary of a fitted detector."""
    from vace_ad.frames.time import duration_words
    from vace_ad.views.detector_repr import facts as learned

    facts, geometry = detector.facts_, detector.geometry_
    if facts.get("step_seconds"):
        output.say(f"  a row every {duration_words(facts['step_seconds'] * 1e9)}")
    output.say(f"  fitted in {sum(facts['seconds'].values()):.1f} s, engine {facts['engine']}")
    shape = detector.model_.shape
    if shape is not None:  # the file may come from a machine with another engine
        output.say(f"  scores here by {shape.engine.engine.name}")
    if geometry is not None:
        output.say(f"  {_TRUST[geometry.verdict]}")
    output.say(f"  alarms: {learned(detector)['alarms']}")


def _record(detector: VACE) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "channels": list(detector.channels_),
        "config": detector.config.to_dict(),
        "facts": dict(detector.facts_),
        "geometry": detector.geometry_ and asdict(detector.geometry_),
    }
