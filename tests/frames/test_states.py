import numpy as np
import pandas as pd
import polars as pl
import pytest

from vace_ad.errors import InputError
from vace_ad.frames.states import with_states, words_of

WORDS = ["a", None, " b ", "a"]


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_words_become_channels_of_0_and_1(kind) -> None:
    found = with_states(kind({"x": [1.0, 2.0, 3.0, 4.0], "product": WORDS}), ["product"])
    assert list(found.columns) == ["x", "product=a", "product=b"]
    np.testing.assert_array_equal(np.asarray(found["product=a"], float), [1, np.nan, 0, 1])


def test_a_model_knows_its_words() -> None:
    table = pl.DataFrame({"product": ["c", "a"]})
    found = with_states(table, (), ("product=a", "product=b"))
    assert found.to_dict(as_series=False) == {"product=a": [0.0, 1.0], "product=b": [0.0, 0.0]}


def test_tables_without_such_a_column_come_back_as_they_are() -> None:
    table = pl.DataFrame({"x": [1.0]})
    assert with_states(table, ["x", "y"]) is table
    assert with_states([[1.0]], ["x"]) == [[1.0]]


def test_a_column_of_notes_is_no_state() -> None:
    with pytest.raises(InputError, match="60 different words"):
        with_states(pl.DataFrame({"note": [f"n{i}" for i in range(60)]}), ["note"])


def test_rows_tell_their_words() -> None:
    rows = np.array([[1.0, 1, 0], [1, 0, 1], [1, 0, 0], [1, np.nan, np.nan]])
    assert words_of(rows, ("x", "p=a", "p=b"), "p").tolist() == ["a", "b", None, None]
