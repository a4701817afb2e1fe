r"""A condition on rows in words, such as `Status == 'Betrieb' and Drehzahl > 100`.

A column, an operator and a value; `and`, `or`, `not` and brackets. Nothing is executed: the words
become an expression of polars or are refused.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from vace_ad.errors import ConfigError, InputError
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


def rows_where(frame: pl.DataFrame, condition: str) -> pl.Series:
    """Which rows satisfy a condition; a missing value satisfies none."""
    found = _Parser(frame, condition).parse()
    return frame.select(found.fill_null(False).alias("where")).to_series()


class _Parser:
    """Tokens of a condition, from the left."""

    def __init__(self, frame: pl.DataFrame, condition: str) -> None:
        self._frame, self._condition = frame, condition
        self._tokens: list[tuple[str, str]] = []  # kind, text
        at = 0
        while condition[at:].strip():
            match = _TOKEN.match(condition, at)
            if match is None:
                raise self._refusal(f"{condition[at:].strip()[:10]!r} is not understood")
            self._tokens.append((str(match.lastgroup), match[match.lastgroup or 0]))
            at = match.end()

    def parse(self) -> pl.Expr:
        found = self._either(0)
        if self._tokens:
            raise self._refusal(f"{self._tokens[0][1]!r} comes after its end")
        return found

    def _refusal(self, why: str) -> ConfigError:
        return ConfigError(
            f"{option('where', self._condition)}: {why}; write a column, an operator and a value, "
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

    def _either(self, depth: int) -> pl.Expr:
        found = self._both(depth)
        while self._comes("or"):
            found = found | self._both(depth)
        return found

    def _both(self, depth: int) -> pl.Expr:
        found = self._one(depth)
        while self._comes("and"):
            found = found & self._one(depth)
        return found

    def _one(self, depth: int) -> pl.Expr:
        if depth > _DEEPEST:
            raise self._refusal("its brackets are nested too deeply")
        if self._comes("not"):
            return ~self._one(depth + 1)
        if self._comes("("):
            found = self._either(depth + 1)
            if not self._comes(")"):
                raise self._refusal("a bracket is not closed")
            return found
        return self._comparison()

    def _comparison(self) -> pl.Expr:
        import polars as pl

        name = self._column()
        kind, sign = self._next()
        if kind != "sign" or sign not in _SIGNS:
            raise self._refusal(f"{sign!r} is no operator")
        value, column = self._value(), pl.col(name)
        words = self._frame.schema[name] in (pl.String, pl.Categorical, pl.Enum)
        if words and isinstance(value, float):
            raise self._refusal(f"column {name!r} holds words; put the value in quotes")
        if not words and isinstance(value, str):
            raise self._refusal(f"column {name!r} holds no words, so it is never {value!r}")
        cast = column.cast(pl.String).str.strip_chars() if words else column.cast(pl.Float64)
        found: pl.Expr = _SIGNS[sign](cast, pl.lit(value))
        return found

    def _column(self) -> str:
        kind, text = self._next()
        name = text[1:-1] if kind == "quoted" else text
        if name not in self._frame.columns:
            close = get_close_matches(name, self._frame.columns, n=1)
            hint = f"did you mean {close[0]!r}?" if close else ""
            names = ", ".join(self._frame.columns[:12])
            raise InputError(
                f"{option('where', self._condition)}: no column is called {name!r}; "
                f"{hint or f'the table has {names}'}"
            )
        return name

    def _value(self) -> float | str:
        kind, text = self._next()
        if kind == "number":
            return float(text)
        if kind == "quoted" and not text.startswith("`"):
            return text[1:-1]
        if text.lower() in _TRUTH:
            return _TRUTH[text.lower()]
        raise self._refusal(f"{text!r} is no value; put words in quotes")
