from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vace_ad.frames.read_options import ReadOptions
from vace_ad.frames.sniff import Head, find_head

VALUES = [[f"2026-01-0{i}", f"{i}.5", str(i)] for i in range(1, 9)]


def found(*above: list[str], values: list[list[str]] = VALUES, **how: Any) -> Head:
    return find_head([*above, *values], ".", ReadOptions(**how))


def test_names_alone_and_none() -> None:
    assert found(["t", "a", "b"]) == Head(("t", "a", "b"), (), 1)
    assert found() == Head((), (), 0)
    assert found(["t", "a", "b"], header=False) == Head((), (), 0)


@pytest.mark.parametrize(
    "units",
    [
        ["", "bar", "°C"],
        ["", "[m³/h]", "(kWh)"],
        ["yyyy-mm-dd", "1/min", "%"],
        ["", "l/min", "-"],
        ["UTC", "mm/s", "W/m²"],
        ["", "U/min", "min-1"],
        ["", "µg/m3", "mbar"],
    ],
)
def test_rows_of_units(units: list[str]) -> None:
    head = found(["t", "a", "b"], units)
    assert head.names == ("t", "a", "b")
    assert head.rows == 2
    assert len(head.units) == 3
    assert head.units[1] == units[1].strip("[]()")


def test_words_below_the_names_are_no_units() -> None:
    head = found(["t", "a", "b"], ["when", "inflow of the tank", "level of the tank"])
    assert head.names == ("t", "a", "b")
    assert head.units == ()
    assert head.rows == 2
    assert head.notes == ("1 row between names and values left out, beginning with 'when'",)


def test_titles_with_dates_are_no_values() -> None:
    titles = [["Report", "", ""], ["from", "2026-01-01", ""], ["", "", ""]]
    head = found(*titles, ["t", "a", "b"])
    assert head.names == ("t", "a", "b")
    assert head.rows == 4
    assert head.notes == ("3 lines before the table left out",)


def test_groups_are_left_out_where_names_are_unique_and_used_where_not() -> None:
    values = [[*row, str(i % 3)] for i, row in enumerate(VALUES)]
    groups = ["t", "pump", "", "tank"]
    assert found(groups, ["", "p", "T", "h"], values=values).names == ("t", "p", "T", "h")
    same = found(groups, ["", "p", "T", "p"], values=values)
    assert same.names == ("t", "pump p", "pump T", "tank p")


def test_rows_without_a_cell_below_the_names_are_values() -> None:
    head = found(["t", "a", "b"], ["", "", ""])
    assert (head.names, head.rows) == (("t", "a", "b"), 1)


NAMES = st.lists(
    st.text("abcXYZ äß_", min_size=2, max_size=8).map(str.strip).filter(lambda n: len(n) > 1),
    min_size=3,
    max_size=3,
    unique=True,
)


@given(names=NAMES, titles=st.integers(0, 4), numbers=st.lists(st.floats(-1e6, 1e6), min_size=12))
def test_any_names_above_any_numbers(names: list[str], titles: int, numbers: list[float]) -> None:
    rows = [[str(a), str(b), str(c)] for a, b, c in zip(*[iter(numbers)] * 3, strict=False)]
    head = found(*[["Export", "", ""]] * titles, names, values=rows)
    assert head.rows == titles + 1
    assert head.names == tuple(names)
