"""What sinks hear of every scored row: with it, the expected range that alarms went by."""

from collections import Counter

import numpy as np
import polars as pl

from live import real
from live.feeds import CHANNELS, START, STEP, config
from live.test_entity import SETUP, records
from vace_ad.live.delivery import row_listener
from vace_ad.live.detector import LiveModel
from vace_ad.live.entity import Entity
from vace_ad.live.records import Record
from vace_ad.live.settings import Settings
from vace_ad.live.sinks import RowSink


class Bands(RowSink):
    bands = True

    def __init__(self):
        super().__init__(Settings())
        self.got = []

    def rows(self, scored):
        self.got.append(scored)

    def column(self, name):
        return np.concatenate([getattr(one, name) for one in self.got])


def told(given, sizes):
    """What a sink hears of records that come in pieces of these sizes."""
    sink = Bands()
    model = LiveModel(real.detector(), "m", real.BUDGET)
    entity = Entity("pump", SETUP, model, row_listener([sink]))
    at = 0
    while at < len(given):
        entity.take(given[at : at + sizes[0]], Counter(), None)
        at, sizes = at + sizes[0], sizes[1:] + sizes[:1]
    entity.finish(Counter())
    return sink


def test_bands_are_those_of_a_table():
    rows = np.random.default_rng(1).normal(size=(300, 3))
    times = START + np.arange(300) * STEP
    given = [
        Record("pump", at, dict(zip(CHANNELS, row, strict=True)))
        for at, row in zip(times.tolist(), rows.tolist(), strict=True)
    ]
    sink = told(given, [1, 39, 160])
    assert sink.column("times").tolist() == times.tolist()
    frame = pl.DataFrame(
        {"time": times.view("datetime64[ns]"), **dict(zip(CHANNELS, rows.T, strict=True))}
    )
    table = real.detector().expect(frame)
    for i, name in enumerate(CHANNELS):
        for word in ("expected", "lower", "upper"):
            found = sink.column(word)[:, i]
            np.testing.assert_allclose(found, table[f"{name} {word}"], atol=1e-5)


def test_bands_do_not_depend_on_how_many_rows_come_together():
    given = records(260)[150:]  # with short gaps, and a sensor that is silent from row 200 on
    singly, together = told(given, [1]), told(given, [30, 1])
    assert singly.column("times").tolist() == together.column("times").tolist()
    for word in ("lower", "upper"):
        one, many = singly.column(word), together.column(word)
        known = np.isfinite(one).all(axis=1)
        assert known[~np.isnan(singly.column("values")).any(axis=1)].all()
        np.testing.assert_array_equal(one[known], many[known])
    assert known[60:].mean() > 0.9  # a sensor that is silent for long is expected from the others


def test_no_sink_wants_rows(tmp_path):
    assert config(tmp_path).sinks == ()
    assert row_listener([]) is None
