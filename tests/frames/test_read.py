from __future__ import annotations

import gzip
import io
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from vace_ad.errors import ConfigError, InputError, TableReadError
from vace_ad.frames.read import read_table
from vace_ad.frames.sniff import DECIMALS, DELIMITERS

PLAIN = b"time,a,b\n2026-01-01,1.5,2\n2026-01-02,2.5,3\n"


@pytest.fixture
def write(tmp_path: Path):
    def _write(data: bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return _write


def test_plain_csv_and_what_was_found_out(write) -> None:
    frame, report = read_table(write(PLAIN))
    assert frame.columns == ["time", "a", "b"]
    assert frame["a"].to_list() == [1.5, 2.5]
    assert frame.schema["time"] == pl.String
    assert (report.format, report.delimiter, report.decimal) == ("CSV", ",", ".")
    assert (report.encoding, report.header, report.rows, report.columns) == ("utf-8", True, 2, 3)
    assert report.words() == (
        "2 rows × 3 columns (CSV, utf-8, delimiter comma, decimal point, header)"
    )


def test_checksum_is_of_the_file(write) -> None:
    import hashlib

    path = write(PLAIN)
    assert read_table(path)[1].sha256 == hashlib.sha256(PLAIN).hexdigest()


@pytest.mark.parametrize(
    ("delimiter", "decimal"), [(d, c) for d in DELIMITERS for c in DECIMALS if d != c]
)
def test_every_delimiter_with_every_decimal(write, delimiter: str, decimal: str) -> None:
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(size=(40, 3)), 3)
    lines = [delimiter.join("xyz")]
    lines += [delimiter.join(f"{v:.3f}".replace(".", decimal) for v in row) for row in values]
    frame, report = read_table(write("\n".join(lines).encode()))
    assert (report.delimiter, report.decimal) == (delimiter, decimal)
    np.testing.assert_array_equal(frame.to_numpy(), values)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings_are_found_out(write, encoding: str) -> None:
    text = "Zeit;Wärme °C\n2026-01-01;1,5\n2026-01-02;2,5\n"
    frame, report = read_table(write(text.encode(encoding)))
    assert frame.columns == ["Zeit", "Wärme °C"]
    assert frame["Wärme °C"].to_list() == [1.5, 2.5]
    assert report.encoding == encoding


def test_a_given_encoding_is_used(write) -> None:
    frame, report = read_table(write("温度\n1\n2\n".encode("shift_jis")), encoding="shift_jis")
    assert frame.columns == ["温度"]
    assert report.encoding == "shift_jis"


def test_odd_bytes_far_below_the_sample(write) -> None:
    data = b"a,note\n" + b"1.0,ok\n" * 60_000 + "2.0,ä\n".encode("cp1252")
    frame, report = read_table(write(data))
    assert report.encoding == "cp1252"
    assert frame["note"].last() == "ä"


@pytest.mark.parametrize(
    ("data", "header", "names"),
    [
        (b"1.5,2\n3,4\n", False, ["column_1", "column_2"]),
        (b"0,1,2\n1.5,2,3\n4,5,6\n", True, ["0", "1", "2"]),
        (b"time,0,1\n2026-01-01,2,3\n", True, ["time", "0", "1"]),
        (b"2026-01-01,ERR,3\n2026-01-02,1,3\n", False, ["column_1", "column_2", "column_3"]),
        (b",a,a\n0,2,3\n1,2,4\n", True, ["column_1", "a", "a_2"]),
        (b"a\n1\n2\n", True, ["a"]),
        (b"1\n2\n", False, ["column_1"]),
    ],
)
def test_headers_are_told_from_values(write, data: bytes, header: bool, names: list[str]) -> None:
    frame, report = read_table(write(data))
    assert report.header is header
    assert frame.columns == names


def test_what_is_given_overrides_what_is_found(write) -> None:
    frame, report = read_table(write(b"1,5\n2,5\n"), decimal=",", header=True)
    assert frame.columns == ["1,5"]
    assert frame["1,5"].to_list() == [2.5]
    assert report.decimal == ","


def test_title_lines_blank_lines_and_a_row_of_units(write) -> None:
    data = "Export of line 4\n\ntime;p;q\n;bar;l/s\n" + "2026-01-01 00:00;1,5;2\n" * 20 + "\n\n"
    frame, report = read_table(write(data.encode()))
    assert frame.columns == ["time", "p", "q"]
    assert frame.height == 20
    assert frame["p"].null_count() == 0
    assert report.units == {"p": "bar", "q": "l/s"}
    assert report.notes == (
        "2 lines before the table left out",
        "the row below the names holds units: bar, l/s",
    )


def test_thousands_that_are_set_apart(write) -> None:
    data = "Zeit;Gas;Strom;n\n01.01.2026 00:00;38.151,00;-1.234.567,5;1\n"
    data += "01.01.2026 00:10;999,25;12,5;2\n01.01.2026 00:20;1.000;0,5;3\n"
    frame, report = read_table(write(data.encode()))
    assert (report.delimiter, report.decimal) == (";", ",")
    assert frame["Gas"].to_list() == [38151.0, 999.25, 1000.0]
    assert frame["Strom"].to_list() == [-1234567.5, 12.5, 0.5]
    assert "column 'Gas': thousands are set apart, 38.151,00 is 38151.00" in report.notes[0]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["38.151,00", "12,50"], [38151.0, 12.5]),
        (["38\u00a0151,00", "12,50"], [38151.0, 12.5]),
        (["38'151.00", "12.50"], [38151.0, 12.5]),
        (["1,234.5", "1,234,567"], [1234.5, 1234567.0]),
        (["1,234", "0,500"], [1.234, 0.5]),  # three decimals, not thousands
        (["1.234", "0.500"], [1.234, 0.5]),
    ],
)
def test_thousands_and_decimals_are_told_apart(write, cells, expected) -> None:
    lines = [f"2026-01-01 00:0{i};{cell}" for i, cell in enumerate(cells * 4)]
    frame, _ = read_table(write("\n".join(["time;value", *lines]).encode()))
    assert frame["value"].to_list() == expected * 4


def test_thousands_far_below_the_sample_are_thousands_too(write) -> None:
    data = "t;x\n" + "1,5;999,5\n" * 700 + "1,5;1.234\n"
    assert read_table(write(data.encode()))[0]["x"].last() == 1234.0


GROUPS = "Zeit;Pumpe 1;;Pumpe 2;\n;Druck;Temp;Druck;Temp\n;bar;°C;bar;°C\n"
VALUES = "".join(f"01.01.2026 00:{i:02};1,5;20;2,5;{i}\n" for i in range(20))


def test_rows_of_groups_and_units(write) -> None:
    frame, report = read_table(write(f"Bericht Linie 4;;;;\n;;;;\n{GROUPS}{VALUES}".encode()))
    assert frame.columns == ["Zeit", *(f"Pumpe {i} {n}" for i in (1, 2) for n in ("Druck", "Temp"))]
    assert frame.height == 20
    assert report.units["Pumpe 2 Temp"] == "°C"
    assert "names are made of two rows, such as 'Pumpe 1 Druck'" in report.notes
    assert len(report.notes) == 3


def test_a_header_row_as_given(write) -> None:
    path = write(f"{GROUPS}{VALUES}".encode())
    frame, _ = read_table(path, header_row=1)
    assert frame.columns[:3] == ["Zeit", "Pumpe 1", "column_3"]
    path = write(b"what;is;this\nso;it;is\na;b;c\n1;2;3\n4;5;6\n")
    frame, _ = read_table(path, header_row=2)
    assert frame.columns == ["so", "it", "is"]
    frame, _ = read_table(path, header_row=3)
    assert frame["c"].to_list() == [3.0, 6.0]
    with pytest.raises(InputError, match="header_row=9: the table has only 5 rows"):
        read_table(path, header_row=9)
    with pytest.raises(ConfigError, match="without a header"):
        read_table(path, header_row=1, header=False)


def test_names_that_look_like_units_are_names(write) -> None:
    frame, report = read_table(write(b"V,A,W\n230,1.5,345\n231,1.4,320\n"))
    assert frame.columns == ["V", "A", "W"]
    assert report.units == {}


def test_a_header_with_a_line_break_in_a_name(write) -> None:
    frame, _ = read_table(write(b'time,"temp\n[degC]",x\n2026-01-01,1.5,2\n2026-01-02,2.5,3\n'))
    assert frame.columns[0] == "time"
    assert frame.to_series(1).to_list() == [1.5, 2.5]


def test_lines_that_end_with_a_delimiter_the_header_lacks(write) -> None:
    frame, _ = read_table(write(b"a;b\n1;2;\n3;4;\n5;6;\n"))
    assert frame.to_dict(as_series=False) == {"a": [1.0, 3.0, 5.0], "b": [2.0, 4.0, 6.0]}


def test_words_for_missing_values_and_truth(write) -> None:
    frame, _ = read_table(write(b"a,valve\n1,true\nn/a,False\n,TRUE\nNaN,false\n"))
    assert frame["a"].to_list()[:3] == [1.0, None, None]
    assert np.isnan(frame["a"][3])
    assert frame["valve"].to_list() == [1.0, 0.0, 1.0, 0.0]


def test_a_word_far_down_a_column_of_numbers_is_missing_and_said(write) -> None:
    frame, report = read_table(write(b"x\n" + b"1.5\n" * 800 + b"oops\n"))
    assert frame["x"].null_count() == 1
    assert report.notes == (
        "column 'x': no number in 1 of 801 cells, such as 'oops'; they count as missing",
    )


def test_text_stays_text(write) -> None:
    frame, report = read_table(write(b"a,state\n1,run\n2,stop\n3,7\n"))
    assert frame.schema["state"] == pl.String
    assert report.notes == ()


def test_gzip(write) -> None:
    frame, report = read_table(write(gzip.compress(PLAIN), "table.csv.gz"))
    assert frame.height == 2
    assert report.compression == "gzip"


@pytest.mark.skipif(shutil.which("zstd") is None, reason="the zstd command is not installed")
def test_zstd(write) -> None:
    path = write(b"a;b\n1,5;2\n2;n/a\n")
    subprocess.run(["zstd", "-q", str(path)], check=True)
    frame, report = read_table(f"{path}.zst")
    assert frame["a"].to_list() == [1.5, 2.0]
    assert (report.compression, report.decimal) == ("zstd", ",")


@pytest.mark.parametrize("kind", ["parquet", "ipc", "ipc_stream"])
def test_typed_files_whatever_their_name(tmp_path: Path, kind: str) -> None:
    frame = pl.DataFrame({"a": [1, 2], "b": [0.5, None]})
    path = tmp_path / "no-suffix"
    getattr(frame, f"write_{kind}")(path)
    again, report = read_table(path)
    assert again.equals(frame)
    assert report.format == ("Parquet" if kind == "parquet" else "Arrow")


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, packed: bool) -> None:
    data = gzip.compress(PLAIN) if packed else PLAIN
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    frame, report = read_table("-")
    assert frame.height == 2
    assert report.source == "standard input"


BAD = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\n", "is empty"),
    "header only": (b"a,b\n", "has no rows"),
    "binary": (b"ab\x00\x01\x02", "binary data"),
    "no known encoding": (b"\x81\x8d\x90,1\n2,3\n", "encoding='shift_jis'"),
    "cut excel": (b"PK\x03\x04....", "Excel"),
    "ragged": (b"a,b\n1,2\n3,4,5\n6,7\n", "line 3: 3 cells, but most lines have 2"),
    "cut parquet": (b"PAR1 and no more", "begins like Parquet"),
    "cut arrow": (b"ARROW1 and no more", "begins like Arrow"),
    "cut gzip": (gzip.compress(PLAIN * 100)[:-12], "begins like gzip"),
    "cut zstd": (b"\x28\xb5\x2f\xfd\x00", "begins like zstd"),
}


@pytest.mark.parametrize(("data", "expected"), BAD.values(), ids=BAD.keys())
def test_bad_files_end_in_one_sentence(write, data: bytes, expected: str) -> None:
    with pytest.raises(TableReadError) as caught:
        read_table(write(data))
    message = str(caught.value)
    assert expected in message
    assert "\n" not in message


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(TableReadError, match="does not exist"):
        read_table(tmp_path / "nowhere.csv")
    with pytest.raises(TableReadError, match="is a folder"):
        read_table(tmp_path)


def test_empty_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(TableReadError, match="standard input is empty"):
        read_table("-")


def test_wrong_given_encoding(write) -> None:
    with pytest.raises(TableReadError, match="not in utf-8"):
        read_table(write(b"a,b\nx,\xff\n"), encoding="utf-8")
    with pytest.raises(TableReadError, match="not in ascii"):
        read_table(write("a\n1\n°\n".encode()), encoding="ascii")
    with pytest.raises(ConfigError, match="utf-99"):
        read_table(write(PLAIN), encoding="utf-99")


@pytest.mark.parametrize(
    "options", [{"decimal": "x"}, {"delimiter": "::"}, {"delimiter": ",", "decimal": ","}]
)
def test_wrong_options(write, options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        read_table(write(PLAIN), **options)


def test_text_options_for_a_typed_file(tmp_path: Path) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(ConfigError, match="Parquet file has none"):
        read_table(tmp_path / "t.parquet", delimiter=";")


def test_wide_tables_and_huge_cells(write) -> None:
    names = [f"sensor number {i} of the plant" for i in range(20_000)]
    line = ";".join("1,5" for _ in names)
    data = "\n".join([";".join(f'"{name}"' for name in names), *[line] * 3])
    frame, report = read_table(write(data.encode()))
    assert frame.width == 20_000
    assert (report.delimiter, report.decimal) == (";", ",")
    frame, _ = read_table(
        write(
            b"a,note\n"
            + b"".join(b"%d,ok\n" % i for i in range(30))
            + b'7,"'
            + b"x" * 300_000
            + b'"\n'
        )
    )
    assert frame.height == 31
    with pytest.raises(TableReadError, match=r"delimiter"):
        read_table(write(b'a,"' + b"x" * 300_000 + b"\n1,2\n"))


def test_thousands_of_columns_of_one_name_take_no_time(write) -> None:
    import time

    started = time.perf_counter()
    data = ",".join(["a"] * 4000) + "\n" + ("1," * 3999 + "2\n") * 3
    frame, _ = read_table(write(data.encode()))
    assert frame.columns[:3] == ["a", "a_2", "a_3"]
    assert len(set(frame.columns)) == 4000
    assert time.perf_counter() - started < 5
