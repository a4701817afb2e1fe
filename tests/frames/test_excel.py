from __future__ import annotations

import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from frames.shapes import wide
from vace_ad.app.loading import load_table
from vace_ad.errors import ConfigError, InputError, TableReadError
from vace_ad.frames.read import read_table
from vace_ad.frames.read_options import ReadOptions

HEADER = ["Zeit", "flow", "temp [degC]"]


def rows(n: int = 50) -> list[list[Any]]:
    stamps: list[datetime] = [datetime(2026, 1, 1, i // 60, i % 60) for i in range(n)]
    return [[stamp, (i * i) % 7 * 0.5, (i * 7) % 11] for i, stamp in enumerate(stamps)]


def save(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, content in sheets.items():
        sheet = book.create_sheet(name)
        for row in content:
            sheet.append(row)
    book.save(path)
    return path


def test_the_sheet_and_the_header_are_found(tmp_path: Path) -> None:
    path = save(
        tmp_path / "plant.xlsx",
        {"About": [["made by", "me"]], "Data": [["Export of line 4"], [], HEADER, *rows()]},
    )
    frame, report = read_table(path)
    assert frame.columns == HEADER
    assert frame.height == 50
    assert report.format == "Excel"
    assert "sheet 'Data' of 2 was read" in report.notes[0]
    loaded = load_table(path, ReadOptions())
    assert loaded.table.names == ("flow", "temp [degC]")
    assert loaded.clock.step == 60 * 10**9
    assert loaded.table.values[3].tolist() == [1.0, 10.0]


def test_sheet_and_header_row_as_given(tmp_path: Path) -> None:
    sheets = {"A": [HEADER, *rows()], "B": [["x", "y"], ["flow", "speed"], [1, 2], [3, 4]]}
    path = save(tmp_path / "t.xlsx", sheets)
    frame, _ = read_table(path, sheet="B", header_row=2)
    assert frame.columns == ["flow", "speed"]
    assert frame["speed"].to_list() == [2, 4]
    with pytest.raises(InputError, match="no sheet 'C'; it has 'A', 'B'"):
        read_table(path, sheet="C")
    with pytest.raises(InputError, match="header_row=90"):
        read_table(path, sheet="B", header_row=90)
    with pytest.raises(ConfigError, match="Excel file has none"):
        read_table(path, delimiter=";")


def test_gaps_words_and_numbers_in_one_column(tmp_path: Path) -> None:
    content = [HEADER, *rows()]
    content[5][1] = None
    content[6][2] = "n/a"
    frame, _ = read_table(save(tmp_path / "t.xlsx", {"A": content}))
    assert frame["flow"].null_count() == 1
    loaded = load_table(tmp_path / "t.xlsx", ReadOptions())
    assert loaded.table.names == ("flow", "temp [degC]")


def test_groups_and_units_as_in_a_text(tmp_path: Path) -> None:
    head = [["Bericht"], [], ["Zeit", "Pumpe 1", None], [None, "p", "T"], [None, "bar", "degC"]]
    frame, report = read_table(save(tmp_path / "t.xlsx", {"A": [*head, *rows()]}))
    assert frame.columns == ["Zeit", "p", "T"]
    assert report.units == {"p": "bar", "T": "degC"}
    assert frame.height == 50
    assert frame.schema["p"].is_numeric()


def test_bad_workbooks(tmp_path: Path) -> None:
    path = save(tmp_path / "t.xlsx", {"A": [HEADER, *rows()]})
    whole = path.read_bytes()
    for cut in (len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:cut])
        with pytest.raises(TableReadError, match="Excel workbook that cannot be read") as caught:
            read_table(path)
        assert "\n" not in str(caught.value)
    with pytest.raises(TableReadError, match="is empty"):
        read_table(save(tmp_path / "e.xlsx", {"A": []}))
    with pytest.raises(TableReadError, match="no rows"):
        read_table(save(tmp_path / "h.xlsx", {"A": [HEADER]}))


def test_a_zip_archive_is_no_workbook(tmp_path: Path) -> None:
    wide().write_csv(tmp_path / "a.csv")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(tmp_path / "a.csv", "a.csv")
    with pytest.raises(TableReadError, match="ZIP archive; unpack it"):
        read_table(tmp_path / "a.zip")


def packed(path: Path, **parts: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def test_a_cell_in_the_last_corner_is_refused(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = 1, 2
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(TableReadError, match=r"1,048,576 rows × 16,384 columns, .*max_size="):
        read_table(tmp_path / "t.xlsx")


def test_a_sheet_that_unpacks_to_too_much(tmp_path: Path) -> None:
    parts = {"xl/worksheets/sheet1.xml": "<row/>" * 5_000_000}
    with pytest.raises(TableReadError, match=r"more than 20 MB; .*max_size="):
        read_table(packed(tmp_path / "t.xlsx", **parts), max_size="20MB")


def test_cells_that_an_opendocument_sheet_repeats(tmp_path: Path) -> None:
    cell = '<table:table-cell office:value-type="float" table:number-columns-repeated="{}"/>'
    row = '<table:table-row table:number-rows-repeated="{}">{}</table:table-row>'
    text = row.format(1_000_000, cell.format(16_000))
    with pytest.raises(TableReadError, match=r"1,000,000 rows × 16,000 columns.*max_size="):
        read_table(packed(tmp_path / "t.ods", **{"content.xml": text}))
