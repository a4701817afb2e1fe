"""Watch a growing feed and be killed, again and again: `kill_watch.py FOLDER URL ROUNDS SEED CORE`.

The imports are done once; each round is a fork that dies by SIGKILL at a random moment. Every other
round keeps a batch after each of its entities, and half of those die right after such a part, so
that kills in the middle of a batch do not depend on how busy the machine is. Prints their number.
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

from live.cores import CORES
from live.feeds import config, feed, write
from vace_ad.live import checkpoint
from vace_ad.live.plugins import kinds
from vace_ad.live.runner import Watch


class Torn(Watch):
    """A watch that dies in the middle of a batch, once so many parts of it are kept."""

    parts_to_live: int

    def checkpoint(self):
        super().checkpoint()
        if self._checkpoint._batch is not None:
            self.parts_to_live -= 1
            if not self.parts_to_live:
                os.kill(os.getpid(), signal.SIGKILL)


def watch(folder, url, core, *, parts, last):
    """Run in a child until it is killed; returns its number.

    `parts`: keep parts of batches; `last`: the part after which it dies by itself, 0 for none.
    """
    sections = {
        "sink": [{"kind": "webhook", "url": url}],
        "alarms": {"group": "1min"},
        "state": {"checkpoint": "5ms", "snapshot_rows": 23, "active": 3},
    }
    pid = os.fork()
    if pid:
        return pid
    try:
        if parts:
            checkpoint._TOGETHER = checkpoint._WORK = checkpoint._SHARE = 0
        one = Torn(config(folder, **sections), core)
        one.parts_to_live = last
        one.run()
    finally:
        os._exit(1)


def main():
    folder, url, rounds, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    core = CORES[sys.argv[5]].make()
    core.load(config(folder).model.file)  # what it imports is imported once
    random.seed(seed)
    lines = feed(**json.loads((folder / "feed.json").read_text()))
    kinds("sink")["webhook"].load()
    write(folder, [])
    longest, now, within = 20 / rounds, None, 0  # seconds, position, kills within a batch
    share = -(-len(lines) // rounds)
    for i in range(rounds):
        write(folder, lines[i * share : (i + 1) * share], "a")
        torn = random.randint(1, 3) if i % 4 == 0 else 0
        pid = watch(folder, url, core, parts=i % 2 == 0, last=torn)
        if not torn or not died(pid, 10):
            time.sleep(random.uniform(0.001, longest))
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        before, now = now, position(folder)
        within += ahead(folder, lines, now)
        # the machine may be busy: about one kill in four comes before anything could be done
        if not torn:
            longest = min(200 / rounds, longest * (1.4 if now == before else 0.9))
    print(within)


def died(pid, seconds):
    """Whether a child dies by itself within so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        time.sleep(0.005)
    return False


def position(folder):
    """How far the source was read, by what is kept."""
    return next(iter(ask(folder, "select value from meta where key = 'position'")), None)


def ahead(folder, lines, now):
    """Whether an entity has taken more than what comes before the position."""
    end = 0 if now is None else json.loads(now[0])["file"]["offset"]
    with (folder / "feed.jsonl").open("rb") as file:
        before = file.read(end).count(b"\n")
    last = {line["entity"]: line["time"] for line in lines[:before]}
    kept = ask(folder, "select name, small from entity")
    return any(json.loads(small)["aligner"]["newest"] > last.get(name, 0) for name, small in kept)


def ask(folder, query):
    with closing(sqlite3.connect(folder / "watch.state")) as db, suppress(sqlite3.OperationalError):
        return db.execute(query).fetchall()
    return []


if __name__ == "__main__":
    main()
