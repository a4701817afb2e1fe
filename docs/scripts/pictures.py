"""Take the pictures and the printed answer that the pages show, from the code as it is.

    python docs/scripts/pictures.py

Needs Chromium for the report's picture (`make machine`) and the extra `plot` for the demo's. Run it
after a change of scores, alarms or the report.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

from vace_ad.demo.plant import simulate

DOCS = Path(__file__).parents[1]
PAGE = DOCS / "start" / "csv.md"
COMMAND = ("detect", "plant.csv", "--train-rows", "3456", "--budget", "1 per week")
RUN = "from vace_ad.cli.main import main; main()"
ANSWER = re.compile(r"(<!-- answer -->\n+```text\n).*?(```\n)", re.S)


def vace(folder: Path, *words: str) -> str:
    """Run the command in a folder; what it printed."""
    answer = subprocess.run(
        [sys.executable, "-c", RUN, *words],
        cwd=folder,
        env={**os.environ, "COLUMNS": "110"},
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout


def write_plant(folder: Path) -> None:
    """The simulated plant of `vace demo`: thirty days, the first twelve without faults."""
    plant = simulate()
    columns = dict(zip(plant.names, plant.values.T, strict=True))
    pl.DataFrame({"time": plant.time, **columns}).write_csv(folder / "plant.csv")


def take_report(report: Path) -> None:
    """The first screen of a report, as a browser shows it."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is not installed: make machine")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
    picture = DOCS / "report.png"
    subprocess.run(
        [chromium, *options, "--window-size=1200,900", "--virtual-time-budget=20000",
         f"--screenshot={picture}", report.as_uri()],
        capture_output=True, check=True,
    )  # fmt: skip


def main() -> None:
    """Write report.png, demo.png and the answer in start/csv.md."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_plant(folder)
        answer = vace(folder, *COMMAND, "--out", "results")
        take_report(folder / "results" / "report.html")
        vace(folder, "demo", "--out", "demo")
        shutil.copy(folder / "demo" / "picture.png", DOCS / "demo.png")
    lines = "\n".join(line.rstrip() for line in answer.splitlines())
    text, count = ANSWER.subn(lambda found: f"{found[1]}{lines}\n{found[2]}", PAGE.read_text())
    if count != 1:
        sys.exit(f"{PAGE} has {count} places for the answer; one is expected")
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
