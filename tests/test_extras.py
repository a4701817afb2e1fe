"""What the extras hold, and that the install lines people read name extras that exist."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def requirements(extra: str) -> set[str]:
    """The packages of an extra, those of other extras that it names included."""
    found: set[str] = set()
    for line in EXTRAS[extra]:
        one = Requirement(line)
        if one.name == PROJECT["name"]:
            found |= {name for other in one.extras for name in requirements(other)}
        else:
            found.add(one.name)
    return found


def closure(names: set[str]) -> set[str]:
    """These packages and all that they ask for, as far as they are installed here."""
    seen: set[str] = set()
    left = {*names, *(Requirement(line).name for line in PROJECT["dependencies"])}
    while left:
        name = left.pop().lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            asked = [Requirement(line) for line in metadata.requires(name) or ()]
        except metadata.PackageNotFoundError:
            continue
        left |= {
            one.name for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})
        }
    return seen


def test_all_brings_no_torch_and_nothing_for_gpus() -> None:
    found = closure(requirements("all"))
    assert {"polars", "duckdb", "fastexcel", "openpyxl"} <= found
    assert not [name for name in found if re.match(r"torch|nvidia|triton|cuda", name)]
    assert all("torch" in closure(requirements(name)) for name in ("train", "paper"))


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/start/service.md"])
def test_install_lines_work_from_a_clone(page: str) -> None:
    lines = re.findall(r"^pip install (\S+)", (ROOT / page).read_text(), re.MULTILINE)
    assert lines
    for line in lines:
        match = re.fullmatch(r"\.|'\.\[(\w+)\]'", line)
        assert match is not None, f"{line!r} needs an index that does not have the package yet"
        assert match[1] is None or match[1] in EXTRAS


def test_the_release_list_names_commands_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    steps = text[text.index("**A release.**") : text.index("**Style.**")]
    for target in re.findall(r"`make (\w+)`", steps):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target
    for path in re.findall(r"`(?:python )?([\w./]+\.(?:py|md))\b", steps):
        assert (ROOT / path).is_file(), path
