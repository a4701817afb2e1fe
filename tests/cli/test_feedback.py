from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import pytest

from cli.runs import Runner
from feedback.maintenance import SERVICES, TIME, TRAIN, frame, plant, serviced
from vace_ad import VACE


@pytest.fixture
def vace(monkeypatch, capsys) -> Runner:
    return Runner(monkeypatch, capsys)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> Path:
    """A folder with a model and rows that are new to it."""
    place = tmp_path_factory.mktemp("feedback")
    frame(serviced(), TRAIN).write_parquet(place / "new.parquet")
    VACE(patch_length=24, encoders=1).fit(frame(plant()[:TRAIN])).save(place / "pump.vace")
    return place


@pytest.fixture
def place(fitted: Path, tmp_path) -> Path:
    return Path(copytree(fitted, tmp_path / "place"))


def test_an_event_is_accepted_listed_and_undone(vace: Runner, place) -> None:
    model, new = place / "pump.vace", place / "new.parquet"

    def score() -> dict:
        return json.loads(vace("score", new, "--model", model, "--json").out)

    assert vace("score", new, "--model", model, "--out", place / "results").status == 0
    before = score()["events"]
    assert len(before) >= len(SERVICES)
    said = vace("feedback", model, "--events", f"{place}/results#1", "--note", "service", "--json")
    assert said.status == 0, said.err
    (line,) = json.loads(said.out)["feedback"]
    assert (line["verdict"], line["pattern"], line["note"]) == ("normal", True, "service")
    after = score()
    assert len(after["events"]) <= len(before) - len(SERVICES) + 1
    assert len(after["accepted"]) >= len(SERVICES) - 1
    shown = vace("score", new, "--model", model).out
    assert "pump.feedback.jsonl" in shown
    assert "accepted as normal" in " ".join(shown.split())
    assert line["id"] in vace("feedback", model, "--list").out
    assert vace("feedback", model, "--undo", line["id"]).status == 0
    assert len(score()["events"]) == len(before)


def test_a_fault_is_left_out_of_an_update(vace: Runner, place) -> None:
    model, new = place / "pump.vace", place / "new.parquet"
    when = str(TIME[SERVICES[0]]), str(TIME[SERVICES[0] + 50])
    assert vace("feedback", model, "--fault", *when).status == 0
    done = vace("update", model, new, "--out", place / "later.vace", "--json")
    assert done.status == 0, done.err
    facts = json.loads(done.out)["facts"]
    assert facts["updates"] == 1
    assert facts["rows"] == TRAIN + len(serviced()) - TRAIN - 51
    assert (place / "later.feedback.jsonl").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        ["--list", "--undo", "x"],
        ["--undo", "x"],
        ["--normal", "soon", "later"],
        ["--events", "nowhere#3"],
        ["--normal", "3", "9"],
    ],
)
def test_what_names_nothing_is_refused_in_a_sentence(vace: Runner, place, wrong: list) -> None:
    answer = vace("feedback", place / "pump.vace", *wrong)
    assert answer.status == 2
    assert answer.err.startswith("error: ")
