"""A watch that cannot score says so: counted, an alarm with the reason, not ready, until it can."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from live import real
from live.feeds import CHANNELS
from vace_ad import VACE
from vace_ad.errors import ConfigError
from vace_ad.live.alarms import Alarm, Lifecycle, body
from vace_ad.live.config import make_config
from vace_ad.live.runner import Watch
from vace_ad.live.sections import AlarmSettings
from vace_ad.live.service import make_detectors, plan
from vace_ad.live.store import Store

MINUTE = 60 * 10**9


@pytest.fixture
def folder(tmp_path):
    real.detector(step=MINUTE).save(tmp_path / "m.vace")
    return tmp_path


def write(folder, minutes, **cells):
    rows = np.random.default_rng(1).normal(size=(len(minutes), len(CHANNELS)))
    stamps = (np.datetime64("2026-05-01", "ns") + np.asarray(minutes) * MINUTE).astype("M8[ns]")
    frame = pl.DataFrame({"time": stamps, **dict(zip(CHANNELS, rows.T, strict=True))})
    frame = frame.with_columns(pl.lit(value).alias(name) for name, value in cells.items())
    frame.with_columns(pl.col("time").dt.to_string("iso:strict")).write_csv(folder / "pump.csv")


def config(folder, model="m.vace", **alarms):
    return make_config(
        {
            "source": {"kind": "csv", "path": str(folder / "pump.csv"), "follow": False},
            "model": {"file": str(folder / model)},
            "state": {"path": str(folder / "state")},
            "alarms": {"silence_after": "off", **alarms},
        }
    )


def watched(settings):
    watch = Watch(settings, make_detectors(settings))
    watch.run()
    store = Store(settings.state.path)
    alarms = [one for one in store.alarms(limit=100) if one["kind"] == "no score"]
    store.close()
    return watch, alarms


def test_rows_of_another_step_raise_an_alarm_that_says_why(folder):
    write(folder, np.arange(0, 400, 2))
    watch, (alarm,) = watched(config(folder))
    assert watch.status.counts["unscored"] == watch.status.counts["rows"] == 200
    assert "every 2 min, and the model was fitted on rows every 1 min" in alarm["reason"]
    assert alarm["reason"] in alarm["summary"]
    assert alarm["resolved"] is None
    assert not watch.status.ready
    assert "every 2 min" in watch.status.problems["score"]


def test_it_ends_when_rows_have_scores_again(folder):
    write(folder, np.r_[np.arange(0, 200, 2), np.arange(200, 400)])
    watch, (alarm,) = watched(config(folder))
    assert alarm["resolved"] is not None
    assert watch.status.ready
    assert 0 < watch.status.counts["unscored"] < 200


def test_channels_that_are_missing_are_a_reason_too(folder):
    write(folder, np.arange(200), **dict.fromkeys(CHANNELS[1:], None))
    watch, (alarm,) = watched(config(folder))
    assert "too many channels are missing" in alarm["reason"]
    assert not watch.status.ready


def test_an_entity_that_is_forgotten_is_no_reason_any_more(folder):
    write(folder, np.arange(0, 400, 2))
    settings = config(folder)
    watch = Watch(settings, make_detectors(settings))
    watch.start()
    watch.step()
    (name,) = watch.known
    assert watch.status.problems["score"].startswith("1 entity has no score; ")
    done = watch.verdicts.remove(name)
    watch.step()
    assert done.result(0) is True
    assert watch.status.ready
    watch.close()


def test_an_alarm_by_its_last_message_keeps_the_reason():
    (message,) = Lifecycle("p1", AlarmSettings()).silent(10**18, 10**18, reason="another step")
    again = Alarm.from_body(body(message, None))
    assert (again.kind, again.reason) == ("no score", "another step")


def test_a_dry_run_tries_the_first_rows(folder):
    write(folder, np.arange(300))
    lines = "\n".join(plan(config(folder)))
    assert "tries   300 rows: 285 with a score" in lines
    assert not (folder / "state").exists()
    write(folder, np.arange(0, 600, 2), odd=1.0)
    lines = "\n".join(plan(config(folder)))
    assert "tries   300 rows: 0 with a score, 300 readings of channels that the model" in lines
    assert "every 2 min, and the model was fitted on rows every 1 min" in lines


def test_a_model_without_time_watches_by_rows(folder):
    rows = np.random.default_rng(0).normal(size=(1500, len(CHANNELS)))
    table = pl.DataFrame(rows, schema=list(CHANNELS))
    VACE(patch_length=16, encoders=1).fit(table).save(folder / "untimed.vace")
    write(folder, np.arange(0, 600, 2))
    watch, alarms = watched(config(folder, "untimed.vace"))
    assert alarms == []
    assert watch.status.counts["unscored"] == 15
    weekly = config(folder, "untimed.vace", budget="1/week")
    with pytest.raises(ConfigError, match=r"without time; say how .* \[align\] step"):
        make_detectors(weekly).load(weekly.model.file)
