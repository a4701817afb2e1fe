"""A short round of damaged inputs, everything that was ever found, and the harness itself."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from fuzz import runner
from fuzz.minimise import reached, smallest
from fuzz.mutate import cells_damaged, damaged, json_damaged, json_text_damaged
from fuzz.runner import Found, Round, fuzz, keep, replay
from fuzz.targets import NAMES, make

pytest.importorskip("starlette", reason="pip install 'vace-ad[live]'")
pytest.importorskip("uvicorn", reason="pip install 'vace-ad[live]'")
pytest.importorskip("fastexcel", reason="pip install 'vace-ad[excel]'")

INPUTS = 10  # for each target: the same ones on every machine


def told(round_: Round) -> str:
    return "\n".join(f"{one.kind} {one.place} {one.words}" for one in round_.found)


@pytest.mark.parametrize("half", [NAMES[0::2], NAMES[1::2]])
def test_a_short_round(half: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "HANG", 60.0)  # of a machine that does other work too
    found = fuzz(",".join(half), seed=1, seconds=60, inputs=INPUTS)  # `make fuzz` goes further
    assert found.taken + found.refused + len(found.found) == INPUTS * len(half)
    assert not found.found, told(found)


def test_everything_ever_found_stays_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "HANG", 60.0)
    n = sum(1 for path in runner.CORPUS.rglob("*") if path.is_file())
    found = replay()
    assert not found.found, told(found)
    assert found.taken + found.refused == n > 20
    assert {path.name for path in runner.CORPUS.iterdir()} <= set(NAMES)


TRAPS = """
import time
from pathlib import Path
from fuzz.target import BrokenError, Target
from vace_ad.errors import InputError

class Trap(Target):
    kept = []
    def seeds(self): return [b"good"]
    def damage(self, data, rng): return b"bad"
    def run(self, data, folder, *, thorough=False):
        if data == b"good": return
        {body}
"""
BODIES = {
    "KeyError": 'raise KeyError("x")',
    "BrokenError": 'raise BrokenError("other scores")',
    "Hang": "time.sleep(60)",
    "Growth": "self.kept.append(bytearray(b'x') * (500 << 20)); time.sleep(60)",
    "Crash": "import os; os._exit(3)",
    "": 'raise InputError("one sentence")',
}


@pytest.mark.parametrize("kind", BODIES)
def test_the_harness_sees_what_it_is_there_for(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import fuzz.targets as t\nt._WHERE['trap'] = '.trap:Trap'\n"
        "import sys, trap\nsys.modules['fuzz.targets..trap'] = trap\n"
    )
    (tmp_path / "trap.py").write_text(TRAPS.format(body=BODIES[kind]))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(runner, "HANG", 2.0 if kind == "Hang" else 30.0)
    monkeypatch.setattr(runner, "GROWTH", 100 << 20)
    monkeypatch.setattr(runner, "DEATHS", 1)
    found = fuzz("trap", seed=1, seconds=30, inputs=3)
    assert {one.kind for one in found.found} == ({kind} if kind else set())
    assert kind or found.refused > 0
    if kind:
        assert found.found[0].data == b"bad"


def test_findings_are_kept_by_their_content(tmp_path: Path) -> None:
    found = Found("csv", "KeyError", "a.py:1", "x", b"1,2")
    assert keep(found, tmp_path).read_bytes() == b"1,2"
    assert keep(found, tmp_path) == keep(found, tmp_path)
    assert len(list((tmp_path / "csv").iterdir())) == 1


def test_damage_repeats_by_its_seed_and_changes_something() -> None:
    text = json.dumps({"a": [1, 2, {"b": None}], "c": "d"}).encode() + b"\n1,2\n3,4"
    for way in (damaged, cells_damaged, json_text_damaged):
        first = [way(text, Random(seed)) for seed in range(60)]
        assert first == [way(text, Random(seed)) for seed in range(60)]
        assert sum(one != text for one in first) > 40
    assert json_damaged(3, Random(0)) != 3


def test_the_corpus_keeps_the_fewest_inputs_that_reach_the_same_lines(tmp_path: Path) -> None:
    a, b, c, d = (("file", n) for n in range(4))
    inputs = {"small": {a}, "two": {a, b}, "again": {a, b}, "other": {c}, "seen": {d}}
    assert smallest(inputs, {d}) == ["two", "other"]
    target = make("json")
    good, broken = (reached(target, data, tmp_path) for data in (target.seeds()[0], b"{"))
    assert good - broken
    assert broken - good  # the refusal
