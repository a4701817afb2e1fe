import io
import json
import os

import pytest

from vace_ad.live.settings import read_settings
from vace_ad.live.sources.files import CsvSource, JsonLinesSource

T0 = 1_767_614_400
OPEN = []


@pytest.fixture(autouse=True)
def _closed():
    yield
    while OPEN:
        OPEN.pop().close()


def source(kind, path, position=None, **more):
    made = kind(read_settings(kind.SETTINGS, {"path": str(path), **more}, "source"))
    OPEN.append(made)
    made.open(position)
    return made


def lines(start, end, header=False):
    rows = [f"{T0 + i},{i}.5" for i in range(start, end)]
    return "".join(f"{row}\n" for row in (["time,flow"] if header else []) + rows)


def read(made, limit=50):
    """Everything that is there now: the values, and the last position."""
    values, position, quiet = [], None, 0
    for _ in range(limit):
        batch = made.read(0.01)
        if batch is None:
            quiet += 1
            if quiet > 2:
                break
            continue
        values += [record.values["flow"] for record in batch.records]
        position = batch.position
        if batch.end:
            break
    return values, json.loads(json.dumps(position))


def wanted(start, end):
    return [i + 0.5 for i in range(start, end)]


def test_a_growing_file_is_followed_and_gone_on_with(tmp_path):
    path = tmp_path / "plant.csv"
    path.write_text(lines(0, 10, header=True) + "1767614410,10")  # the last line is not whole yet
    made = source(CsvSource, path)
    values, position = read(made)
    assert values == wanted(0, 10)
    made.close()
    with path.open("a") as file:
        file.write(".5\n" + lines(11, 15))
    assert read(source(CsvSource, path, position))[0] == wanted(10, 15)


def test_rotation_while_running(tmp_path):
    path = tmp_path / "plant.csv"
    path.write_text(lines(0, 5, header=True))
    made = source(CsvSource, path)
    assert read(made)[0] == wanted(0, 5)
    with path.open("a") as file:
        file.write(lines(5, 7))
    os.rename(path, tmp_path / "plant.csv.1")
    path.write_text(lines(7, 9, header=True))
    assert read(made)[0] == wanted(5, 9)
    assert any("rotated" in note for note in made.notes)


def test_rotation_while_away(tmp_path):
    path = tmp_path / "plant.csv"
    path.write_text(lines(0, 5, header=True))
    made = source(CsvSource, path)
    _, position = read(made)
    made.close()
    with path.open("a") as file:
        file.write(lines(5, 7))
    os.rename(path, tmp_path / "plant.csv.1")
    path.write_text(lines(7, 9, header=True))
    assert read(source(CsvSource, path, position))[0] == wanted(5, 9)


@pytest.mark.parametrize("away", [False, True])
def test_truncation(tmp_path, away):
    path = tmp_path / "plant.csv"
    path.write_text(lines(0, 50, header=True))
    made = source(CsvSource, path)
    _, position = read(made)
    path.write_text(lines(50, 53, header=True))  # the same file, cut short
    if away:
        made.close()
        made = source(CsvSource, path, position)
    assert read(made)[0] == wanted(50, 53)
    assert made.notes


def test_truncated_and_longer_again_while_away(tmp_path):
    path = tmp_path / "plant.csv"
    path.write_text(lines(0, 5, header=True))
    made = source(CsvSource, path)
    _, position = read(made)
    made.close()
    path.write_text(lines(5, 40, header=True))
    assert read(source(CsvSource, path, position))[0] == wanted(5, 40)


def test_a_file_that_is_not_there_yet(tmp_path):
    path = tmp_path / "plant.csv"
    made = source(CsvSource, path)
    assert made.read(0.01) is None
    assert "cannot be read" in made.problem
    path.write_text(lines(0, 3, header=True))
    assert read(made)[0] == wanted(0, 3)
    assert made.problem is None


def test_bad_lines_are_counted_and_the_first_is_said(tmp_path):
    path = tmp_path / "plant.jsonl"
    path.write_bytes(b'{"time": 1767614400, "flow": 1.5}\nnonsense\n\xff\xfe\n{"flow": 2}\n')
    made = source(JsonLinesSource, path, follow=False)
    batch = made.read(0.01)
    assert [record.values for record in batch.records] == [{"flow": 1.5}]
    assert batch.bad == 3
    assert "not JSON" in batch.why


def test_standard_input(monkeypatch):
    inward, outward = os.pipe()
    stdin = io.TextIOWrapper(os.fdopen(inward, "rb"))
    monkeypatch.setattr("sys.stdin", stdin)
    made = source(CsvSource, "-")
    os.write(outward, lines(0, 3, header=True).encode() + b"1767")
    assert read(made)[0] == wanted(0, 3)
    assert made.read(0.01) is None
    os.write(outward, b"614403,3.5")
    os.close(outward)
    assert read(made)[0] == wanted(3, 4)
    stdin.close()


def test_two_rotations_while_nobody_read_lose_no_file(tmp_path):
    path = tmp_path / "plant.csv"
    path.write_text(lines(0, 5, header=True))
    made = source(CsvSource, path)
    found, position = read(made)
    assert found == wanted(0, 5)
    made.close()
    for n in range(1, 4):
        if n > 1:
            path.write_text(lines(5 * (n - 1), 5 * n, header=True))
        os.utime(path, (1000 * n, 1000 * n))
        path.rename(tmp_path / f"plant.csv.{n}")
    path.write_text(lines(15, 20, header=True))
    (tmp_path / "plant.csv.0.gz").write_bytes(b"\x1f\x8b")
    assert read(source(CsvSource, path, position))[0] == wanted(5, 20)


def test_lines_written_just_before_a_rotation_are_read(tmp_path, monkeypatch):
    path = tmp_path / "plant.csv"
    path.write_text(lines(0, 3, header=True))
    made = source(CsvSource, path)
    found, _ = read(made)
    real = made._lines._rotated

    def rotated():  # between the look at the file's end and the look at its name
        if path.exists() and not (tmp_path / "plant.csv.1").exists():
            with path.open("a") as file:
                file.write(lines(3, 5))
            path.rename(tmp_path / "plant.csv.1")
            path.write_text(lines(5, 7, header=True))
        return real()

    monkeypatch.setattr(made._lines, "_rotated", rotated)
    assert found + read(made)[0] == wanted(0, 7)
