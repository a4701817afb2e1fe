"""One writer at a time, as for every run (see `vace_ad.work`)."""

from vace_ad.work.lock import BusyError, FileLock

__all__ = ["BusyError", "FileLock"]
