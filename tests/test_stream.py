"""A stream against the whole table: the same bits, whatever the chunks and however often kept."""

from __future__ import annotations

import warnings
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from vace_ad import VACE, load
from vace_ad import stream as module
from vace_ad.alarms.budget import Budget
from vace_ad.alarms.pattern import Pattern
from vace_ad.engine import patches
from vace_ad.errors import ConfigError, InputError, StateError, VaceWarning
from vace_ad.stream import Stream

SMALL = {"patch_length": 24, "widths": (8, 8, 8, 8), "channel_expansion": 2, "encoders": 2}


def make_rows(n: int, n_channels: int = 3, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    waves = np.sin(np.arange(n)[:, None] / rng.uniform(3, 9, n_channels))
    rows = waves + 0.1 * rng.normal(size=(n, n_channels))
    rows[n // 2 :] += 0.5  # something for drift to get used to
    return rows


def with_gaps(rows: np.ndarray, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rows.copy()
    for length in (1, 2, 5, 6, 7, 30):
        for _ in range(2):
            start = rng.integers(0, len(rows) - length)
            rows[start : start + length, rng.integers(rows.shape[1])] = np.nan
    rows[400:440] = np.nan
    rows[rng.integers(0, len(rows), 3), 0] = 1e200
    return rows


@cache
def fitted(**settings) -> VACE:
    """Learned once for all tests with the same settings."""
    return VACE(**{**SMALL, "stride": 4, "fit_stride": 4, **settings}).fit(make_rows(500, seed=9))


@pytest.fixture(scope="module")
def detector() -> VACE:
    return fitted()


def whole(detector: VACE, data) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VaceWarning)  # rows without a score
        return np.stack(list(detector.signals(data).values()))


def streamed(detector: VACE, parts, keep_at=(), finish: bool = True):
    """Final lines and provisional scores; at some parts the stream is kept and taken up again."""
    stream, final, provisional = detector.stream(), [], []
    for i, part in enumerate(parts):
        if i in keep_at:
            stream = Stream.from_bytes(stream.to_bytes(), detector)
        added = stream.add(part)
        assert added.first == sum(map(len, (lines.T for lines in final)))
        assert len(added.provisional) == len(part)
        final.append(np.stack(list(added.signals.values())))
        provisional.append(added.provisional)
    if finish:
        final.append(np.stack(list(stream.finish().signals.values())))
    return np.concatenate(final, axis=1), np.concatenate(provisional)


SETTINGS = (
    {},
    {"amplitude": False},
    {"direction": False},
    {"velocity": "forward"},
    {"stride": 1},
    {"stride": 12, "fit_stride": 12},
    {"direction": False, "stride": 40},
    {"position": "memory"},
)
SINGLY = [*range(1, 52), *range(395, 445)]  # row by row at the start and about the long gap
CUTS = ([], [1], SINGLY, range(13, 560, 13), range(233, 560, 233), [390, 390])


@pytest.mark.parametrize(
    ("settings", "gaps"), [({}, False), *((settings, True) for settings in SETTINGS)]
)
def test_any_chunks_give_the_bits_of_the_whole(settings, gaps, monkeypatch):
    monkeypatch.setattr(patches, "EMBEDDED", 16)  # so small that a short series has several
    monkeypatch.setattr(module, "SLAB", 250)
    detector = fitted(**settings)
    rows = make_rows(560)
    rows = with_gaps(rows) if gaps else rows
    wanted = whole(detector, rows)
    assert np.isnan(wanted).any() == gaps
    rng = np.random.default_rng(1)
    first = None
    for cuts in CUTS[2:5] if settings else CUTS:
        parts = np.split(rows, list(cuts))
        keep_at = set(rng.integers(0, len(parts), 5).tolist())
        final, provisional = streamed(detector, parts, keep_at)
        assert np.array_equal(final, wanted, equal_nan=True)
        first = provisional if first is None else first
        assert np.array_equal(provisional, first, equal_nan=True)


def test_rows_of_one_channel_have_the_bits_of_the_whole():
    # NumPy sums a single column in another order than several.
    rows = make_rows(560, 1)
    detector = VACE(random_state=0).fit(make_rows(500, 1, seed=9))
    final, provisional = streamed(detector, np.split(rows, SINGLY))
    assert np.array_equal(final, whole(detector, rows))
    assert np.array_equal(provisional, streamed(detector, [rows])[1], equal_nan=True)


@pytest.mark.parametrize("gaps", [False, True])
def test_chunks_of_an_iterator_give_the_bits_of_the_whole(detector, gaps):
    rows = with_gaps(make_rows(560)) if gaps else make_rows(560)
    wanted = whole(detector, rows)
    for cuts in CUTS:
        parts = list(detector.score_chunks(np.split(rows, list(cuts))))
        assert np.array_equal(np.concatenate(parts), wanted.sum(axis=0), equal_nan=True)


def test_blocks_of_the_usual_size():
    detector = fitted(stride=1, fit_stride=1)
    rows = make_rows(module.SLAB + 500)  # more than a slab, and many blocks of patches
    final, _ = streamed(detector, np.split(rows, range(200, len(rows), 200)))
    assert np.array_equal(final, whole(detector, rows))


@pytest.mark.parametrize("n", [0, 1, 23, 24, 25, 47, 48, 60])
def test_short_series(detector, n):
    rows = make_rows(1000)[:n]
    stream = detector.stream()
    parts = [stream.add(row) for row in rows]
    lines = [np.stack(list(part.signals.values())) for part in [*parts, stream.finish()]]
    found = np.concatenate(lines, axis=1)
    assert found.shape == (len(detector.model_.lines), n)
    if n < 24:
        assert np.isnan(found).all()
    else:
        assert np.array_equal(found, whole(detector, rows))


def test_a_provisional_score_knows_nothing_of_later_rows(detector):
    rows = with_gaps(make_rows(900))
    _, wanted = streamed(detector, [rows])
    for n in (24, 100, 333, 401, 440, 800):
        _, found = streamed(detector, [rows[:n]], finish=False)
        assert np.array_equal(found, wanted[:n], equal_nan=True)
    assert np.isnan(wanted[:23]).all()
    assert np.isfinite(wanted[30:300]).all()


def test_a_provisional_score_sees_a_fault_within_a_few_rows(detector):
    rows = make_rows(1000)[:490]
    rows[400:] += 8
    _, provisional = streamed(detector, [rows])
    usual = np.quantile(provisional[50:400], 0.99)
    assert provisional[400] > 1.5 * usual  # the row itself stands out
    assert provisional[412:436].mean() > 1.5 * usual  # later the level becomes usual
    assert provisional[412:436].min() > usual


def test_one_row_many_rows_and_tables(detector):
    rows = make_rows(200)
    wanted = streamed(detector, [rows])[0]
    frame = pd.DataFrame(rows[:, ::-1], columns=list(detector.channels_)[::-1])
    parts = [frame[a:b] for a, b in pairwise([0, 10, 11, 200])]
    assert np.array_equal(streamed(detector, parts)[0], wanted)
    stream = detector.stream()
    stream.add(rows[0])
    stream.add(rows[1:50].tolist())
    assert stream.n_rows == 50
    with pytest.raises(InputError, match="2 channels without names"):
        stream.add(np.zeros((3, 2)))
    with pytest.raises(InputError, match="got 2 times for 3 rows"):
        stream.add(rows[50:53], time=["2026-01-01", "2026-01-02"])
    assert stream.n_rows == 50


# --------------------------------------------------------------------------------- time


def timed(rows: np.ndarray, jumps=(), start="2026-01-01") -> pd.DataFrame:
    """The rows with a time a minute apart, an hour more before each jump."""
    minutes = np.arange(len(rows))
    for row in jumps:
        minutes[row:] += 60
    index = pd.Timestamp(start) + pd.to_timedelta(minutes, unit="min")
    return pd.DataFrame(rows, columns=["a", "b", "c"], index=index)


def test_a_jump_in_time_is_seen_alike_by_table_stream_iterator_and_detect():
    detector = VACE(**SMALL, stride=4).fit(timed(make_rows(500, seed=9)))
    rows = make_rows(400)
    table = timed(rows, [140, 150, 270])
    wanted = whole(detector, table)
    assert np.isnan(wanted[:, 140:150]).all()  # too short a stretch
    assert np.isfinite(np.delete(wanted, range(140, 150), axis=1)).all()
    for cuts in (range(130, 160), range(7, 400, 31), [140, 270], []):
        parts = [table[a:b] for a, b in pairwise([0, *cuts, 400])]
        final, _ = streamed(detector, parts, keep_at={1, 3, 14})
        assert np.array_equal(final, wanted, equal_nan=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VaceWarning)
            assert np.array_equal(detector.score(iter(parts)), wanted.sum(axis=0), equal_nan=True)
    found = detector.detect(table)
    assert np.array_equal(found.scores, wanted.sum(axis=0), equal_nan=True)
    silences = [(e.start, e.end) for e in found.events if e.kind == "no data"]
    assert silences == [(140, 140), (150, 150), (270, 270)]
    joined = whole(detector, timed(rows))
    assert np.abs(joined - wanted)[:, 280:290].max() > 0  # the jump does matter


def test_irregular_stamps_are_no_jumps_for_a_stream_either():
    """Events that come when they come: pauses of up to ten usual ones, then one of a day."""

    def irregular(rows, seed):
        pauses = np.random.default_rng(seed).exponential(60, len(rows)).clip(20, 300)
        pauses[150] = 86_400
        index = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.cumsum(pauses), unit="s")
        return pd.DataFrame(rows, columns=["a", "b", "c"], index=index)

    with pytest.warns(VaceWarning, match="the step is irregular"):
        detector = VACE(**SMALL, stride=4).fit(irregular(make_rows(500, seed=9), 1))
    table = irregular(make_rows(400), 2)
    wanted = whole(detector, table)
    assert np.isfinite(wanted).all()
    final, _ = streamed(detector, [table[:7], table[7:200], table[200:]])
    assert np.array_equal(final, wanted)
    assert not np.array_equal(whole(detector, table.reset_index(drop=True)), wanted)  # it matters


def test_a_fit_does_not_look_across_a_jump():
    rows = make_rows(600, seed=9)
    cut = VACE(**SMALL, stride=4).fit(timed(rows, [300]))
    parts = VACE(**SMALL, stride=4).fit([timed(rows)[:300], timed(rows)[300:]])
    assert cut.facts_["patches"] == parts.facts_["patches"] == 2 * (300 - 24 + 1)
    test = make_rows(200)
    assert np.array_equal(cut.score(test), parts.score(test))


def test_times_out_of_order_or_twice_are_refused_by_all(detector):
    good = timed(make_rows(400))
    fresh = VACE(**SMALL, stride=4).fit(good)
    for order in ([*range(100), 50, *range(101, 400)], [*range(100), 99, *range(101, 400)]):
        bad = good.iloc[order]
        for call in (VACE(**SMALL).fit, fresh.score, fresh.detect, fresh.stream().add):
            with pytest.raises(InputError, match=r"goes backwards|time of the row before"):
                call(bad)
        with pytest.raises(InputError, match=r"goes backwards|time of the row before"):
            fresh.score(iter([bad[:100], bad[100:]]))


def test_a_refused_row_leaves_the_stream_as_it_was():
    detector = VACE(**SMALL, stride=4).fit(timed(make_rows(500, seed=9)))
    table = timed(make_rows(200))
    stream = detector.stream()
    parts = [stream.add(table[:100])]
    late = timed(make_rows(5), start="2025-01-01")
    future_then_back = pd.concat([table[150:152], table[120:121]])
    for bad in (late, table[98:103], future_then_back):
        with pytest.raises(InputError, match="goes backwards"):
            stream.add(bad)
    parts += [stream.add(table[100:]), stream.finish()]
    found = np.concatenate([part.scores for part in parts])
    assert np.array_equal(found, detector.score(table))


# -------------------------------------------------------------------------------- state


def test_a_saved_stream_goes_on_in_another_detector_of_the_same_model(detector, tmp_path):
    rows = with_gaps(make_rows(900))
    wanted = whole(detector, rows)
    detector.save(tmp_path / "m.vace")
    stream = detector.stream()
    first = stream.add(rows[:617])
    stream.save(tmp_path / "s.state")
    again = Stream.resume(tmp_path / "s.state", load(tmp_path / "m.vace"))
    assert again.n_rows == 617
    parts = [first, again.add(rows[617:]), again.finish()]
    found = np.concatenate([np.stack(list(p.signals.values())) for p in parts], axis=1)
    assert np.array_equal(found, wanted, equal_nan=True)


def test_the_state_of_another_model_is_refused(detector, tmp_path):
    state = detector.stream().to_bytes()
    for other in ({"random_state": 1}, {"drift_half_life": 100}, {"max_gap": 4}):
        with pytest.raises(StateError, match="another model"):
            Stream.from_bytes(state, fitted(**other))
    detector.save(tmp_path / "m.vace")
    Stream.from_bytes(state, load(tmp_path / "m.vace", engine="numpy"))  # still the same model


def test_damaged_states(detector, tmp_path):
    stream = detector.stream()
    stream.add(make_rows(100))
    state = stream.to_bytes()
    rng = np.random.default_rng(0)
    for share in (0.0, 0.001, 0.1, 0.5, 0.9, 0.999):
        with pytest.raises(StateError, match=r"truncated|damaged"):
            Stream.from_bytes(state[: int(share * len(state))], detector)
    for place in rng.integers(0, len(state), 60).tolist():
        damaged = bytearray(state)
        damaged[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(StateError):
            Stream.from_bytes(bytes(damaged), detector)
    (tmp_path / "junk").write_bytes(b"\x80\x04pickle" * 50)
    for path in ("junk", "none"):
        with pytest.raises(StateError, match=path):
            Stream.resume(tmp_path / path, detector)
    detector.save(tmp_path / "m.vace")
    with pytest.raises(StateError, match="not a stream's state"):
        Stream.resume(tmp_path / "m.vace", detector)


@pytest.mark.parametrize("preset", ["paper", "released"])
def test_scales_of_the_whole_series_have_no_stream_but_take_chunks(preset):
    settings = {**SMALL, "iterations": 1, "pretext_offset": 24, "encoders": 1}
    detector = VACE(preset=preset, **settings).fit(make_rows(300))
    with pytest.raises(ConfigError, match="while rows come"):
        detector.stream()
    rows = with_gaps(make_rows(1000))
    parts = np.split(rows, range(90, 1000, 90))
    with pytest.warns(VaceWarning, match="have no score"):
        assert np.array_equal(detector.score(iter(parts)), detector.score(rows), equal_nan=True)


def _repacked(data, change):
    """A state with other arrays or another description, and a checksum that fits."""
    import json

    from safetensors.numpy import load, save

    from vace_ad.tensor_file import digest

    size = int.from_bytes(data[:8], "little")
    meta = json.loads(data[8 : 8 + size])["__metadata__"]
    arrays, description = dict(load(data)), json.loads(meta["description"])
    change(arrays, description)
    text = json.dumps(description)
    return bytes(save(arrays, {**meta, "description": text, "sha256": digest(text, arrays)}))


def _other_type(arrays, description):
    arrays["latest"] = arrays["latest"].view(np.int64)


def _other_shape(arrays, description):
    description.pop("arrays")
    name = next(key for key in arrays if key.endswith("rows") and arrays[key].ndim == 2)
    arrays[name] = arrays[name][None]


def _no_budget(arrays, description):
    description["budget"] = {"amount": 1.0, "per": "moon"}


@pytest.mark.parametrize("change", [_other_type, _other_shape, _no_budget])
def test_a_forged_state_is_refused_when_it_is_resumed(change):
    det = VACE(patch_length=8, encoders=1, shape="always").fit(
        np.sin(np.arange(300)[:, None] / [3.0, 5.0])
    )
    stream = det.stream()
    stream.add(np.sin(np.arange(100)[:, None] / [3.0, 5.0]))
    data = stream.to_bytes()
    Stream.from_bytes(_repacked(data, lambda arrays, description: None), det)
    with pytest.raises(StateError):
        Stream.from_bytes(_repacked(data, change), det)


def told(detector: VACE, rows: np.ndarray, cuts) -> list:
    stream, found = detector.stream(), []
    for part in np.split(rows, list(cuts)):
        found += stream.add(part).changes
    return [(change.row, change.what, change.event) for change in found]


def test_changes_and_their_rows_do_not_depend_on_chunks(detector):
    rows = with_gaps(make_rows(900))
    rows[600:620, 1] += np.linspace(1, 12, 20)
    rows[700:703, 0] -= 20
    singly = told(detector, rows, [*range(395, 445), *range(595, 640), *range(695, 730)])
    assert {"open", "resolve"} <= {what for _, what, _ in singly}
    assert [row for row, what, event in singly if what == "open"] == [
        event.alarm for _, what, event in singly if what == "open"
    ]
    for size in (17, 150, 900):
        assert repr(told(detector, rows, range(size, 900, size))) == repr(singly)


def test_a_trusted_state_goes_on_the_same_and_damage_is_still_refused(detector):
    rows = make_rows(600)
    stream = detector.stream()
    stream.add(rows[:350])
    data = stream.to_bytes()
    wanted = stream.add(rows[350:])
    found = Stream.from_bytes(data, detector, trusted=True).add(rows[350:])
    np.testing.assert_array_equal(found.scores, wanted.scores)
    np.testing.assert_array_equal(found.provisional, wanted.provisional)
    with pytest.raises(StateError):
        Stream.from_bytes(data[:-9] + b"\x02" * 9, detector, trusted=True)
    with pytest.raises(StateError, match="another model"):
        Stream.from_bytes(data, fitted(encoders=1), trusted=True)


@pytest.mark.parametrize("seed", range(2))
def test_an_event_rests_when_the_fault_is_over(seed):
    rng = np.random.default_rng(seed)
    n, start, end = 2300, 2100, 2160
    x = np.zeros((n, 4))
    for i in range(1, n):
        x[i] = 0.9 * x[i - 1] + rng.normal(size=4)
    x[:, 1] += 0.5 * x[:, 0]
    x[start:end, 1] += 40.0  # far, so averages of the past look back at it for long
    stream = VACE(random_state=0).fit(x[:1600]).stream(budget="1 in 10000 rows")
    stream.rest_after(10)
    told = {}
    for change in stream.add(x[1600:]).changes:
        told.setdefault(change.what, 1600 + change.row)
    assert told["open"] - start < 3
    assert 10 <= told["rest"] + 1 - end <= 14


# ------------------------------------------------------------------------- kinds of streams


def test_a_live_stream_with_a_budget_of_alarms(detector):
    stream, rows = Stream(detector.model_), make_rows(150)
    added = stream.add(rows)
    assert (stream.n_rows, stream.limit, stream.tells_rows) == (150, None, True)
    assert len(stream.latest(5).evidence) == 5
    assert len(added.provisional) == len(added.idle) == 150
    assert not added.idle.any()
    assert len(added.evidence) == len(added.surprise) == 150
    assert stream.threshold == detector.model_.threshold(Budget())


def test_a_live_stream_with_a_threshold_of_scores(detector):
    model, budget = detector.model_, Budget(0.01, "share")
    stream = Stream(model, budget=budget)
    added = stream.add(make_rows(150))
    assert stream.limit == model.threshold(budget).value
    assert stream.latest(5) is None
    assert len(added.provisional) == 150
    assert len(added.evidence) == 0


@pytest.mark.parametrize(
    ("live", "alarms", "scores", "evidence"),
    [(True, False, 150, 0), (False, None, 0, 0), (False, True, 0, 150), (True, True, 150, 150)],
)
def test_alarms_may_be_left_out_or_asked_for(detector, live, alarms, scores, evidence):
    stream = Stream(detector.model_, live=live, alarms=alarms)
    added = stream.add(make_rows(150))
    assert (len(added.provisional), len(added.evidence)) == (scores, evidence)
    assert (stream.latest(3) is None) == (evidence == 0)
    last = stream.finish()
    assert added.first == 0
    assert last.first == len(added.scores)
    assert len(added.scores) + len(last.scores) == 150


def test_scores_alone_raise_no_alarm_where_the_stream_is_not_live(detector):
    stream = Stream(detector.model_, budget=Budget(0.01, "share"), live=False, alarms=True)
    assert stream.limit is None
    assert stream.add(make_rows(150)).changes == ()
    with pytest.raises(ConfigError, match="only live streams take patterns"):
        stream.accept([])


def test_the_old_name_of_suppress_is_warned_about(detector):
    stream = Stream(detector.model_)
    with pytest.warns(DeprecationWarning, match="hush is now suppress"):
        stream.accept([], hush=False)
    assert not stream.tells_rows  # rows are held back to be compared


def test_every_row_has_one_time(detector):
    stream, rows = Stream(detector.model_), make_rows(3)
    with pytest.raises(InputError, match="got 2 times for 3 rows; give one each"):
        stream.add(rows, ["2026-01-01", "2026-01-02"])
    assert stream.n_rows == 0
    assert len(stream.add(rows[0], "2026-01-01").provisional) == 1


# ---------------------------------------------------------------------- accepted, idle, anew

DAY, MINUTE = Budget(1, "day"), 60 * 10**9
SHARE = Budget(0.01, "share")


def bumped(n: int = 300, start: int = 200, end: int = 230) -> np.ndarray:
    """Rows with a stretch in which one channel is far off."""
    rows = make_rows(2 * n)[:n]
    rows[start:end, 1] += 12
    return rows


def bump(channel: str = "channel_1", rows: int = 30) -> Pattern:
    return Pattern("known", rows, (channel,), np.full((rows, 1), 12.0), ratio=1e4)


def kinds(stream: Stream, *parts: np.ndarray) -> list[tuple[str, int, int]]:
    """What changed, and the rows of its event."""
    added = [stream.add(part) for part in parts]
    changes = [change for one in (*added, stream.finish()) for change in one.changes]
    return [(change.what, change.event.start, change.event.end) for change in changes]


def test_a_stream_without_the_step_of_training_takes_the_one_given(detector):
    stream = Stream(detector.model_, budget=DAY, step=MINUTE)
    assert stream.latest(1) is not None or stream.add(make_rows(30)).evidence.size
    assert stream.limit is None
    assert stream.threshold == detector.model_.threshold(DAY, MINUTE)


def test_the_step_of_training_does_without_one_given():
    model = VACE(**SMALL, stride=4).fit(timed(make_rows(500, seed=9))).model_
    stream = Stream(model, budget=DAY)
    stream.add(timed(make_rows(50)))
    assert stream.limit is None
    assert len(stream.latest(5).evidence) == 5


@pytest.mark.parametrize("late", [0, 100])
def test_an_accepted_pattern_raises_no_alarm_and_is_told_when_over(detector, late):
    rows, model = bumped(), detector.model_
    assert "open" in [what for what, *_ in kinds(Stream(model), rows)]
    stream = Stream(model, accepted=() if late else [bump()])
    stream.add(rows[:late])
    if late:
        stream.accept([bump()])
    assert not stream.tells_rows
    found = kinds(stream, rows[late:])
    assert [what for what, *_ in found] == ["accepted"]
    ((_, start, end),) = found
    assert abs(start - 200) <= 1
    assert abs(end - 230) <= 2
    cleared = Stream(model, accepted=[bump()])
    cleared.accept([])  # no pattern any more
    assert "open" in [what for what, *_ in kinds(cleared, rows)]


@pytest.mark.parametrize("size", [1, 7, 300])
def test_a_pattern_that_is_over_is_told_once_in_chunks_of_any_size(detector, size, monkeypatch):
    monkeypatch.setattr(module, "SLAB", 50)
    rows = bumped(start=120, end=150)
    stream = Stream(detector.model_, accepted=[bump()])
    found = kinds(stream, *np.split(rows, range(size, 300, size)))
    assert found == kinds(Stream(detector.model_, accepted=[bump()]), rows)
    assert [what for what, *_ in found] == ["accepted"]


@pytest.mark.parametrize("budget", [None, SHARE])
@pytest.mark.parametrize("suppress", [True, False, None])
def test_the_open_alarm_is_suppressed_where_that_is_asked_for(detector, budget, suppress):
    rows = bumped(end=260)
    stream = Stream(detector.model_, budget=budget)
    assert "open" in [change.what for change in stream.add(rows[:220]).changes]
    if suppress is None:
        stream.accept([])
    else:
        stream.accept([], suppress=suppress)
    later = [what for what, start, _ in kinds(stream, rows[220:250]) if start < 215]
    if suppress:
        assert not {"update", "resolve"} & set(later)
    else:
        assert "resolve" in later


def test_suppressing_without_alarms_is_no_error(detector):
    stream = Stream(detector.model_, alarms=False)
    stream.accept([bump()], suppress=True)
    stream.tolerate(["channel_1"])
    assert [what for what, *_ in kinds(stream, bumped())] == ["accepted"]


def test_channels_of_accepted_patterns_need_more_evidence_near_them(detector):
    rows, model = bumped(), detector.model_
    table, near = model.table(rows), np.full(300, 2.0)

    def evidence(*channels: str, near=near) -> np.ndarray:
        stream = Stream(model)
        stream.tolerate(channels)
        found = stream.add_table(table, near).evidence
        return found[200:205].max()

    anywhere = evidence(near=None)
    assert evidence("channel_1", near=None) == anywhere  # near no pattern
    assert evidence() == pytest.approx(anywhere / 2, rel=0.2)  # of several rows together
    assert evidence("channel_1") < 0.9 * evidence()


def test_rows_of_a_machine_that_is_off_are_idle_and_have_no_score():
    rows = make_rows(400)
    rows[100:150, 0] = -9.0
    detector = VACE(**SMALL, stride=4, off="channel_0 < -5").fit(make_rows(500, seed=9))
    wanted = whole(detector, rows)
    stream = detector.stream()
    parts = [stream.add(part) for part in np.split(rows, [90, 120, 300])]
    idle = np.concatenate([part.idle for part in parts])
    assert idle[100:150].all()
    assert not idle[:90].any()
    assert not idle[170:].any()
    last = stream.finish()
    found = np.concatenate([np.stack(list(p.signals.values())) for p in (*parts, last)], axis=1)
    assert np.array_equal(found, wanted, equal_nan=True)
    assert np.isnan(found[:, 100:150]).all()


def test_evidence_is_the_same_whether_scores_are_given_at_once_or_not(detector):
    rows = with_gaps(make_rows(900))
    rows[600:620, 1] += 12

    def judged(live: bool) -> tuple:
        stream = Stream(detector.model_, live=live, alarms=True)
        parts = [stream.add(rows), stream.finish()]
        changes = [repr(change.event) for part in parts for change in part.changes]
        return np.concatenate([part.evidence for part in parts]), changes

    (one, told_one), (other, told_other) = judged(True), judged(False)
    np.testing.assert_array_equal(one, other)
    assert told_one == told_other
    assert len(one) == 900
    assert told_one


def test_alarms_of_a_score_threshold_do_not_depend_on_slabs(detector, monkeypatch):
    rows = bumped()
    wanted = kinds(Stream(detector.model_, budget=SHARE), rows)
    assert {"open", "resolve"} <= {what for what, *_ in wanted}
    monkeypatch.setattr(module, "SLAB", 50)
    assert kinds(Stream(detector.model_, budget=SHARE), rows) == wanted
    assert kinds(Stream(detector.model_, budget=SHARE), rows[:0], rows) == wanted


def test_a_gap_at_the_end_is_given_out_when_the_series_ends(detector):
    rows = make_rows(200)
    rows[197:] = np.nan
    for live in (True, False):
        stream = Stream(detector.model_, live=live, alarms=True)
        parts = [stream.add(rows), stream.finish()]
        found = np.concatenate([np.stack(list(p.signals.values())) for p in parts], axis=1)
        assert np.array_equal(found, whole(detector, rows), equal_nan=True)
        assert sum(len(part.evidence) for part in parts) == 200


def test_judging_afresh_keeps_what_is_normal_unless_the_level_is_new(detector):
    rows = bumped(600, 300, 600)

    def after(**settings: bool) -> np.ndarray:
        stream = Stream(detector.model_)
        stream.add(rows[:400])
        stream.judge_afresh(**settings)
        return stream.add(rows[400:]).evidence

    np.testing.assert_array_equal(after(), after(new_level=False))
    assert np.median(after()[:20]) > 1
    assert (after(new_level=True)[:20] < 0.98 * after()[:20]).all()
