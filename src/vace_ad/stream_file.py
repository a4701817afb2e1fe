"""The file of a stream: all that it knows of the rows so far, safe to read from strangers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vace_ad import tensor_file
from vace_ad.alarms.budget import Budget
from vace_ad.alarms.pattern import Pattern
from vace_ad.errors import StateError
from vace_ad.frames.segments import Rules
from vace_ad.frames.table import Table
from vace_ad.model import Model
from vace_ad.signals.protocol import prefixed, under

if TYPE_CHECKING:
    from vace_ad.stream import Stream

S = TypeVar("S", bound="Stream")
KIND = tensor_file.FileKind("vace-ad stream", 4, "a stream's state", StateError)


def pack(stream: Stream) -> bytes:
    """All that a stream knows of the rows so far, as the bytes of a safe file."""
    arrays = {
        "counts": np.array([stream._n_rows, stream._n_final]),
        "real": stream._real.astype(np.uint8),
        "latest": np.array([stream._latest]),
        **prefixed("steps", stream._steps.state()),
        **prefixed("idle", stream._idle.state()),
        **prefixed("segments", stream._segments.state()),
        **prefixed("signals", stream._signals.state()),
    }
    description: dict[str, Any] = {
        "model": stream.model.digest,
        "budget": asdict(stream._budget),
        "rules": None if stream._rules is None else asdict(stream._rules),
        "step": stream._step,
    }
    feed = stream._feed or stream._score_feed
    if feed is not None:
        arrays |= prefixed("feed", feed.state())
        description["event"] = feed.description()
    if stream._recogniser is not None:
        arrays |= prefixed("accepted", stream._recogniser.state())
        patterns = stream._recogniser.patterns
        description["accepted"] = [[one.id, one.to_plain()] for one in patterns]
    return tensor_file.pack(KIND, description, arrays)


def unpack(kind: type[S], data: bytes, model: Any, name: str, *, trusted: bool = False) -> S:
    """A stream of a kind from its bytes, which messages call by `name`."""
    description, arrays = tensor_file.unpack(data, KIND, name)
    model = getattr(model, "model_", model)
    stream = _under(kind, description, model, name)
    if description.get("model") != stream.model.digest:
        raise StateError(
            f"{name} belongs to another model ({description.get('model')}), not to this one "
            f"({stream.model.digest}); start a new stream, or take that model"
        )
    try:
        # A state whose parts do not fit together shows it at the next rows: a twin goes first.
        if not trusted:
            twin = _under(kind, description, model, name)
            with np.errstate(all="ignore"):
                _restore(twin, {key: array.copy() for key, array in arrays.items()}, description)
                _rehearse(twin)
        _restore(stream, arrays, description)
    except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as wrong:
        raise StateError(f"{name} is incomplete or damaged: {wrong!r}") from wrong
    return stream


def _under(kind: type[S], description: Mapping[str, Any], model: Model, name: str) -> S:
    """A new stream with the budget of a state."""
    try:
        rules = description["rules"]
        return kind(
            model,
            budget=Budget(**description["budget"]),
            rules=None if rules is None else Rules(**rules),
            step=None if description["step"] is None else int(description["step"]),
        )
    except (KeyError, TypeError, ValueError) as wrong:
        raise StateError(f"{name} is incomplete or damaged: {wrong!r}") from wrong


def _restore(
    stream: Stream, arrays: Mapping[str, NDArray[Any]], description: Mapping[str, Any]
) -> None:
    """Take back a state."""
    stream._n_rows, stream._n_final = (int(n) for n in arrays["counts"])
    stream._real = arrays["real"].astype(bool)
    stream._steps.resume(under("steps", arrays))
    stream._idle.resume(under("idle", arrays))
    stream._latest = float(arrays["latest"][0])
    stream._segments.resume(under("segments", arrays))
    stream._signals.resume(under("signals", arrays))
    feed = stream._feed or stream._score_feed
    if feed is not None:
        feed.resume(under("feed", arrays), description["event"])
    if "accepted" in description:
        stream.accept([Pattern.from_plain(*one) for one in description["accepted"]])
        assert stream._recogniser is not None
        stream._recogniser.resume(under("accepted", arrays))


def _rehearse(stream: Stream) -> None:
    """Run normal rows to the end; refuse a state that has no scores for them."""
    n = 2 * stream.model.reach + 32  # windows that never end show it by then
    rows = np.tile(stream.model.normal.mean, (n, 1))
    step = np.timedelta64(stream.model.step or 1, "ns")
    last = stream._steps.last
    time = None if last is None else last + step * np.arange(1, n + 1)
    found = [stream.add_table(Table(rows, stream.model.channels, time)), stream.finish()]
    scores = np.concatenate([each.scores for each in found])
    if not len(scores) or not np.isfinite(scores[-1]):
        raise ValueError("normal rows get no score after it")
