"""What the published tables say of themselves: repeated series, chosen heads, mixed versions.

    python study/benchmarks/published_checks.py --published FOLDER   # the tables alone, seconds
    python study/benchmarks/published_checks.py --amplitude          # also the real series, minutes

FOLDER holds the per-series tables of the TSB-AD repository and the tables of the VACE paper. Writes
published-checks.csv, one line for each finding that docs/errata.md quotes, and with --amplitude
published-amplitude.csv: a score without any model beside the published USAD and OmniAnomaly.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, median

from common import DATA, RESULTS, Line, write

HEADS = ("time", "fft", "future", "ensemble")  # "future" is the forecast
DETERMINISTIC = ("PCA", "HBOS", "COPOD", "LOF", "KNN", "OCSVM")
WINDOW = 100  # rows, of USAD and OmniAnomaly
Rows = list[dict[str, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--published", type=Path, default=DATA.parent / "published")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of TSB-AD-M")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV files")
    parser.add_argument("--amplitude", action="store_true", help="score the real series too")
    chosen = parser.parse_args()
    table = read(chosen.published / "tsb-ad-m-per-series-vus-pr.csv")
    extra = read(chosen.published / "tsb-ad-m-per-series-extra.csv")
    lines = [
        *heads(extra),
        *versions(extra, chosen.published),
        *repeats(table),
        *draws(table),
        *cancelled(),
    ]
    if chosen.amplitude:
        found = list(amplitude(table, chosen.data))
        write(found, chosen.out / "published-amplitude.csv")
        lines += list(amplitude_summary(found))
    write(lines, chosen.out / "published-checks.csv")
    for line in lines:
        print(f"{line['check']:12} {line['item']:44} {line['value']}")


def read(path: Path) -> Rows:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def line(check: str, item: str, value: object) -> Line:
    told = f"{value:.4f}" if isinstance(value, float) else str(value)
    return {"check": check, "item": item, "value": told}


def family(row: dict[str, str]) -> str:
    return row["file"].split("_")[1]


def by_family(rows: Rows) -> dict[str, Rows]:
    groups: dict[str, Rows] = defaultdict(list)
    for row in rows:
        groups[family(row)].append(row)
    return groups


# ------------------------------------------------------------- TSPulse: a head for each data set


def heads(extra: Rows) -> Iterator[Line]:
    """One head a family that gives the listed values, zero-shot and fine-tuned alike."""
    assigned: dict[str, list[str]] = {}
    for name, rows in by_family(extra).items():
        assigned[name] = [
            head
            for head in HEADS
            if all(same(row, f"TSPulse-{tag}", head) for row in rows for tag in ("ZS", "FT"))
        ]
    for tag in ("ZS", "FT"):
        met = sum(
            any(same(row, f"TSPulse-{tag}", head) for head in assigned[family(row)])
            for row in extra
        )
        yield line("heads", f"{tag}: series met by one head a family", f"{met} of {len(extra)}")
        yield line("heads", f"{tag}: as listed", mean(extra, f"TSPulse-{tag}"))
        for head in HEADS:
            column = f"TSPulse-{tag.lower()}-{head}"
            yield line("heads", f"{tag}: {head} alone", mean(extra, column))
    for name, found in assigned.items():
        yield line("heads", f"head of {name}", " or ".join(found) or "none")


def same(row: dict[str, str], listed: str, head: str) -> bool:
    own = f"TSPulse-{listed[-2:].lower()}-{head}"
    return math.isclose(float(row[listed]), float(row[own]), abs_tol=1e-9)


def mean(rows: Rows, column: str) -> float:
    return fmean(float(row[column]) for row in rows)


# ----------------------------------------------------------------- xLSTMAD: two versions, a paper


def versions(extra: Rows, folder: Path) -> Iterator[Line]:
    """The main table's xLSTMAD-R is not the category table's."""
    main_row = next(
        r for r in read(folder / "vace-main.csv") if r["method"].startswith("xLSTMAD-R")
    )
    category = read(folder / "vace-category.csv")
    row = next(r for r in category if r["method"].startswith("xLSTM"))
    yield line("xlstmad", "VACE paper, main table", main_row["VUS-PR"])
    yield line("xlstmad", "VACE paper, category table, overall", row["Overall"])
    yield line("xlstmad", "leaderboard's series, mean", mean(extra, "xLSTMAD"))
    gaps = [
        abs(mean(rows, "xLSTMAD") - float(row[name])) for name, rows in by_family(extra).items()
    ]
    met = sum(gap <= 0.0005 + 1e-9 for gap in gaps)
    yield line("xlstmad", "families of the category table met", f"{met} of {len(gaps)}")


# --------------------------------------------------------------------- Exathlon: the same series


def repeats(table: Rows) -> Iterator[Line]:
    """Series on which every deterministic detector has the same value."""
    for name in ("Exathlon", "SMD", "SMAP", "MSL", "SVDB", "GHL"):
        rows = by_family(table)[name]
        groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for row in rows:
            groups[tuple(row[each] for each in DETERMINISTIC)].append(row["file"].split("_")[3])
        yield line("repeats", f"{name}: different results", f"{len(groups)} of {len(rows)} series")
        for ids in groups.values():
            if len(ids) > 1:
                yield line("repeats", f"{name}: equal ids", ", ".join(ids))


# ------------------------------------------------------------------- TAO: labels drawn at random


def draws(table: Rows) -> Iterator[Line]:
    """Counts of anomalous rows beside the number of different rows among so many random draws."""
    rows = by_family(table)["TAO"]
    counts = [int(row["anomaly_len"]) for row in rows]
    length = int(rows[0]["ts_len"])
    yield line("tao", "anomalous rows", ", ".join(str(each) for each in sorted(counts)))
    inside = 0
    for n in (500, 1_000, 1_500):
        center, deviation = different(length, n)
        yield line(
            "tao",
            f"{n} draws of {length} rows",
            f"{center:.1f} different, deviation {deviation:.1f}",
        )
        inside += sum(abs(each - center) <= 3 * deviation for each in counts)
    yield line("tao", "counts within 3 deviations of one", f"{inside} of {len(counts)}")


def different(length: int, n: int) -> tuple[float, float]:
    """Mean and deviation of how many different rows n draws with replacement hit."""
    one, two = (1 - 1 / length) ** n, (1 - 2 / length) ** n  # one row, two rows never hit
    variance = length * one + length * (length - 1) * two - (length * one) ** 2
    return length * (1 - one), math.sqrt(variance)


# ------------------------------------------------------------------- losses that cancel or are 0


def cancelled() -> Iterator[Line]:
    """Of the losses as the published code has them, on random windows and weights."""
    import torch

    from vace_study.baselines import resolve
    from vace_study.baselines.networks.training import At

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        batch = torch.rand(8, WINDOW, 3)
        usad = resolve("usad").make(0)
        module = usad._module(3)
        together = usad._losses(module, batch, At(3, 0)).sum()
        weights = list(module.parameters())
        full = torch.autograd.grad(together, weights)
        first, second, _ = (error.mean() for error in module(batch))
        plain = torch.autograd.grad((first + second) / 4, weights)
        gap = max(float((a - b).abs().max()) for a, b in zip(full, plain, strict=True))
        most = max(float(each.abs().max()) for each in full)
        yield line("losses", "USAD: largest gradient", f"{most:.1e}")
        yield line("losses", "USAD: less that of two autoencoders", f"{gap:.1e}")
        detector = resolve("dcdetector").make(0)
        batch = torch.randn(4, detector.window, 3)
        module = detector._module(3)
        loss = detector._losses(module, batch, At(1, 0)).sum()
        loss.backward()
        slopes = [each.grad for each in module.parameters() if each.grad is not None]
        most = max(float(each.abs().max()) for each in slopes)
        yield line("losses", "DCdetector: value of the loss", f"{abs(loss.item()):.1e}")
        yield line("losses", "DCdetector: largest gradient", f"{most:.1e}")


# --------------------------------------------------------- USAD, OmniAnomaly: how much is amplitude


def amplitude(table: Rows, data: Path) -> Iterator[Line]:
    """VUS-PR of the mean squared raw value of the next rows, beside the published values."""
    from vace_ad.metrics import vus
    from vace_study.baselines import resolve
    from vace_study.catalog import find_series
    from vace_study.protocols import exam
    from vace_study.series import load

    known = {Path(row["file"]).stem: row for row in table}
    for entry in find_series(data, globs=["*"]):
        row = known.get(entry.name.stem)
        if row is None or entry.name.family in ("MITDB", "SVDB", "LTDB"):
            continue  # not of the evaluation split, or long
        paper = exam(load(entry.path), "tsb-ad")
        scores = resolve("raw-amplitude").make(0).score(paper.scored)
        found = vus(paper.labels, scores, paper.window).vus_pr
        yield {
            "series": entry.name.stem,
            "family": entry.name.family,
            "amplitude": f"{found:.6f}",
            "USAD": f"{float(row['USAD']):.6f}",
            "OmniAnomaly": f"{float(row['OmniAnomaly']):.6f}",
        }


def amplitude_summary(found: list[Line]) -> Iterator[Line]:
    families = Counter(row["family"] for row in found)
    for name in families:
        rows = [row for row in found if row["family"] == name]
        ours = fmean(float(row["amplitude"]) for row in rows)
        told = [f"{fmean(float(row[s]) for row in rows):.3f}" for s in ("USAD", "OmniAnomaly")]
        gap = median(abs(float(row["amplitude"]) - float(row["USAD"])) for row in rows)
        yield line(
            "amplitude",
            f"{name} ({len(rows)}): ours, USAD, OmniAnomaly",
            f"{ours:.3f}, {', '.join(told)}; median distance to USAD {gap:.3f}",
        )
    for bound in (0.05, 0.01):
        near = sum(abs(float(row["amplitude"]) - float(row["USAD"])) <= bound for row in found)
        yield line("amplitude", f"series within {bound} of USAD", f"{near} of {len(found)}")


if __name__ == "__main__":
    main()
