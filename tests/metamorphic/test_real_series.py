"""What must not change the scores of real series: units, order, cuts, threads, engines, files.

Bounds are shares of the highest score. Exact where nothing is computed anew; 1e-6 where other units
round the same numbers differently; 2e-4 between engines, which compute in float32 (seen: 1.1e-4).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

from vace_ad import VACE, load

pytestmark = [
    pytest.mark.data,
    pytest.mark.filterwarnings("ignore::vace_ad.errors.VaceWarning"),  # constant channels
]
FAMILIES = ("MSL", "SMD", "SMAP")
TEST = 1500  # rows that are scored
UNITS, ENGINES = 1e-6, 2e-4
SCRIPT = """
import sys, numpy as np, polars as pl, vace_ad
rows = pl.read_parquet(sys.argv[2])
np.save(sys.argv[3], vace_ad.load(sys.argv[1]).score(rows))
"""


class Case(NamedTuple):
    train: pl.DataFrame
    test: pl.DataFrame
    detector: VACE
    scores: np.ndarray  # (TEST,)


@pytest.fixture(scope="module", params=FAMILIES)
def case(request: pytest.FixtureRequest, data_folder: Path) -> Case:
    paths = sorted(
        data_folder.glob(f"*_{request.param}_id_*"), key=lambda path: path.stat().st_size
    )
    if not paths:
        pytest.skip(f"no series of {request.param} in {data_folder.name}")
    read = pl.read_parquet if paths[0].suffix == ".parquet" else pl.read_csv
    table = read(paths[0]).drop("Label").cast(pl.Float64)
    n = int(paths[0].name.split("_tr_")[1].split("_")[0])
    train, test = table[:n], table[n : n + TEST]
    # by default OpenVINO computes with 16 bits where the processor has such products
    detector = VACE(random_state=0, precision="float32").fit(train)
    return Case(train, test, detector, detector.score(test))


def near(found: np.ndarray, case: Case, bound: float) -> None:
    assert np.isfinite(found).all()
    assert np.abs(found - case.scores).max() <= bound * case.scores.max()


@pytest.mark.parametrize("units", ["powers of two", "any", "tiny and huge"])
def test_units_and_offsets(case: Case, units: str) -> None:
    rng = np.random.default_rng(0)
    width = case.train.width
    factor = {
        "powers of two": 2.0 ** rng.integers(-20, 20, width),
        "any": np.exp(rng.normal(size=width)),
        "tiny and huge": np.where(np.arange(width) % 2, 1e-9, 1e9),
    }[units]
    offset = rng.normal(size=width) if units == "any" else np.zeros(width)
    still = case.train.to_numpy().std(axis=0) == 0  # what never moved has no unit of its own
    factor[still], offset[still] = 1.0, 0.0

    def other(table: pl.DataFrame) -> pl.DataFrame:
        columns = zip(table, factor, offset, strict=True)
        return pl.DataFrame([column * k + b for column, k, b in columns])

    found = VACE(random_state=0, precision="float32").fit(other(case.train)).score(other(case.test))
    near(found, case, UNITS)


def test_columns_in_another_order(case: Case) -> None:
    names = np.random.default_rng(0).permutation(case.test.columns).tolist()
    np.testing.assert_array_equal(case.detector.score(case.test.select(names)), case.scores)


@pytest.mark.parametrize("size", [1, 7, 1499])
def test_cuts(case: Case, size: int) -> None:
    if size == 1:
        stream = case.detector.stream()
        parts = [stream.add(row).scores for row in case.test.to_numpy()[:200]]
        found = np.concatenate(parts)
        np.testing.assert_array_equal(found, case.scores[: len(found)])
        return
    chunks = (case.test[a : a + size] for a in range(0, TEST, size))
    found = np.concatenate(list(case.detector.score_chunks(chunks)))
    np.testing.assert_array_equal(found, case.scores)


def test_another_process_with_more_threads(case: Case, tmp_path: Path) -> None:
    case.detector.save(tmp_path / "m.vace")
    case.test.write_parquet(tmp_path / "t.parquet")
    limit = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "2")
    out = tmp_path / "s.npy"
    subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "m.vace", tmp_path / "t.parquet", out],
        env={**os.environ, **limit}, check=True,
    )  # fmt: skip
    np.testing.assert_array_equal(np.load(out), case.scores)


def test_save_and_load(case: Case, tmp_path: Path) -> None:
    case.detector.save(tmp_path / "m.vace")
    again = load(tmp_path / "m.vace")
    np.testing.assert_array_equal(again.score(case.test), case.scores)
    again.save(tmp_path / "n.vace")
    np.testing.assert_array_equal(load(tmp_path / "n.vace").score(case.test), case.scores)


@pytest.mark.parametrize("engine", ["numpy", "openvino", "torch"])
def test_engines(case: Case, tmp_path: Path, engine: str) -> None:
    pytest.importorskip(engine)
    case.detector.save(tmp_path / "m.vace")
    near(load(tmp_path / "m.vace", engine=engine).score(case.test), case, ENGINES)
