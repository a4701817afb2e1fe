from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from vace_ad import VACE
from vace_ad.alarms.events import Event, groups_of, plain_event, restored_event
from vace_ad.config import VACEConfig
from vace_ad.errors import InputError, TableReadError
from vace_ad.frames.columns import (
    channels_of,
    clean_frame,
    notes_in_words,
    read_components,
    with_states,
    words_of,
)
from vace_ad.frames.idle import watched
from vace_ad.report import ReportData
from vace_ad.report.page import components, what_it_means


@pytest.fixture
def frame() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    a = rng.normal(size=20)
    return pl.DataFrame(
        {
            "row": np.arange(20),
            "a": a,
            "state": ["run"] * 20,
            "empty": [None] * 20,
            "valve": rng.integers(0, 2, 20).astype(bool),
            "still": np.full(20, 3),
            "a again": a,
            "Label": np.r_[np.zeros(15), np.ones(5)],
            "holes": [None, *(float(i) for i in range(5)), *([2.0] * 14)],
        }
    )


def test_what_is_kept_and_what_is_said(frame: pl.DataFrame) -> None:
    channels = channels_of(frame)
    assert channels.names == ("a", "valve", "still", "a again", "holes")
    assert channels.values.dtype == np.float64
    assert channels.values.shape == (20, 5)
    assert np.isnan(channels.values[0, 4])
    assert {note.name: note.kind for note in channels.notes} == {
        "row": "a row counter",
        "state": "text",
        "empty": "empty",
        "Label": "a label",
        "still": "constant",
        "a again": "identical to 'a'",
    }
    assert {note.name for note in channels.notes if note.kept} == {"still", "a again"}
    assert channels.notes[0].words() == "column 'row' is a row counter: left out"


def test_choosing_and_dropping(frame: pl.DataFrame) -> None:
    assert channels_of(frame, only=["a", "row"]).names == ("row", "a")
    assert "a" not in channels_of(frame, drop=["a"]).names
    with pytest.raises(InputError, match="no column is called 'b'"):
        channels_of(frame, only=["b"])
    with pytest.raises(InputError, match="'state' is text and cannot be a channel"):
        channels_of(frame, only=["a", "state"])


def test_no_numbers_at_all(frame: pl.DataFrame) -> None:
    with pytest.raises(TableReadError, match=r"no column holds numbers.*'state'"):
        channels_of(frame.select("state", "empty"))


def test_forty_notes_are_one() -> None:
    still = pl.DataFrame({f"s{i}": [1.0, 1.0, 1.0] for i in range(40)} | {"a": [1.0, 5.0, 2.0]})
    (words,) = notes_in_words(channels_of(still).notes)
    assert words.startswith("40 columns are constant: kept")
    assert "'s0', 's1', 's2', 's3', 's4' and 35 more" in words


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_tables_in_python_are_cleaned_as_on_the_command_line(kind: str) -> None:
    frame = pl.DataFrame(
        {
            "t": pl.datetime_range(datetime(2026, 1, 1), datetime(2026, 1, 1, 3), "1h", eager=True),
            "a": [1.0, 5.0, 2.0, 4.0],
            "state": ["on", "off", "on", "on"],
            "row": [0, 1, 2, 3],
            "empty": pl.Series([None] * 4, dtype=pl.Float64),
            "label": [0, 0, 1, 0],
        }
    )
    data = {"pandas": frame.to_pandas, "polars": frame.clone, "arrow": frame.to_arrow}[kind]()
    clean, notes = clean_frame(data)
    assert type(clean) is type(data)
    names = clean.column_names if kind == "arrow" else list(clean.columns)
    assert names == ["t", "a"]
    assert "column 'state' is text: left out" in notes
    assert len(notes) == 4


def test_what_is_no_table_comes_back() -> None:
    array = np.zeros((3, 2))
    assert clean_frame(array)[0] is array
    whole = pl.DataFrame({"a": [1.0, 5.0, 2.0]})
    assert clean_frame(whole)[0] is whole


def test_a_column_of_few_words_says_what_can_be_done_with_it() -> None:
    states = pl.DataFrame({"state": ["run", "stop", "wait"] * 20, "a": np.arange(60) % 7 * 1.0})
    (note,) = channels_of(states).notes
    assert note.words() == (
        "column 'state' is text: left out; a column of 0 and 1 for each of its values ('run', "
        "'stop', 'wait') would be a channel"
    )
    assert note.condition == "state == 'run'"
    category = states.with_columns(pl.col("state").cast(pl.Categorical))
    assert clean_frame(category)[1][0].startswith("column 'state' is text: left out; a column of 0")
    assert clean_frame(category.to_pandas())[1] == clean_frame(category)[1]


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


def test_the_report_lists_components_with_their_sensors() -> None:
    groups = ("pump/flow", "pump/speed", "motor/<b>")
    events = (
        Event(0, 5, 2, severity=60.0, shares=(("flow", 0.5), ("speed", 0.3)), groups=groups),
        Event(6, 8, 7, severity=20.0, shares=(("<b>", 0.9), ("flow", 0.1)), groups=groups),
    )
    names = ("flow", "speed", "<b>")
    data = ReportData("x", names, np.zeros((9, 3)), np.zeros(9), 1.0, events=events)
    motor, pump = sorted(components(data).split("<tr>")[2:])
    assert (
        '<th scope="row">motor</th><td>1 event</td><td>20</td><td><ul><li>&lt;b&gt; 100%' in motor
    )
    assert '<th scope="row">pump</th><td>1 event</td><td>60</td>' in pump
    assert "<li>flow 67%</li><li>speed 33%</li>" in pump
    assert components(replace(data, events=(Event(0, 5, 2, shares=(("flow", 1.0),)),))) == ""


def test_a_component_of_no_channel_is_refused() -> None:
    assert VACE(components=["pump/flow"]).get_params()["components"] == ("pump/flow",)
    with pytest.raises(InputError, match="did you mean 'flow'"):
        watched(VACEConfig(components=("pump/flwo",)), ["flow", "speed"])


WORDS = ["a", None, " b ", "a"]


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_words_become_channels_of_0_and_1(kind):
    found = with_states(kind({"x": [1.0, 2.0, 3.0, 4.0], "product": WORDS}), ["product"])
    assert list(found.columns) == ["x", "product=a", "product=b"]
    np.testing.assert_array_equal(np.asarray(found["product=a"], float), [1, np.nan, 0, 1])


def test_a_model_knows_its_words():
    table = pl.DataFrame({"product": ["c", "a"]})
    found = with_states(table, (), ("product=a", "product=b"))
    assert found.to_dict(as_series=False) == {"product=a": [0.0, 1.0], "product=b": [0.0, 0.0]}


def test_tables_without_such_a_column_come_back_as_they_are():
    table = pl.DataFrame({"x": [1.0]})
    assert with_states(table, ["x", "y"]) is table
    assert with_states([[1.0]], ["x"]) == [[1.0]]


def test_a_column_of_notes_is_no_state():
    with pytest.raises(InputError, match="60 different words"):
        with_states(pl.DataFrame({"note": [f"n{i}" for i in range(60)]}), ["note"])


def test_rows_tell_their_words():
    rows = np.array([[1.0, 1, 0], [1, 0, 1], [1, 0, 0], [1, np.nan, np.nan]])
    assert words_of(rows, ("x", "p=a", "p=b"), "p").tolist() == ["a", "b", None, None]
