"""Deploys: after one a level may change, and nothing else does."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from live.feeds import CHANNELS, START, STEP, config, feed, write
from live.real import core, save_model
from live.test_entity import SETUP, told
from vace_ad.live.checkpoint import keep, restore
from vace_ad.live.database import Pending
from vace_ad.live.deploys import Deploys
from vace_ad.live.entity import Entity
from vace_ad.live.records import Record
from vace_ad.live.sections import DeploySettings
from vace_ad.live.store import Store

DEPLOY, SETTLED, FAULT = 100, 160, 300
RULES = DeploySettings.model_validate({"settle": "10min", "channel": "version"})


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("real") / "model.vace"
    save_model(path)
    return core().load(path)


def records(n_rows=340, *, version=False):
    """A new level of one channel from the deploy on; later a fault of another."""
    values = np.random.default_rng(5).normal(size=(n_rows, len(CHANNELS)))
    values[DEPLOY:, 1] += 9
    values[FAULT : FAULT + 20, 2] -= 15
    more = [{"version": float(i >= DEPLOY)} if version else {} for i in range(n_rows)]
    return [
        Record("pump", START + i * STEP, {**dict(zip(CHANNELS, row.tolist(), strict=True)), **one})
        for i, (row, one) in enumerate(zip(values, more, strict=True))
    ]


def entity(model, *marks):
    deploys = Deploys(RULES)
    for row, name in marks:
        deploys.add(START + row * STEP, name)
    return Entity("pump", replace(SETUP, deploys=RULES), model, deploys=deploys)


def onsets(messages):
    """Rows at which alarms opened."""
    return [(one.time - START) // STEP for one in messages if one.what == "open"]


@pytest.mark.parametrize("name", ["", "pump", "other"])
def test_a_new_level_after_a_deploy_is_no_alarm_and_a_later_fault_is(model, name):
    found = onsets(entity(model, (DEPLOY, name)).take(records(), Counter(), None))
    if name == "other":
        assert DEPLOY <= found[0] < DEPLOY + 10
    else:
        assert FAULT <= found[0] < FAULT + 10
        assert len(found) == 1


def test_a_reading_tells_a_deploy_and_is_no_channel(model):
    counts: Counter[str] = Counter()
    found = onsets(entity(model).take(records(version=True), counts, None))
    assert FAULT <= found[0] < FAULT + 10
    assert not counts["unknown_channel"]


def test_rows_in_chunks_and_a_restart_say_the_same(model, tmp_path):
    whole = told(entity(model, (DEPLOY, "")).take(records(), Counter(), None))
    one = entity(model, (DEPLOY, ""))
    parts = [records()[i : i + 17] for i in range(0, len(records()), 17)]
    assert told([m for part in parts for m in one.take(part, Counter(), None)]) == whole
    for cut in (DEPLOY + 5, SETTLED + 5):
        store = Store(tmp_path / f"state-{cut}")
        one = entity(model, (DEPLOY, ""))
        found = one.take(records()[:cut], Counter(), None)
        pending = Pending()
        keep(one, pending, snapshot=False)
        store.commit(pending)
        again = Entity("pump", one._config, model, deploys=one._settling._deploys)
        restore(again, store.entity("pump"), store)
        found += again.take(records()[cut:], Counter(), None)
        assert told(found) == whole
        store.close()


def test_lines_of_a_file_are_read_once_and_as_they_come(tmp_path):
    path = tmp_path / "deploys.csv"
    rules = DeploySettings.model_validate({"file": str(path)})
    deploys = Deploys(rules)
    assert deploys.read_file() == []  # not there yet
    path.write_text("time,entity\n2026-01-05T12:00:00Z,p1,v1.2\nyesterday,p1\n2026-01-05T13:0")
    (wrong,) = deploys.read_file()
    assert "'yesterday' is not a time" in wrong
    assert deploys.newest("p1", 0, 2**62) == START
    assert deploys.newest("p2", 0, 2**62) is None
    with path.open("a") as file:
        file.write("0:00Z\n")
    again = Deploys(rules, deploys.state())
    assert again.read_file() == []
    assert again.newest("p2", 0, 2**62) == START + 3600 * 10**9
    path.write_text("")  # another file of this name
    assert again.read_file() == []
    path.write_text("2026-01-05T15:00:00Z,p2\n")
    again.read_file()
    assert again.next("p2", START + 3600 * 10**9) == START + 3 * 3600 * 10**9


def test_a_backtest_heeds_the_file(tmp_path, model):
    from vace_ad.live.service import backtest

    save_model(tmp_path / "model.json")
    lines = feed(entities=("p1",), faults=((200, 400, 1),))
    write(tmp_path, lines)
    (tmp_path / "deploys.csv").write_text("2026-01-05T12:33:20Z\n")
    span = 3600 * 10**9
    with_file = config(tmp_path, deploys={"file": str(tmp_path / "deploys.csv"), "settle": "15min"})
    assert len(backtest(config(tmp_path), span, lambda _: core())[0]) > 0
    assert len(backtest(with_file, span, lambda _: core())[0]) == 0
