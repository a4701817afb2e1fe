"""Alarms on the command line: the options that say when to alarm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vace_ad.errors import ConfigError

if TYPE_CHECKING:
    from vace_ad.alarms import Budget
    from vace_ad.app.run import Alarming

_ALARMS = "When to alarm (give one budget; default: one false alarm in 10,000 rows)"
_EVENTS = "What makes one event"

AlarmsPerDay = Annotated[
    float | None,
    typer.Option(help="False alarms a day to accept.", rich_help_panel=_ALARMS),
]
AlarmsPerWeek = Annotated[
    float | None,
    typer.Option(help="False alarms a week to accept.", rich_help_panel=_ALARMS),
]
AlarmsPerMonth = Annotated[
    float | None,
    typer.Option(help="False alarms a month to accept.", rich_help_panel=_ALARMS),
]
FalseAlarmRate = Annotated[
    float | None,
    typer.Option(
        help="Share of normal rows above the threshold, for example 0.001.",
        rich_help_panel=_ALARMS,
    ),
]
Quantile = Annotated[
    float | None,
    typer.Option(
        help="Quantile of normal scores as threshold, for example 0.999.", rich_help_panel=_ALARMS
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
    int | None,
    typer.Option(
        help="Dips below the threshold of up to so many rows do not end an event; default half a "
        "patch.",
        rich_help_panel=_EVENTS,
    ),
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
    per_day: float | None,
    per_week: float | None,
    per_month: float | None,
    false_alarm_rate: float | None,
    quantile: float | None,
    threshold: float | None,
) -> Budget:
    """The one budget that was given, or the default."""
    from vace_ad.alarms import Budget

    given = {
        "--alarms-per-day": per_day,
        "--alarms-per-week": per_week,
        "--alarms-per-month": per_month,
        "--false-alarm-rate": false_alarm_rate,
        "--quantile": quantile,
        "--threshold": threshold,
    }
    chosen = [(name, value) for name, value in given.items() if value is not None]
    if len(chosen) > 1:
        raise ConfigError(f"{chosen[0][0]} and {chosen[1][0]} both came; give one of them")
    if not chosen:
        return Budget()
    name, value = chosen[0]
    if name == "--quantile":
        return Budget(1 - value, "share")
    if name == "--false-alarm-rate":
        return Budget(value, "share")
    if name == "--threshold":
        return Budget(value, "threshold")
    per = {"--alarms-per-day": "day", "--alarms-per-week": "week", "--alarms-per-month": "month"}
    return Budget(value, per[name])  # type: ignore[arg-type]


def make_alarming(
    budget: Budget,
    join: int | None,
    min_length: int,
    cooldown: int,
    step: str | None,
) -> Alarming:
    """When to alarm, as the options said."""
    from vace_ad.app.run import Alarming
    from vace_ad.frames.stamps import parse_duration

    between = None if step is None else parse_duration(step)
    return Alarming(budget, join, min_length, cooldown, between)
