r"""A condition on rows, such as `Status == 'Betrieb' and Drehzahl > 100`.

A column, an operator and a value; `and`, `or`, `not` and brackets. Nothing is executed: the text is
parsed into comparisons of arrays. Logic has three values: with a missing value, whether a row
satisfies a condition is unknown.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import ConfigError
from vace_ad.frames.columns import no_column
from vace_ad.settings import option

if TYPE_CHECKING:
    import polars as pl

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))"""
    r"""|(?P<quoted>'[^']*'|"[^"]*"|`[^`]*`)|(?P<sign>==|!=|<=|>=|<|>|=|\(|\))|(?P<word>[\w.\[\]/%°-]+))"""
)
_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TRUTH = {"true": 1.0, "false": 0.0}
_DEEPEST = 50  # brackets


Bools = NDArray[np.bool_]
Get = Callable[[str], NDArray[Any]]  # a column's values (n,): numbers, or words and None


class Answer(NamedTuple):
    """Which rows satisfy a condition, and which do not, (n,) each; neither where it is unknown."""

    yes: Bools
    no: Bools


Rows = Callable[[Get], Answer]


def condition(text: str, columns: Mapping[str, bool], setting: str = "where") -> Rows:
    """Parse a condition; `columns` says which columns hold text."""
    return _Parser(text, columns, setting).parse()


def columns_of(text: str) -> list[str]:
    """The columns that a condition names."""
    names = _AnyColumn()
    _Parser(text, names, "off").parse()
    return list(dict.fromkeys(names.asked))


def rows_where(frame: pl.DataFrame, text: str) -> pl.Series:
    """Which rows satisfy a condition; a missing value satisfies none."""
    import polars as pl

    words = {
        name: kind in (pl.String, pl.Categorical, pl.Enum) for name, kind in frame.schema.items()
    }

    def values(name: str) -> NDArray[Any]:
        if words[name]:
            return np.array(frame[name].cast(pl.String).str.strip_chars().to_list(), object)
        return frame[name].cast(pl.Float64).to_numpy()

    return pl.Series("where", condition(text, words)(values).yes, pl.Boolean)


class _AnyColumn(dict[str, bool]):
    """Accepts every name as a column, and records the names."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __contains__(self, name: object) -> bool:
        self.asked.append(str(name))
        return True


class _Parser:
    """Tokens of a condition, from the left."""

    def __init__(self, text: str, columns: Mapping[str, bool], setting: str) -> None:
        self._columns, self._text, self._setting = columns, text, setting
        self._tokens: list[tuple[str, str]] = []  # kind, text
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._refusal(f"{text[at:].strip()[:10]!r} is not understood")
            self._tokens.append((str(match.lastgroup), match[match.lastgroup or 0]))
            at = match.end()

    def parse(self) -> Rows:
        found = self._either(0)
        if self._tokens:
            raise self._refusal(f"{self._tokens[0][1]!r} comes after its end")
        return found

    def _refusal(self, why: str) -> ConfigError:
        return ConfigError(
            f"{option(self._setting, self._text)}: {why}; write a column, an operator and a value, "
            "joined by and, or, not: Status == 'run' and speed > 100 (a name with blanks in `…`)"
        )

    def _next(self) -> tuple[str, str]:
        if not self._tokens:
            raise self._refusal("it ends too early")
        return self._tokens.pop(0)

    def _comes(self, *texts: str) -> bool:
        if self._tokens and self._tokens[0][0] != "quoted" and self._tokens[0][1].lower() in texts:
            self._tokens.pop(0)
            return True
        return False

    def _either(self, depth: int) -> Rows:
        found = [self._both(depth)]
        while self._comes("or"):
            found.append(self._both(depth))
        return _or(found)

    def _both(self, depth: int) -> Rows:
        found = [_not(self._one(depth))]
        while self._comes("and"):
            found.append(_not(self._one(depth)))
        return _not(_or(found))

    def _one(self, depth: int) -> Rows:
        if depth > _DEEPEST:
            raise self._refusal("its brackets are nested too deeply")
        if self._comes("not"):
            return _not(self._one(depth + 1))
        if self._comes("("):
            found = self._either(depth + 1)
            if not self._comes(")"):
                raise self._refusal("a bracket is not closed")
            return found
        return self._comparison()

    def _comparison(self) -> Rows:
        name = self._column()
        kind, sign = self._next()
        if kind != "sign" or sign not in _SIGNS:
            raise self._refusal(f"{sign!r} is not an operator")
        value = self._value()
        words = self._columns.get(name, isinstance(value, str))
        if words and isinstance(value, float):
            raise self._refusal(f"column {name!r} holds words; put the value in quotes")
        if not words and isinstance(value, str):
            raise self._refusal(f"column {name!r} holds no words, so it is never {value!r}")
        compare = _SIGNS[sign]

        def rows(get: Get) -> Answer:
            column = get(name)
            known = (
                np.array([one is not None for one in column], bool) if words else ~np.isnan(column)
            )
            found = np.zeros(len(column), bool)
            found[known] = compare(column[known].astype(str) if words else column[known], value)
            return Answer(found, known & ~found)

        return rows

    def _column(self) -> str:
        kind, text = self._next()
        name = text[1:-1] if kind == "quoted" else text
        if name not in self._columns:
            raise no_column(name, self._columns, f"{option(self._setting, self._text)}: ")
        return name

    def _value(self) -> float | str:
        kind, text = self._next()
        if kind == "number":
            return float(text)
        if kind == "quoted" and not text.startswith("`"):
            return text[1:-1]
        if text.lower() in _TRUTH:
            return _TRUTH[text.lower()]
        raise self._refusal(f"{text!r} is not a value; put text in quotes")


def _not(rows: Rows) -> Rows:
    return lambda get: Answer(*reversed(rows(get)))


def _or(several: list[Rows]) -> Rows:
    def any_of(get: Get) -> Answer:
        found = several[0](get)
        for rows in several[1:]:
            other = rows(get)
            found = Answer(found.yes | other.yes, found.no & other.no)
        return found

    return any_of
