"""One truth: the same rows give the same answer, whichever door they come in by.

A table is learned from and another one judged with nothing set. Every door must give the scores
bit for bit, the threshold and the events (rows, times, channels) that `VACE.detect` gives for the
table, or refuse it with the same sentence. A new door is one function with `@door`.
"""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from vace_ad import VACE, load
from vace_ad.cli.main import app
from vace_ad.errors import InputError, VaceWarning
from vace_ad.fleet.fleet import Fleet
from vace_ad.live.config import make_config
from vace_ad.live.detector import SHOWN
from vace_ad.live.runner import Watch
from vace_ad.live.service import make_detectors
from vace_ad.live.store import Store

NAMES = ("flow", "speed", "pressure", "power")
TRAIN, TEST = 700, 400
FAULT, AGAIN = slice(230, 245), slice(340, 345)  # two events unless joins differ
MINUTE = np.timedelta64(60, "s").astype("timedelta64[ns]")
ZONE = "Europe/Berlin"
SPRING = np.datetime64("2026-03-29T02:00", "ns")  # when clocks in Berlin skip an hour
START = SPRING - (TRAIN + 150) * MINUTE  # the change lies within the rows that are judged


@dataclass
class Case:
    """Normal rows and rows with a fault, as tables that a person may have."""

    normal: pl.DataFrame
    judged: pl.DataFrame
    zone: str | None = None  # of the times
    options: list[str] = field(default_factory=list)  # that say it on the command line
    calendar: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The same for cases with the same normal rows."""
        return f"{hash(self.normal.write_csv())}-{self.zone}-{self.calendar}"

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the detector."""
        return {"calendar": self.calendar} if self.calendar else {}

    @property
    def learning(self) -> list[str]:
        """The same on the command line, beside `options`."""
        return ["--calendar", ",".join(self.calendar)] if self.calendar else []


class Answer(NamedTuple):
    """What a door says."""

    scores: np.ndarray | None = None  # None where a door keeps none
    threshold: float | None = None
    events: list[tuple[Any, ...]] | None = None
    refused: str | None = None


# ----------------------------------------------------------------------------------- the tables


def _values() -> np.ndarray:
    rng, n = np.random.default_rng(3), TRAIN + TEST
    phase = 2 * np.pi * np.arange(n)[:, None] / [24.0, 48.0]
    x = np.sin(phase) @ rng.normal(size=(2, 4)) + 0.15 * rng.normal(size=(n, 4))
    for rows in (FAULT, AGAIN):
        x[TRAIN:][rows, 2] += 6.0
    return x


def _case(
    time: np.ndarray | None,
    x: np.ndarray | None = None,
    keep: pl.Series | None = None,
    **more: Any,
) -> Case:
    x = _values() if x is None else x
    frame = pl.DataFrame(dict(zip(NAMES, x.T, strict=True)))
    if time is not None:
        stamps = pl.Series("time", time)
        if more.get("zone"):
            stamps = stamps.dt.replace_time_zone("UTC").dt.convert_time_zone(more["zone"])
        frame = frame.insert_column(0, stamps)
    judged = frame[TRAIN:]
    return Case(frame[:TRAIN], judged if keep is None else judged.filter(keep), **more)


def _regular() -> np.ndarray:
    return START + np.arange(TRAIN + TEST) * MINUTE


def _jittered(first: int) -> np.ndarray:
    rng, time = np.random.default_rng(5), _regular()
    shift = (rng.uniform(-0.4, 0.4, len(time)) * 60e9).astype("timedelta64[ns]")
    shift[:first] = np.timedelta64(0, "ns")
    return time + shift


def _stretched(factor: int) -> np.ndarray:
    time = _regular()
    time[TRAIN:] = time[TRAIN] + np.arange(TEST) * factor * MINUTE
    return time


def _moved(row: int, by: np.timedelta64) -> np.ndarray:
    time = _regular()
    time[TRAIN + row :] += by
    return time


def _dead() -> np.ndarray:
    x = _values()
    x[TRAIN + 120 :, 1] = np.nan
    return x


def _single_rows_missing() -> pl.Series:
    gone = np.isin(np.arange(TEST), [40, 41, 120, 160, 240, 390])
    return pl.Series(~gone)


CASES: dict[str, Callable[[], Case]] = {
    "regular": lambda: _case(_regular()),
    "jittered": lambda: _case(_jittered(TRAIN)),
    "jittered in training too": lambda: _case(_jittered(0)),
    "twice the step": lambda: _case(_stretched(2)),
    "single rows missing": lambda: _case(_regular(), keep=_single_rows_missing()),
    "change of clocks, naive": lambda: _case(_moved(150, np.timedelta64(1, "h"))),
    "change of clocks, zone": lambda: _case(_regular(), zone=ZONE, options=["--time-zone", ZONE]),
    "dead channel": lambda: _case(_regular(), _dead()),
    "jump in time": lambda: _case(_moved(150, np.timedelta64(5, "h"))),
    "with a calendar": lambda: _case(_regular(), calendar=("2026-03-29", "Asia/Tokyo")),
    "without time": lambda: _case(None),
    "without time, dead channel": lambda: _case(None, _dead()),
}


# ------------------------------------------------------------------------------------ the doors

DOORS: dict[str, Callable[[Case, Path], Answer]] = {}


def door(work: Callable[[Case, Path], Answer]) -> Callable[[Case, Path], Answer]:
    """Put a way in under the contract."""
    DOORS[work.__name__] = work
    return work


_FITTED: dict[str, VACE] = {}
_FILES: dict[str, bytes] = {}  # models that `vace fit` wrote
_FLEETS: dict[str, Fleet] = {}


def fitted(case: Case) -> VACE:
    """Learned from the normal rows, once for all cases that share them."""
    if case.key not in _FITTED:
        _FITTED[case.key] = VACE(**case.settings).fit(case.normal)
    return copy.copy(_FITTED[case.key])


def _found(detection: Any) -> Answer:
    events = [
        (one.kind, one.start, one.end, _ns(one.start_time), _ns(one.end_time), _top(one.shares))
        for one in detection.events
    ]
    return Answer(detection.scores, detection.threshold.value, events)


def _ns(time: np.datetime64 | None) -> int | None:
    return None if time is None else int(time.astype("datetime64[ns]").astype(np.int64))


def _top(shares: Any) -> tuple[str, ...]:
    return tuple(name for name, _ in list(shares)[:2])


@cache
def reference(name: str) -> Answer:
    """What `detect` says of the table."""
    case = CASES[name]()
    return _attempt(lambda: _found(fitted(case).detect(case.judged)))


def _attempt(work: Callable[[], Answer]) -> Answer:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VaceWarning)
            return work()
    except InputError as error:
        return Answer(refused=str(error))


def _chunks(case: Case, size: int) -> Iterator[pl.DataFrame]:
    return (case.judged[at : at + size] for at in range(0, len(case.judged), size))


@door
def chunks_of_7(case: Case, folder: Path) -> Answer:
    return _found(fitted(case).detect(_chunks(case, 7)))


@door
def chunks_of_97(case: Case, folder: Path) -> Answer:
    return _found(fitted(case).detect(_chunks(case, 97)))


@door
def one_chunk(case: Case, folder: Path) -> Answer:
    return _found(fitted(case).detect(_chunks(case, 10_000)))


@door
def scored_in_chunks(case: Case, folder: Path) -> Answer:
    return Answer(fitted(case).score(_chunks(case, 13)))


@door
def parquet(case: Case, folder: Path) -> Answer:
    case.judged.write_parquet(folder / "judged.parquet")
    return _found(fitted(case).detect(folder / "judged.parquet"))


@door
def saved_and_loaded(case: Case, folder: Path) -> Answer:
    fitted(case).save(folder / "model.vace")
    return _found(load(folder / "model.vace").detect(case.judged))


@door
def pickled(case: Case, folder: Path) -> Answer:
    return _found(pickle.loads(pickle.dumps(fitted(case))).detect(case.judged))


class Streamed(NamedTuple):
    """What a stream said of rows that came one by one."""

    scores: np.ndarray
    at_once: np.ndarray  # provisional scores
    events: list[tuple[Any, ...]]
    threshold: float
    trouble: str | None


_STREAMED: dict[tuple[str, int], Streamed] = {}


def streamed(case: Case) -> Streamed:
    """Row by row, once for the doors that compare with it."""
    key = case.key, hash(case.judged.write_csv())
    if key in _STREAMED:
        return _STREAMED[key]
    live = fitted(case).stream()
    time = case.judged["time"].to_numpy() if "time" in case.judged.columns else None
    rows = case.judged.select(NAMES).to_numpy()
    added = [live.add(rows[i], None if time is None else time[i]) for i in range(len(rows))]
    added.append(live.finish())
    ended = {
        change.event.id: change.event
        for one in added
        for change in one.changes
        if change.what == "resolve"
    }
    events = [
        (e.kind, e.start, e.end, _ns(e.start_time), _ns(e.end_time), _top(e.shares))
        for e in sorted(ended.values(), key=lambda e: (e.start, e.end))
    ]
    scores, at_once = (
        np.concatenate([getattr(one, which) for one in added])
        for which in ("scores", "provisional")
    )
    _STREAMED[key] = Streamed(scores, at_once, events, live.threshold.value, live.trouble)
    return _STREAMED[key]


@door
def stream(case: Case, folder: Path) -> Answer:
    said = streamed(case)
    if np.isnan(said.scores).all():
        raise InputError(f"none of the {len(said.scores)} rows can be scored: {said.trouble}")
    return Answer(said.scores, said.threshold, said.events)


def _write(frame: pl.DataFrame, path: Path, case: Case, **keys: str) -> Path:
    """A CSV as people have it: the local clock without its offset."""
    if case.zone is not None:
        frame = frame.with_columns(pl.col("time").dt.replace_time_zone(None))
    frame.with_columns(pl.lit(v).alias(k) for k, v in keys.items()).write_csv(path)
    return path


def _vace(*arguments: str | Path) -> dict[str, Any]:
    """Run a command; its JSON, or its refusal as an error."""
    ran = CliRunner().invoke(app, [str(one) for one in (*arguments, "--json")])
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    assert ran.exit_code in (0, 2), ran.output  # 2: of a fleet, where no machine has a result
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


def _told(answer: dict[str, Any], scores: Path | None) -> Answer:
    events = [_record(one) for one in answer["events"]]
    told = None if scores is None else pl.read_parquet(scores)["score"]
    rows = None if told is None else told.fill_null(np.nan).to_numpy()
    return Answer(rows, answer["threshold"]["value"], events)


def _record(one: dict[str, Any]) -> tuple[Any, ...]:
    stamps = [one["start_time"], one["end_time"]]
    times = [None if s is None else _ns(_utc(s)) for s in stamps]
    return (one["kind"], one["start"], one["end"], *times, _top(one["shares"].items()))


def _utc(text: str) -> np.datetime64:
    text = text.removesuffix("Z")
    sign = max(text.rfind("+"), text.rfind("-", 11))
    if sign < 0:
        return np.datetime64(text, "ns")
    hours, minutes = text[sign + 1 :].split(":")
    offset = np.timedelta64(int(hours) * 60 + int(minutes), "m")
    local = np.datetime64(text[:sign], "ns")
    return local - offset if text[sign] == "+" else local + offset


@door
def vace_detect(case: Case, folder: Path) -> Answer:
    normal = _write(case.normal, folder / "normal.csv", case)
    judged = _write(case.judged, folder / "judged.csv", case)
    out = folder / "out"
    found = _vace("detect", judged, "--train-file", normal, "--out", out,
                  *case.options, *case.learning)  # fmt: skip
    return _told(found, out / "scores.parquet")


@door
def vace_fit_and_score(case: Case, folder: Path) -> Answer:
    normal = _write(case.normal, folder / "normal.csv", case)
    judged = _write(case.judged, folder / "judged.csv", case)
    model, scores = folder / "model.vace", folder / "scores.parquet"
    if case.key not in _FILES:
        _vace("fit", normal, "--model", model, *case.options, *case.learning)
        _FILES[case.key] = model.read_bytes()
    model.write_bytes(_FILES[case.key])
    found = _vace("score", judged, "--model", model, "--scores", scores, *case.options)
    return _told(found, scores)


@door
def vace_detect_by(case: Case, folder: Path) -> Answer:
    normal = _write(case.normal, folder / "normal.csv", case, machine="m")
    judged = _write(case.judged, folder / "judged.csv", case, machine="m")
    out = folder / "out"
    found = _vace(
        *("detect", judged, "--by", "machine", "--train-file", normal, "--out", out),
        *case.options,
        *case.learning,
    )
    (machine,) = found["machines"]
    _refused(machine)
    run = json.loads((out / "machines" / machine["folder"] / "run.json").read_text())
    return _told(run, out / "machines" / machine["folder"] / "scores.parquet")


def _refused(machine: Any) -> None:
    """A machine that failed says why in its row."""
    if machine["error"]:
        raise InputError(machine["error"])


@door
def fleet_of_one(case: Case, folder: Path) -> Answer:
    normal, judged = (
        frame.with_columns(pl.lit("m").alias("machine")) for frame in (case.normal, case.judged)
    )
    if case.key not in _FLEETS:
        _FLEETS[case.key] = Fleet("machine", **case.settings).fit(normal)
    (row,) = _FLEETS[case.key].detect(judged).rows
    _refused({"error": row.error})
    return Answer(None, row.threshold, [_record(one) for one in row.events])


@door
def watch(case: Case, folder: Path) -> Answer:
    """A watch of a file; a watch has times, so rows without any come at one a minute."""
    fitted(case).save(folder / "model.vace")
    frame = case.judged
    if "time" not in frame.columns:
        frame = frame.insert_column(0, pl.Series("time", _regular()[TRAIN:]))
    frame.with_columns(pl.col("time").dt.to_string("iso:strict")).write_csv(folder / "m.csv")
    config = make_config(
        {
            "source": {"kind": "csv", "path": str(folder / "m.csv"), "follow": False},
            "model": {"file": str(folder / "model.vace")},
            "state": {"path": str(folder / "state")},
            "alarms": {"silence_after": "off"},
        }
    )
    watch = Watch(config, make_detectors(config))
    watch.run()
    entity = watch.entities["m"]
    at_once, events = streamed(case).at_once, streamed(case).events
    seen = np.array([score for _, score in entity.scores])
    np.testing.assert_array_equal(seen, at_once[-SHOWN:])  # what the stream says at once
    if np.isnan(at_once).all():
        store = Store(config.state.path)
        (alarm,) = store.alarms(resolved=False)
        store.close()
        assert alarm["kind"] == "no score"
        assert not watch.status.ready
        raise InputError(f"none of the {len(frame)} rows can be scored: {alarm['reason']}")
    assert watch.status.counts["unscored"] == np.isnan(at_once).sum()
    store = Store(config.state.path)
    found = store.alarms(limit=1000)
    store.close()
    onsets = sorted(_ns(_utc(one["onset"])) for one in found)
    assert onsets == sorted(event[3] // 10**6 * 10**6 for event in events)  # in milliseconds
    return Answer()


# --------------------------------------------------------------------------------- the contract


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", DOORS)
def test_every_door_gives_the_same_answer(way, name, tmp_path):
    expected = reference(name)
    answer = _attempt(lambda: DOORS[way](CASES[name](), tmp_path))
    if expected.refused is not None:
        assert answer.refused == expected.refused
        return
    assert answer.refused is None
    if answer.scores is not None:
        np.testing.assert_array_equal(answer.scores, expected.scores)
    if answer.threshold is not None:
        assert answer.threshold == expected.threshold
    if answer.events is not None:
        # Silence of a live channel is told by the watch, not by the stream.
        kinds = {"anomaly"} if way == "stream" else {"anomaly", "no data"}
        assert answer.events == [one for one in expected.events if one[0] in kinds]


@pytest.mark.parametrize("name", CASES)
def test_the_fault_is_found_in_the_rows_that_the_user_has(name):
    found = reference(name)
    if name == "twice the step":
        assert found.refused is not None
        assert "every 2 min" in found.refused
        assert "every 1 min" in found.refused
        return
    assert found.scores is not None
    assert len(found.scores) == len(CASES[name]().judged)
    anomalies = [one for one in found.events or () if one[0] == "anomaly"]
    judged = CASES[name]().judged.with_row_index()
    rows = judged.filter(pl.col("index").is_between(FAULT.start - 6, FAULT.stop))["index"]
    assert any(
        one[1] <= rows[-1] and rows[0] <= one[2] and one[5][0] == "pressure" for one in anomalies
    )


def test_what_was_judged_with_its_training_rows_is_the_same_too(tmp_path):
    case = CASES["single rows missing"]()
    whole = pl.concat([case.normal, case.judged])
    whole.write_csv(tmp_path / "whole.csv")
    out = tmp_path / "out"
    found = _vace("detect", tmp_path / "whole.csv", "--train-rows", str(TRAIN), "--out", out)
    command = _told(found, out / "scores.parquet")
    python = _found(VACE().fit(whole[:TRAIN]).detect(whole, first=TRAIN))
    np.testing.assert_array_equal(command.scores, python.scores)
    assert command[1:] == python[1:]
