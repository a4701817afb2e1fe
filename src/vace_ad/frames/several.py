"""Lists of tables where one is asked for: one answer for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from vace_ad.frames.training_data import are_several

_P = ParamSpec("_P")
_E = TypeVar("_E", bound="Channels")
_R = TypeVar("_R")


def of_each(
    method: Callable[Concatenate[_E, Any, _P], _R],
) -> Callable[Concatenate[_E, Any, _P], _R]:
    """Of a list of tables, as `fit` takes it, a list of answers."""

    @wraps(method)
    def answer(self: _E, data: Any, *given: _P.args, **named: _P.kwargs) -> _R:
        if not are_several(data) or _are_rows(data, len(self.channels_)):
            return method(self, data, *given, **named)
        return cast(_R, [method(self, one, *given, **named) for one in data])

    return cast(Callable[Concatenate[_E, Any, _P], _R], answer)


def _are_rows(data: Any, n_channels: int) -> bool:
    """Whether a list holds the rows of one table, each an array, and not tables."""
    return n_channels > 1 and all(getattr(one, "ndim", 2) == 1 for one in data)


class Channels(Protocol):
    """What has learned from channels."""

    @property
    def channels_(self) -> Sequence[str]:
        """Their names."""
