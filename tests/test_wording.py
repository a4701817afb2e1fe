"""Names of channels are words of others: shown as text, whatever they hold."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import polars as pl
import pytest

from vace_ad import VACE
from vace_ad.alarms.suspects import Blame
from vace_ad.detection import Detection
from vace_ad.wording import (
    limit_words,
    listed,
    number,
    plain_text,
    plural,
    rarity,
    rarity_sentence,
)

HOSTILE = ("\x1b[31mx", "<script>", "[/]", "\x1b]0;title\x07y", "\u202ez\x00", "a\nb\rc")
SHOWN = ("x", "<script>", "[/]", "y", "z", "a b c")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        *zip(HOSTILE, SHOWN, strict=True),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b[2J\x1b[1;1H\x1bcgone", "gone"),
        ("\x9b31mred", "red"),
        ("cut \x1b", "cut "),
        ("cut \x1b[31", "cut 31"),
        ("\n\nours", "\n\nours"),
        ("temp [degC] 20 % é 温度", "temp [degC] 20 % é 温度"),
    ],
)
def test_plain_text(text: str, plain: str) -> None:
    assert plain_text(text) == plain


@pytest.fixture(scope="module")
def found() -> tuple[VACE, Detection]:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900, len(HOSTILE)))
    rows[700:720] += 40
    table = pl.DataFrame(dict(zip(HOSTILE, rows.T, strict=True)))
    detector = VACE(random_state=0).fit(table[:600])
    return detector, detector.detect(table[600:])


def is_inert(text: str) -> bool:
    return all(sign == "\n" or unicodedata.category(sign)[0] != "C" for sign in text)


def test_a_detector_shows_names_as_text(found: tuple[VACE, Detection]) -> None:
    detector, _ = found
    assert detector.channels_ == HOSTILE  # what they are does not change
    assert is_inert(repr(detector))
    assert f"6: {', '.join(SHOWN)}" in repr(detector)
    page = detector._repr_html_()
    assert is_inert(page)
    assert "&lt;script&gt;" in page
    assert "<script" not in page


def test_a_detection_shows_names_as_text(found: tuple[VACE, Detection]) -> None:
    _, detection = found
    blamed = {name for event in detection.events for name, _ in event.shares[:3]}
    assert blamed <= set(HOSTILE)
    for hostile, shown in zip(HOSTILE, SHOWN, strict=True):
        (event,) = detection.anomalies[:1]
        named = Detection(**{
            **vars(detection),
            "events": (event.with_blame(((hostile, 1.0),), event.signal),),
        })  # fmt: skip
        assert is_inert(repr(named))
        assert f"  {shown} 100%" in repr(named)
        page = named._repr_html_()
        assert is_inert(page)
        assert "<script" not in page
        assert re.search(r"<td[^>]*>[^<]+ 100%</td>", page)


def test_blame_shows_names_as_text() -> None:
    blame = Blame(HOSTILE, np.full(len(HOSTILE), 1 / len(HOSTILE)))
    assert is_inert(repr(blame))
    assert all(shown in repr(blame) for shown in SHOWN)
    assert is_inert(blame._repr_html_())
    assert "<script" not in blame._repr_html_()


@pytest.mark.parametrize(
    ("probability", "rows", "said"),
    [
        (1 / 12_345, 10**6, "1 in 12,000 rows"),
        (0.02, 4_176, "1 in 50 rows"),
        (1e-9, 4_176, "none in 4,176 rows"),
        (1e-9, None, "1 in 1,000,000,000 rows"),
        (float("nan"), 4_176, ""),
    ],
)
def test_rarity(probability: float, rows: int | None, said: str) -> None:
    assert rarity(probability, rows) == said


def test_long_lists_are_cut() -> None:
    names = [str(i) for i in range(1_300)]
    assert listed(names[:5]) == "0, 1, 2, 3, 4"
    assert listed(names, 2) == "0, 1 and 1,298 more"
    assert listed([]) == ""


def test_what_is_rarer_than_the_normal_rows_can_show_gets_no_number() -> None:
    assert rarity_sentence(1e-30, 4_176) == "It is rarer than anything in 4,176 normal rows."
    assert rarity_sentence(1 / 830, 4_176).endswith("one as strong about once in 830 rows.")
    assert rarity_sentence(float("nan"), None) == ""


@pytest.mark.parametrize(
    ("value", "said"),
    [(3.0, "3"), (12_345.678, "12,346"), (0.12344, "0.1234"), (1.5e-7, "1.500e-07")],
)
def test_number(value: float, said: str) -> None:
    assert number(value) == said


def test_a_threshold_that_moves_has_two_numbers() -> None:
    assert limit_words(1.9522, 3.8842) == "limit 1.95 at the start, 3.88 at the end"
    assert limit_words(3.4001, 3.3999) == "limit 3.4"
    assert limit_words(float("nan"), float("nan")) == "limit –"


def test_plural() -> None:
    assert (plural(1, "row"), plural(2000, "row")) == ("1 row", "2,000 rows")
