"""Packages that add signals, sources, sinks or methods: the examples of the guide, installed."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from test_detector import waves
from vace_ad import VACE, load
from vace_ad.errors import ConfigError, ModelFileError
from vace_ad.live.config import make_config
from vace_ad.live.detector import Detectors
from vace_ad.live.plugins import kinds, make_sink
from vace_ad.live.runner import Watch
from vace_ad.stream import Stream

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "extending.md"
BLOCK = re.compile(r"^```(python|toml)\n(.*?)^```", re.S | re.M)
SMALL = {"patch_length": 16, "stride": 4, "widths": (16, 16, 16, 8), "encoders": 1}
LONGEST = 40  # lines of an example


def examples() -> dict[str, tuple[str, dict[str, dict[str, str]]]]:
    """By module: its code, and the entry points of its package."""
    found = [(kind, text) for kind, text in BLOCK.findall(GUIDE.read_text("utf-8"))]
    codes = [text for kind, text in found if kind == "python"]
    points = [
        tomllib.loads(text)["project"]["entry-points"] for kind, text in found if kind == "toml"
    ]
    names = [re.match(r"# (\w+)\.py\n", code)[1] for code in codes]  # type: ignore[index]
    return {n: (c, p) for n, c, p in zip(names, codes, points, strict=True)}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install packages as pip leaves them: modules, and a record with entry points."""
    place = tmp_path / "site-packages"
    place.mkdir()
    for name, (code, groups) in examples().items():
        (place / f"{name}.py").write_text(code)
        record = place / f"{name}-1.dist-info"
        record.mkdir()
        (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        lines = [
            line
            for group, points in groups.items()
            for line in (f"[{group}]", *(f"{key} = {value}" for key, value in points.items()))
        ]
        (record / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(place))
    kinds.cache_clear()
    yield place
    kinds.cache_clear()
    for name in examples():
        sys.modules.pop(name, None)


def test_examples_are_complete_and_short() -> None:
    found = examples()
    groups = {group for _, points in found.values() for group in points}
    assert groups == {f"vace_ad.{one}" for one in ("signals", "sources", "sinks", "detectors")}
    assert max(len(code.splitlines()) for code, _ in found.values()) <= LONGEST


def test_a_signal(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = waves(400, seed=1)
    rows[200:210, 0] += 50
    plain = VACE(**SMALL).fit(waves(1000))
    assert "outside_range" not in plain.signals(rows)  # installed is not asked for
    detector = VACE(**SMALL, extra_signals=("outside_range",)).fit(waves(1000))
    signals = detector.signals(rows)
    assert signals["outside_range"][200:210].min() > 1
    assert signals["outside_range"][:200].max() < 1
    np.testing.assert_allclose(detector.score(rows), sum(signals.values()))
    stream = detector.stream()
    first = stream.add(rows[:150]).signals["outside_range"]
    stream = Stream.from_bytes(stream.to_bytes(), detector)
    rest = [stream.add(rows[150:]).signals, stream.finish().signals]
    found = np.concatenate([first, *(part["outside_range"] for part in rest)])
    np.testing.assert_array_equal(found, signals["outside_range"])
    detector.save(tmp_path / "m.vace")
    np.testing.assert_array_equal(load(tmp_path / "m.vace").score(rows), detector.score(rows))
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one != str(installed)])
    with pytest.raises(ModelFileError, match="'outside_range', which no installed package adds"):
        load(tmp_path / "m.vace")


def test_a_signal_that_nobody_adds() -> None:
    with pytest.raises(ConfigError, match="'outside_rnage', which no installed package adds"):
        VACE(**SMALL, extra_signals=("outside_rnage",)).fit(waves(1000))
    with pytest.raises(ConfigError, match="a list of names"):
        VACE(extra_signals="outside_range")


@pytest.mark.usefixtures("installed")
def test_a_source_and_a_sink(tmp_path: Path) -> None:
    rows = np.sin(np.arange(600) / 4)[:, None]
    model = VACE(**SMALL).fit(_table(rows))
    model.save(tmp_path / "m.vace")
    tickets = tmp_path / "tickets.txt"
    config = make_config(
        {
            "source": {"kind": "waves", "entity": "pump"},
            "model": {"file": str(tmp_path / "m.vace")},
            "state": {"path": str(tmp_path / "state")},
            "alarms": {"silence_after": "off"},
            "sink": [{"kind": "tickets", "path": str(tickets)}],
        }
    )
    watch = Watch(config, Detectors(config.budget))
    watch.run()
    assert watch.status.counts["rows"] == 1000
    assert list(watch.entities) == ["pump"]
    make_sink(config.sinks[0]).send([{"what": "open", "summary": "level is high"}])
    assert tickets.read_text().endswith("open: level is high\n")


@pytest.mark.usefixtures("installed")
def test_a_method_of_the_study() -> None:
    registry = pytest.importorskip("vace_study.baselines.registry")
    assert "far-from-mean" in registry.names()
    detector = registry.resolve("far-from-mean").make(0)
    detector.fit(waves(100))
    assert detector.score(waves(20)).shape == (20,)


def _table(rows: np.ndarray):
    import polars as pl

    start = np.datetime64("1970-01-01", "ns")
    time = start + np.arange(len(rows)) * np.timedelta64(60, "s")
    return pl.DataFrame({"time": time, "level": rows[:, 0]})
