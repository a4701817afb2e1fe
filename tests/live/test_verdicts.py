"""This was normal: heeded at once by the entity's stream, kept over a restart, and taken back.

This was a fault: written to the file beside the model, as `vace feedback` does.
"""

from __future__ import annotations

from collections import Counter

import pytest

from feedback.maintenance import NAMES, SERVICES, TIME, TRAIN, frame, plant, serviced
from live.fakes import FakeCore
from live.feeds import config, feed, write
from vace_ad import VACE, load
from vace_ad.alarms.budget import Budget
from vace_ad.live.checkpoint import keep, restore
from vace_ad.live.config import make_config
from vace_ad.live.database import Pending
from vace_ad.live.detector import LiveModel
from vace_ad.live.entity import WATCHING, Entity
from vace_ad.live.records import Record
from vace_ad.live.runner import Watch
from vace_ad.live.store import Store

SETUP = make_config(
    {
        "source": {"kind": "csv", "path": "-"},
        "model": {"file": "pump.vace"},
        "state": {"path": "state"},
        "align": {"step": "1min"},
        "alarms": {"resolve_after": "10min", "silence_after": "off"},
    }
)


@pytest.fixture(scope="module")
def model() -> LiveModel:
    detector = VACE(patch_length=24, encoders=1).fit(frame(plant()[:TRAIN]))
    return LiveModel(detector, "a", Budget())


class Site:
    """One entity and its store."""

    def __init__(self, model: LiveModel, path) -> None:
        self.model, self.store = model, Store(path)
        self.entity, self.counts = Entity("pump", SETUP, model), Counter()
        self.values, self.at = serviced(), TRAIN
        self.told: list = []

    def run(self, until: int) -> list:
        """The messages of rows up to one."""
        told = []
        for row in range(self.at, until):
            cells = dict(zip(NAMES, self.values[row].tolist(), strict=True))
            record = Record("pump", int(TIME[row].astype(int)), cells)
            told += self.entity.take([record], self.counts, None)
        self.at = until
        self.keep(told)
        return told

    def keep(self, told: list) -> None:
        pending = Pending(alarms=[(message.alarm, {"what": message.what}) for message in told])
        keep(self.entity, pending)
        self.store.commit(pending)

    def normal(self, alarm: str) -> list:
        told = self.entity.mark_normal(alarm, self.store.patterns(alarm))
        pending = Pending(alarms=[(message.alarm, {}) for message in told])
        keep(self.entity, pending, snapshot=True)
        self.store.commit(pending)
        return told

    def restart(self) -> None:
        self.entity = Entity("pump", SETUP, self.model)
        restore(self.entity, self.store.entity("pump"), self.store)
        assert self.entity.phase == WATCHING


def alarm_of(told: list, service: int) -> str | None:
    """The alarm that was opened about a maintenance."""
    for message in told:
        row = (message.alarm.onset - int(TIME[0].astype(int))) // (60 * 10**9)
        if message.what == "open" and service - 40 < row < service + 60:
            return message.alarm.id
    return None


def test_a_resolved_alarm_is_called_normal_and_the_next_one_does_not_come(model, tmp_path) -> None:
    site = Site(model, tmp_path / "state")
    alarm = alarm_of(site.run(SERVICES[1] - 100), SERVICES[0])
    assert alarm is not None
    assert site.normal(alarm) == []
    assert site.entity.accepted
    site.restart()
    before = site.counts["accepted"]
    assert alarm_of(site.run(SERVICES[2] - 100), SERVICES[1]) is None
    assert site.counts["accepted"] > before  # counted, not silently dropped
    site.entity.undo_normal(alarm)
    assert alarm_of(site.run(SERVICES[2] + 100), SERVICES[2]) is not None


def test_an_open_alarm_is_called_normal_and_says_no_more(model, tmp_path) -> None:
    site = Site(model, tmp_path / "state")
    alarm = alarm_of(site.run(SERVICES[0] + 20), SERVICES[0])
    assert alarm is not None
    told = site.normal(alarm)
    assert [message.what for message in told] == ["resolve"]
    site.restart()  # in the middle of it
    assert alarm_of(site.run(SERVICES[1] - 100), SERVICES[0]) is None
    assert [name for name, _ in site.entity.accepted] == [alarm]  # learned when it had ended
    assert alarm_of(site.run(SERVICES[1] + 100), SERVICES[1]) is None


def test_a_fault_is_written_beside_the_model_and_taken_back(model, tmp_path) -> None:
    path = tmp_path / "pump.vace"
    model._detector.save(path)
    here = LiveModel(load(path), "a", Budget())
    start, end = (int(TIME[TRAIN + n].astype(int)) for n in (100, 130))
    here.mark_fault("abc", "pump", (start, end))
    (line,) = load(path).feedback.active
    assert (line.verdict, line.start, line.end) == ("fault", TIME[TRAIN + 100], TIME[TRAIN + 130])
    assert line.note == "pump, alarm abc"
    assert here._detector.feedback.patterns == ()
    here.mark_fault("abc", "pump", (start, end))  # said twice is said once
    here.mark_fault("other", "pump", None)
    assert len(load(path).feedback.active) == 1
    here.mark_fault("abc", "pump", None)
    assert load(path).feedback.active == ()


def test_a_fault_that_cannot_be_written_does_not_end_the_watch(model, tmp_path, caplog) -> None:
    path = tmp_path / "pump.vace"
    model._detector.save(path)
    here = LiveModel(load(path), "a", Budget())
    (tmp_path / "pump.feedback.jsonl").write_text("not a verdict\n")
    here.mark_fault("abc", "pump", (0, 1))
    assert "the verdict is not stored" in caplog.text


def test_a_fault_waits_for_the_end_of_its_alarm_also_over_a_restart(tmp_path) -> None:
    lines = feed(n_rows=200, entities=("p1",), faults=((100, 120, 1),))
    write(tmp_path, lines[:110])

    def begun():
        watch = Watch(config(tmp_path), FakeCore())
        watch.start()
        watch.step()
        watch.checkpoint()
        return watch

    watch = begun()
    ((alarm,),) = watch.store._db.execute("select id from alarm where resolved is null").fetchall()
    watch.verdicts.submit(alarm, "fault")
    watch.step()
    assert not hasattr(watch.models.any(), "faults")
    watch.close()
    write(tmp_path, lines[110:], "a")
    watch = begun()
    watch._tick()
    watch.step()
    entity, (start, end) = watch.models.any().faults[alarm]
    assert entity == "p1"
    assert (start, end) == watch.store.span(alarm)
    assert watch.store.submitted() == []
    watch.verdicts.submit(alarm, "undo")
    watch.step()
    assert watch.models.any().faults == {}
    watch.close()
