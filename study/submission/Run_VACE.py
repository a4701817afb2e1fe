"""VACE in TSB-AD's harness: one series, or every series of a file list, as the other detectors run.

    python benchmark_exp/Run_VACE.py --dataset_dir Datasets/TSB-AD-M/ \\
        --file_list Datasets/File_List/TSB-AD-M-Eva.csv --save_dir eval/metrics/multi/ --save True

It needs `pip install vace-ad` beside TSB-AD. No GPU, no weights to fetch, no setting to tune.
Series that the CSV holds are passed over, so the same command goes on where it was stopped; a
series that fails is a row with its error. Labels go to the measures alone.
"""

import argparse
import csv
import importlib
import resource
import time
from pathlib import Path

import numpy as np
import polars as pl

from vace_ad.compat.tsb_ad import run_custom_ad_semisupervised

SETTINGS = {"random_state": 0}  # all else is the default
MEASURES = (
    "AUC-PR", "AUC-ROC", "VUS-PR", "VUS-ROC", "Standard-F1", "PA-F1", "Event-based-F1",
    "R-based-F1", "Affiliation-F",
)  # fmt: skip
COLUMNS = ("file", "Time", "Memory", *MEASURES, "error")  # seconds; MB, the highest so far


def main(arguments: list[str] | None = None) -> None:
    """Run what the options ask for."""
    chosen = options().parse_args(arguments)
    measure = own_measures if chosen.own_measures else harness_measures
    if chosen.filename:
        score, row = run(Path(chosen.dataset_dir) / chosen.filename, measure)
        print(row)
        return
    names = pl.read_csv(chosen.file_list)["file_name"].to_list()
    table = Path(chosen.save_dir) / f"{chosen.AD_Name}.csv"
    done = {line["file"] for line in csv.DictReader(table.open())} if table.exists() else set()
    for name in names:
        path = Path(chosen.dataset_dir) / name
        if name in done or not path.exists():
            print(f"{name}: {'done before' if name in done else 'not there'}")
            continue
        try:
            score, row = run(path, measure)
        except Exception as error:  # one bad series must not end a run of hours
            score, row = None, {"file": name, "error": f"{type(error).__name__}: {error}"}
        if score is not None and chosen.score_dir:
            folder = Path(chosen.score_dir) / chosen.AD_Name
            folder.mkdir(parents=True, exist_ok=True)
            np.save(folder / f"{path.stem}.npy", score)
        if chosen.save:
            append(table, row)
        print(row, flush=True)


def run(path, measure):
    """Scores of all rows, and the row of the results."""
    table = pl.read_csv(path, infer_schema_length=None).fill_nan(None).drop_nulls()
    labels = table["Label"].to_numpy().astype(int)
    data = table.drop("Label").to_numpy().astype(float)
    train = int(path.stem.split("_tr_")[1].split("_")[0])
    start = time.perf_counter()
    score = run_custom_ad_semisupervised(data[:train], data, **SETTINGS)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = measure(score, labels, data[:, 0])
    row = {"file": path.name, "Time": round(seconds, 3), "Memory": round(peak)}
    return score, row | {name: float(found[name]) for name in MEASURES}


def harness_measures(score, labels, channel):
    """TSB-AD's own measures, with the window it takes from the first channel."""
    metrics = importlib.import_module("TSB_AD.evaluation.metrics")
    windows = importlib.import_module("TSB_AD.utils.slidingWindows")
    window = windows.find_length_rank(channel[:, None], rank=1)
    return metrics.get_metrics(score, labels, slidingWindow=window)


def own_measures(score, labels, channel):
    """The same measures by vace-ad, exact and quick, where TSB-AD is not installed."""
    from vace_ad.metrics import evaluate, sliding_window

    return evaluate(labels, score, window=sliding_window(channel))


def append(path, row):
    """Add a row to the results; a file that is not there gets its header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        if fresh:
            writer.writeheader()
        writer.writerow(row)


def options():
    """The options that TSB-AD's runners share."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--filename", help="one series of dataset_dir; prints its measures")
    parser.add_argument("--dataset_dir", "--data_direc", default="Datasets/TSB-AD-M/")
    parser.add_argument("--file_list", default="Datasets/File_List/TSB-AD-M-Eva.csv")
    parser.add_argument("--score_dir", default="", help="keep scores there, as .npy")
    parser.add_argument("--save_dir", default="eval/metrics/multi/")
    parser.add_argument("--save", type=lambda text: text.lower() == "true", default=True)
    parser.add_argument("--AD_Name", default="VACE")
    parser.add_argument("--own_measures", action="store_true", help="by vace-ad, without TSB_AD")
    return parser


if __name__ == "__main__":
    main()
