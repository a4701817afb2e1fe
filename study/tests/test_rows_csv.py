import csv
from dataclasses import replace

import pytest

from made_runs import STEMS, full_rows, made_row
from vace_ad.errors import InputError
from vace_study.results import Results
from vace_study.rows_csv import from_line, read_flat, to_line


def write(path, lines):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)
    return path


def test_rows_come_back_as_they_went(tmp_path):
    rows = [
        *full_rows(["vace", "pca"]),
        made_row("usad", STEMS[0], notes=("capped: 2 of 9 windows", "a,\n note"), rows=7, window=3),
        replace(
            made_row("usad", STEMS[1]),
            status="failed",
            error='a "bad" day',
            measures={},
            geometry={},
        ),
    ]
    found = read_flat(write(tmp_path / "rows.csv", [to_line(row) for row in rows]))
    assert found == [
        replace(
            row,
            notes=tuple(" ".join(note.split()) for note in row.notes),
            measures={name: round(value, 6) for name, value in row.measures.items()},
        )
        for row in rows
    ]


def test_a_file_of_rows_serves_as_a_run(tmp_path):
    path = write(tmp_path / "rows.csv", [to_line(row) for row in full_rows(["pca", "iforest"])])
    results = Results.load(path, "test-only", "eval")
    assert results.methods == ("pca", "iforest")
    assert len(results.families) == 4


def test_older_files_lack_cells():
    line = {name: str(cell) for name, cell in to_line(made_row("pca", STEMS[0])).items()}
    for name in ("cpu_seconds", "evaluated_rows", "notes", "error", "verdict"):
        del line[name]
    line |= dict.fromkeys(("effective_rank_pr", "rows", "window"), "")
    line = {name: "" if cell == "None" else cell for name, cell in line.items()}
    row = from_line(line)
    assert (row.cpu_seconds, row.evaluated_rows, row.notes) == (None, None, ())


@pytest.mark.parametrize("change", [{"seed": "one"}, {"series": "MSL"}, {"VUS-PR": "high"}])
def test_a_line_that_is_no_row_is_named(tmp_path, change):
    good = to_line(made_row("pca", STEMS[0]))
    path = write(tmp_path / "rows.csv", [good, {**good, **change}])
    with pytest.raises(InputError, match="line 3 is not a row"):
        read_flat(path)
