"""Alarms on the command line: the options that say when to alarm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vace_ad.errors import ConfigError

if TYPE_CHECKING:
    from vace_ad.alarms import Budget
    from vace_ad.app.run import Alarming

_ALARMS = (
    "When to alarm (give one; default: one false alarm a week, or in 10,000 rows without time)"
)
_EVENTS = "What makes one event"

BudgetOption = Annotated[
    str | None,
    typer.Option(
        help="False alarms to accept, for example '1 per week', '2 a day' or '1 in 10000 rows'.",
        rich_help_panel=_ALARMS,
    ),
]
FalseAlarmRate = Annotated[
    float | None,
    typer.Option(
        help="Share of normal rows whose score is above the threshold, for example 0.001.",
        rich_help_panel=_ALARMS,
    ),
]
ThresholdOption = Annotated[
    float | None, typer.Option(help="The threshold itself, as a score.", rich_help_panel=_ALARMS)
]
Step = Annotated[
    str | None,
    typer.Option(
        help="Time between rows of a table without time, for example 10s.",
        rich_help_panel=_ALARMS,
    ),
]
Join = Annotated[
    int, typer.Option(help="Events up to so many rows apart are one.", rich_help_panel=_EVENTS)
]
MinLength = Annotated[
    int, typer.Option(help="Events of fewer rows are dropped.", rich_help_panel=_EVENTS)
]
Cooldown = Annotated[
    int,
    typer.Option(
        help="Events that begin within so many rows after one ended are dropped.",
        rich_help_panel=_EVENTS,
    ),
]


def make_budget(
    budget: str | None, false_alarm_rate: float | None, threshold: float | None
) -> Budget:
    """The one budget that was given, or the default."""
    from vace_ad.alarms import Budget

    given = {
        "--budget": budget,
        "--false-alarm-rate": false_alarm_rate,
        "--threshold": threshold,
    }
    chosen = [name for name, value in given.items() if value is not None]
    if len(chosen) > 1:
        raise ConfigError(f"{chosen[0]} and {chosen[1]} both came; give one of them")
    if false_alarm_rate is not None:
        return Budget(false_alarm_rate, "share")
    return Budget.of(budget) if threshold is None else Budget(threshold, "threshold")


def make_alarming(
    budget: Budget,
    join: int,
    min_length: int,
    cooldown: int,
    step: str | None,
) -> Alarming:
    """When to alarm, as the options said."""
    from vace_ad.app.run import Alarming
    from vace_ad.frames.stamps import parse_duration

    between = None if step is None else parse_duration(step)
    return Alarming(budget, join, min_length, cooldown, between)
