"""Watch a growing feed and be killed, again and again: `kill_watch.py FOLDER URL ROUNDS SEED`.

The imports are done once; each round is a fork that dies by SIGKILL at a random moment.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

from live.fakes import FakeCore
from live.feeds import config, feed, write
from vace_ad.live.plugins import kinds
from vace_ad.live.runner import Watch


def watch(folder, url):
    """Run in a child until it is killed; returns its number."""
    sections = {
        "sink": [{"kind": "webhook", "url": url}],
        "state": {"checkpoint": "5ms", "snapshot_rows": 23, "active": 3},
    }
    pid = os.fork()
    if pid:
        return pid
    try:
        Watch(config(folder, **sections), FakeCore()).run()
    finally:
        os._exit(1)


def main():
    folder, url, rounds, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    random.seed(seed)
    lines = feed(**json.loads((folder / "feed.json").read_text()))
    kinds("sink")["webhook"].load()
    write(folder, [])
    longest, now = 0.1, None
    share = -(-len(lines) // rounds)
    for i in range(rounds):
        write(folder, lines[i * share : (i + 1) * share], "a")
        pid = watch(folder, url)
        time.sleep(random.uniform(0.001, longest))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        before, now = now, position(folder)
        # the machine may be busy: about one kill in ten comes before anything could be done
        longest = min(1.0, longest * (1.4 if now == before else 0.97))


def position(folder):
    """How far the source was read, by what is kept."""
    with closing(sqlite3.connect(folder / "watch.state")) as db, suppress(sqlite3.OperationalError):
        return db.execute("select value from meta where key = 'position'").fetchone()
    return None


if __name__ == "__main__":
    main()
