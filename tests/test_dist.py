"""What `make dist` does besides building: it finds Pythons, tries files out, stops at a fault."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "dist.py"


@pytest.fixture
def dist() -> Any:
    spec = importlib.util.spec_from_file_location("dist", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_command_that_fails_ends_it_with_what_it_said(dist: Any) -> None:
    assert dist.run(sys.executable, "-c", "print('fine')") == "fine\n"
    with pytest.raises(SystemExit, match="it broke"):
        dist.run(sys.executable, "-c", "import sys; sys.exit('it broke')")


@pytest.mark.skipif(sys.platform == "win32", reason="needs shell scripts")
def test_each_python_that_runs_is_found_once(
    dist: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "pyenv" / "versions"
    on_path = program(tmp_path / "bin" / "python3.11", "exit 0")
    program(kept / "3.11.9" / "bin" / "python3.11", "exit 0")
    program(tmp_path / "bin" / "python3.12", "exit 127")  # a shim without a version behind it
    behind = program(kept / "3.12.4" / "bin" / "python3.12", "exit 0")
    program(tmp_path / "bin" / "python3.13", "exit 127")
    program(tmp_path / "bin" / "python3.10", "exit 0")  # too old
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setattr(dist, "MINORS", range(11, 14))
    found = list(dist.pythons())
    assert found[:2] == [str(on_path), str(behind)]
    assert not any("3.13" in each and str(tmp_path) in each for each in found)


def pretend(dist: Any, monkeypatch: pytest.MonkeyPatch, version: str, report: bool) -> list[str]:
    """Commands are noted; the demo leaves a report or not."""
    said: list[str] = []

    def run(*command: object, cwd: Path = SCRIPT.parent) -> str:
        said.append(" ".join(Path(str(word)).name for word in command))
        if "--version" in command:
            return f"vace {version}\n"
        if "demo" in command and report:
            (cwd / "demo-results").mkdir()
            (cwd / "demo-results" / "report.html").touch()
        if "methods" in command:
            return "vace\npca\n"
        return "6 of 6 faults found, 0 false alarms in 18 days\n"

    monkeypatch.setattr(dist, "run", run)
    return said


def test_a_file_is_installed_afresh_under_the_constraints_and_run(
    dist: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = pretend(dist, monkeypatch, "0.2.0", report=True)
    dist.try_out("/usr/bin/python3.11", Path("vace_ad-0.2.0-py3-none-any.whl"))
    assert said[0] == "python3.11 -m venv venv"
    assert "--constraint constraints.txt --find-links dist vace_ad-0.2.0-py3" in said[1]
    assert said[3] == "vace demo"
    for command in ("detect", "score", "feedback", "update"):
        assert any(one.startswith(f"vace {command} ") for one in said[5:])
    assert said[-1].startswith("python -c")
    assert "on python3.11: 6 of 6 faults found" in capsys.readouterr().out


def test_the_study_adds_its_command(
    dist: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = pretend(dist, monkeypatch, "0.2.0", report=False)
    dist.try_out("/usr/bin/python3.11", Path("vace_ad_study-0.2.0.tar.gz"))
    assert said[-1] == "vace bench methods"
    assert "on python3.11: 2 methods" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("version", "report", "words"),
    [("0.1.0", True, "says that it is version 0.1.0"), ("0.2.0", False, "the demo left no report")],
)
def test_a_file_of_another_version_or_without_a_report_is_refused(
    dist: Any, monkeypatch: pytest.MonkeyPatch, version: str, report: bool, words: str
) -> None:
    pretend(dist, monkeypatch, version, report)
    with pytest.raises(SystemExit, match=words):
        dist.try_out("python3.11", Path("vace_ad-0.2.0.tar.gz"))
