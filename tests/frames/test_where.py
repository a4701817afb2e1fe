from __future__ import annotations

import contextlib

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vace_ad.errors import ConfigError, InputError, VaceError
from vace_ad.frames.where import rows_where

FRAME = pl.DataFrame(
    {
        "Status": ["run", "stop", "run", None],
        "speed": [100.0, 0.0, 50.0, 70.0],
        "valve open": [1.0, 0.0, 0.0, 1.0],
        "on": [True, False, True, None],
        "T [°C]": [1.0, 2.0, 3.0, 4.0],
    }
)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("Status == 'run'", [0, 2]),
        ('Status = "run"', [0, 2]),
        ("Status != 'run'", [1]),  # a missing value satisfies none
        ("speed > 50", [0, 3]),
        ("speed >= 5e1 and Status == 'run'", [0, 2]),
        ("Status == 'stop' or speed > 60 and speed < 90", [1, 3]),
        ("(Status == 'stop' or speed > 60) and speed < 90", [1, 3]),
        ("not (speed < 60)", [0, 3]),
        ("`valve open` == 1", [0, 3]),
        ("`valve open` == true AND speed = 70", [3]),
        ("on == true", [0, 2]),
        ("`T [°C]` <= -1 OR `T [°C]` == 4", [3]),
    ],
)
def test_conditions(condition: str, rows: list[int]) -> None:
    assert rows_where(FRAME, condition).arg_true().to_list() == rows


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("", "it ends too early"),
        ("Status ==", "it ends too early"),
        ("Status run", "'run' is not an operator"),
        ("Status == run", "'run' is not a value; put text in quotes"),
        ("Status == 'run' speed", "'speed' comes after its end"),
        ("(speed > 1", "a bracket is not closed"),
        ("speed > 'run'", "holds no words, so it is never 'run'"),
        ("Status > 5", "column 'Status' holds words; put the value in quotes"),
        ("speed > 1; import os", "';' is not understood|'; import o' is not understood"),
        ("(" * 60 + "speed > 1" + ")" * 60, "nested too deeply"),
    ],
)
def test_what_is_refused(condition: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        rows_where(FRAME, condition)


def test_a_column_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no column is called 'status'; did you mean 'Status'"):
        rows_where(FRAME, "status == 'run'")


@given(st.text(alphabet="speed Status()=<>!'\"`0123.and or not __import__;\\\n", max_size=40))
def test_any_text_is_a_condition_or_a_sentence(text: str) -> None:
    with contextlib.suppress(VaceError):
        assert rows_where(FRAME, text).dtype == pl.Boolean
