"""A key's rows through its stream, as Spark calls it, without a Spark."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="pip install 'vace-ad[spark]'; then make spark")

import pandas as pd

from spark.conftest import frame
from vace_ad import VACE
from vace_ad.spark import _ALARM, _fitted
from vace_ad.spark.key_stream import KeyStream

SETTINGS = {"patch_length": 16, "encoders": 1}
SCORED = {"time": "timestamp", "score": "double", "error": "string"}
SIZE = 40


class Value:
    """A value of Spark's state."""

    def __init__(self, kept, name):
        self._kept, self._name = kept, name

    def exists(self):
        return self._name in self._kept

    def get(self):
        return self._kept[self._name]

    def update(self, value):
        self._kept[self._name] = value


@pytest.fixture(scope="module")
def fitted():
    rows = frame(500, keys=1).drop(columns="machine")
    return VACE(**SETTINGS).fit(rows), _fitted(rows, SETTINGS)


def begun(kept, tell="alarms"):
    alarms = tell == "alarms"
    columns = _ALARM if alarms else SCORED
    made = KeyStream("machine", "time", "1 per week", columns, alarms=alarms)
    made.init(SimpleNamespace(getValueState=lambda name, schema: Value(kept, name)))
    return made


def numbered(rows):
    return rows.assign(time=rows["time"].to_numpy("datetime64[us]").view(np.int64))


def said(made, *tables):
    return pd.concat(list(made.handleInputRows(("m000",), iter(tables), None)), ignore_index=True)


@pytest.fixture(scope="module")
def new():
    return frame(240, keys=1, seed=1, fault=(150, 160))


def test_alarms_are_those_of_the_stream_across_a_restart(fitted, new):
    detector, data = fitted
    kept, found, alone = {}, [], []
    begun(kept).handleInitialState(("m000",), pd.DataFrame({"model": [data]}), None)
    stream = detector.stream(budget="1 per week")
    for a in range(0, len(new), SIZE):
        part = new[a : a + SIZE]
        shuffled = numbered(part).sample(frac=1, random_state=0)
        made = begun(kept)  # anew for each micro-batch: all is in the state
        told = said(made, shuffled[:10], shuffled[10:])
        assert said(made, shuffled).empty  # the same rows again
        assert told["error"].isna().all()
        found += list(zip(told["what"], told["event"], told["start_time"], strict=True))
        added = stream.add(part[["a", "b", "c"]].to_numpy(), part["time"].to_numpy())
        for change in added.changes:
            start = change.event.start_time.astype("datetime64[us]").astype(np.int64)
            alone.append((change.what, change.event.id, start))
    assert found == alone
    assert [what for what, *_ in found].count("open") >= 1


def test_scores_have_the_times_of_their_rows(fitted, new):
    detector, data = fitted
    kept = {"model": (data,)}
    parts = [said(begun(kept, "scores"), numbered(new[a : a + SIZE])) for a in range(0, 240, SIZE)]
    found = pd.concat(parts, ignore_index=True)
    added = detector.stream().add(new[["a", "b", "c"]].to_numpy(), new["time"].to_numpy())
    np.testing.assert_array_equal(found["score"], added.scores)
    assert found["time"].tolist() == numbered(new)["time"][: len(found)].tolist()


@pytest.mark.parametrize("tell", ["alarms", "scores"])
def test_what_is_wrong_is_a_row(fitted, new, tell):
    told = said(begun({}, tell), numbered(new[:5]))
    assert "'m000' has no model" in told["error"][0]
    without = numbered(new[:5]).assign(time=None)
    assert said(begun({"model": (fitted[1],)}, tell), without).empty  # rows without a time
