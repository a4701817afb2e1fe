"""What a first install costs: megabytes by package, seconds to import, and what each engine saves.

    python benchmarks/weight.py               # builds the wheel, makes a fresh environment
    python benchmarks/weight.py --engines     # also scores 130,000 × 25 rows by every engine

Writes weight.csv, and weight-engines.csv, to benchmarks/results. A target that is missed is an
error.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import numpy as np
from record import RESULTS, ROOT, Line, write

MOST_MB, MOST_SECONDS = 300, 0.5  # of the base install, and of processor time to import
RUNS = 7  # imports, of which the median counts
ROUNDS = 2  # scores by each engine in turn, of which the quicker counts: other work only adds
SEED, ROWS, CHANNELS, PERIOD, TRAIN = 0, 130_000, 25, 96, 20_000
TOLERANCE = 1e-5  # by which scores of two engines may differ, relative to the score
IMPORT = "import time; from vace_ad import VACE; print(time.process_time())"
# Sizes by distribution, of the files that its record lists.
LISTING = """
from importlib.metadata import distributions
for found in distributions():
    paths = [found.locate_file(file) for file in found.files or ()]
    # Blocks on the disk, as du counts them; the compiled files that pip writes are listed too.
    blocks = sum(path.stat().st_blocks for path in paths if path.is_file())
    print(found.metadata["Name"], blocks * 512)
"""
TOOLS = {"pip", "setuptools", "wheel"}  # what every environment has


def fresh_environment(folder: Path) -> tuple[Path, float]:
    """The Python of an environment with the base install of a wheel built here, and its seconds."""
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    wheel = next(folder.glob("vace_ad-*.whl"))
    started = time.perf_counter()
    run(sys.executable, "-m", "venv", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    constraints = ROOT / "constraints.txt"
    run(python, "-m", "pip", "install", "--quiet", "--constraint", constraints, wheel)
    return python, time.perf_counter() - started


def run(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def packages(python: Path) -> dict[str, float]:
    """Megabytes (of 2²⁰ bytes) of each package, largest first."""
    lines = (line.rsplit(maxsplit=1) for line in run(python, "-I", "-c", LISTING).splitlines())
    sizes = {name: int(size) / 2**20 for name, size in lines if name not in TOOLS}
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def weigh() -> list[Line]:
    # -I: the wheel's code, whatever PYTHONPATH says.
    with tempfile.TemporaryDirectory() as name:
        python, seconds = fresh_environment(Path(name))
        sizes = packages(python)
        run(python, "-I", "-c", IMPORT)  # the first one compiles
        taken = median(float(run(python, "-I", "-c", IMPORT)) for _ in range(RUNS))
    lines: list[Line] = [
        {"what": "base install", "value": round(sum(sizes.values())), "unit": "MB",
         "target": MOST_MB},
        {"what": "from vace_ad import VACE", "value": round(taken, 3), "unit": "CPU seconds",
         "target": MOST_SECONDS},
        {"what": "environment and install", "value": round(seconds, 1), "unit": "seconds"},
    ]  # fmt: skip
    for package, size in sizes.items():
        lines.append({"what": package, "value": round(size, 1), "unit": "MB"})
    return lines


def rhythm() -> np.ndarray:
    """Channels of one period with noise, (ROWS, CHANNELS): encoders run on all of it."""
    noise = 0.1 * np.random.default_rng(SEED).standard_normal((ROWS, CHANNELS))
    phase = 2 * np.pi * np.arange(ROWS)[:, None] / PERIOD + np.arange(CHANNELS)
    return np.sin(phase) + noise


def engines() -> Iterator[Line]:
    """Seconds of one fitted detector's score by each engine, and how far the scores differ."""
    from vace_ad import VACE, load

    rows = rhythm()
    names = [name for name in ("numpy", "openvino", "torch") if find_spec(name) is not None]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weight.vace"
        VACE(random_state=SEED).fit(rows[:TRAIN]).save(path)
        detectors = {name: load(path, engine=name) for name in names}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    scores = {}
    for detector in detectors.values():
        detector.score(rows[:1000])  # compiles
    for name in names * ROUNDS:
        wall, cpu = time.perf_counter(), time.process_time()
        scores[name] = detectors[name].score(rows)
        taken[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    plain = scores["numpy"]
    for engine in names:
        (wall, cpu), found = map(min, zip(*taken[engine], strict=True)), scores[engine]
        gap = float(np.nanmax(np.abs(found - plain) / np.maximum(1, np.abs(plain))))
        yield {"engine": engine, "rows": ROWS, "channels": CHANNELS, "seconds": round(wall, 2),
                   "cpu_seconds": round(cpu, 2), "difference": f"{gap:.1e}"}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engines", action="store_true", help="also time every engine")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    lines = weigh()
    for line in lines:
        print(line, flush=True)
    write(lines, options.out / "weight.csv")
    missed = [line["what"] for line in lines if line.get("target", np.inf) < line["value"]]
    if options.engines:
        timed = list(engines())
        for line in timed:
            print(line, flush=True)
        write(timed, options.out / "weight-engines.csv", seed=SEED)
        missed += [e["engine"] for e in timed if float(e["difference"]) > TOLERANCE]
    if missed:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
