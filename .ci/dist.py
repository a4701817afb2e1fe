"""Build wheel and sdist of product and study, check them, try them out on every Python here.

    make dist

Leaves the four files in dist/; ends with an error at the first thing that is wrong.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
# The tables that the README speaks of: the demo's plant, in the months that it names.
TABLES = """
import polars as pl
from vace_ad.demo import simulate

plant = simulate()
normal = plant.train_rows
frame = plant.frame().with_columns(pl.col("time") + pl.duration(days=47))
frame.write_csv("plant.csv")
frame.write_parquet("plant.parquet")
frame[: normal // 2].with_columns(pl.col("time") + pl.duration(days=40)).write_csv("april.csv")
"""
MINORS = range(11, 20)  # Python 3.11 is the oldest that is supported


def run(*command: object, cwd: Path = ROOT) -> str:
    """What a command printed; it must succeed."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def build() -> list[Path]:
    """The files that go to the index, wheel and sdist, checked."""
    shutil.rmtree(DIST, ignore_errors=True)
    for source in (ROOT, ROOT / "study"):
        run(sys.executable, "-m", "build", "--outdir", DIST, source)
    files = sorted(DIST.iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    run(sys.executable, "-m", "check_wheel_contents", *DIST.glob("*.whl"))
    return files


def pythons() -> Iterator[str]:
    """Every supported Python on the path, or installed by pyenv, that runs."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in MINORS:
        name = f"python3.{minor}"
        found = [shutil.which(name), *map(str, sorted(kept.glob(f"3.{minor}.*/bin/{name}")))]
        works = [each for each in found if each and _runs(each)]  # a shim of pyenv may not
        yield from works[:1]


def _runs(python: str) -> bool:
    return subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0


def try_out(python: str, file: Path) -> None:
    """Install one file in a fresh environment and use it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(python, "-m", "venv", folder / "venv")
        fresh = folder / "venv" / "bin"
        given = ("--constraint", ROOT / "constraints.txt", "--find-links", DIST)
        run(fresh / "pip", "install", "--quiet", *given, file)
        version = run(fresh / "vace", "--version", cwd=folder).split()[-1]
        if version not in file.name:
            sys.exit(f"{file.name} says that it is version {version}")
        use = list_methods if file.name.startswith("vace_ad_study-") else find_faults
        print(f"{file.name} on {Path(python).name}: {use(fresh, folder)}", flush=True)


def find_faults(fresh: Path, folder: Path) -> str:
    """Run the demo and all that the README shows; the line that says what the demo found."""
    said = run(fresh / "vace", "demo", cwd=folder)
    if not (folder / "demo-results" / "report.html").exists():
        sys.exit(f"the demo left no report\n{said}")
    run(fresh / "python", "-c", TABLES, cwd=folder)
    commands, code = readme()
    for command in commands:
        run(fresh / command[0], *command[1:], cwd=folder)
    run(fresh / "python", "-c", code, cwd=folder)
    return next(line for line in said.splitlines() if "faults found" in line)


def list_methods(fresh: Path, folder: Path) -> str:
    """How many methods the study's command lists."""
    listed = run(fresh / "vace", "bench", "methods", cwd=folder).splitlines()
    return f"{len(listed)} methods"


def readme() -> tuple[list[list[str]], str]:
    """The commands of the README but those that install, and its Python."""
    text = (ROOT / "README.md").read_text("utf-8")
    lines = [
        line for block in re.findall(r"```\n(.*?)```", text, re.S) for line in block.splitlines()
    ]
    commands = [line.split("  #")[0] for line in lines if line.startswith("vace ")]
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    return [shlex.split(command) for command in commands], code


def main() -> None:
    """Build, check, try out."""
    files = build()
    for python in pythons():
        for file in files:
            try_out(python, file)


if __name__ == "__main__":
    main()
