"""`python -m fuzz --minutes 5`: damaged inputs for every target; findings go to the corpus."""

from __future__ import annotations

import argparse
import sys
import time

from fuzz.runner import Found, Round, fuzz, keep
from fuzz.targets import NAMES


def main() -> None:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="for all targets together")
    parser.add_argument("--targets", nargs="*", choices=NAMES, default=list(NAMES), metavar="NAME")
    parser.add_argument("--seed", type=int, help="of the damage; another one each time unless told")
    chosen = parser.parse_args()
    seed = int(time.time()) if chosen.seed is None else chosen.seed
    print(f"random seed {seed}")
    rounds: list[Round] = []
    for name in chosen.targets:
        rounds.append(fuzz(name, seed, 60 * chosen.minutes / len(chosen.targets)))
        print(rounds[-1].words(), flush=True)
        for one in _different(rounds[-1]):
            print(
                f"    {one.kind} at {one.place}: {one.words}\n    kept as {keep(one)}", flush=True
            )
    total = sum(each.taken + each.refused for each in rounds)
    found = sum(len(_different(each)) for each in rounds)
    print(f"{total:,} inputs, {found} findings")
    sys.exit(1 if found else 0)


def _different(one: Round) -> list[Found]:
    return list({(each.kind, each.place): each for each in one.found}.values())


if __name__ == "__main__":
    main()
