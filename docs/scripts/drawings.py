"""Draw how the method works, each line computed by the method itself from a real series.

    python docs/scripts/drawings.py

The series is two leads of an electrocardiogram (SVDB id_9 of TSB-AD-M), read from $VACE_DATA.
Writes trajectory, pipeline and encoder as PNG and SVG into docs/figures. Needs the extra `plot`.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.engine.encoder import calibrate, encode, init_encoder, stage_shapes
from vace_ad.engine.patches import PatchSet
from vace_ad.signals.row_buffer import patch_means_to_points
from vace_ad.signals.shape.embeddings import Direction, Gaussian
from vace_study.catalog import find_series
from vace_study.figures.style import ANOMALY, COLOURS, GRID, TRAINING, canvas, save
from vace_study.series import load

DOCS = Path(__file__).parents[1]
OUT = DOCS / "figures"
DATA = Path(os.environ.get("VACE_DATA", DOCS.parents[1] / "shared" / "data"))
SERIES = "092_SVDB_id_9_*"
ROWS, TRAIN, FAULT = 3400, 2674, (2774, 2939)  # of the series; those labelled anomalous
FIRST = 2300  # row from which the pictures show the series
P, OFFSET = 96, 48  # rows of a patch, and between the patches of a velocity
SHOWN = (2752, 2800, 2848)  # patches z_{t−δ}, z_t, z_{t+δ} around the fault's begin
TAUGHT = (300, 348, 396)  # the same in training, where the loss is
INK = "#444444"


class Computed(NamedTuple):
    """A series and all that the method makes of it on the way to its score."""

    names: tuple[str, ...]  # of the channels
    values: NDArray[np.float64]  # (ROWS, n_channels), in training deviations
    patches: NDArray[np.float32]  # (n_patches, n_channels, P), normalised
    z: NDArray[np.float64]  # (n_patches, d_z)
    plane: NDArray[np.float64]  # (n_patches, 2), first two principal components
    position: NDArray[np.float64]  # (n_patches,)
    direction: NDArray[np.float64]  # (n_patches,)
    score: NDArray[np.float64]  # (ROWS,)


def compute(seed: int = 0) -> Computed:
    """Patches, embeddings, both scores and their composition; scales from training."""
    (entry,) = find_series(DATA, globs=[SERIES])
    series = load(entry.path)
    values = series.values[:ROWS]
    values = (values - values[:TRAIN].mean(axis=0)) / values[:TRAIN].std(axis=0)
    config = VACEConfig.from_preset(None, patch_length=P)
    patch_set = PatchSet([values], P, values[:TRAIN].std(axis=0))
    patches = patch_set.gather(np.arange(len(patch_set)))
    learned = TRAIN - P + 1  # patches that lie within training
    encoder = init_encoder(config, values.shape[1], np.random.default_rng(seed))
    encoder = calibrate(encoder, patches[:learned:3], 0.95)
    z = encode(encoder, patches).astype(np.float64)
    centre = z[:learned].mean(axis=0)
    plane = (z - centre) @ np.linalg.svd(z - centre, full_matrices=False)[2][:2].T
    position = Gaussian.fit(z[:learned], 1e-6, root=False).score(z)
    moves = z[OFFSET:] - z[:-OFFSET]  # up to patch t
    taught = Direction.fit(moves[: learned - OFFSET], 50, 3, seed, "spherical")
    direction = np.pad(taught.score(moves), (OFFSET, 0), mode="edge")
    units = [np.quantile(each[:learned], 0.99) for each in (position, direction)]
    composed = np.log1p(position / units[0] * (1 + direction / units[1]))
    score = patch_means_to_points(composed, P)
    return Computed(series.channels, values, patches, z, plane, position, direction, score)


# -------------------------------------------------------------------------- patches to trajectory


def draw_trajectory(found: Computed) -> Any:
    """The series with three patches, the patches normalised, and their places on the path."""
    with canvas(1, 3, (11.0, 3.5), width_ratios=[1.5, 1, 1.3]) as (figure, axes):
        rows, patches, path = axes[0]
        _draw_series(rows, found, slice(2500, 3100))
        for k, start in enumerate(SHOWN):
            rows.axvspan(start, start + P, ymin=0.02 + 0.03 * k, ymax=0.05 + 0.03 * k,
                         color=COLOURS[k], linewidth=0)  # fmt: skip
            for channel in range(len(found.names)):
                line = found.patches[start, channel] / 9 + (2 - k)
                patches.plot(np.arange(P) + channel * (P + 14), line, color=COLOURS[k], linewidth=1)
        rows.set_title("rows, and three patches of 96 rows")
        patches.set_title("the patches, normalised")
        middles = [P / 2 + c * (P + 14) for c in range(len(found.names))]
        patches.set_xticks(middles, found.names)
        patches.set_yticks([2, 1, 0], ["t − δ", "t", "t + δ"])
        patches.tick_params(length=0)
        _draw_path(path, found)
        _draw_velocities(path, found.plane[list(SHOWN)])
        path.set_title("their embeddings on the trajectory")
        return figure


def _draw_series(ax: Any, found: Computed, part: slice) -> None:
    rows = np.arange(ROWS)[part]
    for k, name in enumerate(found.names):
        ax.plot(rows, found.values[part, k] / 10 - k, color=INK, linewidth=0.8)
        ax.text(rows[0], 0.62 - k, f" {name}", fontsize=7, color="#777777")
    ax.axvspan(*FAULT, color=ANOMALY, alpha=0.15, linewidth=0)
    if rows[0] < TRAIN:
        ax.axvspan(rows[0], TRAIN, color=TRAINING, linewidth=0, zorder=0)
    ax.set(xlim=(rows[0], rows[-1]), ylim=(-len(found.names) - 0.75, 0.85), yticks=[], xlabel="row")


def _draw_path(ax: Any, found: Computed) -> None:
    learned = TRAIN - P + 1
    x, y = found.plane.T
    inside = slice(FAULT[0] - P + 1, FAULT[1])
    ax.plot(x[:learned], y[:learned], color="#B9C4D0", linewidth=0.8, label="training")
    ax.plot(x[learned:], y[learned:], color="#8A8A8A", linewidth=0.8, label="scored")
    ax.plot(x[inside], y[inside], color=ANOMALY, linewidth=1.2, label="patches with the fault")
    ax.set(xlabel="first principal component", ylabel="second", xticks=[], yticks=[])
    ax.set_ylim(top=y.max() + 0.32 * np.ptp(y))  # room for the legend
    ax.legend(loc="upper right", fontsize=6.5)


def _draw_velocities(ax: Any, places: NDArray[np.float64]) -> None:
    """Three points (3, 2), and arrows from each to the next."""
    for k, place in enumerate(places):
        ax.scatter(*place, s=46, color=COLOURS[k], zorder=5, edgecolor="white")
    for a, b in pairwise(places):
        ax.annotate(
            "", b, a, zorder=4,
            arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1.3},
        )  # fmt: skip


# --------------------------------------------------------------------------------------- pipeline


def draw_pipeline(found: Computed) -> Any:
    """From rows to the score of each row, every panel computed from the one before."""
    titles = {
        "rows": "1  series", "patches": "2  patches", "path": "3  trajectory",
        "position": "4a  position", "direction": "4b  direction", "score": "5  score of each row",
    }  # fmt: skip
    with canvas(1, 1, (11.0, 4.4)) as (figure, axes):
        axes[0, 0].remove()
        ax = figure.subplot_mosaic(
            [["rows", "patches", "path", "position", "score"],
             ["rows", "patches", "path", "direction", "score"]],
            width_ratios=[1.25, 0.8, 1.1, 1.1, 1.25],
        )  # fmt: skip
        for name, title in titles.items():
            ax[name].set_title(title)
        _draw_series(ax["rows"], found, slice(FIRST, ROWS))
        for k, start in enumerate(range(2696, 2912, 24)):
            ax["patches"].plot(found.patches[start, 0] / 8 - k, color=INK, linewidth=0.8)
        ax["patches"].set(yticks=[], xlabel="row of the patch", xticks=[0, P])
        _draw_path(ax["path"], found)
        starts = np.arange(FIRST, len(found.z))
        for name, values in (("position", found.position), ("direction", found.direction)):
            ax[name].plot(starts, values[starts], color=COLOURS[name == "direction"], linewidth=0.9)
            ax[name].axvspan(FAULT[0] - P + 1, FAULT[1], color=ANOMALY, alpha=0.15, linewidth=0)
            ax[name].set(yticks=[], xlim=(FIRST, ROWS))
        ax["position"].set(yscale="log", xticks=[])
        ax["position"].set_yticks([])
        ax["position"].minorticks_off()
        ax["direction"].set(xlabel="first row of the patch")
        rows = np.arange(FIRST, ROWS)
        ax["score"].plot(rows, found.score[rows], color=COLOURS[2], linewidth=1)
        ax["score"].axvspan(*FAULT, color=ANOMALY, alpha=0.15, linewidth=0)
        ax["score"].set(yticks=[], xlabel="row", xlim=(FIRST, ROWS))
        figure.suptitle(
            "red: the fault; normalise and slide → encode → position and direction → combine and "
            "average over patches",
            fontsize=9, x=0.01, ha="left",
        )  # fmt: skip
        return figure


# --------------------------------------------------------------------------------- encoder and loss


def draw_encoder(found: Computed) -> Any:
    """The stages of the paper's encoder with their shapes, and the angle that its loss is about."""
    config = VACEConfig.from_preset("paper")
    with canvas(1, 2, (11.0, 3.9), width_ratios=[1.9, 1]) as (figure, axes):
        _draw_stages(axes[0, 0], config, found.values.shape[1])
        ax = axes[0, 1]
        way = found.z[TAUGHT[0] : TAUGHT[2] + 1]  # (2δ + 1, d_z), seen along its own directions
        plane = (way - way.mean(axis=0)) @ np.linalg.svd(way - way.mean(axis=0))[2][:2].T
        ax.plot(*plane.T, color="#8A8A8A", linewidth=0.9)
        places = plane[[0, OFFSET, 2 * OFFSET]]
        _draw_velocities(ax, places)
        labels = (("$z_{t-δ}$", (8, -14)), ("$z_t$", (-16, 8)), ("$z_{t+δ}$", (8, -14)))
        for place, (text, shift) in zip(places, labels, strict=True):
            ax.annotate(text, place, xytext=shift, textcoords="offset points", fontsize=11)
        ax.margins(0.18)
        ax.set(xticks=[], yticks=[])
        back, forth = way[OFFSET] - way[0], way[-1] - way[OFFSET]
        cosine = back @ forth / np.linalg.norm(back) / np.linalg.norm(forth)
        ax.set_title("the loss: velocities before and after should align")
        ax.set_xlabel(
            f"$1 - \\langle v^b_t, v^f_t \\rangle$ = {1 - cosine:.2f} here; its mean, times "
            "$λ_t$, is trained"
        )
        return figure


def _draw_stages(ax: Any, config: VACEConfig, n_channels: int) -> None:
    """Boxes as high as the logarithm of their channels, left to right."""
    ax.axis("off")
    shapes = stage_shapes(config, n_channels)
    kinds = ["depthwise", "pointwise", "", "", ""]
    boxes = [("patch", n_channels, f"{n_channels} × {P}")]
    boxes += [
        (f"{kind}\nconvolution" if kind else "convolution", s.n_out, f"k {s.taps}\n{s.n_out} × {P}")
        for kind, s in zip(kinds, shapes, strict=True)
    ]
    boxes.append(("mean over\ntime", shapes[-1].n_out, f"z: {shapes[-1].n_out}"))
    for k, (name, width, size) in enumerate(boxes):
        height = 0.35 + 0.28 * np.log2(width)
        last = k == len(boxes) - 1
        colour = COLOURS[2] if last else COLOURS[0] if k else "#999999"
        breadth = 0.22 if last else 0.62
        ax.bar(1.35 * k, height, breadth, bottom=-height / 2, color=colour, alpha=0.55)
        ax.text(1.35 * k, height / 2 + 0.1, name, ha="center", va="bottom", fontsize=8)
        ax.text(1.35 * k, -height / 2 - 0.1, size, ha="center", va="top", fontsize=8, color=INK)
        if k:
            ends = (1.35 * k - 0.34, 0), (1.35 * (k - 1) + 0.34, 0)
            ax.annotate("", *ends, arrowprops={"arrowstyle": "-|>", "color": INK})
    ax.plot([0.9, 1.35 * 5 + 0.45], [-2.35, -2.35], color=GRID, linewidth=1)
    ax.text(3.9, -2.42, "each with BatchNorm and ReLU", ha="center", va="top", fontsize=8)
    ax.set(xlim=(-0.7, 8.8), ylim=(-2.9, 2.2))
    ax.set_title("the encoder at the paper's sizes; heights: channels, log scale")


def main() -> None:
    """Write all three."""
    found = compute()
    drawings = {
        "trajectory": draw_trajectory, "pipeline": draw_pipeline, "encoder": draw_encoder
    }  # fmt: skip
    for name, draw in drawings.items():
        save(draw(found), OUT, name)


if __name__ == "__main__":
    main()
