"""Published numbers to compare with, as small tables of facts.

Sources: the VACE paper (main, ablation, sensitivity, category, geometry, msl; VACE's own numbers
there are `test-only`, the others `tsb-ad`), the result tables of the TSB-AD repository (per_series,
the newer systems of category; `tsb-ad`), those of TSPulse's authors (per_series, head "time"), and
two pull requests to that repository: 76, merged (AxonAD), and 71, open, its makers' own claim about
a hosted service (SHADE). See docs/bench.md and docs/errata.md for their cautions.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

# Our methods, and the published system each stands beside.
COUNTERPARTS = {
    "vace": "VACE",
    "vace-paper": "VACE",
    "vace-released": "VACE",
    "paano": "PaAno",
    "paano-may": "PaAno",
    "pca": "PCA",
    "iforest": "IForest",
    "deepant": "DeepAnT",
    "omnianomaly": "OmniAnomaly",
    "usad": "USAD",
    "lstmad": "LSTMAD",
    "timesnet": "TimesNet",
    "anomaly-transformer": "AnomalyTransformer",
    "dcdetector": "DCDetector",
    "kan-ad": "KAN-AD",
    "xlstmad": "xLSTMAD",
    "xlstmad-r": "xLSTMAD-R (MSE)",
    "xlstmad-f": "xLSTMAD-F (MSE)",
    "catch": "CATCH",
    "crossad": "CrossAD",
    "axonad": "AxonAD",
    "dada": "DADA",
    "tspulse": "TSPulse (time)",
    "tspulse-tuned": "TSPulse-FT (time)",
    # Capped ones stand beside the same number; the rows' notes and the tables say what was capped.
    "anomaly-transformer-quick": "AnomalyTransformer",
    "dcdetector-quick": "DCDetector",
    "xlstmad-quick": "xLSTMAD",
    "xlstmad-r-quick": "xLSTMAD-R (MSE)",
    "xlstmad-f-quick": "xLSTMAD-F (MSE)",
    "crossad-quick": "CrossAD",
    "catch-quick": "CATCH",
}

RIVALS = ("AxonAD", "SHADE")  # newer than the paper, with a value for each series

# The families in the order of the paper's category table, with their evaluation series.
FAMILIES = {
    "Exathlon": 25,
    "TAO": 11,
    "LTDB": 4,
    "SVDB": 28,
    "SMAP": 25,
    "SMD": 20,
    "GECCO": 1,
    "MITDB": 11,
    "MSL": 14,
    "SWaT": 2,
    "Genesis": 1,
    "Daphnet": 1,
    "PSM": 1,
    "OPPORTUNITY": 7,
    "CreditCard": 1,
    "CATSv2": 5,
    "GHL": 23,
}


@cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """The rows of a published table, such as `main`, `ablation` or `msl`."""
    text = (files(__package__) / f"{name}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


@cache
def per_series() -> dict[str, dict[str, float]]:
    """VUS-PR under `tsb-ad` by system, then by series name."""
    rows = table("per_series")
    systems = [column for column in rows[0] if column != "series"]
    return {name: {row["series"]: float(row[name]) for row in rows} for name in systems}


@cache
def by_family() -> dict[tuple[str, str], dict[str, float]]:
    """VUS-PR by (system, protocol), then by family, averaged over its evaluation series."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in table("category"):
        key = (row["method"], row["protocol"])
        found.setdefault(key, {})[row["family"]] = float(row["VUS-PR"])
    return found


@cache
def tuning_names() -> frozenset[str]:
    """The benchmark's 20 series for tuning."""
    return frozenset(row["series"] for row in table("tuning"))


@cache
def all_names() -> frozenset[str]:
    """The benchmark's 200 series."""
    return tuning_names() | {row["series"] for row in table("per_series")}
