"""Make the gallery: eight series of different kinds, each fitted, detected in and drawn.

    python docs/scripts/gallery.py              # needs the extra `plot`
    python docs/scripts/gallery.py plant ecg    # only these pictures anew

Real series are read from $VACE_DATA and only their pictures are kept; one that is not there is
left as it is. Writes docs/gallery/NAME.png and NAME.txt, and docs/gallery/index.md from them.
"""

from __future__ import annotations

import argparse
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad import VACE
from vace_ad.demo.plant import simulate
from vace_ad.detection import Detection
from vace_ad.errors import VaceWarning
from vace_ad.frames.segments import run_edges
from vace_ad.frames.table import Table

DOCS = Path(__file__).parents[1]
OUT = DOCS / "gallery"
DATA = Path(os.environ.get("VACE_DATA", DOCS.parents[1] / "shared" / "data"))
MOST_ROWS = 12_000  # of the test part that are looked at
CHANNELS = 3  # curves above the score
INK, RED, GOLD = "#22303c", "#c2410c", "#e8a33d"


@dataclass(frozen=True)
class Piece:
    """One picture: what it is called, where its rows come from, what they are."""

    key: str
    title: str
    pattern: str  # of the file under the data folder; empty for the simulated plant
    about: str  # one sentence


PIECES = (
    Piece("plant", "A pumping station", "",
          "Twelve simulated sensors of a pumping station with a daily period and six faults."),
    Piece("chemical", "A chemical plant", "practice/*_TEP_id_1_*",
          "The Tennessee Eastman simulation, 52 measurements, with a step in the feed's mixture."),
    Piece("servers", "A server", "TSB-AD-M/*_SMD_id_7_*",
          "38 metrics of a machine of a large internet company (SMD), a row every minute."),
    Piece("ecg", "A heart", "TSB-AD-M/*_SVDB_id_1_*",
          "Two leads of an electrocardiogram with abnormal beats (SVDB), 128 rows a second."),
    Piece("water", "Drinking water", "TSB-AD-M/*_GECCO_id_1_*",
          "Nine measurements of drinking water quality (GECCO 2018), a row every minute."),
    Piece("spacecraft", "A spacecraft", "TSB-AD-M/*_SMAP_id_26_*",
          "Telemetry and commands of the satellite SMAP, 25 channels."),
    Piece("flight", "An unmanned aircraft", "practice/*_ALFA_id_1_*",
          "A real flight of a small aircraft (ALFA) whose engine or rudder fails towards the end."),
    Piece("microservices", "Microservices", "practice/*_SockShop_id_2_*",
          "377 metrics of the pods of a web shop under test, with faults injected for minutes."),
)  # fmt: skip


def rows(piece: Piece) -> tuple[Table, NDArray[np.bool_], int] | None:
    """The table, its labels and its training rows; None where the file is not there."""
    if not piece.pattern:
        plant = simulate()
        labels = plant.labels.astype(bool)
        return Table(plant.values, plant.names, plant.time), labels, plant.train_rows
    found = sorted(DATA.glob(piece.pattern))
    if not found:
        return None
    import polars as pl

    train = int(found[0].name.split("_tr_")[1].split("_")[0])
    frame = pl.read_parquet(found[0])[: train + MOST_ROWS]
    values = frame.drop("Label").to_numpy().astype(np.float64)
    return Table(values, tuple(frame.columns[:-1]), None), frame["Label"].to_numpy() == 1, train


def outcome(found: Detection, labels: NDArray[np.bool_]) -> str:
    """What was found, in a sentence."""
    true = run_edges(labels).tolist()
    events = [(event.start, event.end) for event in found.anomalies]

    def meets(one: Any, other: Any) -> bool:
        return bool(one[0] < other[1] and one[1] > other[0])

    hits = sum(any(meets(event, stretch) for event in events) for stretch in true)
    others = sum(not any(meets(event, stretch) for stretch in true) for event in events)
    faults = "the one labelled fault" if len(true) == 1 else f"{len(true)} labelled faults"
    share = "" if len(true) == 1 else f"{hits} of "
    verb = (
        "was not found" if len(true) == 1 and not hits else "were found" if share else "was found"
    )
    elsewhere = {0: "no event lies elsewhere", 1: "one event lies elsewhere"}
    rest = elsewhere.get(others, f"{others} events lie elsewhere")
    covered = found.predictions.mean()  # a fault inside an event that never ends is no feat
    part = f"{covered:.1%}" if covered >= 0.001 else "less than 0.1%" if covered else "none"
    sentence = f"{share}{faults} {verb}, and {rest}; events cover {part} of the rows."
    return sentence[0].upper() + sentence[1:]


def draw(piece: Piece, table: Table, found: Detection, labels: NDArray[np.bool_]) -> None:
    """The most suspected channels above, the evidence below; labels gold, events red."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    total: dict[str, float] = {}
    for event in found.anomalies:
        for name, share in event.shares:
            total[name] = total.get(name, 0.0) + share
    named = sorted(total, key=lambda name: -total[name])[:CHANNELS]
    named += [name for name in table.names if name not in named][: CHANNELS - len(named)]
    figure, axes = plt.subplots(
        len(named) + 1, 1, figsize=(9, 4.2), sharex=True, layout="constrained",
        height_ratios=[1] * len(named) + [1.3],
    )  # fmt: skip
    for axis, name in zip(axes, named, strict=False):
        axis.plot(table.values[:, table.names.index(name)], lw=0.6, color=INK)
        axis.set_ylabel(name if len(name) < 15 else f"{name[:6]}…{name[-6:]}", rotation=0,
                        ha="right", va="center", fontsize=8)  # fmt: skip
        axis.set_yticks([])
    evidence = axes[-1]
    evidence.plot(found.evidence, lw=0.8, color=INK)
    evidence.axhline(1, lw=0.9, ls="--", color=RED)
    evidence.set_ylabel("evidence", rotation=0, ha="right", va="center", fontsize=8)
    evidence.set_xlabel("row after training", fontsize=8)
    evidence.tick_params(labelsize=8)
    for axis in axes:
        axis.margins(x=0)
        for a, b in run_edges(labels).tolist():
            axis.axvspan(a, max(b, a + len(labels) / 500), color=GOLD, alpha=0.35, lw=0)
    for event in found.anomalies:
        width = max(event.end - event.start, len(labels) / 500)
        evidence.axvspan(event.start, event.start + width, color=RED, alpha=0.35, lw=0)
    figure.suptitle(piece.title, x=0.01, ha="left", fontsize=11)
    figure.savefig(OUT / f"{piece.key}.png", dpi=80)
    plt.close(figure)


def make(piece: Piece) -> None:
    """Fit, detect, draw, and keep the sentence of what was found."""
    given = rows(piece)
    if given is None:
        print(f"{piece.key}: {piece.pattern} is not in the data folder; left as it is")
        return
    table, labels, train = given
    time = table.time
    normal = Table(table.values[:train], table.names, None if time is None else time[:train])
    new = Table(table.values[train:], table.names, None if time is None else time[train:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VaceWarning)
        found = VACE(random_state=0).fit(normal).detect(new)
    draw(piece, new, found, labels[train:])
    told = outcome(found, labels[train:])
    (OUT / f"{piece.key}.txt").write_text(told + "\n")
    print(f"{piece.key}: {told}", flush=True)


def page() -> str:
    """The page of all pictures that are there."""
    lines = [
        "# Gallery",
        "Default settings and the default budget, on up to 12,000 rows after training. Each",
        "picture shows the three most suspected channels and the evidence with its limit. Gold",
        "marks labelled faults, red marks events. A fault counts as found if an event overlaps it.",
        "The constants of the detector were chosen on series of some of these families. Made by",
        "`python docs/scripts/gallery.py`; the picture of microservices is still of the alarm",
        "rules of 0.2.0.",
        "",
    ]
    for piece in PIECES:
        if (OUT / f"{piece.key}.txt").exists():
            told = (OUT / f"{piece.key}.txt").read_text().strip()
            lines += [f"## {piece.title}", f"{piece.about} {told}", ""]
            lines += [f"![{piece.title}: channels, evidence and events]({piece.key}.png)", ""]
    return "\n".join(lines)


def main() -> None:
    """Make the pieces that were named, all by default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [piece.key for piece in PIECES]
    parser.add_argument("pieces", nargs="*", metavar="PIECE", help=", ".join(known))
    chosen = parser.parse_args().pieces or known
    if unknown := set(chosen) - set(known):
        parser.error(f"there is no {', '.join(sorted(unknown))}; choose of {', '.join(known)}")
    OUT.mkdir(exist_ok=True)
    for piece in PIECES:
        if piece.key in chosen:
            make(piece)
    (OUT / "index.md").write_text(page())


if __name__ == "__main__":
    main()
