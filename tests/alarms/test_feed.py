from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from vace_ad import VACE
from vace_ad.alarms.feed import Change
from vace_ad.alarms.runs import Rules
from vace_ad.stream import Stream

NAMES = ("flow", "level", "power", "heat")
TRAIN, N = 1500, 2500
CHUNK = 10
FAULTS = ((2000, 2020, 1), (2300, 2340, 3))  # start, end, channel
TIME = np.datetime64("2026-01-01", "ns") + np.arange(N) * np.timedelta64(60 * 10**9, "ns")


def rows(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    waves = np.sin(2 * np.pi * np.arange(N)[:, None] / 24 + np.arange(4))
    return waves * [1, 5, 0.2, 30] + rng.normal(size=(N, 4)) * [0.1, 0.5, 0.02, 3] + [0, 9, 1, 99]


def faulty(seed: int = 0) -> np.ndarray:
    values = rows(seed)
    for start, end, channel in FAULTS:
        values[start:end, channel] += 8 * values[:TRAIN, channel].std()
    return values


@pytest.fixture(scope="module")
def detector() -> VACE:
    import pandas as pd

    frame = pd.DataFrame(rows()[:TRAIN], columns=list(NAMES), index=TIME[:TRAIN])
    return VACE(patch_length=24, encoders=1).fit(frame)


def fed(
    stream: Stream, values: np.ndarray, start: int, end: int, chunk: int = CHUNK
) -> list[Change]:
    """The changes of rows [start, end), told in chunks."""
    found: list[Change] = []
    for a in range(start, end, chunk):
        b = min(a + chunk, end)
        found += stream.add(values[a:b], TIME[a:b]).changes
    return found


def of_faults(changes: list[Change]) -> dict[str, list[Change]]:
    """Changes by alarm, of those that were raised in a fault."""
    by_id: dict[str, list[Change]] = {}
    for change in changes:
        by_id.setdefault(change.event.id, []).append(change)
    return {
        name: told
        for name, told in by_id.items()
        if any(start <= told[0].event.alarm + TRAIN < end for start, end, _ in FAULTS)
    }


@pytest.fixture(scope="module")
def changes(detector: VACE) -> list[Change]:
    stream = detector.stream()
    return fed(stream, faulty(), TRAIN, N) + list(stream.finish().changes)


def test_each_alarm_is_opened_updated_and_resolved_in_order(changes: list[Change]) -> None:
    by_id = of_faults(changes)
    assert len(by_id) == len(FAULTS)
    for (start, end, channel), told in zip(FAULTS, by_id.values(), strict=True):
        what = [change.what for change in told]
        assert what[0] == "open"
        assert what[-1] == "resolve"
        assert set(what[1:-1]) <= {"update"}
        first, last = told[0].event, told[-1].event
        assert first.alarm == last.alarm  # the id hangs on it
        assert start <= first.alarm + TRAIN <= start + 3
        assert abs(first.start + TRAIN - start) <= 3
        assert first.start_time == TIME[TRAIN + first.start]
        assert first.alarm_time == TIME[TRAIN + first.alarm]
        assert last.shares[0][0] == NAMES[channel]
        assert end - 3 <= last.end + TRAIN <= end + 24 + 12  # a patch and its velocity look back
        assert last.end_time == TIME[TRAIN + last.end - 1]
        ratios = [change.event.ratio for change in told]
        assert ratios == sorted(ratios)
    opened = [place for place, change in enumerate(changes) if change.what == "open"]
    resolved = [place for place, change in enumerate(changes) if change.what == "resolve"]
    assert all(a < b for a, b in zip(opened, resolved, strict=True))
    assert all(b < a for a, b in zip(opened[1:], resolved, strict=False))  # one at a time


def test_an_update_tells_of_another_level(changes: list[Change]) -> None:
    for before, after in pairwise(changes):
        if after.what == "update":
            assert after.event.id == before.event.id
            assert after.event.level != before.event.level
    for told in of_faults(changes).values():
        assert told[-1].event.level == "critical"


@pytest.mark.parametrize("at", [1700, 2010, 2030, 2310])
def test_a_state_taken_mid_event_goes_on_the_same(
    detector: VACE, changes: list[Change], at: int
) -> None:
    stream = detector.stream()
    first = fed(stream, faulty(), TRAIN, at)
    again = Stream.from_bytes(stream.to_bytes(), detector)
    later = fed(again, faulty(), at, N) + list(again.finish().changes)
    assert first + later == changes


def test_a_state_holds_the_open_event_or_none(detector: VACE) -> None:
    stream = detector.stream()
    assert stream._feed is not None
    assert stream._feed.description() is None
    opened = [c for c in fed(stream, faulty(), TRAIN, 2020) if c.what == "open"][-1]
    described = stream._feed.description()
    assert described is not None
    assert described["alarm"] == opened.event.alarm


@pytest.mark.parametrize("chunk", [1, 7, N])
def test_chunks_find_the_same_alarms(detector: VACE, changes: list[Change], chunk: int) -> None:
    """Only the loudest signal is known by chunk; rows, channels and strength are not."""
    stream = detector.stream()
    found = fed(stream, faulty(), TRAIN, N, chunk) + list(stream.finish().changes)
    assert [(c.what, c.event.id, c.event.start, c.event.end) for c in found] == [
        (c.what, c.event.id, c.event.start, c.event.end) for c in changes
    ]
    np.testing.assert_allclose(
        [c.event.ratio for c in found], [c.event.ratio for c in changes], rtol=1e-6
    )
    assert [c.event.shares[0][0] for c in found] == [c.event.shares[0][0] for c in changes]


def test_clean_rows_make_no_event(detector: VACE) -> None:
    stream = detector.stream()
    assert fed(stream, rows(), TRAIN, N, 100) == []


def test_alarms_of_clean_rows_are_weak(detector: VACE) -> None:
    stream = detector.stream()
    told = fed(stream, rows(), TRAIN, N, 100) + list(stream.finish().changes)
    assert {change.event.level for change in told} <= {"low"}


def test_the_end_resolves_what_is_open(detector: VACE) -> None:
    stream = detector.stream()
    told = fed(stream, faulty(), TRAIN, 2020)
    assert told[-1].what != "resolve"
    (last,) = stream.finish().changes
    assert last.what == "resolve"
    assert last.event.id == told[-1].event.id
    assert last.event.id in of_faults(told)


def test_rules_say_how_long_an_alarm_waits_for_more(detector: VACE) -> None:
    stream = detector.stream(rules=Rules(join=N))
    told = fed(stream, faulty(), TRAIN, N)
    assert [change.what for change in told].count("open") == 1
    assert "resolve" not in [change.what for change in told]


def test_rows_without_time_have_events_without_time(detector: VACE) -> None:
    stream = detector.stream()
    (told,) = of_faults(list(stream.add(faulty()[TRAIN:2200]).changes)).values()
    assert told[-1].what == "resolve"
    event = told[-1].event
    assert event.start_time is event.end_time is event.alarm_time is event.peak_time is None
