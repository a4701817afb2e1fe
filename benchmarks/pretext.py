"""What the velocity pretext is worth at equal BatchNorm state.

    python benchmarks/pretext.py --minutes 60       # goes on where it stopped

For each series and seed an encoder of the paper's size is trained as released, then compared with
its own untrained start: both get BatchNorm statistics calibrated on the same patches with the same
blend α, and the same statistics, scales and composition (shape alone). Five encoders are the five
seeds averaged. VUS-PR, protocol test-only, evaluation series of six families, taken in turn.
Writes results/pretext.csv, and results/pretext-summary.csv with paired-bootstrap intervals.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vace_ad import VACE, VACEConfig
from vace_ad.bench.catalog import Entry, find_series
from vace_ad.bench.series import load
from vace_ad.method.amplitude import Channels
from vace_ad.method.encoder import Encoder, calibrate, init_encoder
from vace_ad.method.patches import PatchSet
from vace_ad.method.pretext import train
from vace_ad.metrics import sliding_window, vus

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parents[1]
FAMILIES = ("MSL", "SMAP", "SMD", "Genesis", "GECCO", "Daphnet")
BLENDS = (0.6, 0.88, 0.95, 1.0)
SEEDS = 5
KEYS = ("series", "family", "encoders", "seed", "pretext", "blend")
COLUMNS = (*KEYS, "vus_pr", "commit", "machine")
SHAPE = {
    "widths": VACEConfig.from_preset("paper").widths,
    "encoders": 1,
    "amplitude": False,
}
AS_RELEASED = {
    "iterations": 20,
    "pretext_offset": 96,
    "missing_neighbour": "zero",
    "last_iteration": "batch_norm",
}


class Given(VACE):
    """A detector whose encoder, up to its calibration, is given."""

    def __init__(self, encoder: Encoder, **settings: object) -> None:
        super().__init__(**settings)
        self._given = encoder

    def _learn_encoder(self, patches: PatchSet, *_: object) -> Encoder:
        sample = np.linspace(0, len(patches) - 1, min(256, len(patches))).astype(np.intp)
        return calibrate(self._given, patches.gather(sample), self.config.batch_norm_blend)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    data = os.environ.get("VACE_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=data, help="folder of TSB-AD-M")
    parser.add_argument("--minutes", type=float, default=60)
    options = parser.parse_args()
    path, started = RESULTS / "pretext.csv", time.monotonic()
    done = {row["series"] for row in read(path)}
    for entry in in_turn(options.data):
        if entry.name.stem in done:
            continue
        if time.monotonic() - started > 60 * options.minutes:
            break
        append(path, list(study(entry)))
        print(f"{entry.name.short}: {(time.monotonic() - started) / 60:.1f} minutes", flush=True)
    summarise(read(path), RESULTS / "pretext-summary.csv")


def in_turn(data: Path) -> list[Entry]:
    """A series of each family, then another of each, so that a part of the work is balanced."""
    families = [find_series(data, split="eval", families=[family]) for family in FAMILIES]
    return [entry for entry in chain(*zip_longest(*families)) if entry is not None]


def study(entry: Entry) -> Iterator[dict[str, object]]:
    """All variants on one series."""
    series = load(entry.path)
    cut = entry.name.train_rows
    normal, test, labels = series.values[:cut], series.values[cut:], series.labels[cut:]
    window = sliding_window(test[:, :1])
    if not labels.any():
        return
    totals: dict[tuple[bool, float], NDArray[np.float64]] = {}

    def row(encoders: int, seed: str, variant: tuple[bool, float], scores: NDArray[np.float64]):
        value = vus(labels, scores, window).vus_pr
        found = (entry.name.stem, entry.name.family, encoders, seed, int(variant[0]), variant[1])
        return dict(zip(COLUMNS, (*found, f"{value:.6f}", commit(), machine()), strict=True))

    for seed in range(SEEDS):
        for pretext, encoder in enumerate(encoders(normal, seed)):
            for blend in BLENDS:
                settings = {**SHAPE, "batch_norm_blend": blend, "random_state": seed}
                scores = Given(encoder, **settings).fit(normal).score(test)
                variant = bool(pretext), blend
                totals[variant] = totals.get(variant, np.zeros(1)) + scores
                yield row(1, str(seed), variant, scores)
    for variant, total in totals.items():
        yield row(SEEDS, f"0-{SEEDS - 1}", variant, total)


def encoders(normal: NDArray[np.float64], seed: int) -> tuple[Encoder, Encoder]:
    """An encoder as it starts, and after the pretext."""
    config = VACEConfig(**SHAPE, **AS_RELEASED, random_state=seed)
    patches = PatchSet([normal], config.patch_length, Channels.of([normal]).scale)
    rng = np.random.default_rng(seed)
    start = init_encoder(config, normal.shape[1], rng)
    return start, train(start, patches, config, rng).encoder


def summarise(rows: Sequence[dict[str, str]], path: Path) -> None:
    """Mean with and without the pretext, and the difference with its 95 % interval."""
    rng = np.random.default_rng(0)
    lines = []
    for family in ("all", *FAMILIES):
        for n_encoders in (1, SEEDS):
            for blend in BLENDS:
                mean: dict[str, dict[str, list[float]]] = {"0": {}, "1": {}}
                for r in rows:
                    wanted = family in ("all", r["family"]) and int(r["encoders"]) == n_encoders
                    if wanted and float(r["blend"]) == blend:
                        mean[r["pretext"]].setdefault(r["series"], []).append(float(r["vus_pr"]))
                names = sorted(mean["0"])
                if not names:
                    continue
                without, with_it = (
                    np.array([np.mean(mean[key][name]) for name in names]) for key in "01"
                )
                draws = rng.integers(len(names), size=(10_000, len(names)))
                low, high = np.quantile((with_it - without)[draws].mean(axis=1), [0.025, 0.975])
                figures = (without.mean(), with_it.mean(), (with_it - without).mean(), low, high)
                head = (family, len(names), n_encoders, blend)
                lines.append((*head, *(f"{figure:.4f}" for figure in figures)))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        names = ("family", "series", "encoders", "blend", "without", "with", "gain", "low", "high")
        writer.writerows([names, *lines])


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, rows: Sequence[dict[str, object]]) -> None:
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if fresh:
            writer.writeheader()
        writer.writerows(rows)


def commit() -> str:
    run = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(run, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def machine() -> str:
    return f"{os.cpu_count()} cores, {platform.machine()}"


if __name__ == "__main__":
    main()
