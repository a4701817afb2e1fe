"""Seconds to fit and score: a naive baseline, our `released` preset and our default, side by side.

    python benchmarks/speed.py              # three series, minutes, nearly all of it the baseline
    python benchmarks/speed.py --growth     # our default as rows, channels and history grow
    python benchmarks/speed.py --quick      # a short series cut shorter, to see that it works

Writes speed.csv, or speed-growth.csv, and speed.png to benchmarks/results. Real series come from
VACE_DATA, else ../shared/data.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from record import DATA, RESULTS, read, write
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from scipy.stats import spearmanr

from vace_ad import VACE, VACEConfig
from vace_ad.engine.encoder import flop_per_patch, init_encoder
from vace_ad.engine.patches import PatchSet
from vace_ad.signals.shape.pretext import anchor_batches

SEED = 0
SERIES = ("MSL_id_7", "SMAP_id_26", "SMD_id_1")
GROWTH_ROWS = (10_000, 30_000, 100_000, 200_000)
GROWTH_CHANNELS = (1, 2, 5, 10, 25, 50, 100, 200, 500)
HISTORIES = (1000, 3000, 10_000)
REPEATS = 3  # of runs that take seconds
SHAPE_ALONE = "default, shape alone"
Rows = NDArray[np.float64]


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def matmul_peak() -> float:
    """Gigaflops of a float32 matrix product, all threads, the best of several."""
    n = 2048
    square = np.random.default_rng(SEED).random((n, n), dtype=np.float32)
    return 2 * n**3 / min(seconds(lambda: square @ square)[0] for _ in range(8)) / 1e9


def read_series(name: str) -> tuple[Rows, Rows]:
    """The training and the test rows of a series."""
    found = sorted((DATA / "TSB-AD-M").glob(f"*_{name}_*.parquet"))
    if not found:
        raise SystemExit(f"no series {name} in {DATA}; set VACE_DATA to the folder with TSB-AD-M")
    n_train = int(found[0].stem.split("_tr_")[1].split("_")[0])
    rows = pl.read_parquet(found[0]).drop("Label").to_numpy().astype(np.float64)
    return rows[:n_train], rows[n_train:]


def run_naive(train: Rows, test: Rows, iterations: int) -> dict[str, Any]:
    """The baseline, from the initial kernels and the anchors that our preset has."""
    from naive_released import NaiveReleased  # torch, which memory.py does not want

    config = VACEConfig.from_preset("released", random_state=SEED)
    rng = np.random.default_rng(np.random.SeedSequence(SEED).spawn(1)[0])
    encoder = init_encoder(config, train.shape[1], rng)
    patches = PatchSet([train], config.patch_length, np.ones(train.shape[1]))
    anchors = anchor_batches(patches, config, rng)
    detector = NaiveReleased([stage.kernel for stage in encoder], anchors, iterations)
    fit, _ = seconds(lambda: detector.fit(train))
    score, scores = seconds(lambda: detector.score(test))
    return {"fit": fit, "score": score, "scores": scores, "losses": detector.losses}


def run_ours(detector: VACE, train: Rows, test: Rows, repeats: int = 1) -> dict[str, Any]:
    """One of our presets, median of the repeats, and how quickly its engine embeds."""
    fits = [seconds(lambda: detector.fit(train))[0] for _ in range(repeats)]
    runs = [seconds(lambda: detector.score(test)) for _ in range(repeats)]
    fit, score, scores = np.median(fits), np.median([taken for taken, _ in runs]), runs[0][1]
    patches = PatchSet([test], detector.config.patch_length, detector.scale_)
    batch = patches.gather(np.arange(min(len(patches), 8 * detector.engine.batch)))
    embedding = min(seconds(lambda: detector.engine.embed(batch))[0] for _ in range(3))
    flop = flop_per_patch(detector.encoders_, detector.config.patch_length)
    return {
        "fit": fit,
        "score": score,
        "scores": scores,
        "losses": detector.facts_.get("losses", [[]])[0],
        "patches_per_second": len(batch) / embedding,
        "gigaflops": len(batch) / embedding * flop / 1e9,
    }


def compare(name: str, train: Rows, test: Rows, iterations: int) -> list[dict[str, Any]]:
    """One line for each method; the peak is taken before and after, the better one counts."""
    before = matmul_peak()
    runs = {
        "naive": run_naive(train, test, iterations),
        "released": run_ours(
            VACE(preset="released", iterations=iterations, random_state=SEED), train, test
        ),
        "default": run_ours(VACE(random_state=SEED), train, test, REPEATS),
        SHAPE_ALONE: run_ours(VACE(random_state=SEED, amplitude=False), train, test, REPEATS),
    }
    peak = max(before, matmul_peak())
    base = runs["naive"]
    lines = []
    for method, run in runs.items():
        total = run["fit"] + run["score"]
        line: dict[str, Any] = {
            "series": name,
            "train_rows": len(train),
            "test_rows": len(test),
            "channels": train.shape[1],
            "method": method,
            "fit_seconds": round(run["fit"], 3),
            "score_seconds": round(run["score"], 3),
            "total_seconds": round(total, 3),
            "times_faster": round((base["fit"] + base["score"]) / total, 2),
            "peak_gigaflops": round(peak, 1),
        }
        if method == "released":
            line["spearman_to_naive"] = round(
                spearmanr(rounded(run["scores"]), rounded(base["scores"]))[0], 6
            )
            gap = np.subtract(run["losses"], base["losses"])
            line["largest_loss_difference"] = f"{np.abs(gap).max():.1e}"
        if method == "default":
            alone = runs[SHAPE_ALONE]
            line["times_shape_alone"] = round(total / (alone["fit"] + alone["score"]), 3)
        if method != "naive":
            line["patches_per_second"] = round(run["patches_per_second"])
            line["gigaflops"] = round(run["gigaflops"], 1)
            line["share_of_peak"] = round(run["gigaflops"] / peak, 3)
        lines.append(line)
    return lines


def rounded(scores: Rows) -> Rows:
    """Scores to a millionth of their range: where a series stands still, most of them tie."""
    return np.round(scores / np.ptp(scores), 6)


def growth(rows: Sequence[int], channels: Sequence[int]) -> list[dict[str, Any]]:
    """Seconds of the default's score as rows grow (5 channels) and as channels grow (20,000)."""
    lines = []
    cases = [("rows", n, 5) for n in rows] + [
        ("channels", min(20_000, rows[-1]), d) for d in channels
    ]
    for along, n_rows, n_channels in cases:
        rng = np.random.default_rng(SEED)
        angle = np.arange(n_rows)[:, None] / rng.uniform(5, 50, n_channels)
        table = np.sin(angle) + 0.1 * rng.normal(size=(n_rows, n_channels))
        detector = VACE(random_state=SEED).fit(table[:5000])
        detector.score(table[:2000])  # the first call of an engine is slower
        taken, _ = seconds(lambda t=table, d=detector: d.score(t))
        lines.append(
            {"along": along, "rows": n_rows, "channels": n_channels, "seconds": round(taken, 4)}
        )
    return lines


def after_history(histories: Sequence[int], n_rows: int = 256) -> list[dict[str, Any]]:
    """Seconds that a new row takes, one at a time at stride 1, after ever longer histories."""
    table = np.sin(np.arange(histories[-1] + n_rows)[:, None] / np.linspace(5, 50, 5))
    table += 0.1 * np.random.default_rng(SEED).normal(size=table.shape)
    detector = VACE(stride=1, random_state=SEED).fit(table[:3000])
    lines = []
    for history in histories:
        scorer = detector.stream()
        scorer.add(table[:history])
        new = np.split(table[history : history + n_rows], n_rows)
        taken = seconds(lambda s=scorer, rows=new: [s.add(row) for row in rows])[0] / n_rows
        lines.append({"along": "history", "rows": history, "channels": 5, "seconds": taken})
    return lines


def draw(folder: Path) -> None:
    """A picture of what the folder's CSV files hold."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import EngFormatter

    lines, grown = (read(folder / f"{name}.csv") for name in ("speed", "speed-growth"))
    figure, (bars, by_rows, by_channels) = plt.subplots(1, 3, figsize=(13, 3.6))
    names = list(dict.fromkeys(line["series"] for line in lines))
    methods = list(dict.fromkeys(line["method"] for line in lines))
    for k, method in enumerate(methods):
        taken = [float(line["total_seconds"]) for line in lines if line["method"] == method]
        bars.bar(np.arange(len(names)) + 0.2 * (k - 1.5), taken, 0.19, label=method)
    bars.set_xticks(np.arange(len(names)), names)
    bars.set(yscale="log", ylabel="seconds", title="fit and score", ylim=(1, 1000))
    bars.legend(frameon=False, ncols=2, loc="upper center", fontsize="small")
    for axes, along in ((by_rows, "rows"), (by_channels, "channels")):
        chosen = [line for line in grown if line["along"] == along]
        x, y = ([float(line[key]) for line in chosen] for key in (along, "seconds"))
        axes.plot(x, y, "o-")
        axes.set(xlabel=along, ylabel="seconds", title=f"score, default, as {along} grow")
        axes.set(xlim=0, ylim=0)
        axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
    figure.tight_layout()
    figure.savefig(folder / "speed.png", dpi=120)


def show(lines: Sequence[dict[str, Any]]) -> None:
    shown = [
        "series", "method", "fit_seconds", "score_seconds", "times_faster", "times_shape_alone",
        "patches_per_second", "share_of_peak", "spearman_to_naive",
    ]  # fmt: skip
    table = Table(*shown, box=SIMPLE)
    for line in lines:
        table.add_row(*(str(line.get(key, "")) for key in shown))
    Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--growth", action="store_true", help="the growth curves instead")
    parser.add_argument("--quick", action="store_true", help="one short series, cut shorter")
    parser.add_argument("--series", nargs="+", default=list(SERIES), help="such as SMD_id_1")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.growth:
        rows, channels, histories = GROWTH_ROWS, GROWTH_CHANNELS, HISTORIES
        if options.quick:
            rows, channels, histories = (6000, 12_000), (1, 5), (500, 2000)
        grown = growth(rows, channels) + after_history(histories)
        write(grown, options.out / "speed-growth.csv", seed=SEED)
    else:
        lines: list[dict[str, Any]] = []
        for name in ["MSL_id_7"] if options.quick else options.series:
            train, test = read_series(name)
            if options.quick:
                train, test = train[:300], test[:400]
            lines += compare(name, train, test, iterations=2 if options.quick else 20)
            show([line for line in lines if line["series"] == name])
        write(lines, options.out / "speed.csv", seed=SEED)
    draw(options.out)


if __name__ == "__main__":
    main()
