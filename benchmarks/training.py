"""Seconds to train the encoder of the `released` preset: by torch, and by 0.2.0's own gradients.

    git worktree add ../v0.2.0 c22b9e4
    python benchmarks/training.py --old ../v0.2.0/src

One run, each system in its own process with one thread, on the same synthetic rows; the quickest of
the rounds counts, in processor time, because other work on the machine only adds. What torch runs
is the plain module over all patches of a batch, which is what the released code does. Writes
training.csv.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from record import RESULTS, ROOT, write

SEED, ROUNDS = 0, 3
TRAIN = """
import json, sys, time
import numpy as np
from vace_ad.config import VACEConfig
from vace_ad.engine.encoder import init_encoder
from vace_ad.engine.patches import PatchSet
from vace_ad.signals.shape.pretext import train
rows, channels, batch, iterations = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
table = rng.normal(size=(rows, channels)).cumsum(axis=0)
patches = PatchSet([table], 96, np.ones(channels))
def run(iterations):
    config = VACEConfig.from_preset("released", iterations=iterations, batch_size=batch)
    encoder = init_encoder(config, channels, np.random.default_rng(1))
    return train(encoder, patches, config, np.random.default_rng(2))
run(1)  # imports
wall, cpu = time.perf_counter(), time.process_time()
losses = run(iterations).losses
taken = time.perf_counter() - wall, time.process_time() - cpu
print(json.dumps({"seconds": taken[0], "cpu_seconds": taken[1], "first_loss": losses[0]}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", type=Path, required=True, help="src of a checkout of 0.2.0")
    for name, size in (("rows", 2000), ("channels", 25), ("batch", 512), ("iterations", 20)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    sizes = {name: getattr(options, name) for name in ("rows", "channels", "batch", "iterations")}
    systems = {"torch, this commit": ROOT / "src", "hand-written, 0.2.0": options.old}
    lines = []
    for name, source in systems.items():
        runs = [run(source, *sizes.values()) for _ in range(ROUNDS)]
        best = min(runs, key=lambda found: found["cpu_seconds"])
        lines.append({"system": name, **sizes, **{k: round(v, 4) for k, v in best.items()}})
        print(lines[-1], flush=True)
    write(lines, options.out / "training.csv", seed=SEED)


def run(source: Path, *sizes: int) -> dict[str, float]:
    """What one training takes in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", TRAIN, *map(str, sizes)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
