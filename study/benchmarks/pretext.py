"""What the velocity pretext is worth at equal BatchNorm state.

    python study/benchmarks/pretext.py --minutes 60       # goes on where it stopped

For each series and seed an encoder is trained as the released code does, then compared with its
own untrained start: both get BatchNorm statistics calibrated on the same patches with the same
blend α, and the same statistics, scales and composition (shape alone). Five encoders are the five
seeds averaged. VUS-PR, protocol test-only, evaluation series of six families, taken in turn; first
at the default's widths, then at the paper's, which cost seven times as much.
Writes pretext.csv, and pretext-summary.csv with paired-bootstrap intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product, zip_longest
from typing import NamedTuple

import numpy as np
from common import (
    Line,
    by_series,
    difference,
    done_already,
    in_processes,
    options,
    read,
    test_part,
    write,
)
from numpy.typing import NDArray

from vace_ad import VACEConfig
from vace_ad.engine import make_engine
from vace_ad.engine.encoder import Encoder, init_encoder
from vace_ad.engine.patches import PatchSet, embed
from vace_ad.metrics import vus
from vace_ad.signals.baseline_model import Normal
from vace_ad.signals.row_buffer import grid_to_rows
from vace_ad.signals.shape.evidence import Signals, composed
from vace_ad.signals.shape.fit import calibrated, embed_training, learn_statistics
from vace_ad.signals.shape.pretext import train
from vace_ad.signals.shape.stream import Walk
from vace_study.catalog import Entry, find_series

FAMILIES = ("MSL", "SMAP", "SMD", "Genesis", "GECCO", "Daphnet")
WIDTHS = {
    "default": VACEConfig().reproduction.widths,
    "paper": VACEConfig.from_preset("paper").reproduction.widths,
}
BLENDS = (0.6, 0.88, 0.95, 1.0)
VARIANTS = tuple(product((False, True), BLENDS))  # pretext or not, α
SEEDS = 5
AS_RELEASED = {
    "iterations": 20,
    "pretext_offset": 96,
    "missing_neighbour": "zero",
    "last_iteration": "batch_norm",
}


class Case(NamedTuple):
    """One series at one width."""

    entry: Entry
    widths: str

    def __str__(self) -> str:
        return f"{self.entry.name.short}, {self.widths} widths"


def main() -> None:
    chosen = options(__doc__)
    path = chosen.out / "pretext.csv"
    done = done_already(path, "series", "widths")
    found = find_series(chosen.data, "eval", FAMILIES, [chosen.series])
    families = [[entry for entry in found if entry.name.family == name] for name in FAMILIES]
    in_turn = [entry for entry in chain(*zip_longest(*families)) if entry is not None]
    cases = [Case(entry, widths) for widths in WIDTHS for entry in in_turn]
    left = [case for case in cases if (case.entry.name.stem, case.widths) not in done]
    in_processes(study, left, path, chosen.jobs, chosen.minutes)
    write(list(summary(read(path))), chosen.out / "pretext-summary.csv")


def study(case: Case) -> list[Line]:
    """Every variant on one series."""
    paper = test_part(case.entry)
    scale = Normal.units([paper.train]).scale
    patches, test = (
        PatchSet([rows], VACEConfig().length, scale) for rows in (paper.train, paper.scored)
    )
    totals = np.zeros((len(VARIANTS), len(paper.scored)))
    lines: list[Line] = []

    def note(encoders: int, seed: str, scores: NDArray[np.float64]) -> Iterator[Line]:
        name = {"widths": case.widths, "series": case.entry.name.stem}
        family = {"family": case.entry.name.family, "encoders": encoders, "seed": seed}
        for (pretext, blend), rows in zip(VARIANTS, scores, strict=True):
            found = vus(paper.labels, rows, paper.window).vus_pr
            variant = {"pretext": int(pretext), "blend": blend, "vus_pr": f"{found:.6f}"}
            yield {**name, **family, **variant}

    for seed in range(SEEDS):
        start, trained = before_and_after(patches, case.widths, seed)
        encoders = [calibrated(trained if p else start, patches, a) for p, a in VARIANTS]
        scores = shape_scores(encoders, patches, test, case.widths, seed)
        totals += scores
        lines += note(1, str(seed), scores)
    lines += note(SEEDS, f"0-{SEEDS - 1}", totals / SEEDS)
    return lines


def before_and_after(patches: PatchSet, widths: str, seed: int) -> tuple[Encoder, Encoder]:
    """An encoder as it starts, and after the pretext."""
    config = VACEConfig.from_preset(widths=WIDTHS[widths], **AS_RELEASED)
    rng = np.random.default_rng(seed)
    start = init_encoder(config, patches.n_channels, rng)
    return start, train(start, patches, config, rng).encoder


def shape_scores(
    encoders: Sequence[Encoder], patches: PatchSet, test: PatchSet, widths: str, seed: int
) -> NDArray[np.float64]:
    """Row scores (n_encoders, n_rows) of each encoder on its own, embedded in one pass."""
    config = VACEConfig.from_preset(widths=WIDTHS[widths], encoders=len(encoders))
    engine = make_engine(encoders, patches.n_channels, config)
    embedded = embed_training(engine, patches, config)
    learned = learn_statistics(embedded, patches, config, [seed] * len(encoders)).encoders
    walk = Walk(learned, config)
    blocks = embed(engine, test, test.grid(config.grid_stride))
    signals = Signals.joined([*(walk.add(block) for block in blocks), walk.finish()])
    n_rows = len(test) + config.length - 1
    rows = []
    for e, evidence in enumerate(learned):
        own = Signals(*(signal[e : e + 1] for signal in signals))
        total = composed([evidence], own, config).sum(axis=0)
        rows.append(grid_to_rows(total, config.grid_stride, n_rows, config.length))
    return np.stack(rows)


def summary(lines: Sequence[dict[str, str]]) -> Iterator[Line]:
    """Means with and without the pretext, and the gain with its interval."""
    for widths, family, encoders in product(WIDTHS, ("all", *FAMILIES), (1, SEEDS)):
        group = [
            line
            for line in lines
            if line["widths"] == widths
            and family in ("all", line["family"])
            and int(line["encoders"]) == encoders
        ]
        for blend in BLENDS:
            of_blend = [line for line in group if float(line["blend"]) == blend]
            without, with_it = (
                by_series(line for line in of_blend if line["pretext"] == which) for which in "01"
            )
            if not without:
                continue
            yield {
                "widths": widths,
                "family": family,
                "series": len(without),
                "encoders": encoders,
                "blend": blend,
                "without": f"{np.mean(list(without.values())):.4f}",
                "with": f"{np.mean(list(with_it.values())):.4f}",
                **difference(with_it, without),
            }


if __name__ == "__main__":
    main()
