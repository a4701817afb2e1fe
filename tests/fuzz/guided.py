"""`python -m fuzz.guided --minutes 60`: every target, guided by the coverage of the package.

Needs atheris, which has wheels for Linux alone and is therefore no dependency: pip install atheris.
Inputs that reached new code are kept in the folder of `--corpus`, by target; `fuzz.minimise` makes
it small. A finding goes to tests/fuzz/corpus, where `make test` tries it again, once for a place.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["vace_ad"]):
    from fuzz.runner import CORPUS, Found, keep
    from fuzz.target import REFUSED, TAKEN
    from fuzz.targets import NAMES, make
    from fuzz.worker import attempt


def main() -> None:
    parser = argparse.ArgumentParser(prog="fuzz.guided", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--minutes", type=float, default=5.0, help="for all targets together")
    parser.add_argument("--corpus", type=Path, help="folder; a temporary one unless told")
    chosen = parser.parse_args()
    names = chosen.targets or NAMES
    if wrong := sorted(set(names) - set(NAMES)):
        parser.error(f"no target is called {wrong[0]!r}; there are {', '.join(NAMES)}")
    with tempfile.TemporaryDirectory() as folder:
        corpus = (chosen.corpus or Path(folder)).absolute()
        if len(names) == 1:
            guided(names[0], 60 * chosen.minutes, corpus / names[0])
        for name in names:  # libFuzzer ends its process
            told(name, chosen.minutes / len(names), corpus)


def told(name: str, minutes: float, corpus: Path) -> None:
    """A target in a process of its own, in one line; and its findings."""
    command = [sys.executable, "-m", "fuzz.guided", name, "--minutes", f"{minutes}"]
    ended = subprocess.run(
        [*command, "--corpus", str(corpus)], capture_output=True, text=True, errors="replace"
    )
    inputs = re.search(r"number_of_executed_units:\s*(\d+)", ended.stderr)
    kept = sum(1 for _ in (corpus / name).iterdir())
    print(f"{name:14}{int(inputs[1]) if inputs else 0:9,} inputs  {kept:5} kept", flush=True)
    print(ended.stdout, end="", flush=True)
    if ended.returncode:
        print(f"    status {ended.returncode}: {ended.stderr[-2000:]}", flush=True)


def guided(name: str, seconds: float, corpus: Path) -> None:
    """One target; does not return."""
    warnings.simplefilter("ignore")
    corpus.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="vace-fuzz-"))
    with atheris.instrument_imports(include=["vace_ad"]):
        target = make(name)
        seeds = target.seeds()
    for k, data in enumerate(seeds):
        (corpus / f"seed-{k}").write_bytes(data)
    known: set[tuple[str, str]] = set()

    def one(data: bytes) -> None:
        kind, place, words = attempt(target, data, folder)
        if kind not in (TAKEN, REFUSED) and (kind, place) not in known:
            known.add((kind, place))
            kept = keep(Found(name, kind, place, words, data))
            print(f"    {kind} at {place}: {words}\n    kept as {kept}", flush=True)

    def damaged(data: bytes, most: int, seed: int) -> bytes:
        """By the target's own means, which know its form, or by those of libFuzzer."""
        rng = random.Random(seed)
        made = target.damage(data, rng) if rng.random() < 0.5 else atheris.Mutate(data, most)
        return made[:most]

    limits = ["-max_len=60000", "-timeout=120", "-rss_limit_mb=4000", "-print_final_stats=1"]
    limits.append(f"-artifact_prefix={corpus}/")  # what hung or took too much memory
    folders = [str(corpus)] + [str(CORPUS / name)] * (CORPUS / name).is_dir()
    time = f"-max_total_time={round(seconds)}"
    atheris.Setup([sys.argv[0], *folders, time, *limits], one, custom_mutator=damaged)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
