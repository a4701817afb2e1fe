"""How good the default is on a family of series that had no say in its constants.

    python study/benchmarks/leave_one_out.py                # goes on where it stopped
    python study/benchmarks/leave_one_out.py --minutes 0    # only sums up the committed table
    python study/benchmarks/leave_one_out.py --again 901 973    # these anew, and no others

Variants of the score differ in what a choice was made of: the weight of each line of evidence, and
how long patches and windows are where training has a long rhythm. For each family the
variant is taken that is best on all other families (the mean of their means), and the family is
measured with it: that is the number to expect on other data. The number at hand is that of the
default on the families that it was chosen with. One seed, rows after the training part, at most
40,000 of them. Writes variants.csv, VUS-PR by series and variant, and leave-one-out.csv, by family.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import polars as pl
from common import DATA, RESULTS, Line, append, done_already, read, write
from numpy.typing import NDArray

from vace_ad import VACE, config
from vace_ad.config import LENGTH
from vace_ad.errors import VaceWarning
from vace_ad.metrics import sliding_window, vus
from vace_study.compare import paired

Array = NDArray[np.float64]
SHAPE = ("position", "direction")
OF_WINDOWS = ("level", "scale", "relation")
TURNED = (*OF_WINDOWS, "spike", "forecast", "distance", "surge")
LENGTHS: dict[str, tuple[str, str]] = {  # where lines of shape, and of windows, come from
    "": ("default", "default"),
    "; windows of one period, however long": ("default", "long"),
    "; windows of at most 96 rows": ("default", "short"),
    "; patches and windows of at most 96 rows": ("short", "short"),
}
FACTORS = (0.0, 0.5, 2.0, 4.0)
CHOSEN_WITH = (  # the last four are not of the benchmark, but were looked at
    "SMAP", "Genesis", "MITDB", "SMD", "MSL", "GECCO", "Daphnet", "SVDB", "LTDB",
    "TEP", "ALFA", "SockShop", "Nezha",
)  # fmt: skip
MOST_ROWS = 40_000  # test rows of a series
NOT_SCORED = ("RCD",)  # normal and faulty recordings lie days apart: good for blame only


Lines = Mapping[str, Array]  # name → (n,)


class Variant(NamedTuple):
    """A way to make one score of the lines of evidence."""

    name: str
    shape: str  # the fit that these lines come from
    windows: str  # and those of windows
    factors: Mapping[str, float]  # of lines whose weight is another than the default's

    def score(self, fits: Mapping[str, Lines]) -> Array:
        """The sum of the weighted lines, (n,)."""
        total = np.zeros(1)
        for name, line in fits["default"].items():
            if name in SHAPE:
                line = fits[self.shape][name]
            elif name in OF_WINDOWS:
                line = fits[self.windows][name]
            total = total + self.factors.get(name, 1.0) * line
        return np.nan_to_num(total, nan=float(np.nanmin(total)))


def variants() -> Iterator[Variant]:
    """The default first, then one line's weight changed at a time."""
    for words, (shape, windows) in LENGTHS.items():
        yield Variant(f"default{words}", shape, windows, {})
        yield Variant(f"no shape{words}", shape, windows, dict.fromkeys(SHAPE, 0.0))
        for line in TURNED:
            for factor in FACTORS:
                yield Variant(f"{factor:g} {line}{words}", shape, windows, {line: factor})


DEFAULT = next(variants()).name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV files")
    parser.add_argument("--families", nargs="*", default=[])
    parser.add_argument("--again", nargs="*", default=[], help="compute these anew, by number")
    parser.add_argument("--minutes", type=float, default=120, help="start no series later")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", VaceWarning)
    path = chosen.out / "variants.csv"
    started, done = time.monotonic(), done_already(path, "series")
    for place in in_turns(chosen.data, chosen.families):
        if time.monotonic() - started >= 60 * chosen.minutes:
            break
        again = place.stem.split("_")[0] in chosen.again
        if again or (not chosen.again and (place.stem,) not in done):
            lines = measured(place)
            if again:  # the old ones stay until there are new ones
                forget(place.stem, path)
            append(lines, path)
            print(place.stem, flush=True)
    lines = list(summary(read(path)))
    write(lines, chosen.out / "leave-one-out.csv", seed=0)
    for line in lines:
        print(line)


def forget(series: str, path: Path) -> None:
    """Leave out the lines of a series; all others keep the commit they came from."""
    kept = [line for line in read(path) if line["series"] != series]
    if kept:
        write(kept, path)
    else:
        path.unlink(missing_ok=True)


def in_turns(data: Path, families: Sequence[str]) -> list[Path]:
    """The series, one of each family in turn, so that a run that is stopped has seen them all."""
    by_family: dict[str, list[Path]] = {}
    for path in sorted([*data.glob("TSB-AD-M/*.parquet"), *data.glob("practice/*.parquet")]):
        family = _family(path.stem)
        if family not in NOT_SCORED and (not families or family in families):
            by_family.setdefault(family, []).append(path)
    rounds = zip_longest(*by_family.values())
    return [path for taken in rounds for path in taken if path is not None]


def _family(stem: str) -> str:
    return stem.split("_")[1]


def measured(path: Path) -> list[Line]:
    """VUS-PR of each variant on one series; none where nothing is anomalous."""
    stem, first = path.stem, int(path.stem.split("_tr_")[1].split("_")[0])
    table = pl.read_parquet(path)[: first + MOST_ROWS]
    labels = table["Label"].to_numpy()[first:].astype(int)
    if not labels.any():
        return []
    values = table.drop("Label").to_numpy().astype(float)
    train, test, family = values[:first], values[first:], _family(stem)
    detector = VACE(random_state=0).fit(train)
    lines, length = detector.signals(test), detector.config.length
    fits: dict[str, Lines] = {"default": lines, "short": lines, "long": lines}
    if length > LENGTH:
        fits["short"] = VACE(random_state=0, patch_length=LENGTH).fit(train).signals(test)
    if length > config.FOLLOWED:
        with patch.object(config, "FOLLOWED", length):
            fits["long"] = VACE(random_state=0).fit(train).signals(test)
    window = sliding_window(test[:, 0])
    seen: dict[bytes, float] = {}  # many variants are the same where a line is not there
    rows = []
    for variant in variants():
        score = variant.score(fits)
        key = score.tobytes()
        if key not in seen:
            seen[key] = vus(labels, score, window).vus_pr
        told = f"{seen[key]:.6f}"
        rows.append({"series": stem, "family": family, "variant": variant.name, "vus_pr": told})
    return rows


def summary(rows: list[dict[str, str]]) -> Iterator[Line]:
    """A line a family, and their means."""
    by_family: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        of = by_family.setdefault(row["family"], {})
        of.setdefault(row["variant"], []).append(float(row["vus_pr"]))
    means = {
        family: {name: float(np.mean(values)) for name, values in of.items()}
        for family, of in by_family.items()
    }
    left_out, every, at_hand, unseen = [], [], [], []
    for family, own in means.items():
        others = [mean for name, mean in means.items() if name != family]
        if not others:
            continue
        best = max(own, key=lambda name: np.mean([mean[name] for mean in others]))
        values = by_family[family][best]
        left_out.append(values)
        every.append(by_family[family][DEFAULT])
        (at_hand if family in CHOSEN_WITH else unseen).append(by_family[family][DEFAULT])
        yield {
            "family": family, "series": len(values), "chosen_without_it": best,
            "left_out": f"{own[best]:.3f}", "default": f"{own[DEFAULT]:.3f}",
            "best_afterwards": max(own, key=lambda name: own[name]),
            "best": f"{max(own.values()):.3f}",
        }  # fmt: skip
    for name, groups in (
        ("left out, all families", left_out),
        ("default, all families", every),
        ("default, families it was chosen with", at_hand),
        ("default, families it was not chosen with", unseen),
    ):
        if groups:
            yield {"family": name, "series": sum(map(len, groups)), **_mean(groups)}


def _mean(groups: list[list[float]]) -> Line:
    """The mean over series with its bootstrap interval, and the mean of families."""
    values = {str(i): x for i, x in enumerate(value for group in groups for value in group)}
    found = paired(values, dict.fromkeys(values, 0.0))
    assert found is not None  # no group is empty
    edges = {"low": found.low, "high": found.high}
    return {
        "mean_of_series": f"{found.mean:.3f}",
        "mean_of_families": f"{np.mean([np.mean(group) for group in groups]):.3f}",
        **{name: "" if edge is None else f"{edge:.3f}" for name, edge in edges.items()},
    }


if __name__ == "__main__":
    main()
