"""The detector: fit on normal operation, then score, embed, save."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.engine import Engine, make_engine
from vace_ad.errors import InputError, NotFittedError, TooShortError, VaceWarning
from vace_ad.frames.gaps import Stretch, stretches
from vace_ad.frames.table import Table, as_table
from vace_ad.method.encoder import Encoder, calibrate, init_encoder
from vace_ad.method.geometry import Geometry
from vace_ad.method.patches import PatchSet, fill_skipped, patch_means_to_points
from vace_ad.method.position import moments
from vace_ad.method.shape import EncoderEvidence, Shape, Signals
from vace_ad.method.trajectory import embed, training_index
from vace_ad.progress import Progress, silent

Scores = NDArray[np.float64]
CALIBRATION_PATCHES = 512  # that BatchNorm is calibrated on


class VACE:
    """Velocity-Aligned Channel Embeddings.

    Every field of :class:`VACEConfig` is a keyword; `preset` is None for the default, "paper"
    for the paper's text, "released" for what its authors' code does.

    >>> import numpy as np
    >>> from vace_ad import VACE
    >>> rng = np.random.default_rng(0)
    >>> normal = np.sin(np.arange(600)[:, None] / [5, 7, 9]) + 0.1 * rng.normal(size=(600, 3))
    >>> VACE(random_state=0).fit(normal[:400]).score(normal[400:]).shape
    (200,)

    Learned by `fit`: `channels_`, `encoders_` (weights), `shape_` (statistics), `geometry_`
    (diagnostics of the embeddings), `facts_` (what happened in the fit).
    """

    def __init__(self, *, preset: str | None = None, **settings: Any) -> None:
        self.config = VACEConfig.from_preset(preset, **settings)

    def __repr__(self) -> str:
        default = VACEConfig().to_dict()
        changed = [f"{k}={v!r}" for k, v in self.config.to_dict().items() if v != default[k]]
        return f"VACE({', '.join(changed)})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every setting by name, as scikit-learn's tools expect."""
        return self.config.to_dict()

    def set_params(self, **settings: Any) -> Self:
        """Change settings; what was learned stays until the next fit."""
        self.config = VACEConfig.from_preset(None, **{**self.config.to_dict(), **settings})
        return self

    # ---------------------------------------------------------------- learning

    def fit(self, data: Any, y: Any = None, *, progress: Progress = silent) -> Self:
        """Learn normal operation from one table or a list of tables.

        Patches never cross the border between two tables, nor a gap longer than `max_gap`.
        `y` is ignored; it is there for scikit-learn's tools.
        """
        config = self.config
        started = time.perf_counter()
        tables = _tables(data)
        self.channels_ = tables[0].names
        values = [table.aligned(self.channels_).values for table in tables]
        parts = _training_parts(values, self.channels_, config)
        self.scale_ = _channel_scale(parts, config)
        patches = PatchSet(parts, config.patch_length, self.scale_)
        self.facts_: dict[str, Any] = {
            "rows": sum(map(len, values)),
            "rows_used": sum(map(len, parts)),
            "patches": len(patches),
            "step_seconds": _step_seconds(tables),
            "seconds": {},
        }
        seeds = np.random.SeedSequence(config.random_state).spawn(config.encoders)
        rngs = [np.random.default_rng(seed) for seed in seeds]
        self.encoders_ = tuple(self._learn_encoder(patches, rng, progress) for rng in rngs)
        self._stamp("encoders", started)

        index, pairs = training_index(
            patches, config.fit_stride, config.offset, config.max_fit_patches
        )
        self._engine = make_engine(self.encoders_, len(self.channels_), config)
        self.facts_["engine"] = self._engine.name
        embeddings = np.concatenate(
            list(embed(self._engine, patches, index, progress, "embedding"))
        )  # (n, n_encoders, d_z)
        self._stamp("embedding", started)
        self.shape_ = Shape(
            tuple(
                EncoderEvidence.fit(embeddings[:, e], pairs, config, int(rng.integers(2**31)))
                for e, rng in enumerate(rngs)
            ),
            config,
        )
        self.geometry_ = Geometry.of(
            [moments(embeddings[:, e])[1] for e in range(config.encoders)], config.active_dimension
        )
        self._stamp("statistics", started)
        return self

    def _learn_encoder(
        self, patches: PatchSet, rng: np.random.Generator, progress: Progress
    ) -> Encoder:
        config = self.config
        encoder = init_encoder(config, len(self.channels_), rng)
        if config.iterations:
            from vace_ad.method.pretext import has_triples, train

            if not has_triples(patches, config):
                warnings.warn(
                    f"no stretch of training rows holds patches {config.training_offset} rows "
                    "before and after another, so nothing is trained but BatchNorm; more rows or "
                    "a smaller patch_length would train the encoder",
                    VaceWarning,
                    stacklevel=3,
                )
            encoder, losses = train(encoder, patches, config, rng, progress)
            self.facts_.setdefault("losses", []).append(losses)
        if config.batch_norm and config.batch_norm_statistics == "calibrated":
            chosen = np.linspace(0, len(patches) - 1, min(CALIBRATION_PATCHES, len(patches)))
            sample = patches.gather(chosen.astype(np.intp))
            encoder = calibrate(encoder, sample, config.batch_norm_blend)
        return encoder

    def _stamp(self, stage: str, started: float) -> None:
        seconds = self.facts_["seconds"]
        seconds[stage] = time.perf_counter() - started - sum(seconds.values())

    # ----------------------------------------------------------------- scoring

    def score(self, data: Any, *, progress: Progress = silent) -> Scores:
        """How anomalous each row is, float64 (n_rows,); NaN where no patch covers a row."""
        table = self._table(data)
        pieces = self._pieces(table)
        signals = [self.shape_.signals(self.engine, patches, progress) for _, patches in pieces]
        composed = self.shape_.composed(_joined(signals))
        scores = np.full(len(table), np.nan)
        borders = np.cumsum([0] + [s.position.shape[1] for s in signals])
        for (stretch, patches), a, b in zip(pieces, borders, borders[1:], strict=False):
            every = fill_skipped(composed[a:b], self.config.stride, len(patches))
            rows = patch_means_to_points(every, self.config.patch_length)
            scores[stretch.start : stretch.start + len(rows)] = rows
        missing = int(np.isnan(scores).sum())
        if missing:
            warnings.warn(
                f"{missing} of {len(scores)} rows have no score (NaN): no complete patch of "
                f"{self.config.patch_length} rows covers them",
                VaceWarning,
                stacklevel=2,
            )
        return scores

    def position_scores(self, data: Any) -> Scores:
        """The position signal of each patch, (n_patches,), mean over encoders."""
        return self._patch_scores(data, "position")

    def direction_scores(self, data: Any) -> Scores:
        """The direction signal of each patch, (n_patches,), mean over encoders."""
        if not self.config.direction:
            raise InputError("this detector was fitted with direction=False")
        return self._patch_scores(data, "direction")

    def embed(self, data: Any, *, progress: Progress = silent) -> NDArray[np.float32]:
        """The trajectory Z: the embedding of every patch, (n_patches, n_encoders · d_z).

        Patches that touch a gap are NaN.
        """
        table = self._table(data)
        width = len(self.encoders_) * self.config.embedding_size
        out = np.full((len(table) - self.config.patch_length + 1, width), np.nan, np.float32)
        for stretch, patches in self._pieces(table):
            row = stretch.start
            for block in embed(self.engine, patches, patches.grid(1), progress):
                out[row : row + len(block)] = block.reshape(len(block), width)
                row += len(block)
        return out

    def _patch_scores(self, data: Any, which: str) -> Scores:
        table = self._table(data)
        out = np.full(len(table) - self.config.patch_length + 1, np.nan)
        for stretch, patches in self._pieces(table):
            signals = self.shape_.signals(self.engine, patches)
            raw = self.shape_.complete(signals) if which == "direction" else signals.position
            every = fill_skipped(raw.mean(axis=0), self.config.stride, len(patches))
            out[stretch.start : stretch.start + len(every)] = every
        return out

    def _table(self, data: Any) -> Table:
        """A table with the channels of the fit, long enough for one patch."""
        if not hasattr(self, "shape_"):
            raise NotFittedError("this detector has learned nothing yet: call fit first")
        table = as_table(data).aligned(self.channels_)
        if len(table) < self.config.patch_length:
            raise TooShortError(
                f"{len(table)} rows came; a patch has {self.config.patch_length}, so at least "
                "that many are needed"
            )
        return table

    def _pieces(self, table: Table) -> list[tuple[Stretch, PatchSet]]:
        length = self.config.patch_length
        found = stretches(table.values, self.config.max_gap, length)
        return [(piece, PatchSet([piece.values], length, self.scale_)) for piece in found]

    @property
    def engine(self) -> Engine:
        """Who computes the embeddings; made on first use after loading."""
        if getattr(self, "_engine", None) is None:
            self._engine = make_engine(self.encoders_, len(self.channels_), self.config)
        return self._engine

    # ------------------------------------------------------------------- files

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted detector to one file."""
        from vace_ad.files import save

        save(self, path)


def load(path: str | PathLike[str], **computing: Any) -> VACE:
    """Read a detector from its file; `engine`, `precision` and `device` may be chosen anew."""
    from vace_ad.files import read

    return read(path, **computing)


def _tables(data: Any) -> list[Table]:
    """One table, or a list of tables."""
    many = isinstance(data, list | tuple) and len(data) > 0 and not np.isscalar(data[0])
    is_rows = many and all(isinstance(row, list | tuple) for row in data)
    return [as_table(part) for part in data] if many and not is_rows else [as_table(data)]


def _training_parts(
    values: Sequence[NDArray[np.float64]], names: Sequence[str], config: VACEConfig
) -> list[NDArray[np.float64]]:
    """The complete stretches of all training tables that hold a patch and its neighbour."""
    dead = np.all([~np.isfinite(v).any(axis=0) for v in values], axis=0)
    if dead.any() and sum(map(len, values)):
        listing = ", ".join(
            repr(name) for name, is_dead in zip(names, dead, strict=True) if is_dead
        )
        raise InputError(f"channels without one finite value: {listing}; drop them")
    needed = config.patch_length + config.offset + 1
    parts = [piece.values for v in values for piece in stretches(v, config.max_gap, needed)]
    if not parts:
        longest = max(map(len, values))
        gaps = " without a gap" if longest >= needed else ""
        raise TooShortError(
            f"{longest} training rows came; {needed} in a row{gaps} are needed (patch_length "
            f"{config.patch_length} + velocity offset {config.offset} + 1); give more rows or a "
            "smaller patch_length"
        )
    if all((part == part[0]).all() for part in parts):
        warnings.warn(
            "every channel is constant in training: there is nothing to learn",
            VaceWarning,
            stacklevel=3,
        )
    return parts


def _channel_scale(parts: Sequence[NDArray[np.float64]], config: VACEConfig) -> NDArray[np.float64]:
    """The unit of the variance floor in each channel, (n_channels,)."""
    n_channels = parts[0].shape[1]
    if config.variance_floor == "absolute":
        return np.ones(n_channels)
    n = sum(map(len, parts))
    centre = parts[0][0]  # any row: keeps a huge offset from eating the variance
    mean = sum((part - centre).sum(axis=0) for part in parts) / n + centre
    spread = np.sqrt(sum(((part - mean) ** 2).sum(axis=0) for part in parts) / n)
    rounding = 1e-14 * np.abs(mean)
    return np.where(spread > rounding, spread, 1.0)


def _joined(signals: Sequence[Signals]) -> Signals:
    """The signals of several stretches, end to end."""
    if not signals:
        return Signals(np.empty((1, 0)), np.empty((1, 0)))
    return Signals(*(np.concatenate(part, axis=1) for part in zip(*signals, strict=True)))


def _step_seconds(tables: Sequence[Table]) -> float | None:
    """The usual time between two rows, if the tables carry time."""
    steps = [np.diff(table.time) for table in tables if table.time is not None and len(table) > 1]
    if not steps:
        return None
    return float(np.median(np.concatenate(steps)) / np.timedelta64(1, "s"))
