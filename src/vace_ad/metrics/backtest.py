"""Runs a detector over labelled rows and evaluates its alarms."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from vace_ad.alarms.budget import DEFAULT_ROWS, Budget
from vace_ad.errors import ConfigError, InputError, VaceWarning
from vace_ad.metrics.operating import PLACES, Hits, Operating, blame_hits, operating


@runtime_checkable
class Alarms(Protocol):
    """What a fitted detector needs to be measured in operation, as `vace_ad.VACE` has it."""

    def detect(self, data: Any, *, budget: Any, step: int | None = None) -> Any:
        """The events of a table, as `anomalies`, each with `start`, `end` and `alarm`."""

    def stream(self, *, budget: Any) -> Any:
        """A live stream; ConfigError where there is none."""

    def explain(self, data: Any, start: int, end: int) -> Any:
        """The channels that rows are due to, by `top`."""


def operate(
    detector: Alarms,
    rows: Any,  # table (n_rows, n_channels)
    labels: ArrayLike,  # (n_rows,)
    budget: Budget | str | None = None,
    *,
    step: int | None = None,
    causes: Sequence[Mapping[str, Any]] = (),
    first: int = 0,
    found: Any = None,
) -> Operating:
    """Count events, live alarms and blame of a fitted detector on rows that it did not learn.

    `step` is the time between rows in nanoseconds, for budgets a day, week or month. `causes` are
    stretches with `start`, `end` and `channels` (names or positions), their rows counted from
    `first` rows before the table. `found` is what `detect` said of the rows under this budget,
    where it is known.
    """
    chosen = Budget.of(budget)
    rate = chosen.rate(step)
    if found is None:
        found = detector.detect(rows, budget=chosen, step=step)
    if rate is not None:  # a live stream knows no step but that of the training
        chosen = Budget(rate * DEFAULT_ROWS, "rows")
    return operating(
        labels,
        [(event.start, event.end) for event in found.anomalies],
        rate=rate,
        opened=_opened(detector, rows, found, chosen),
        blamed=blame(detector, rows, causes, first),
    )


def _opened(detector: Alarms, rows: Any, found: Any, budget: Budget) -> list[int] | None:
    """The rows at which a live stream opens an alarm: from the rows up to it alone.

    None for a detector whose scores need the whole series: it has no live stream.
    """
    try:
        stream = detector.stream(budget=budget)
    except ConfigError:
        return None
    if budget.per == "rows":  # events of a table are those of a live stream
        return [event.alarm for event in found.anomalies]
    with warnings.catch_warnings():  # a threshold is met live by provisional scores
        warnings.simplefilter("ignore", VaceWarning)  # said by `detect` already
        changes = (*stream.add(rows).changes, *stream.finish().changes)
    return [int(change.event.alarm) for change in changes if change.what == "open"]


def blame(
    detector: Alarms, rows: Any, causes: Sequence[Mapping[str, Any]], first: int = 0
) -> list[Hits]:
    """Hits of each stretch that lies in the table and has a true channel."""
    hits = []
    for cause in causes:
        start, end = int(cause["start"]) - first, int(cause["end"]) - first
        true = cause.get("channels", ())
        if start < 0 or end > len(rows) or not true:
            continue
        blamed = detector.explain(rows, start, end)
        names = list(blamed.names)
        known = {names[one] if isinstance(one, int) else one for one in true}
        hits.append(blame_hits([name for name, _ in blamed.top(max(PLACES))], known))
    return hits


def positioned(
    causes: Sequence[Mapping[str, Any]], channels: Sequence[str]
) -> list[dict[str, Any]]:
    """The causes with channels by position, for rows that came without names."""
    place = {name: i for i, name in enumerate(channels)}
    return [
        {**one, "channels": [place.get(name, name) for name in one.get("channels", ())]}
        for one in causes
    ]


def read_causes(path: str | Path) -> dict[str, list[dict[str, Any]]]:
    """Root causes by series, from a JSON file or all JSON files of a folder.

    `{"pump": [{"start": 120, "end": 180, "channels": ["flow", 3]}]}`; other keys are passed over.
    """
    path = Path(path)
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    causes: dict[str, list[dict[str, Any]]] = {}
    for file in files:
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            for name, stretches in found.items():
                for one in stretches:
                    int(one["start"]), int(one["end"]), list(one.get("channels", ()))
                causes[name] = stretches
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as wrong:
            raise InputError(
                f"{file} holds no root causes ({type(wrong).__name__}: {wrong}); expected is JSON "
                'such as {"pump": [{"start": 120, "end": 180, "channels": ["flow"]}]}'
            ) from wrong
    return causes
