"""Runs made up row by row, for tests of what is made of them."""

from vace_study.rows import MEASURES, Row
from vace_study.series import SeriesName
from vace_study.store import Store

# Real names, so that published values exist for the first three; the fourth is for tuning.
STEMS = (
    "001_Genesis_id_1_Sensor_tr_4055_1st_15538",
    "002_MSL_id_1_Sensor_tr_500_1st_900",
    "003_MSL_id_2_Sensor_tr_883_1st_1238",
    "004_MSL_id_3_Sensor_tr_530_1st_630",
    "173_GECCO_id_1_Sensor_tr_16165_1st_16265",
)
GEOMETRY = {
    "effective_rank_pr": 0.06,
    "effective_rank_entropy": 0.11,
    "active_dims": 0.75,
    "top1_variance": 0.5,
    "verdict": "healthy",
}


def made_row(method, stem, seed=0, protocol="tsb-ad", vus_pr=0.5, **changes):
    name = SeriesName.parse(stem)
    fields = {
        "method": method,
        "series": stem,
        "seed": seed,
        "protocol": protocol,
        "status": "ok",
        "family": name.family,
        "split": "tuning" if stem.startswith("004") else "eval",
        "config": "abc",
        "version": "0",
        "evaluated_rows": 1000,
        "anomalous_rows": 10 + 10 * STEMS.index(stem),
        "measures": {**dict.fromkeys(MEASURES, 0.25), "VUS-PR": vus_pr},
        "fit_seconds": 3.0,
        "score_seconds": 1.0,
        "cpu_seconds": 2.0 if method == "pca" else 8.0,
        "peak_memory_mb": 300.0,
        "geometry": GEOMETRY if method.startswith("vace") else {},
    }
    return Row(**{**fields, **changes})


def make_run(folder, rows):
    with Store(folder) as store:
        store.append(list(rows))
    return folder


def full_rows(methods, seeds=2, stems=STEMS, protocols=("tsb-ad", "test-only")):
    """VUS-PR 0.1 times the place of the series, plus 0.05 a method, plus 0.01 a seed."""
    return [
        made_row(method, stem, seed, protocol, 0.1 * i + 0.05 * k + 0.01 * seed)
        for k, method in enumerate(methods)
        for i, stem in enumerate(stems, start=1)
        for seed in range(seeds)
        for protocol in protocols
    ]
