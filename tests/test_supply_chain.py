"""What `make` installs is pinned by hash, and what a wheel is made of is written down."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return lambda name: importlib.import_module(name)


def entries() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()[2:]
    return dict(line.split(" ", 1) for line in lines)


def test_the_lock_covers_every_constraint_but_torch(tools: Any) -> None:
    lock = tools("lock")
    wanted = [*lock.pinned((ROOT / "constraints.txt").read_text()), *lock.FURTHER]
    spelt = {f"{lock.plain(name)}=={version}" for name, version in (w.split("==") for w in wanted)}
    assert set(entries()) == spelt
    assert not any(name.startswith("torch==") for name in entries())
    assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", line) for line in entries().values())
    assert "://" not in (ROOT / "requirements.lock").read_text()


def test_a_lock_line_is_name_version_and_hash(tools: Any) -> None:
    item = {
        "metadata": {"name": "A_b", "version": "1"},
        "download_info": {"url": "https://x/y", "archive_info": {"hashes": {"sha256": "0f"}}},
    }
    assert list(tools("lock").locked({"install": [item]})) == ["a-b==1 --hash=sha256:0f"]


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a-1.tar.gz").write_bytes(b"not what was tested")
    lock = tmp_path / "requirements.lock"
    lock.write_text(f"a==1 --hash=sha256:{'0' * 64}\n")
    how = ["--require-hashes", "--no-deps", "--no-index", "--find-links", tmp_path, "--target", "t"]
    run = subprocess.run(
        [sys.executable, "-m", "pip", "install", *how, "-r", lock],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PIP_CONFIG_FILE": "/dev/null", "PATH": ""},
    )  # fmt: skip
    if "No module named pip" in run.stderr:
        pytest.skip("no pip in this environment")
    assert run.returncode != 0
    assert "DO NOT MATCH THE HASHES" in run.stderr


def test_the_bill_of_materials_names_what_is_installed(tools: Any) -> None:
    pytest.importorskip("packaging")
    bill = tools("bom").bill()
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    assert bill["metadata"]["component"]["name"] == "vace-ad"
    found = {part["name"]: part for part in bill["components"]}
    assert {"numpy", "polars", "safetensors", "openvino"} <= set(found)
    assert found["numpy"]["version"] == __import__("numpy").__version__
    assert found["numpy"]["purl"] == f"pkg:pypi/numpy@{found['numpy']['version']}"
    refs = [part["bom-ref"] for part in bill["components"]]
    assert len(refs) == len(set(refs))
    known = {*refs, bill["metadata"]["component"]["bom-ref"]}
    assert all(set(edge["dependsOn"]) <= known for edge in bill["dependencies"])
    assert not {"pytest", "mypy", "mkdocs"} & set(found)  # tools of ours, not of a user
