from __future__ import annotations

import pytest

from vace_ad.alarms.events import Event, Reading
from vace_ad.cli.output import Output


def test_a_long_note_is_indented_under_its_word(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False, quiet=False).notes(["short", "\x1b[31mlong " * 40])
    first, second, *rest = capsys.readouterr().out.splitlines()
    assert first == "  note: short"
    assert second.startswith("  note: long long")
    assert rest
    assert all(line.startswith(" " * 8 + "long") for line in rest)


def test_an_event_is_told_with_its_value_what_was_expected_and_what_its_signal_means(
    capsys: pytest.CaptureFixture[str],
) -> None:
    event = Event(
        3, 4, 3, probability=1e-12, normal_rows=4176, severity=66.7, signal="relation",
        shares=(("power", 0.8), ("flow", 0.2)), readings=(Reading("power", 49.6, 31.2, 35.1),),
        partner="flow", lasting=True,
    )  # fmt: skip
    often = Event(9, 12, 9, probability=1 / 830, normal_rows=4176, severity=33.0, signal="jump")
    Output(as_json=False, quiet=False).events([event, often], None, units={"power": "kW"})
    told = capsys.readouterr().out
    assert "power 49.6 kW, expected 31.2 to 35.1" in told
    assert "power and flow stopped going together" in told
    assert "became the new normal" in told
    assert "none in 4,176 rows" in told
    assert "1 in 830 rows" in told
    assert " 1 row " in told
    assert "relation: a channel differs from what the other channels predict" in told
    assert "jump: " in told
    assert "stuck: " not in told
