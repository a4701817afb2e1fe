"""Run the command in this process, and small tables for it."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
import typer

from vace_ad.cli.main import main

QUICK = ["--patch-length", "16", "--set", "encoders=1", "--set", "widths=[8,8,8,8]"]
QUICK += ["--set", "engine=numpy"]  # compiles nothing
_command = cache(typer.main.get_command)  # builds every command and option
NAMES = ("flow", "speed", "pressure", "power")
ROWS, FAULT = 1500, slice(1100, 1140)


class Answer(NamedTuple):
    status: int
    out: str
    err: str


class Runner:
    """`vace` with arguments; what it printed and its exit status."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys
        monkeypatch.setattr("typer.main.get_command", _command)

    def __call__(self, *arguments: str | Path) -> Answer:
        self.monkeypatch.setattr(sys, "argv", ["vace", *map(str, arguments)])
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self.capsys.readouterr()
        return Answer(int(ended.value.code or 0), out, err)


def values(seed: int = 0, *, fault: bool = True) -> np.ndarray:
    """Four sensors driven by two rhythms; the pressure is wrong for forty rows."""
    rng = np.random.default_rng(seed)
    phase = 2 * np.pi * np.arange(ROWS)[:, None] / [12.0, 31.0]
    x = np.sin(phase) @ rng.normal(size=(2, 4)) + 0.1 * rng.normal(size=(ROWS, 4))
    if fault:
        x[FAULT, 2] = 6 + rng.normal(size=40)
    return x


def times() -> np.ndarray:
    return np.datetime64("2026-01-01", "ns") + np.arange(ROWS) * np.timedelta64(60 * 10**9, "ns")


def frame(seed: int = 0, *, fault: bool = True) -> pl.DataFrame:
    x = values(seed, fault=fault)
    return pl.DataFrame({"time": times(), **{name: x[:, i] for i, name in enumerate(NAMES)}})
