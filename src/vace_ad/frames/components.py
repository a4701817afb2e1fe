"""Which component a sensor belongs to, by a file."""

from __future__ import annotations

import csv
from pathlib import Path

from vace_ad.errors import TableReadError

HEADER = ("sensor", "component")


def read_components(path: Path) -> tuple[str, ...]:
    """Lines `sensor,component`, with or without that header, as `component/sensor` each."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TableReadError(f"{path} cannot be read: {error}") from error
    found: dict[str, str] = {}
    for number, cells in enumerate(csv.reader(lines), start=1):
        row = [cell.strip() for cell in cells]
        if not any(row) or (number == 1 and tuple(map(str.lower, row)) == HEADER):
            continue
        if len(row) != 2 or not all(row):
            raise TableReadError(
                f"{path}, line {number}: {','.join(cells)!r} came; write a sensor and its "
                "component: flow,pump"
            )
        sensor, component = row
        if found.setdefault(sensor, component) != component:
            raise TableReadError(
                f"{path}, line {number}: {sensor!r} is of {found[sensor]!r} above and of "
                f"{component!r} here; keep one of them"
            )
    if not found:
        raise TableReadError(f"{path} names no sensor; write one a line: sensor,component")
    return tuple(f"{component}/{sensor}" for sensor, component in found.items())
