"""A signal of one's own: one class and one line in a list, and everything works with it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from test_detector import waves
from vace_ad import VACE, load
from vace_ad.alarms.scan import WORDS
from vace_ad.errors import ModelFileError, VaceWarning
from vace_ad.signals import KINDS, Evidence, Fitted, Signal, ensemble
from vace_ad.stream import Stream

SMALL = {"patch_length": 16, "stride": 4, "widths": (16, 16, 16, 8), "encoders": 1}


@dataclass(frozen=True)
class Stillness(Signal):
    """Rows that repeat the row before them in some channel."""

    key: ClassVar[str] = "stillness"
    lines: ClassVar[dict[str, str]] = {"stillness": "channels that stand still"}

    usual: np.ndarray  # (1,)
    weight: float = 3.0

    @classmethod
    def fit(cls, training) -> Fitted:
        still = [_still(_nothing(part), part) for part in training.parts]
        return Fitted(cls(np.concatenate(still).mean(keepdims=True)))

    def weighed(self, still):
        return self.weight * np.maximum(still - self.usual, 0)

    def begin(self, *, live=False):
        return StillnessEvidence(self)

    def constants(self):
        return {"weight": self.weight}

    def arrays(self):
        return {"usual": self.usual}

    @classmethod
    def layout(cls, config, n_channels, constants):
        return {"usual": ("F64", (1,))}

    @classmethod
    def restored(cls, arrays, normal, config, constants):
        return cls(arrays["usual"], constants["weight"])


class StillnessEvidence(Evidence):
    """One line, complete at once."""

    def __init__(self, signal):
        super().__init__(1)
        self._signal, self._last = signal, None

    def add(self, rows, scaled=None):
        before = _nothing(rows) if self._last is None else self._last
        self._last = rows[-1:].copy()
        self.now = self._signal.weighed(_still(before, rows))[None]
        return self.now

    def end(self):
        self._last = None
        return np.empty((1, 0))

    def state(self):
        return {} if self._last is None else {"last": self._last}

    def resume(self, state):
        self._last = state.get("last")


def _nothing(rows):
    """A row before the first, from which every channel moves."""
    return np.full_like(rows[:1], np.nan)


def _still(before, rows):
    """The share of channels that did not move, (n,)."""
    return (np.diff(np.concatenate([before, rows]), axis=0) == 0).mean(axis=1)


@pytest.fixture
def fitted(monkeypatch):
    kinds = (*KINDS, Stillness)
    monkeypatch.setattr(ensemble, "KINDS", kinds)
    return VACE(**SMALL).fit(waves(1500))


def broken():
    rows = waves(800, seed=1)
    rows[400:460, 1] = rows[400, 1]
    return rows


def test_score_and_words(fitted):
    signals = fitted.signals(broken())
    assert list(signals)[-1] == "stillness"
    np.testing.assert_allclose(signals["stillness"][401:460], 1.0)
    assert signals["stillness"][:400].max() == 0
    np.testing.assert_allclose(fitted.score(broken()), sum(signals.values()))
    assert fitted.model_.lines["stillness"] == "channels that stand still"
    held_out = fitted.calibration_scores_
    assert held_out.shape == (1500,)


@pytest.mark.parametrize("size", [1, 7, 900])
def test_stream_and_state(fitted, size):
    rows = broken()
    rows[600:620] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VaceWarning)
        wanted = fitted.signals(rows)
    stream, parts = fitted.stream(), []
    for a in range(0, 800, size):
        stream = Stream.from_bytes(stream.to_bytes(), fitted) if a % 50 == 1 else stream
        parts.append(stream.add(rows[a : a + size]).signals)
    parts.append(stream.finish().signals)
    for name, line in wanted.items():
        found = np.concatenate([part[name] for part in parts])
        assert np.array_equal(found, line, equal_nan=True)


def test_save_and_load(fitted, tmp_path, monkeypatch):
    fitted.save(tmp_path / "m.vace")
    again = load(tmp_path / "m.vace")
    assert again.model_.digest == fitted.model_.digest
    np.testing.assert_array_equal(again.score(broken()), fitted.score(broken()))
    monkeypatch.setattr(ensemble, "KINDS", KINDS)
    with pytest.raises(ModelFileError, match="stillness"):
        load(tmp_path / "m.vace")


def test_its_constants_are_part_of_the_hash(fitted, monkeypatch):
    before = fitted.model_.digest
    assert VACE(**SMALL).fit(waves(1500)).model_.digest == before
    monkeypatch.setattr(Stillness, "constants", lambda self: {"weight": 4.0})
    assert VACE(**SMALL).fit(waves(1500)).model_.digest != before


def test_detect_and_explain(fitted):
    rows = broken()
    found = fitted.detect(rows)
    (event,) = (e for e in found.anomalies if e.start < 460 and e.end > 400)
    assert event.signal in WORDS
    assert fitted.explain(rows, 400, 460).shares.sum() == pytest.approx(1)
    assert "stillness" in found.signals
