"""Writing when the disk may be full: again and again, and nothing is read meanwhile."""

from __future__ import annotations

import logging
import sqlite3
import threading

from vace_ad.live.clock import Clock
from vace_ad.live.status import Status
from vace_ad.live.store import Pending, Store

log = logging.getLogger("vace_ad.live")


def commit(
    store: Store, pending: Pending, status: Status, stopping: threading.Event, clock: Clock
) -> bool:
    """Write until it is written; False when the watch is stopped before that."""
    wait = 0.1
    while True:
        try:
            lost = store.commit(pending)
        except sqlite3.OperationalError as error:
            words = f"{store.path} cannot be written: {error}; reading has stopped"
            if status.problem("state", words):
                log.error("%s", words)
            if clock.wait(stopping, wait):
                return False  # nothing was acknowledged, so nothing is lost
            wait = min(10.0, 2 * wait)
            continue
        if status.problem("state", None):
            log.warning("%s can be written again", store.path)
        if lost:
            status.counts["outbox_dropped"] += lost
            log.error("the outbox is full: %d oldest messages were dropped", lost)
        return True
