"""Bars for those who ask for them, silence for the others."""

import sys
import types

import numpy as np
import pytest

from vace_ad import VACE
from vace_ad.progress import shown, silent, terminal_bars


def test_nothing_is_shown_unless_asked(capsys):
    with shown(False) as bars:
        assert bars is silent
    with shown(True) as bars:  # no terminal, no notebook
        assert bars is silent
    assert capsys.readouterr() == ("", "")


def test_what_the_caller_gave_is_passed_on():
    seen = []
    with shown(lambda *report: seen.append(report)) as bars:
        bars("scoring", 1, 2)
    assert seen == [("scoring", 1, 2)]


def test_bars_of_a_terminal_name_the_stage(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with terminal_bars() as bars:
        bars("scoring [x]", 1, 2)
    assert "scoring [x]" in capsys.readouterr().err


@pytest.fixture
def notebook(monkeypatch):
    """What a Jupyter kernel offers, and the list of what was shown."""
    pictures = []
    shell = type("ZMQInteractiveShell", (), {})()
    handle = types.SimpleNamespace(update=pictures.append)
    display = types.SimpleNamespace(HTML=str, display=lambda html, display_id: handle)
    ipython = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return pictures


def test_bars_of_a_notebook_show_the_stage_and_vanish(notebook):
    with shown(True) as bars:
        for done in range(10_001):
            bars("scoring", done, 10_000)
    assert "scoring 10,000 of 10,000" in notebook[-2]
    assert notebook[-1] == ""
    assert len(notebook) < 120


def test_every_method_takes_true(notebook):
    rows = np.random.default_rng(0).normal(size=(400, 2))
    detector = VACE(encoders=1, patch_length=16).fit(rows, progress=True)
    for method in (detector.score, detector.signals, detector.embed, detector.detect):
        notebook.clear()
        method(rows, progress=True)
        assert any("<progress" in picture for picture in notebook)
