from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from frames.shapes import wide
from vace_ad.app.loading import load_table
from vace_ad.errors import TableReadError
from vace_ad.frames.read import read_table
from vace_ad.frames.read_options import ReadOptions

START = 1_767_225_600


def matrix(machines: int = 1, n: int = 50) -> dict[str, Any]:
    """The answer of a range query, as Prometheus and VictoriaMetrics give it."""
    series = [
        {
            "metric": {"__name__": name, "job": "node", "instance": f"host{m}:9100"},
            "values": [[START + 15 * i, str(i * i % 13 * (m + 1) * scale)] for i in range(n)],
        }
        for m in range(machines)
        for name, scale in (("cpu", 1), ("mem", 10))
    ]
    return {"status": "success", "data": {"resultType": "matrix", "result": series}}


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_range_query(tmp_path: Path) -> None:
    loaded = load_table(write(tmp_path / "q.json", matrix()), ReadOptions())
    assert loaded.table.names == ("cpu", "mem")
    assert loaded.clock.step == 15 * 10**9
    assert loaded.clock.zone == "UTC"
    assert loaded.table.values[3].tolist() == [9.0, 90.0]
    assert loaded.source.format == "Prometheus"


def test_what_tells_series_apart_names_them(tmp_path: Path) -> None:
    frame, _ = read_table(write(tmp_path / "q.json", matrix(2)))
    assert frame.columns[1:3] == ["cpu{instance=host0:9100}", "mem{instance=host0:9100}"]
    keyed, _ = read_table(tmp_path / "q.json", by=("instance",))
    assert keyed.columns == ["time", "instance", "cpu", "mem"]
    assert keyed.height == 100


def test_holes_not_a_number_and_staleness(tmp_path: Path) -> None:
    answer = matrix()
    answer["data"]["result"][0]["values"][4][1] = "NaN"
    del answer["data"]["result"][1]["values"][7]
    loaded = load_table(write(tmp_path / "q.json", answer), ReadOptions())
    assert len(loaded.table) == 50
    import numpy as np

    assert np.isnan(loaded.table.values).sum() == 2


def test_lines_of_exported_series(tmp_path: Path) -> None:
    lines = [
        json.dumps({"metric": {"__name__": n}, "values": [1, 2, 3], "timestamps": [0, 1000, 2000]})
        for n in ("a", "b")
    ]
    frame, report = read_table(write(tmp_path / "e.jsonl", "\n".join(lines)))
    assert frame.columns == ["time", "a", "b"]
    assert report.format == "JSON series"


@pytest.mark.parametrize("packed", [False, True])
def test_lines_of_objects(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "t.jsonl"
    wide(30).write_ndjson(path)
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    loaded = load_table(path, ReadOptions())
    assert loaded.table.names == ("flow", "pressure", "temp [degC]")
    assert loaded.source.format == "JSON lines"
    assert loaded.frame().drop("time").equals(wide(30).drop("time"))


def test_a_list_of_objects_nested_and_with_holes(tmp_path: Path) -> None:
    rows = [{"t": f"2026-01-01 00:{i:02}", "pump": {"flow": i, "on": i > 3}} for i in range(9)]
    del rows[4]["pump"]["flow"]
    frame, _ = read_table(write(tmp_path / "t.json", rows))
    assert frame.columns == ["t", "pump.flow", "pump.on"]
    assert frame["pump.flow"].null_count() == 1


BAD = {
    "cut": ('[{"a": 1}, {"a"', "cannot be read"),
    "line": ('{"a": 1}\n{"a": 2\n{"a": 3}\n', "line 2 is not a JSON object"),
    "numbers": ("[[1, 2], [3, 4]]", "not a table"),
    "empty list": ("[]", "not a table"),
    "one object": ('{"a": 1}', "not a table"),
    "vector": (
        '{"status": "success", "data": {"resultType": "vector", "result": []}}',
        "a vector of Prometheus",
    ),
    "error": ('{"status": "error", "error": "query timed out"}', "query timed out"),
    "no series": (
        '{"status": "success", "data": {"resultType": "matrix", "result": []}}',
        "holds no series",
    ),
    "damaged": (
        '{"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}}]}}',
        "damaged",
    ),
    "empty objects": ("[{}, {}]", "without any value"),
    "wrong time": (
        '{"status": "success", "data": {"resultType": "matrix", "result": '
        '[{"metric": {}, "values": [[1e30, "1"], [NaN, "2"]]}]}}',
        "holds the time",
    ),
    "deep": ("[" * 5000 + "]" * 5000, "JSON"),
}


@pytest.mark.parametrize(("text", "expected"), BAD.values(), ids=BAD.keys())
def test_bad_json_ends_in_one_sentence(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(TableReadError) as caught:
        read_table(write(tmp_path / "bad.csv", text))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rows_that_each_have_a_key_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("\n".join(f'{{"k{i}": 1}}' for i in range(3000)))
    with pytest.raises(TableReadError, match=r"3,000 rows × 3,000 columns.*max_size="):
        read_table(tmp_path / "t.json", max_size="50MB")
