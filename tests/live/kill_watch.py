"""Watch a growing feed and be killed, again and again: `kill_watch.py FOLDER URL ROUNDS SEED`.

The imports are done once; each round is a fork that dies by SIGKILL at a random moment.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
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
    share = -(-len(lines) // rounds)
    for i in range(rounds):
        write(folder, lines[i * share : (i + 1) * share], "a")
        pid = watch(folder, url)
        time.sleep(random.uniform(0.001, 0.16))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
