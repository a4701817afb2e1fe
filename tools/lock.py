"""Write requirements.lock: every pinned package with the hash of the file that was tested.

    .venv/bin/python tools/lock.py     # after a change of constraints.txt; asks the package index

pip chooses the files for this machine, so the lock holds for one system and Python version, which
its first line names; `make` checks hashes there, and goes by constraints.txt alone elsewhere. torch
is left out: its CPU builds come from another index than the rest, under the same version and with
other hashes, so that one hash would refuse what is fine on other machines.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LEFT_OUT = ("torch",)
FURTHER = ("TSB-AD==1.5",)  # installed without what it asks for, so no constraint names it


def plain(name: str) -> str:
    """A distribution's name as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned(constraints: str) -> list[str]:
    """The lines of constraints that the lock covers."""
    lines = (line.partition("#")[0].strip() for line in constraints.splitlines())
    return [line for line in lines if line and plain(line.partition("==")[0]) not in LEFT_OUT]


def chosen(lines: Iterable[str]) -> dict[str, Any]:
    """What pip would install for these lines here, as its report has it."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, report = Path(folder) / "wanted.txt", Path(folder) / "report.json"
        wanted.write_text("\n".join(lines))
        how = ["--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", str(report)]
        subprocess.run(
            [sys.executable, "-m", "pip", "install", *how, "-r", str(wanted)], check=True
        )
        return dict(json.loads(report.read_text()))


def locked(report: Mapping[str, Any]) -> Iterator[str]:
    """A line for each package: version and hash, no address."""
    for item in report["install"]:
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        sha = item["download_info"]["archive_info"]["hashes"]["sha256"]
        yield f"{plain(name)}=={version} --hash=sha256:{sha}"


def here() -> str:
    """The system that a lock holds for."""
    python = ".".join(platform.python_version_tuple()[:2])
    return f"{platform.system()} {platform.machine()} Python {python}"


def main() -> None:
    """Write the lock, or say what system this is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--here", action="store_true", help="print what system this is, and end")
    if parser.parse_args().here:
        print(here())
        return
    lines = [*pinned((ROOT / "constraints.txt").read_text()), *FURTHER]
    found = sorted(locked(chosen(lines)))
    head = f"# {here()}\n# Written by tools/lock.py; {', '.join(LEFT_OUT)} is not in it.\n"
    (ROOT / "requirements.lock").write_text(head + "\n".join(found) + "\n")
    print(f"{len(found)} packages")


if __name__ == "__main__":
    main()
