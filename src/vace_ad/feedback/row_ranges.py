"""The rows of a table that a verdict refers to, and verdicts from events or ranges."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.events import Event
from vace_ad.alarms.learned import Learned
from vace_ad.alarms.pattern import MOST_RATIO, Pattern
from vace_ad.alarms.suppression import Stretch
from vace_ad.config import VACEConfig
from vace_ad.errors import FeedbackError
from vace_ad.feedback.journal import FAULT, NORMAL, Verdict, What
from vace_ad.frames.segments import run_edges
from vace_ad.frames.table import Table
from vace_ad.frames.timestamps import moment

NAMED = 0.1  # share of an event from which on a channel is named
MOST_NAMED = 8


def make_verdict(
    what: Any, table: Table | None, verdict: str, model: Learned, note: str = "", who: str = ""
) -> Verdict:
    """A verdict on an event, or on a range of rows or times of a table.

    Without the table nothing can be recognised later; a range of times is kept all the same.
    """
    if verdict not in (NORMAL, FAULT):
        raise FeedbackError(f"verdict={verdict!r}: must be 'normal' or 'fault'")
    start, end = _times(what, None if table is None else table.zone)
    fields: dict[str, Any] = {"start": start, "end": end, "note": note, "who": who}
    if isinstance(what, Event):
        shares = what.shares[:MOST_NAMED]
        fields["channels"] = tuple(name for name, share in shares if share >= NAMED)
    if table is not None:
        rows = _rows(what, start, end, table)
        fields |= {"rows": rows, "digest": digest(table.values[slice(*rows)])}
        if table.time is not None:
            fields |= {"start": table.time[rows[0]], "end": table.time[rows[1] - 1]}
        if verdict == NORMAL:
            ratio = what.ratio if isinstance(what, Event) else float("nan")
            found = Pattern.of(
                "new", table.values, rows, table.names, model.normal, model.drift_range, ratio
            )
            fields["pattern"] = found
            if found is not None and "channels" not in fields:
                fields["channels"] = found.channels[:MOST_NAMED]
    elif start is None:
        raise FeedbackError("row numbers need their table; give the table, or times")
    return Verdict.new(cast(What, verdict), **fields)


def with_ratio(line: Verdict, events: Sequence[Event]) -> Verdict:
    """The verdict on a range, with the strength of the strongest event that touches it."""
    if line.pattern is None or line.rows is None:
        return line
    start, end = line.rows
    inside = [event.ratio for event in events if event.start < end and event.end > start]
    if not inside:
        return line
    strength = float(np.clip(max(inside), 1.0, MOST_RATIO))
    return replace(line, pattern=replace(line.pattern, ratio=strength))


def rows_of(line: Verdict, table: Table) -> tuple[int, int] | None:
    """The rows [start, end) of a table that a verdict is about; None where it has none of them.

    By time where both have one. Without, the rows are found by what they hold.
    """
    if line.start is not None and table.time is not None:
        return _between(table.time, line.start, cast(np.datetime64, line.end))
    if line.rows is None or line.digest is None:
        return None
    n, head = line.rows[1] - line.rows[0], line.digest[:HEAD]
    for start in [line.rows[0], *range(len(table) - n + 1)]:
        rows = table.values[start : start + n]
        if len(rows) == n and _sha(rows[:1])[:HEAD] == head and digest(rows) == line.digest:
            return start, start + n
    return None


def named_stretches(lines: Sequence[Verdict], table: Table) -> list[Stretch]:
    """The very rows of a table that a person called normal."""
    found = []
    for line in lines:
        rows = rows_of(line, table) if line.verdict == NORMAL else None
        if rows is not None:
            allowance = 1.0 if line.pattern is None else line.pattern.allowance
            channels = line.channels or table.names
            found.append(Stretch(line.id, *rows, channels, allowance, named=True))
    return found


def merge_matches(found: Sequence[Stretch], named: Sequence[Stretch]) -> list[Stretch]:
    """Recognised stretches and named ones; where they are the same, as one."""
    whole = []
    for one in named:
        same = [
            x for x in found if x.pattern == one.pattern and x.start < one.end and x.end > one.start
        ]
        start, end = min(x.start for x in (one, *same)), max(x.end for x in (one, *same))
        whole.append(one._replace(start=start, end=end))
        found = [x for x in found if x not in same]
    return [*found, *whole]


def split_by_feedback(
    tables: Sequence[Table], lines: Sequence[Verdict], config: VACEConfig
) -> tuple[list[Table], list[Table]]:
    """Tables without the rows of faults, and pieces of them around what was accepted."""
    normal: list[Table] = []
    accepted: list[Table] = []
    for table in tables:
        bad, good = np.zeros(len(table), bool), []
        for line in lines:
            rows = rows_of(line, table)
            if rows is None:
                continue
            if line.verdict == FAULT:
                bad[slice(*rows)] = True
            else:
                good.append(rows)
        whole = run_edges(~bad).tolist()
        normal += [table[a:b] for a, b in whole]
        for start, end in good:
            low, high = start - config.least_rows, end + config.length
            pieces = [(max(a, low), min(b, high)) for a, b in whole if a < end and b > start]
            accepted += [table[a:b] for a, b in pieces if b - a >= config.least_rows]
    return normal, accepted


HEAD = 6  # digits of the first row's own checksum, by which most rows are passed over quickly


def digest(values: NDArray[Any]) -> str:
    """A short checksum of rows."""
    return _sha(values[:1])[:HEAD] + _sha(values)[:12]


def _sha(values: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(values, np.float64).tobytes()).hexdigest()


def _times(what: Any, zone: str | None) -> tuple[np.datetime64 | None, np.datetime64 | None]:
    """The times of an event, or of a pair of times, words in `zone`; None for rows."""
    if isinstance(what, Event):
        return what.start_time, what.end_time
    if not isinstance(what, tuple | list) or len(what) != 2:
        raise FeedbackError(
            f"got {type(what).__name__}; give an Event, or a pair (start, end) of rows or times"
        )
    if all(isinstance(x, int | np.integer) for x in what):
        return None, None
    start, end = (x if isinstance(x, np.datetime64) else moment(str(x), zone) for x in what)
    if np.isnat(start) or np.isnat(end):
        raise FeedbackError(f"{what!r} are not times; write ('2026-01-31T13:45', …)")
    return start.astype("datetime64[ns]"), end.astype("datetime64[ns]")


def _rows(
    what: Any, start: np.datetime64 | None, end: np.datetime64 | None, table: Table
) -> tuple[int, int]:
    if start is not None and end is not None and table.time is not None:
        found = _between(table.time, start, end)
        if found is None:
            raise FeedbackError(
                f"no row lies between {start} and {end}; the table has {table.time[0]} to "
                f"{table.time[-1]}"
            )
        return found
    if start is not None and not isinstance(what, Event):
        raise FeedbackError("got times, but the table has no time column; give row numbers")
    low, high = (what.start, what.end) if isinstance(what, Event) else map(int, what)
    if not 0 <= low < high <= len(table):
        raise FeedbackError(
            f"rows [{low}, {high}) do not lie in the table's {len(table)} rows; give 0 ≤ start < "
            "end ≤ rows"
        )
    return low, high


def _between(
    time: NDArray[np.datetime64], start: np.datetime64, end: np.datetime64
) -> tuple[int, int] | None:
    low = int(np.searchsorted(time, start, side="left"))
    high = int(np.searchsorted(time, end, side="right"))
    return (low, high) if high > low else None
