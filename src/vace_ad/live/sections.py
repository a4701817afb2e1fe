"""The sections of the file that `vace watch` reads, with every key, its default and its meaning."""

from __future__ import annotations

from typing import Any, Literal

from vace_ad.live.settings import (
    Address,
    BudgetWords,
    Duration,
    DurationOrOff,
    DurationOrZero,
    FilePath,
    HttpUrl,
    Settings,
    Text,
    Texts,
    key,
)


class Align(Settings):
    """How readings become rows."""

    step: Duration | None = key(None, "time between rows; without it each time is a row", '"10s"')
    lateness: DurationOrZero = key("0s", "how late a reading may arrive and still be used")
    fill: Literal["hold", "none"] = key("none", 'a missing cell: "hold" the last value, or "none"')
    hold: Duration = key("5min", "the longest time for which a value is held")
    combine: Literal["mean", "last"] = key("mean", "several readings of a channel within one step")
    future: Duration = key("5min", "readings further ahead of the clock are dropped")
    gap: int = key(1000, "longest gap, in rows, that is filled with empty rows", low=1, high=10**6)


# Settings of models that are trained here.
LEARNED = ("off", "run_up", "run_down", "context", "watch", "calendar", "components")


class ModelSettings(Settings):
    """Which model scores the rows."""

    file: FilePath | None = key(
        None, 'a model of `vace fit`; "{entity}" in the name: one per entity', '"pump.vace"'
    )
    learn: Duration | None = key(
        None, "or: train a model for each entity on its first rows, for this long", '"14d"'
    )
    random_state: int = key(0, "random seed of the training", low=0, high=2**31 - 1)
    off: Text | None = key(
        None, "with learn: condition under which the machine is off", '"pump_speed < 5"'
    )
    run_up: int = key(
        5, "with learn: rows after it was off that also count as off", low=0, high=100_000
    )
    run_down: int = key(
        5, "with learn: rows before it is off that raise no alarm", low=0, high=4_096
    )
    context: Texts | None = key(
        None, "with learn: columns that explain others, never suspects", '["ambient"]'
    )
    watch: Texts | None = key(None, "with learn: the only channels that alarm", '["flow"]')
    components: Texts | None = key(
        None, "with learn: component/channel of channels that belong to one", '["pump/flow"]'
    )
    calendar: Texts | None = key(
        None, "with learn: holidays as dates or regions, and the time zone", '["DE-BY"]'
    )
    maintenance: FilePath | None = key(
        None, "planned windows: CSV of start,end or iCalendar", '"windows.csv"'
    )

    @property
    def learned(self) -> dict[str, Any]:
        """The settings of models that are trained here, where they were given."""
        chosen = ((name, getattr(self, name)) for name in LEARNED)
        fields = type(self).model_fields
        return {name: value for name, value in chosen if value != fields[name].default}


class AlarmSettings(Settings):
    """When alarms open, repeat and resolve."""

    budget: BudgetWords | None = key(None, "false alarms accepted for each entity", '"1 per week"')
    resolve_after: DurationOrZero = key("10min", "an alarm resolves after so long without events")
    update_every: Duration = key("5min", "shortest time between two updates of an open alarm")
    group: DurationOrZero = key(
        "1min", 'alarms that open within this time are one incident; "0s" for none'
    )
    silence_after: DurationOrOff = key("10min", 'no data for this long is an alarm; or "off"')


class DeploySettings(Settings):
    """Deploys, after which a level may change."""

    settle: Duration = key(
        "30min", "time without new alarms; the levels at its end are then normal"
    )
    file: FilePath | None = key(
        None, 'lines "time,entity" that a pipeline appends; no entity: all', '"deploys.csv"'
    )
    channel: Text | None = key(
        None, "a reading whose change is a deploy; it is not scored", '"version"'
    )


class RetrainSettings(Settings):
    """Newer models from each entity's own rows, taken only where they are not worse."""

    every: Duration | None = key(
        None, "time between trainings; without it models are not retrained", '"7d"'
    )
    over: Duration | None = key(
        None, "time span of rows to train and evaluate on; default: twice every", '"14d"'
    )

    @property
    def kept(self) -> int:
        """How long rows are kept, in nanoseconds; 0: only as long as a restart needs them."""
        return 0 if self.every is None else self.over or 2 * self.every


class State(Settings):
    """What is kept on disk."""

    path: FilePath = key(..., "file of positions, states and unsent messages", '"plant.state"')
    checkpoint: Duration = key("1s", "time between checkpoints; alarms are written at once")
    snapshot_rows: int = key(
        256, "rows of an entity between snapshots of its stream", low=1, high=10**6
    )
    active: int = key(20_000, "most entities in memory", low=1, high=10**6)
    idle: Duration = key("60min", "an entity without readings for this long is moved to disk")
    outbox: int = key(10_000, "most unsent messages of each sink", low=10, high=10**7)
    history: Duration = key("90d", "how long resolved alarms are kept")


class Serving(Settings):
    """The HTTP server."""

    address: Address | None = key(
        None, "where page, metrics and HTTP push listen", '"127.0.0.1:8490"'
    )
    token_env: Text | None = key(
        None, "token that other addresses than loopback need: environment variable", '"VARIABLE"'
    )
    token_file: FilePath | None = key(None, "the same: file that holds it", '"token.txt"')
    multivariate: FilePath | None = key(
        None, "folder of tables for clients of Azure's multivariate detector", '"data"'
    )
    link: HttpUrl | None = key(None, "the page's address in messages, if different", '"…"')
    body: int = key(8_000_000, "largest request in bytes", low=1000, high=10**9)
    connections: int = key(100, "most open connections", low=1, high=100_000)


class NetworkLimits(Settings):
    """Bounds on what the network can create."""

    entities: int = key(20_000, "readings of further entities are dropped", low=1, high=10**7)
    channels: int = key(1000, "channels of an entity; further ones are dropped", low=1, high=10**5)
