from __future__ import annotations

import copy
import pickle

import pytest

from vace_ad.errors import InputError
from vace_ad.settings import Hint, hints, option, spelt


@pytest.mark.parametrize(
    ("marked", "keyword", "flag"),
    [
        (option("sort", True), "sort=True", "--sort"),
        (option("time_zone", "UTC"), "time_zone='UTC'", "--time-zone UTC"),
        (option("time_column"), "time_column", "--time-column"),
    ],
)
def test_fixes_are_named_in_the_readers_words(marked: str, keyword: str, flag: str) -> None:
    assert spelt(f"use {marked}") == f"use {keyword}"
    assert spelt(f"use {marked}", options=True) == f"use {flag}"


def test_errors_carry_their_hints() -> None:
    error = InputError(f"no order: {option('sort', True)} or {option('by', 'file')}")
    assert str(error) == "no order: sort=True or by='file'"
    assert error.told(options=True) == "no order: --sort or --by file"
    assert error.hints == (Hint("sort", True), Hint("by", "file"))
    for same in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert same.told(options=True) == error.told(options=True)
    assert hints("nothing to change") == ()
