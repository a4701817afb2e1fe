import threading

import pytest

from vace_ad.live.records import BadRecordError
from vace_ad.live.settings import read_settings
from vace_ad.live.sources.push import FullError, HttpSource

JSON = b'{"time": 1767614400, "entity": "p1", "flow": 1.5}'


def make(**more):
    return HttpSource(read_settings(HttpSource.SETTINGS, more, "source"))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (JSON, "application/json"),
        (b"time,entity,flow\n1767614400,p1,1.5\n", "text/csv"),
        (b"pumps,entity=p1 flow=1.5 1767614400000000000\n", "text/plain"),
    ],
)
def test_three_formats(body, kind):
    (record,) = make().parse(body, kind)
    assert record == ("p1", 1_767_614_400 * 10**9, {"flow": 1.5})


def test_one_bad_record_refuses_the_request():
    with pytest.raises(BadRecordError):
        make().parse(b"[" + JSON + b', {"time": "soon"}]', "application/json")
    with pytest.raises(BadRecordError, match="UTF-8"):
        make().parse(b"\xff", "text/csv")


def test_a_request_is_answered_when_its_records_are_kept():
    made = make()
    done = made.push(made.parse(JSON, "application/json"))
    later = made.push(made.parse(JSON, "application/json"))
    batch = made.read(0.1)
    assert len(batch.records) == 2
    assert not done.done()
    made.acknowledge(1)
    assert done.done()
    assert not later.done()
    made.close()
    with pytest.raises(FullError, match="stopping"):
        later.result()


def test_more_than_can_wait_is_refused():
    made = make(pending=3)
    record = made.parse(JSON, "application/json")
    made.push(record * 3)
    with pytest.raises(FullError, match="3 records wait"):
        made.push(record)
    made.read(0.1)
    made.push(record)


def test_a_reader_that_waits_is_woken():
    made = make()
    threading.Timer(0.05, lambda: made.push(made.parse(JSON, "application/json"))).start()
    assert made.read(5.0) is not None
