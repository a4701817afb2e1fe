"""The detector: fit on normal operation, then score, embed, save."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.budget import Budget
from vace_ad.alarms.calibration import Calibration
from vace_ad.alarms.explain import Blame
from vace_ad.alarms.reference import reference_rows
from vace_ad.config import VACEConfig
from vace_ad.engine import Engine, make_engine
from vace_ad.errors import InputError, NotFittedError, TooShortError, VaceWarning
from vace_ad.frames.chunks import as_chunks
from vace_ad.frames.gaps import Stretch, stretches
from vace_ad.frames.table import Table, as_table
from vace_ad.frames.training import step_seconds, training_parts, training_tables
from vace_ad.method.amplitude import SIGNALS, Amplitude, Channels, Used
from vace_ad.method.chunks import ChunkSignals
from vace_ad.method.learn import embed_training, encoder_rngs, learn_encoder, learn_statistics
from vace_ad.method.patches import PatchSet, fill_skipped, grid_to_rows
from vace_ad.method.shape import Parts, Signals
from vace_ad.method.trajectory import embed
from vace_ad.progress import Progress, silent

Scores = NDArray[np.float64]
REFERENCES = 4  # normal stretches kept to explain events by


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

    Learned by `fit`: `channels_`, `encoders_` (weights), `shape_` and `amplitude_` (statistics),
    `geometry_` (diagnostics of the embeddings), `calibration_scores_` (of training rows, each
    scored by statistics that did not see it), `facts_` (what happened in the fit).
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
        """Learn normal operation from one table or the path of a Parquet file, or a list of them.

        Patches never cross the border between two tables, nor a gap longer than `max_gap`. Of a
        file with more than `max_fit_rows` rows, only evenly spaced pieces are read.
        `y` is ignored; it is there for scikit-learn's tools.
        """
        started = time.perf_counter()
        tables, n_rows = training_tables(data, self.config)
        self.channels_ = tables[0].names
        values = [table.aligned(self.channels_).values for table in tables]
        parts = training_parts(values, self.channels_, self.config)
        self.facts_: dict[str, Any] = {
            "rows": n_rows,
            "rows_used": sum(map(len, parts)),
            "step_seconds": step_seconds(tables),
            "seconds": {},
        }
        held = self._fit_shape(parts, progress, started)
        self.amplitude_ = None
        if self.config.amplitude:
            self.amplitude_, evidence = Amplitude.fit(
                parts, self.config.windows, self.config.drift_half_life
            )
            held = [rows + more.sum(axis=0) for rows, more in zip(held, evidence, strict=True)]
            self._stamp("amplitude", started)
        self.calibration_scores_ = np.concatenate(held)
        self.reference_ = reference_rows(
            parts, 2 * (self.config.patch_length + self.config.offset), stretches=REFERENCES
        )
        self.__dict__.pop("calibration_", None)
        return self

    def _fit_shape(
        self, parts: Sequence[NDArray[np.float64]], progress: Progress, started: float
    ) -> list[Scores]:
        """Learn the encoders and their statistics; returns held-out row scores of each part."""
        config = self.config
        self.scale_ = (
            Channels.of(parts).scale
            if config.variance_floor == "relative"
            else np.ones(len(self.channels_))
        )
        patches = PatchSet(parts, config.patch_length, self.scale_)
        self.facts_["patches"] = len(patches)
        rngs = encoder_rngs(config)
        learned = [learn_encoder(patches, config, rng, progress) for rng in rngs]
        self.encoders_ = tuple(encoder for encoder, _ in learned)
        if config.iterations:
            self.facts_["losses"] = [losses for _, losses in learned]
        self._stamp("encoders", started)

        self._engine = make_engine(self.encoders_, len(self.channels_), config)
        self.facts_["engine"] = self._engine.name
        embedded = embed_training(self._engine, patches, config, progress)
        self._stamp("embedding", started)
        seeds = [int(rng.integers(2**31)) for rng in rngs]
        self.shape_, self.geometry_, held_out = learn_statistics(embedded, patches, config, seeds)
        self._stamp("statistics", started)
        edges = np.searchsorted(embedded.numbers, patches.borders)
        return [
            grid_to_rows(held_out[a:b], embedded.stride, len(part), config.patch_length)
            for part, a, b in zip(parts, edges, edges[1:], strict=False)
        ]

    def _stamp(self, stage: str, started: float) -> None:
        seconds = self.facts_["seconds"]
        seconds[stage] = time.perf_counter() - started - sum(seconds.values())

    # ----------------------------------------------------------------- scoring

    def score(self, data: Any, *, progress: Progress = silent) -> Scores:
        """How anomalous each row is, float64 (n_rows,); NaN where no patch covers a row.

        `data` is a table, an iterator of tables that follow each other, or the path of a Parquet
        file; the last two are worked off piece by piece and give the same scores.
        """
        chunks = as_chunks(data)
        if chunks is not None:
            return np.concatenate([np.empty(0), *self.score_chunks(chunks)])
        return sum(self.signals(data, progress=progress).values(), np.zeros(1))

    def score_chunks(self, chunks: Iterable[Any]) -> Iterator[Scores]:
        """The scores of a series that comes in tables of any size, as rows become complete.

        What is kept in memory does not grow with the series.
        """
        self._check_fitted()
        stream = ChunkSignals(self.shape_, self.amplitude_, self.engine, self.scale_)
        n_rows = 0
        for chunk in chunks:
            table = as_table(chunk).aligned(self.channels_)
            n_rows += len(table)
            yield stream.add(table.values).sum(axis=0)
        self._check_length(n_rows)
        yield stream.finish().sum(axis=0)

    def signals(
        self, data: Any, *, used: Used | None = None, progress: Progress = silent
    ) -> dict[str, Scores]:
        """The evidence that adds up to the score, row by row, (n_rows,) each.

        "position" and "direction" speak of shape; "level", "scale", "spike" and "relation" of
        what patch normalisation removes or hides. `used` is what `used_to` gave for the rows
        before these; without it, training is what came before.
        """
        table = self._table(data)
        pieces = self._pieces(table)
        names = (*Parts._fields, *SIGNALS)
        signals = {name: np.full(len(table), np.nan) for name in names}
        if pieces:
            self._fill_shape(signals, pieces, progress)
            self._fill_amplitude(signals, pieces, used)
        missing = int(np.isnan(signals["position"]).sum())
        if missing:
            warnings.warn(
                f"{missing} of {len(table)} rows have no score (NaN): no complete patch of "
                f"{self.config.patch_length} rows covers them",
                VaceWarning,
                stacklevel=3,
            )
        return signals

    def _fill_shape(
        self,
        signals: dict[str, Scores],
        pieces: Sequence[tuple[Stretch, PatchSet]],
        progress: Progress,
    ) -> None:
        found = [self.shape_.signals(self.engine, patches, progress) for _, patches in pieces]
        composed = self.shape_.composed(Signals.joined(found))
        edges = np.cumsum([0] + [part.position.shape[1] for part in found])
        for (stretch, _), a, b in zip(pieces, edges, edges[1:], strict=False):
            for name, values in composed._asdict().items():
                signals[name][stretch.rows] = grid_to_rows(
                    values[a:b],
                    self.config.grid_stride,
                    len(stretch.values),
                    self.config.patch_length,
                )

    def used_to(self, data: Any) -> Used | None:
        """What amplitude is used to after these rows, for `signals` of rows that follow."""
        table = self._table(data, least=0)
        if self.amplitude_ is None:
            return None
        used = self.amplitude_.start()
        for stretch, _ in self._pieces(table):
            used = self.amplitude_.evidence(stretch.values, used)[1]
        return used

    def _fill_amplitude(
        self,
        signals: dict[str, Scores],
        pieces: Sequence[tuple[Stretch, PatchSet]],
        used: Used | None,
    ) -> None:
        for stretch, _ in pieces:
            evidence = np.zeros((len(SIGNALS), len(stretch.values)))
            if self.amplitude_:
                evidence, used = self.amplitude_.evidence(
                    stretch.values, used or self.amplitude_.start()
                )
            for name, rows in zip(SIGNALS, evidence, strict=True):
                signals[name][stretch.rows] = rows

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
            every = fill_skipped(raw.mean(axis=0), self.config.grid_stride, len(patches))
            out[stretch.start : stretch.start + len(every)] = every
        return out

    def _table(self, data: Any, least: int | None = None) -> Table:
        """A table with the channels of the fit, long enough for one patch, or `least` rows."""
        self._check_fitted()
        table = as_table(data).aligned(self.channels_)
        self._check_length(len(table), least)
        return table

    def _check_fitted(self) -> None:
        if not hasattr(self, "shape_"):
            raise NotFittedError("this detector has learned nothing yet: call fit first")

    def _check_length(self, n_rows: int, least: int | None = None) -> None:
        if n_rows < (self.config.patch_length if least is None else least):
            raise TooShortError(
                f"{n_rows} rows came; a patch has {self.config.patch_length}, so at least that "
                "many are needed"
            )

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

    # ------------------------------------------------------------------ alarms

    @cached_property
    def calibration_(self) -> Calibration:
        """How scores are distributed in normal operation, from `calibration_scores_`."""
        return Calibration.from_scores(self.calibration_scores_, self.config.patch_length)

    def detect(self, data: Any, *, budget: Budget | None = None, **options: Any) -> Any:
        """The events of a table, as a table of the caller's kind.

        `budget` says how many alarms a person will bear on normal data, by default one in 10,000
        rows: ``Budget(1, "week")``. Other options are those of `vace_ad.alarms.detection.detect`.
        """
        from vace_ad.alarms.detection import detect
        from vace_ad.alarms.events import event_columns
        from vace_ad.frames.write import frame_like

        found = detect(self, as_table(data), budget=budget, **options)
        for note in found.notes:
            if note != found.threshold.note:  # which says how far the budget is extrapolated
                warnings.warn(note, VaceWarning, stacklevel=2)
        return frame_like(data, event_columns(found.events))

    def predict(self, data: Any, *, budget: Budget | None = None) -> NDArray[np.int8]:
        """1 for each row of an event, 0 for all others, (n_rows,)."""
        from vace_ad.alarms.detection import detect

        return detect(self, as_table(data), budget=budget, explain=0).predictions

    def explain(self, data: Any, start: int, end: int) -> Blame:
        """Each channel's share of the score of rows [start, end), and of each signal."""
        from vace_ad.alarms.detection import explain_rows

        return explain_rows(self, as_table(data), start, end)

    # ------------------------------------------------------------------- files

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted detector to one file."""
        from vace_ad.files import save

        save(self, path)


def load(path: str | PathLike[str], **computing: Any) -> VACE:
    """Read a detector from its file; `engine`, `precision` and `device` may be chosen anew."""
    from vace_ad.files import read

    return read(path, **computing)
