"""An event as plain values, for states that are saved, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vace_ad.alarms.events import Event, Reading

_PLAIN = (
    "start", "end", "peak", "kind", "score", "ratio", "probability", "severity", "alarm", "signal",
    "partner", "conditions", "lasting", "normal_rows",
)  # fmt: skip
_STAMPS = ("start_time", "end_time", "peak_time", "alarm_time")


def plain_event(event: Event) -> dict[str, Any]:
    """An event as plain values; `restored_event` takes them back."""
    plain = {name: getattr(event, name) for name in _PLAIN}
    stamps = {name: _stamp(getattr(event, name)) for name in _STAMPS}
    pairs = {name: [list(one) for one in getattr(event, name)] for name in ("shares", "readings")}
    return {**plain, **stamps, **pairs, "groups": list(event.groups)}


def restored_event(plain: Mapping[str, Any]) -> Event:
    """The reverse of `plain_event`."""
    fields: dict[str, Any] = {name: plain[name] for name in _PLAIN}
    fields |= {name: _moment(plain[name]) for name in _STAMPS}
    shares = tuple((str(name), float(share)) for name, share in plain["shares"])
    readings = tuple(Reading(*one) for one in plain["readings"])
    groups = tuple(map(str, plain["groups"]))
    return Event(**fields, shares=shares, readings=readings, groups=groups)


def _stamp(time: np.datetime64 | None) -> int | None:
    return None if time is None else int(time.astype("datetime64[ns]").astype(np.int64))


def _moment(stamp: int | None) -> np.datetime64 | None:
    return None if stamp is None else np.datetime64(stamp, "ns")
