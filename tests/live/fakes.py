"""A tiny detector with the shape of the real one: z-scores, final three rows late."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vace_ad.alarms.alarm_stream import Change
from vace_ad.alarms.events import Event
from vace_ad.alarms.recent import Latest
from vace_ad.errors import ModelFileError, StateError, TooShortError

DELAY = 3  # rows until a score is final
LIMIT = 6.0


@dataclass(frozen=True)
class FakeAdded:
    first: int
    scores: np.ndarray
    provisional: np.ndarray
    changes: tuple
    signals: dict

    @property
    def idle(self):
        return np.zeros(len(self.provisional), bool)


class FakeStream:
    """Scores are summed z-scores with a running mean, so that every row before matters."""

    limit, trouble, tells_rows = LIMIT, None, False

    def __init__(self, model):
        self._model = model
        self._n = self._final = 0
        self._held = []  # rows without a final score: [time, cells]
        self._drift = 0.0
        self._event = None

    def add(self, rows, time=None):
        rows = np.atleast_2d(rows)
        if time is None:
            time = (np.arange(len(rows)) * 10**9).view("datetime64[ns]")
        rows, stamps = rows.tolist(), time.astype("datetime64[ns]").astype(np.int64).tolist()
        provisional = np.array([max(self._model.deviations(cells)) for cells in rows])
        changes, scores, first = [], [], self._final
        for cells, stamp in zip(rows, stamps, strict=True):
            self._held.append([stamp, cells])
            self._n += 1
            if len(self._held) > DELAY:
                self._one(*self._held.pop(0), scores, changes)
        return FakeAdded(first, np.array(scores), provisional, tuple(changes), {})

    def judge_afresh(self, *, new_level=False):
        """The rows so far are normal."""

    def latest(self, n):
        """The rows without a final score, within three deviations of the mean."""
        held = self._held[-n:]
        times = np.array([stamp for stamp, _ in held], "datetime64[ns]")
        values = np.array([cells for _, cells in held], float).reshape(len(held), -1)
        z = np.abs((values - self._model.mean) / self._model.scale)
        low, high = (self._model.mean + side * 3 * self._model.scale for side in (-1, 1))
        evidence = np.nan_to_num(z).max(axis=1, initial=0.0) / LIMIT
        whole = [np.tile(line, (len(held), 1)) for line in (low, high)]
        return Latest(times, evidence, values, *whole)

    def finish(self):
        changes, scores, first = [], [], self._final
        while self._held:
            self._one(*self._held.pop(0), scores, changes)
        if self._event:
            changes.append(self._change("resolve"))
            self._event = None
        return FakeAdded(first, np.array(scores), np.empty(0), tuple(changes), {})

    def _one(self, stamp, cells, scores, changes):
        z = self._model.deviations(cells)
        self._drift = 0.99 * self._drift + 0.01 * sum(z)
        score = max(z) + 0.001 * self._drift
        scores.append(score)
        if score > LIMIT:
            fresh = self._event is None
            if fresh:
                self._event = {
                    "start": self._final,
                    "score": -1.0,
                    "from": stamp,
                }
            louder = score > self._event["score"]
            self._event |= {"end": self._final + 1, "to": stamp}
            if louder:
                self._event |= {"score": score, "shares": [one / sum(z) for one in z]}
            if fresh or louder:
                changes.append(self._change("open" if fresh else "update"))
        elif self._event:
            changes.append(self._change("resolve"))
            self._event = None
        self._final += 1

    def _change(self, what):
        e = self._event
        shares = sorted(zip(self._model.channels, e["shares"], strict=True), key=lambda s: -s[1])
        severity = 100 * (1 - LIMIT / e["score"])
        start, end = (np.datetime64(e[key], "ns") for key in ("from", "to"))
        event = Event(e["start"], e["end"], e["start"], score=e["score"], severity=severity,
                      probability=math.exp(-e["score"]), signal="level", shares=tuple(shares),
                      alarm=e["start"], start_time=start, end_time=end)  # fmt: skip
        return Change(what, event)

    def to_bytes(self):
        state = {key: value for key, value in vars(self).items() if key != "_model"}
        return json.dumps(state | {"model": self._model.identity}).encode()


class FakeBand:
    def __init__(self, model):
        self._model = model

    def add(self, rows):
        middle, reach = np.zeros_like(rows) + self._model.mean, 3 * self._model.scale
        return middle, middle - reach, middle + reach


class FakeModel:
    reach, step = DELAY, None

    def __init__(self, channels, mean, scale):
        self.channels = tuple(channels)
        self.mean, self.scale = np.asarray(mean, float), np.asarray(scale, float)
        text = json.dumps([self.channels, self.mean.tolist(), self.scale.tolist()])
        self.identity = hashlib.sha256(text.encode()).hexdigest()[:8]

    def deviations(self, cells):
        """How far each value of one row is from its mean, in scales; 0 for a missing one."""
        parts = zip(cells, self.mean.tolist(), self.scale.tolist(), strict=True)
        return [0.0 if math.isnan(v) else abs((v - m) / s) for v, m, s in parts]

    def stream(self):
        return FakeStream(self)

    def restore(self, data):
        state = json.loads(data)
        if state.pop("model") != self.identity:
            raise StateError("another model's state")
        stream = FakeStream(self)
        vars(stream).update(state)
        return stream

    def accept(self, stream, own, *, suppress=False):
        stream._own = [name for name, _ in own]

    def mark_fault(self, alarm, entity, stretch):
        self.__dict__.setdefault("faults", {}).pop(alarm, None)
        if stretch is not None:
            self.faults[alarm] = entity, stretch

    def band(self):
        return FakeBand(self)

    def save(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([self.channels, self.mean.tolist(), self.scale.tolist()]))


class FakeCore:
    def load(self, path):
        try:
            return FakeModel(*json.loads(Path(path).read_text()))
        except OSError:
            raise ModelFileError(f"no model {path}") from None

    def fit(self, rows, channels, time, path):
        if len(rows) < 10:
            raise TooShortError(f"got {len(rows)} rows; 10 are needed")
        model = FakeModel(channels, np.nanmean(rows, axis=0), np.nanstd(rows, axis=0) + 1e-9)
        model.save(Path(path))
        return model
