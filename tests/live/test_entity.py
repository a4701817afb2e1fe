"""One entity with the real detector: rows that wait together say what each would have said."""

from collections import Counter

import numpy as np
import pytest

from live.feeds import CHANNELS, START, STEP
from live.real import core, save_model
from vace_ad.live.checkpoint import keep, restore
from vace_ad.live.config import make_config
from vace_ad.live.database import Pending
from vace_ad.live.entity import Entity
from vace_ad.live.records import Record
from vace_ad.live.store import Store

SETUP = make_config(
    {
        "source": {"kind": "csv", "path": "-"},
        "model": {"file": "pump.vace"},
        "state": {"path": "state", "snapshot_rows": 50},
        "align": {"step": f"{STEP // 10**9}s"},
        "alarms": {"resolve_after": "1min", "update_every": "20s"},
    }
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("real") / "model.vace"
    save_model(path)
    return core().load(path)


def records(n_rows=500, seed=3):
    """Rows with faults, a sensor that is silent for a while, and short and long gaps."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n_rows, len(CHANNELS)))
    values[120:135, 1] += 9 * np.linspace(0.4, 1, 15)
    values[300:304, 2] += 25
    values[310:325, 0] -= 12
    found = []
    for i, row in enumerate(values):
        cells = dict(zip(CHANNELS, row.tolist(), strict=True))
        if i % 37 in (5, 6) or 200 <= i < 290:
            del cells["power"]
        if not 400 <= i < 430:
            found.append(Record("pump", START + i * STEP, cells))
    return found


def told(messages):
    return [(one.id, one.what, one.time, one.alarm) for one in messages]


@pytest.fixture(scope="module")
def singly(model):
    entity = Entity("pump", SETUP, model)
    found = [m for one in records() for m in entity.take([one], Counter(), None)]
    return told(found), list(entity.scores)


def test_there_is_something_to_tell(singly):
    whats = [what for _, what, _, alarm in singly[0] if alarm.kind == "anomaly"]
    assert whats.count("open") >= 2
    assert "update" in whats
    assert any(alarm.kind == "no data" for *_, alarm in singly[0])


@pytest.mark.parametrize("seed", range(2))
def test_alarms_do_not_depend_on_how_many_rows_come_together(model, singly, seed):
    rng = np.random.default_rng(seed)
    entity, left, messages = Entity("pump", SETUP, model), records(), []
    while left:
        n = int(rng.integers(1, 90))
        messages += entity.take(left[:n], Counter(), None)
        left = left[n:]
    assert told(messages) == singly[0]
    np.testing.assert_array_equal(list(entity.scores), singly[1])


@pytest.mark.parametrize("at", [123, 301, 420])
def test_an_entity_from_disk_goes_on_the_same(model, singly, tmp_path, at):
    store, entity = Store(tmp_path / "state"), Entity("pump", SETUP, model)
    messages = []
    for i, one in enumerate(records()[:at]):
        messages += entity.take([one], Counter(), None)
        if i % 7 == 0 or i == at - 1:
            pending = Pending()
            keep(entity, pending)
            store.commit(pending)
    again = Entity("pump", SETUP, model)
    restore(again, store.entity("pump"), store)
    messages += again.take(records()[at:], Counter(), None)
    store.close()
    assert told(messages) == singly[0]
