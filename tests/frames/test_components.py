"""A file says which component a sensor belongs to; events tell the shares of both."""

import numpy as np
import pytest

from vace_ad import VACE
from vace_ad.alarms.event_record import plain_event, restored_event
from vace_ad.alarms.events import Event, groups_of
from vace_ad.config import VACEConfig
from vace_ad.errors import InputError, TableReadError
from vace_ad.frames.columns import read_components
from vace_ad.frames.idle import watched
from vace_ad.report import ReportData
from vace_ad.report.formatting import what_it_means

SHARES = (("flow", 0.5), ("speed", 0.3), ("fan/hum", 0.2))


@pytest.mark.parametrize("header", ["", "sensor,component\n", "Sensor, Component\n"])
def test_a_file_is_read(tmp_path, header) -> None:
    file = tmp_path / "parts.csv"
    file.write_text(f"{header}flow,pump\n\nspeed, motor \n")
    assert read_components(file) == ("pump/flow", "motor/speed")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("flow\n", "line 1: 'flow' came"),
        ("flow,pump\nflow,fan\n", "'flow' is of 'pump' above"),
        ("sensor,component\n", "names no sensor"),
    ],
)
def test_what_a_file_lacks_is_said(tmp_path, text, words) -> None:
    file = tmp_path / "parts.csv"
    file.write_text(text)
    with pytest.raises(TableReadError, match=words):
        read_components(file)
    with pytest.raises(TableReadError, match="cannot be read"):
        read_components(tmp_path / "none.csv")


def test_events_tell_the_shares_of_components() -> None:
    groups = groups_of(SHARES, ("pump/flow", "motor/speed", "motor/current"))
    event = Event(0, 5, 2, severity=60.0, shares=SHARES, groups=groups)
    assert event.components == (("pump", 0.5), ("motor", 0.3), ("fan", 0.2))
    assert restored_event(plain_event(event)) == event
    named = Event(0, 5, 2, shares=(("flow", 1.0),))
    assert named.components == ()
    data = ReportData("x", ("flow",), np.zeros((9, 1)), np.zeros(9), 1.0)
    assert "By component: pump 50%, motor 30%, fan 20%." in what_it_means(event, data)


def test_a_component_of_no_channel_is_refused() -> None:
    assert VACE(components=["pump/flow"]).get_params()["components"] == ("pump/flow",)
    with pytest.raises(InputError, match="did you mean 'flow'"):
        watched(VACEConfig(components=("pump/flwo",)), ["flow", "speed"])
