"""`python -m fuzz.guided csv --minutes 60`: one target, guided by the coverage of the package.

Needs atheris, which has wheels for Linux alone and is therefore no dependency: pip install atheris.
Inputs that reached new code are kept in the folder of `--corpus`; the first finding ends the run
and goes to tests/fuzz/corpus, where `make test` tries it again.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["vace_ad"]):
    from fuzz.runner import Found, keep
    from fuzz.target import REFUSED, TAKEN
    from fuzz.targets import NAMES, make
    from fuzz.worker import attempt


def main() -> None:
    parser = argparse.ArgumentParser(prog="fuzz.guided", description=__doc__)
    parser.add_argument("target", choices=NAMES)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--corpus", type=Path, help="folder; a temporary one unless told")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = chosen.corpus or folder / "corpus"
        corpus.mkdir(parents=True, exist_ok=True)
        with atheris.instrument_imports(include=["vace_ad"]):
            target = make(chosen.target)
            seeds = target.seeds()
        for k, data in enumerate(seeds):
            (corpus / f"seed-{k}").write_bytes(data)

        def one(data: bytes) -> None:
            kind, place, words = attempt(target, data, folder)
            if kind not in (TAKEN, REFUSED):
                kept = keep(Found(target.name, kind, place, words, data))
                raise AssertionError(f"{kind} at {place}: {words}; kept as {kept}")

        def damaged(data: bytes, most: int, seed: int) -> bytes:
            """By the target's own means, which know its form, or by those of libFuzzer."""
            rng = random.Random(seed)
            made = target.damage(data, rng) if rng.random() < 0.5 else atheris.Mutate(data, most)
            return made[:most]

        limits = ["-max_len=60000", "-timeout=120", "-rss_limit_mb=4000", "-print_final_stats=1"]
        limits.append(f"-artifact_prefix={folder}/")  # slow inputs and the like
        time = f"-max_total_time={round(60 * chosen.minutes)}"
        atheris.Setup([sys.argv[0], str(corpus), time, *limits], one, custom_mutator=damaged)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
