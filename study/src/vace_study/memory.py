"""Peak memory of this process, reset where the operating system can."""

from __future__ import annotations

import sys
from pathlib import Path

_RESET = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


def reset_peak() -> None:
    """Start a new measurement; elsewhere than on Linux the peak stays that of the whole life."""
    try:
        _RESET.write_text("5")
    except OSError:
        return  # no such file, or not allowed: peak_mb then reports the life's peak


def peak_mb() -> float | None:
    """Megabytes that this process held in memory at most, None where that cannot be known."""
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass  # not Linux: ask the portable way
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
