"""`vace retrain` and `vace models`: a newer model where it is not worse, and the way back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from vace_ad.cli import options as opt
from vace_ad.cli.feedback import Model
from vace_ad.cli.model import existing
from vace_ad.cli.option_groups import parameters
from vace_ad.cli.output import Output
from vace_ad.errors import ConfigError, ModelFileError, TooShortError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vace_ad.alarms import Budget
    from vace_ad.detector import VACE
    from vace_ad.frames.spans import Span
    from vace_ad.frames.table import Table


SHARE = 0.7  # of the recent rows that the new model learns from; the others judge both


class Worth(NamedTuple):
    """The evaluation of a model on held-out rows."""

    found: int  # faults
    faults: int
    false_alarms: int

    @property
    def words(self) -> str:
        """In a few words."""
        faults = f"{self.found} of {self.faults} faults found, " if self.faults else ""
        return f"{faults}{self.false_alarms} false alarms"


@parameters
def retrain_command(
    model: Model,
    paths: Annotated[
        list[str], typer.Argument(metavar="TABLE…", help="Recent rows, read as one table.")
    ],
    *,
    share: Annotated[
        float,
        typer.Option(help="Share of the rows used for training; the rest is used for evaluation."),
    ] = SHARE,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Evaluate both models, and change nothing.")
    ] = False,
    alarms: opt.BudgetOption,
    how: opt.RecentTable,
    shown: opt.OutputOptions,
) -> None:
    """Fit a new model on recent rows, and use it only if it is not worse than the current one.

    Both alarm on the last rows, which the new one did not learn from: it is taken if it finds as
    many of the faults in --labels, and of those that feedback named, with no more false alarms. The
    present one is kept; `vace models MODEL --back` returns to it. A state of `vace watch` belongs
    to one model: give the new one a new state.

    Examples:

    vace retrain plant.vace recent.csv --labels faults.csv

    vace retrain plant.vace recent.csv --dry-run
    """
    from vace_ad.app.loading import load_table
    from vace_ad.detector import VACE, load
    from vace_ad.frames.spans import Span
    from vace_ad.frames.zones import time_words

    if not 0.1 <= share <= 0.9:
        raise ConfigError(f"--share {share}: must lie between 0.1 and 0.9")
    output = Output.of(shown)
    present = load(existing(model))
    versions = Versions(model)
    loaded = load_table(paths, how, present.channels_)
    table = loaded.table
    said = [one for one in present.feedback.active if one.verdict == "fault"]
    faults = [*loaded.faults, *(Span(str(one.start), str(one.end)) for one in said if one.start)]
    cut = int(share * len(table))
    if len(table) - cut < present.model_.reach:
        raise TooShortError(
            f"got {len(table):,} rows, of which {len(table) - cut:,} would judge; at least "
            f"{present.model_.reach} are needed for that: give more rows, or a smaller --share"
        )
    with output.progress() as progress:
        settings = present.get_params()
        new = VACE(**settings).fit(table[:cut], labels=faults or None, progress=progress)
    chosen = alarms.alarming().budget
    worth = {name: _worth(one, table, cut, faults, chosen) for name, one in
             (("present", present), ("new", new))}  # fmt: skip
    better = worth["new"].found >= worth["present"].found
    better &= worth["new"].false_alarms <= worth["present"].false_alarms
    for name, one in worth.items():
        output.say(f"  {name}: {one.words} in {len(table) - cut:,} rows")
    if better and not dry_run:
        if not versions.active:  # the first, or one that was fitted since
            versions.adopt(present, **_about(worth["present"], len(table) - cut))
        ends = None
        if table.time is not None:
            ends = tuple(time_words(table.time[row], table.zone) for row in (0, cut - 1))
        version = versions.adopt(new, trained=ends, **_about(worth["new"], len(table) - cut))
        output.say(f"{model}: version {version.number} is in use", "bold")
    else:
        why = "nothing was changed" if better else "the new one is worse, so it is not taken"
        output.say(f"{model}: {why}", "bold")
    plain = {name: one._asdict() for name, one in worth.items()}
    output.json({"model": str(model), "taken": better and not dry_run, **plain})


@parameters
def models_command(
    model: Model,
    *,
    back: Annotated[
        bool, typer.Option("--back", help="Return to the version before this one.")
    ] = False,
    use: Annotated[int | None, typer.Option(metavar="N", help="Put version N in use.")] = None,
    shown: opt.OutputOptions,
) -> None:
    """List the versions of a model that `vace retrain` kept, and go back to one.

    Examples:

    vace models plant.vace

    vace models plant.vace --back
    """
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


def _worth(
    detector: VACE, table: Table, first: int, faults: Sequence[Span], budget: Budget
) -> Worth:
    """What a model finds in the last rows; those before only warm it up."""
    from vace_ad.frames.spans import rows_of

    found = detector.detect(table, budget=budget, first=first).anomalies
    ranges = rows_of(faults, table.time, table.zone) if faults else []
    ranges = [(a, b) for a, b in ranges if b > first and a < b]

    def near(a: int, b: int) -> bool:
        return any(one.start < b and a < one.end for one in found)

    false = sum(not any(a < one.end and one.start < b for a, b in ranges) for one in found)
    return Worth(sum(near(a, b) for a, b in ranges), len(ranges), false)


def _about(worth: Worth, rows: int) -> dict[str, Any]:
    return {"found": worth.found, "false_alarms": worth.false_alarms, "judged_rows": rows}


@dataclass(frozen=True)
class Version:
    """One model that was in use."""

    number: int
    digest: str  # of all that shapes its scores
    when: str  # it came into use, in UTC
    rows: int  # that it learned from
    trained: tuple[str, str] | None = None  # its training range
    found: int | None = None  # faults, of those known when it was judged
    false_alarms: int | None = None
    judged_rows: int = 0


class Versions:
    """The versions of a model file, in the folder `plant.vace.versions` beside it."""

    def __init__(self, model: Path) -> None:
        self._model = model
        self._folder = model.with_name(model.name + ".versions")
        self._index = self._folder / "versions.json"
        self.every: list[Version] = []
        if not self._index.is_file():
            return
        try:
            known = json.loads(self._index.read_text("utf-8"))
            self.every = [
                Version(**{**one, "trained": tuple(one["trained"]) if one["trained"] else None})
                for one in known["versions"]
            ]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelFileError(
                f"{self._index} cannot be read ({type(error).__name__}); remove the folder to "
                "begin anew, or put the file back"
            ) from error

    @property
    def active(self) -> int:
        """Number of the version that the model file is; 0 for none: another was written there."""
        used = self._model.read_bytes() if self._model.is_file() else None
        kept = (one.number for one in reversed(self.every) if self.file(one.number).is_file())
        return next((one for one in kept if self.file(one).read_bytes() == used), 0)

    def file(self, number: int) -> Path:
        """Where a version is kept."""
        return self._folder / f"{number:04d}.vace"

    def adopt(self, detector: VACE, **about: Any) -> Version:
        """Keep a detector as the next version, and put it in use."""
        from vace_ad.tensor_file import write

        number = max((one.number for one in self.every), default=0) + 1
        now = datetime.now(UTC).isoformat(timespec="seconds")
        rows, digest = int(detector.facts_["rows"]), detector.model_.digest
        version = Version(number, digest, now, rows, **about)
        self._folder.mkdir(exist_ok=True)
        detector.model_.save(self.file(number))
        plain = {"versions": [asdict(one) for one in (*self.every, version)]}
        write(self._index, json.dumps(plain, indent=1).encode())
        self.every.append(version)
        self.use(number)
        return version

    def use(self, number: int) -> Version:
        """Put a version in use: the model file becomes it, whole or not at all."""
        from vace_ad.tensor_file import write

        version = next((one for one in self.every if one.number == number), None)
        if version is None or not self.file(number).is_file():
            known = ", ".join(str(one.number) for one in self.every) or "none"
            raise ModelFileError(f"{self._model} has no version {number}; kept are: {known}")
        write(self._model, self.file(number).read_bytes())
        return version

    def back(self) -> Version:
        """Put the version before the present one in use."""
        before = [one.number for one in self.every if one.number < self.active]
        if not before:
            raise ModelFileError(f"{self._model} has no version before this one to go back to")
        return self.use(before[-1])
