"""What the encoder is worth in the present default: accuracy with shape and without it.

    OMP_NUM_THREADS=1 python benchmarks/shape_ablation.py --minutes 60    # goes on where it stopped

One seed, all labelled series at hand, 40,000 test rows at most. A score is the sum of its lines, so
one fit gives both: the score, and the score without the lines of shape. Where training has no
period, shape has no lines and both are equal. Writes shape-ablation.csv, a line a series, and
shape-ablation-summary.csv, a line a family.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from record import DATA, RESULTS, Line, append, read, write

from vace_ad import VACE
from vace_ad.errors import VaceWarning
from vace_ad.metrics import sliding_window, vus

MOST_ROWS = 40_000  # test rows of a series
SEED = 0
SHAPE = ("position", "direction")  # its lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--minutes", type=float, default=60, help="start no series later")
    options = parser.parse_args()
    path = options.out / "shape-ablation.csv"
    done = {line["series"] for line in read(path)}
    started = time.monotonic()
    folders = (options.data / name for name in ("TSB-AD-M", "practice"))
    files = [file for folder in folders for file in sorted(folder.glob("*.parquet"))]
    for file in sorted(files, key=lambda file: file.stat().st_size):
        if file.stem in done or time.monotonic() - started > 60 * options.minutes:
            continue
        lines = list(judged(file))
        append(lines, path)
        print(file.stem, [(line["vus_pr"], line["without_shape"]) for line in lines], flush=True)
    write(list(summary(read(path))), options.out / "shape-ablation-summary.csv", seed=SEED)


def judged(file: Path) -> Iterator[Line]:
    """One series with and without shape; nothing where no test row is labelled."""
    train = int(file.stem.split("_tr_")[1].split("_")[0])
    table = pl.read_parquet(file)[: train + MOST_ROWS]
    label = table["Label"].to_numpy().astype(int)[train:]
    if not label.any():
        return
    table = table.drop("Label")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VaceWarning)
        detector = VACE(random_state=SEED).fit(table[:train])
        lines = detector.signals(table[train:])
    window = sliding_window(table.to_numpy()[train:, 0])
    found = {}
    for name, left_out in (("vus_pr", ()), ("without_shape", SHAPE)):
        score = np.sum([line for key, line in lines.items() if key not in left_out], axis=0)
        score = np.nan_to_num(score, nan=float(np.nanmin(score)))
        found[name] = f"{vus(label, score, window=window).vus_pr:.4f}"
    yield {
        "series": file.stem,
        "family": file.stem.split("_")[1],
        "channels": table.width,
        "period": detector.model_.period,
        **found,
        "seed": SEED,
    }


def summary(lines: Sequence[dict[str, str]]) -> Iterator[Line]:
    """The mean of each family and over the families, with what shape adds."""
    families = sorted({line["family"] for line in lines})
    means = []
    for family in families:
        own = [line for line in lines if line["family"] == family]
        pairs = np.array([(float(line["vus_pr"]), float(line["without_shape"])) for line in own])
        means.append(pairs.mean(axis=0))
        yield _row(family, len(own), sum(line["period"] != "0" for line in own), means[-1])
    if means:
        with_period = sum(line["period"] != "0" for line in lines)
        yield _row("mean of families", len(lines), with_period, np.mean(means, axis=0))


def _row(family: str, series: int, with_period: int, pair: np.ndarray) -> Line:
    gain = f"{pair[0] - pair[1]:+.4f}"
    return {"family": family, "series": series, "with_a_period": with_period,
            "vus_pr": f"{pair[0]:.4f}", "without_shape": f"{pair[1]:.4f}",
            "gain": gain}  # fmt: skip


if __name__ == "__main__":
    main()
