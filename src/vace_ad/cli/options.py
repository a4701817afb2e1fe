"""Options that several commands share, each declared once, in groups that are dataclasses.

A command takes whole groups; typer sees one option a field.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

import typer

from vace_ad.config import PLANNED
from vace_ad.errors import ConfigError, VaceError
from vace_ad.frames.read_options import (
    PLANT,
    Names,
    ReadOptions,
    TrainingOptions,
    at_most_one,
    names_of,
)
from vace_ad.settings import setting

if TYPE_CHECKING:
    from vace_ad.app.run import Alarming
    from vace_ad.config import VACEConfig

_ALARMS = (
    "When to alarm (give one; default: one false alarm a week, or in 10,000 rows without time)"
)
_EVENTS = "What makes one event"
_DETECTOR = "The detector"
_FLEET = "Many machines (with --by)"


class Without(tuple[str, ...]):
    """Fields of a group that a command does not take."""


class Only(tuple[str, ...]):
    """The fields of a group that a command takes."""


def parameters(run: Callable[..., None]) -> Callable[..., None]:
    """A command for typer, whose groups of options are single ones; Ctrl-C is one sentence."""
    hints = get_type_hints(run, include_extras=True)
    groups: dict[str, tuple[Any, list[str]]] = {}
    shown: list[inspect.Parameter] = []
    for one in inspect.signature(run).parameters.values():
        group, *rest = _parts(hints[one.name])
        if not is_dataclass(group):
            kind = inspect.Parameter.KEYWORD_ONLY
            shown.append(one.replace(annotation=hints[one.name], kind=kind))
            continue
        singles = _options(group)
        for names in rest:
            singles = [each for each in singles if (each.name in names) == isinstance(names, Only)]
        groups[one.name] = group, [single.name for single in singles]
        shown += singles

    def command(**given: Any) -> None:
        for name, (group, names) in groups.items():
            given[name] = group(**{each: given.pop(each) for each in names})
        try:
            run(**given)
        except KeyboardInterrupt as error:
            raise VaceError("interrupted; nothing was written") from error

    command.__doc__, command.__name__ = run.__doc__, run.__name__
    command.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in shown}
    return command


def _parts(hint: Any) -> Sequence[Any]:
    return get_args(hint) if get_origin(hint) is Annotated else [hint]


def _options(group: Any) -> list[inspect.Parameter]:
    """The fields of a group that are settings, as parameters that typer reads."""
    hints = get_type_hints(group)
    typed: Mapping[Any, Any] = {Names: str | None, str | int: str}
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=each.default,
            annotation=Annotated[
                typed.get(hints[each.name], hints[each.name]), _option(each, group)
            ],
        )
        for each in fields(group)
        if "help" in each.metadata
    ]


def _option(each: Any, group: Any) -> Any:
    words = each.metadata
    flag = words["flag"] or f"--{each.name.replace('_', '-')}"
    assert each.default is not MISSING
    return typer.Option(
        *flag.split(","),
        help=words["help"],
        metavar=words["metavar"],
        rich_help_panel=words["panel"] or getattr(group, "PANEL", None),
    )


@dataclass(frozen=True)
class TableOptions(ReadOptions):
    """How to read a table, as the options of a command say."""

    options: bool = True


KnownTable = Annotated[TableOptions, Without(("columns", "drop", "where"))]  # of a model's channels
OneTable = Annotated[TableOptions, Without(("columns", "drop", "where", "by", "labels"))]
RecentTable = Annotated[TableOptions, Without(("columns", "drop", "where", "by"))]

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file, *.vace.")]
TablePaths = Annotated[
    list[str],
    typer.Argument(
        metavar="TABLE…",
        help="CSV (also .gz or .zst), Parquet, Arrow, Excel, JSON lines, Prometheus JSON or "
        "InfluxDB line protocol; - for standard input. Several files, a folder, a glob or a "
        "pattern such as data/{machine}.csv are read as one table; sqlite:///plant.db is read "
        "with --query. Delimiter, decimal sign, encoding, header and time column are recognised.",
    ),
]


SkipOptions = Annotated[TrainingOptions, Only(("train_skip",))]


@dataclass(frozen=True)
class AlarmOptions:
    """When to alarm, and what makes one event."""

    PANEL: ClassVar = _ALARMS

    budget: str | None = setting(
        None, "False alarms to accept, for example '1 per week', '2 a day' or '1 in 10000 rows'."
    )
    false_alarm_rate: float | None = setting(
        None, "Share of normal rows whose score is above the threshold, for example 0.001."
    )
    threshold: float | None = setting(None, "Fixed threshold of the score.")
    step: str | None = setting(
        None, "Time between rows of a table without a time column, for example 10s."
    )
    join: int = setting(0, "Merge events that are at most this many rows apart.", panel=_EVENTS)
    min_length: int = setting(1, "Drop events with fewer rows than this.", panel=_EVENTS)
    cooldown: int = setting(
        0, "Drop events that begin within this many rows after the end of another.", panel=_EVENTS
    )

    def alarming(self) -> Alarming:
        """The one budget that was given or the default, with the rules; both are checked."""
        from vace_ad.alarms import Budget, Rules
        from vace_ad.app.run import Alarming
        from vace_ad.frames.timestamps import parse_duration

        at_most_one(self, "budget", "false_alarm_rate", "threshold")
        if self.false_alarm_rate is not None:
            budget = Budget(self.false_alarm_rate, "share")
        elif self.threshold is not None:
            budget = Budget(self.threshold, "threshold")
        else:
            budget = Budget.of(self.budget)
        step = None if self.step is None else parse_duration(self.step)
        return Alarming(budget, Rules(self.join, self.min_length, self.cooldown), step)


BudgetOption = Annotated[AlarmOptions, Only(("budget",))]


@dataclass(frozen=True)
class DetectorOptions:
    """The settings of the detector."""

    PANEL: ClassVar = PLANT

    preset: str | None = setting(
        None, "'paper' for the paper's text, 'released' for its authors' code.", panel=_DETECTOR
    )
    patch_length: int | None = setting(
        None,
        "Number of rows in a patch, about one period of the data. Default: the period of the "
        "training rows, else 96.",
        panel=_DETECTOR,
    )
    seed: int = setting(0, "Random seed.", panel=_DETECTOR)
    settings: list[str] | None = setting(
        None,
        "Any other setting of the detector, for example --set encoders=8.",
        "NAME=VALUE",
        flag="--set",
        panel=_DETECTOR,
    )
    off: str | None = setting(
        None,
        'Condition under which the machine is off, for example "pump_speed < 5"; these rows are '
        "neither trained on nor scored.",
        "CONDITION",
        flag="--off-when,--off",
    )
    run_up: int | None = setting(
        None, "Number of rows after the machine was off that also count as off. Default: 5."
    )
    run_down: int | None = setting(
        None, "Number of rows before the machine is off that raise no alarm. Default: 5."
    )
    context: Names = setting(
        None,
        "Columns used to predict the others, and never suspects: ambient conditions, set points, "
        "product codes, also as text.",
        "A,B,…",
    )
    watch: Names = setting(None, "Columns that may raise alarms; all others are context.", "A,B,…")
    components: str | None = setting(
        None,
        "Component that each column belongs to, as CSV of sensor,component; events then also have "
        "shares by component.",
        "FILE",
    )
    maintenance: str | None = setting(
        None,
        "Maintenance windows, as CSV of start,end or iCalendar; their rows are neither trained on "
        "nor scored.",
        "FILE",
    )
    calendar: str | None = setting(
        None,
        "Use time of day, day of the week and holidays to predict the channels. Takes a region "
        "(DE-BY), dates, a time zone, or a file of holidays: one date per line, or iCalendar.",
        "A,B,…|FILE",
    )

    def config(self) -> VACEConfig:
        """The settings, checked."""
        from vace_ad.config import VACEConfig
        from vace_ad.frames.columns import read_components

        chosen: dict[str, Any] = {"random_state": self.seed, **self.planned()}
        for name in ("patch_length", "off", "run_up", "run_down"):
            if (value := getattr(self, name)) is not None:
                chosen[name] = value
        for name in ("context", "watch"):
            if (names := names_of(getattr(self, name))) is not None:
                chosen[name] = tuple(one for one in names if one)
        if self.components is not None:
            chosen["components"] = read_components(Path(self.components))
        for one in self.settings or ():
            name, equals, text = one.partition("=")
            if not equals:
                raise ConfigError(f"--set {one!r}: write NAME=VALUE, such as --set encoders=8")
            chosen[name.strip()] = _value(text.strip())
        return VACEConfig.from_preset(self.preset, **chosen)

    def planned(self) -> dict[str, Any]:
        """Settings that may be given again after the fit: maintenance windows, holidays."""
        from vace_ad.frames.calendar import calendar_entries
        from vace_ad.frames.spans import read_spans

        found: dict[str, Any] = {}
        if self.maintenance is not None:
            windows = read_spans(Path(self.maintenance))
            found["maintenance"] = tuple(one.window for one in windows)
        if self.calendar is not None:
            found["calendar"] = calendar_entries(self.calendar)
        return found


PlannedOptions = Annotated[DetectorOptions, Only(PLANNED)]


def _value(text: str) -> Any:
    try:
        value = json.loads(text.lower() if text in ("True", "False") else text)
    except ValueError:
        return None if text == "None" else text
    return tuple(value) if isinstance(value, list) else value


class Where(StrEnum):
    """Where machines are processed."""

    local = "local"
    ray = "ray"


@dataclass(frozen=True)
class FleetOptions:
    """How many machines are processed at a time, and where."""

    PANEL: ClassVar = _FLEET

    shared: bool = setting(False, "Fit one model for all machines.")
    group: str | None = setting(
        None,
        "Fit one model for all machines with the same value in this column, which must be one of "
        "--by, for example --by site,machine --group site.",
    )
    models: Path | None = setting(None, "Folder that holds one model for each machine.")
    jobs: int = setting(1, "Number of machines processed at the same time.")
    engine: Where = setting(
        Where.local, "Where to compute. local: processes on this machine; ray: a Ray cluster."
    )
    address: str | None = setting(None, "Address of the Ray cluster, for example auto.")

    @property
    def cluster(self) -> str | None:
        """The address of a Ray cluster, "local" for one on this machine; None for processes."""
        return (self.address or "local") if self.engine is Where.ray else None

    def refuse_without_by(self) -> None:
        """Refuse options that apply to several machines only."""
        for name in ("shared", "group", "address"):
            if getattr(self, name):
                raise ConfigError(f"--{name} needs --by; say which column names the machine")


DetectFleet = Annotated[FleetOptions, Without(("models",))]
FitFleet = Annotated[FleetOptions, Without(("shared",))]
ScoreFleet = Annotated[FleetOptions, Without(("shared", "group"))]
