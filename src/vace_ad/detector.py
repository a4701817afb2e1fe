"""The detector: fit makes a frozen model; score, detect and explain run a stream to its end."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from html import escape
from os import PathLike
from typing import Any, Literal, Never, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.budget import Budget, Threshold
from vace_ad.alarms.calibration import Calibration
from vace_ad.alarms.detection import StreamResult, find_events, tolerance
from vace_ad.alarms.events import Event
from vace_ad.alarms.expected import expected_cells, explain_rows
from vace_ad.alarms.fixed_threshold import ScoreFeed
from vace_ad.alarms.runs import Rules
from vace_ad.alarms.suppression import Stretch
from vace_ad.alarms.suspects import Blame
from vace_ad.config import CHANGEABLE, Default, VACEConfig, default
from vace_ad.detection import Detection
from vace_ad.engine.patches import PatchSet
from vace_ad.engine.trajectory import embed
from vace_ad.errors import ConfigError, InputError, NotFittedError, TooShortError, VaceWarning
from vace_ad.feedback import (
    Feedback,
    Verdict,
    make_verdict,
    merge_matches,
    named_stretches,
    split_by_feedback,
    with_ratio,
)
from vace_ad.frames.columns import clean_frame
from vace_ad.frames.sampling import StepTracker
from vace_ad.frames.spans import as_spans
from vace_ad.frames.table import Table, as_chunks, as_table, gathered
from vace_ad.frames.training_data import training_tables
from vace_ad.frames.write import frame_like
from vace_ad.model import Model
from vace_ad.progress import Progress, shown, silent
from vace_ad.settings import option
from vace_ad.signals.row_buffer import ordered_sum
from vace_ad.signals.shape import Shape
from vace_ad.stream import Added, Stream, run
from vace_ad.views import detector_repr

Scores = NDArray[np.float64]


class VACE:
    """Velocity-Aligned Channel Embeddings: finds anomalies in multivariate time series.

    >>> import numpy as np
    >>> from vace_ad import VACE
    >>> rng = np.random.default_rng(0)
    >>> normal = np.sin(np.arange(600)[:, None] / [5, 7, 9]) + 0.1 * rng.normal(size=(600, 3))
    >>> VACE(random_state=0).fit(normal[:400]).score(normal[400:]).shape
    (200,)

    Attributes that `fit` sets: `model_`, `channels_`, `geometry_` (diagnostics of the embeddings),
    `calibration_scores_` (held-out scores of the training rows) and `facts_` (details of the fit).
    After a fit, `config` holds the settings with the values that the fit chose.

    Parameters
    ----------
    preset
        None for the default settings, "paper" for the paper's text, "released" for its authors'
        code. Other keywords override the preset.
    patch_length
        Number of rows in a patch. None: the period of the training rows where they have one,
        otherwise 96.
    stride
        Largest number of rows between two scored patches. None: a sixth of `patch_length`.
    shape
        "auto": use patches where the training rows have a period, or where `patch_length` is given.
        "always": use them for every series.
    encoders
        Number of encoders with different random seeds whose evidence is averaged.
    amplitude
        Whether other evidence than the shape of patches is used.
    drift_half_life
        Half-life of the baseline, in rows: after so many rows at a new level, half of the
        difference counts as normal.
    adapt
        Whether the limits of alarms adapt to the scored rows.
    new_normal_after
        Number of rows after which a lasting change is accepted as the new normal and its alarm ends
        (`Event.lasting`). 0: never.
    robust
        Whether to fit without the training rows that are unlike all others, where these are at most
        a twentieth of the rows.
    extra_signals
        Names of signals from installed packages (entry points of the group `vace_ad.signals`) that
        are added to the score.
    off
        Condition under which the machine is switched off, for example "pump_speed < 5 or status ==
        'stopped'". These rows are neither trained on nor scored, and are not reported as "no data".
    run_up
        Number of rows after the machine was off that also count as off.
    run_down
        Number of rows before the machine is off that raise no alarm. With `off`, every alarm is
        delayed by as many rows.
    context
        Columns that explain others and are never suspects: ambient conditions, set points, product
        codes. A text column becomes one channel of 0 and 1 for each of its values.
    watch
        The only channels that raise alarms; all others are context.
    maintenance
        Planned windows, each "FROM..TO" as in "2026-03-01T06:00..2026-03-01T14:00"; their rows
        count as off. May be changed after the fit.
    max_gap
        Longest run of missing rows of a channel that is interpolated; longer ones are estimated
        from the other channels.
    max_missing
        Largest share of missing channels with which a row is still scored.
    max_fit_rows
        Largest number of training rows; of more, evenly spaced pieces are used.
    max_fit_patches
        Largest number of training patches; the training stride grows to keep it.
    engine
        Library that computes embeddings: "openvino", "torch", "numpy", or "auto" for the first one
        that is installed.
    precision
        Precision of the embeddings: "float32", "bfloat16", or "auto" for the faster one on this
        machine.
    device
        Device of the torch engine and of training, for example "cpu" or "cuda".
    random_state
        Random seed.

    Other Parameters
    ----------------
    Settings of the paper, its ablations and its released code; symbols are the paper's.

    fit_stride
        Smallest number of rows between two training patches.
    variance_floor
        ε of the patch normalisation: "absolute", 1e-5 in squared units of the data, or "relative"
        to each channel's training variance.
    encoder
        "channel": depthwise then pointwise, or "shared": one kernel for all channels.
    channel_expansion
        Number of filters per channel, c_e.
    widths
        Widths of the encoder's stages 2 to 5; the last is the embedding size d_z.
    batch_norm
        Whether the encoder uses batch normalisation.
    batch_norm_statistics
        "calibrated" by a pass over training patches, or the "running" averages of training.
    batch_norm_blend
        α: calibrated statistics are (1 − α)·(0, 1) + α·data.
    iterations
        Number of training iterations of the velocity pretext, T_iter; 0: no training.
    pretext
        False: the iterations only update the batch normalisation.
    pretext_offset
        Offset δ in training; None: `velocity_offset`.
    missing_neighbour
        Patches without a neighbour are no anchors ("skip"), or get a patch of zeros ("zero").
    last_iteration
        Whether λ ends at 1/T_iter ("gradient") or at 0 ("batch_norm").
    checkpoint
        Weights to keep: those of the "last" iteration, or of the "lowest" λ·loss.
    batch_size
        Number of anchors per iteration.
    learning_rate
        Learning rate of the first iteration.
    final_learning_rate
        Learning rate of the last iteration, reached by a cosine schedule.
    weight_decay
        Weight decay of the optimiser.
    position
        Model of the embeddings: "mahalanobis", a Gaussian, or "memory", a memory bank.
    position_distance
        The Mahalanobis distance, "squared" or its "root".
    regularisation
        ε added to the eigenvalues of the covariance.
    direction
        Whether the direction of motion is used.
    direction_weight
        Weight w of the direction.
    velocity_offset
        Offset δ in scoring; None: half of `patch_length`.
    velocity
        Velocity that is scored: from a patch to the next ("forward") or to it ("backward").
    prototypes
        Largest number of prototypes, K.
    prototype_share
        Number of prototypes as a share of the training patches, if that is less than K.
    prototype_neighbours
        Number of nearest prototypes, k_np.
    prototype_method
        "spherical" k-means by cosine, or scikit-learn's "minibatch" k-means.
    prototype_seed
        Random seed of the k-means; None: `random_state`.
    missing_direction
        Score of patches without a velocity: the median of "training", or the "mean" of the scored
        series.
    normalisation
        Unit of both signals: held-out "training" scores, or the scored series by "zscore" or
        "minmax".
    active_dimension
        Dimensions that the diagnostics count as active: with a "share" of variance above 1/d_z, or
        with an "eigenvalue" above 1e-10.
    """

    def __init__(
        self,
        *,
        preset: str | None = None,
        patch_length: int | None = default(None),
        stride: int | None = default(None),
        shape: Literal["auto", "always"] = default("auto"),
        encoders: int = default(2),
        amplitude: bool = default(True),
        drift_half_life: int = default(8_000),
        adapt: bool = default(True),
        new_normal_after: int = default(1_000),
        robust: bool = default(True),
        extra_signals: tuple[str, ...] = default(()),
        off: str | None = default(None),
        run_up: int = default(5),
        run_down: int = default(5),
        context: tuple[str, ...] = default(()),
        watch: tuple[str, ...] = default(()),
        maintenance: tuple[str, ...] = default(()),
        max_gap: int = default(5),
        max_missing: float = default(0.5),
        max_fit_rows: int = default(100_000),
        max_fit_patches: int = default(2_000),
        engine: Literal["auto", "openvino", "torch", "numpy"] = default("auto"),
        precision: Literal["auto", "float32", "bfloat16"] = default("auto"),
        device: str = default("cpu"),
        random_state: int = default(0),
        fit_stride: int = default(1),
        variance_floor: Literal["absolute", "relative"] = default("relative"),
        encoder: Literal["channel", "shared"] = default("channel"),
        channel_expansion: int = default(8),
        widths: tuple[int, int, int, int] = default((32, 64, 64, 64)),
        batch_norm: bool = default(True),
        batch_norm_statistics: Literal["calibrated", "running"] = default("calibrated"),
        batch_norm_blend: float = default(0.95),
        iterations: int = default(0),
        pretext: bool = default(True),
        pretext_offset: int | None = default(None),
        missing_neighbour: Literal["skip", "zero"] = default("skip"),
        last_iteration: Literal["gradient", "batch_norm"] = default("gradient"),
        checkpoint: Literal["last", "lowest"] = default("last"),
        batch_size: int = default(512),
        learning_rate: float = default(1e-4),
        final_learning_rate: float = default(1e-5),
        weight_decay: float = default(1e-4),
        position: Literal["mahalanobis", "memory"] = default("mahalanobis"),
        position_distance: Literal["squared", "root"] = default("squared"),
        regularisation: float = default(1e-6),
        direction: bool = default(True),
        direction_weight: float = default(1.0),
        velocity_offset: int | None = default(None),
        velocity: Literal["forward", "backward"] = default("backward"),
        prototypes: int = default(500),
        prototype_share: float = default(0.1),
        prototype_neighbours: int = default(3),
        prototype_method: Literal["spherical", "minibatch"] = default("spherical"),
        prototype_seed: int | None = default(None),
        missing_direction: Literal["training", "mean"] = default("training"),
        normalisation: Literal["training", "zscore", "minmax"] = default("training"),
        active_dimension: Literal["share", "eigenvalue"] = default("share"),
        **unknown: Never,
    ) -> None:
        given = {k: v for k, v in locals().items() if k not in ("self", "preset", "unknown")}
        given = {k: v for k, v in given.items() if not isinstance(v, Default)}
        self._asked = VACEConfig.from_preset(preset, **given, **unknown)

    @property
    def config(self) -> VACEConfig:
        """The settings; after a fit, with the values that the fit chose."""
        model: Model | None = getattr(self, "_model", None)
        return self._asked if model is None or self._changed(model) else model.config

    @property
    def settings_text(self) -> str:
        """The settings that differ from the default, as Python code."""
        defaults = VACEConfig().to_dict()
        changed = [f"{k}={v!r}" for k, v in self._asked.to_dict().items() if v != defaults[k]]
        return f"VACE({', '.join(changed)})"

    def __repr__(self) -> str:
        """The settings, and a summary of the fitted model."""
        return detector_repr.text(self) if self._is_fitted() else self.settings_text

    def _repr_html_(self) -> str:
        """The same as a table, for notebooks."""
        return detector_repr.html(self) if self._is_fitted() else escape(self.settings_text)

    def _is_fitted(self) -> bool:
        try:
            return self.model_ is not None
        except NotFittedError:
            return False

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings as they were given, as in scikit-learn."""
        return self._asked.to_dict()

    def set_params(self, **settings: Any) -> Self:
        """Change settings; a fitted detector must then be fitted again, unless for maintenance."""
        self._asked = VACEConfig.from_preset(None, **{**self._asked.to_dict(), **settings})
        model: Model | None = getattr(self, "_model", None)
        if model is not None and "maintenance" in settings:  # needs no new fit
            config = replace(model.config, maintenance=self._asked.maintenance)
            self._model = replace(model, config=config)
        return self

    def fit(
        self,
        data: Any,
        y: Any = None,
        *,
        sort: bool = False,
        labels: Any = None,
        progress: Progress | bool = False,
    ) -> Self:
        """Fit on normal operation: a table, the path of a Parquet file, or a list of these.

        No patch or window spans two tables or a jump in time. Of a file with
        more than `max_fit_rows` rows, only evenly spaced pieces are read. Columns of a table that
        cannot be channels (text, row counters, labels) are left out with a warning. `sort` puts
        rows in order of time and averages those of the same time. `labels` are past faults, whose
        rows are left out: a CSV file of `start,end`, or a list of pairs of times. `y` is ignored;
        it is there for scikit-learn's tools. A fit that fails leaves the detector as it was. Here
        and in `score`, `signals`, `embed` and `detect`, `progress=True` shows bars in notebooks
        and terminals.
        """
        with shown(progress) as report:
            faults = () if labels is None else as_spans(labels)
            model = Model.fit(data, self._asked, report, sort=sort, faults=faults)
        self._take(model)
        return self

    def _take(self, model: Model) -> None:
        self._model = model
        self.__dict__.pop("calibration_", None)

    # ----------------------------------------------------------------- learned

    @property
    def model_(self) -> Model:
        """The fitted model, frozen."""
        model: Model | None = getattr(self, "_model", None)
        if model is None:
            raise NotFittedError("this detector is not fitted yet: call fit first")
        for name, then, now in self._changed(model):
            raise NotFittedError(
                f"{name} was changed from {then!r} to {now!r} after the fit: call fit again"
            )
        return model

    def _changed(self, model: Model) -> list[tuple[str, Any, Any]]:
        """Settings that were changed after the fit; None leaves the choice to the fit."""
        now, then = self._asked.to_dict(), model.config.to_dict()
        return [
            (name, then[name], value)
            for name, value in now.items()
            if name not in CHANGEABLE and value is not None and value != then[name]
        ]

    @property
    def channels_(self) -> tuple[str, ...]:
        """The names of the channels."""
        return self.model_.channels

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """The names of the channels, under scikit-learn's name."""
        return np.asarray(self.channels_, dtype=object)

    @property
    def n_features_in_(self) -> int:
        """Number of channels."""
        return len(self.channels_)

    @property
    def facts_(self) -> Mapping[str, Any]:
        """Details of the fit."""
        return self.model_.facts

    @property
    def geometry_(self) -> Any:
        """Diagnostics of the training embeddings; None without encoders."""
        shape = self.model_.shape
        return None if shape is None else shape.geometry

    @property
    def calibration_scores_(self) -> Scores:
        """Held-out scores of the training rows."""
        return self.model_.calibration_scores

    @cached_property
    def calibration_(self) -> Calibration:
        """Distribution of scores in normal operation, from `calibration_scores_`."""
        return self.model_.calibration

    # ----------------------------------------------------------------- scoring

    def score(self, data: Any, *, sort: bool = False, progress: Progress | bool = False) -> Scores:
        """Return an anomaly score for each row, float64 (n_rows,); NaN where a row has no score.

        `data` is a table, an iterator of tables that follow each other, or the path of a Parquet
        file; the last two are worked off piece by piece and give the same scores. `sort` takes
        rows in order of time; each score still stands where its row does.
        """
        if sort:
            table = gathered(data, self.channels_)
            ordered = table.ordered()
            scores = self.score(ordered, progress=progress)
            assert ordered.time is not None
            assert table.time is not None
            return np.asarray(scores[np.searchsorted(ordered.time, table.time)])
        stream = Stream(self.model_, live=False)
        with shown(progress) as report:
            parts = list(self._run(stream, data, report))
        scores = np.concatenate([part.scores for part in parts])
        self._check_scored(scores, stream.trouble, _count_idle(parts))
        return scores

    def signals(self, data: Any, *, progress: Progress | bool = False) -> dict[str, Scores]:
        """Return the signals that add up to the score, (n_rows,) each.

        "position" and "direction" measure shape; "level", "scale", "spike", "relation",
        "forecast", "distance" and "surge" of what patch normalisation removes or hides. Takes
        what `score` takes.
        """
        stream = Stream(self.model_, live=False)
        with shown(progress) as report:
            parts = list(self._run(stream, data, report))
        names = self.model_.lines
        found = {name: np.concatenate([part.signals[name] for part in parts]) for name in names}
        self._check_scored(next(iter(found.values())), stream.trouble, _count_idle(parts))
        return found

    def score_chunks(self, chunks: Iterable[Any]) -> Iterator[Scores]:
        """Yield the scores of a series given as tables of any size, as rows become complete.

        Memory does not grow with the length of the series.
        """
        for found in self._run(Stream(self.model_, live=False), iter(chunks), silent):
            yield found.scores

    def stream(
        self,
        *,
        budget: Budget | str | None = None,
        rules: Rules | None = None,
        step: int | None = None,
    ) -> Stream:
        """Return a stream that scores rows as they arrive; see :class:`Stream`.

        `budget`, `rules` and `step` are those of `detect`. Rows that match an accepted
        pattern raise no alarm.
        """
        accepted = self.feedback.patterns
        return Stream(
            self.model_, budget=Budget.of(budget), rules=rules, step=step, accepted=accepted
        )

    def _run(self, stream: Stream, data: Any, progress: Progress, **how: Any) -> Iterator[Added]:
        model, n_rows = stream.model, 0
        chunks = as_chunks(data)

        def tables() -> Iterator[Table]:
            nonlocal n_rows
            for chunk in [data] if chunks is None else chunks:
                table = as_table(chunk, model.channels).aligned(model.channels)
                n_rows += len(table)
                yield table

        yield from run(stream, tables(), progress, **how)
        if n_rows < model.reach:
            raise TooShortError(f"got {n_rows} rows; a score needs at least {model.reach}")

    def _check_scored(self, scores: Scores, trouble: str | None, idle: int = 0) -> None:
        """Say how many rows have no score and why; refuse an answer that has none at all.

        Rows that are `idle` need none.
        """
        missing = int(np.isnan(scores).sum()) - idle
        if np.isinf(scores).any():
            raise InputError(
                f"the score of row {int(np.flatnonzero(~np.isfinite(scores))[0])} is not finite: "
                "cells are too large to compute with, or the model is; check the data, fit again"
            )
        most, reach = self.config.max_missing, self.model_.reach
        if idle and idle == len(scores):
            raise InputError(
                f"all {idle:,} rows are off or under maintenance, so there is nothing to judge; "
                f"check {option('off', self.config.off)} and {option('maintenance')}"
            )
        if missing == len(scores) - idle:
            reason = trouble or (
                f"each has more than {most:.0%} of its channels missing, or lies in a stretch "
                f"shorter than {reach} rows; check the data, or allow more by max_missing"
            )
            raise InputError(f"none of the {missing:,} rows can be scored: {reason}")
        if missing:
            reason = trouble or (
                f"too many channels are missing there, or too few of the {reach} rows that a "
                "score needs around it"
            )
            warnings.warn(
                f"{missing} of {len(scores)} rows have no score (NaN): {reason}",
                VaceWarning,
                stacklevel=3,
            )

    # -------------------------------------------------------------- the method

    def position_scores(self, data: Any) -> Scores:
        """Return the position signal of each patch, (n_patches,), mean over encoders."""
        learned = self._shape().learned
        z = self._trajectory(data)  # (n_patches, n_encoders, d_z)
        each = [evidence.position.score(z[:, k]) for k, evidence in enumerate(learned)]
        return np.asarray(np.mean(each, axis=0))

    def direction_scores(self, data: Any) -> Scores:
        """Return the direction signal of each patch, (n_patches,), mean over encoders.

        A patch without the neighbour that its velocity needs has the training's median.
        """
        shape = self._shape()
        paper, learned, offset = self.config.reproduction, shape.learned, shape.config.offset
        z = self._trajectory(data)
        total = np.zeros(len(z))
        own = slice(offset, None) if paper.velocity == "backward" else slice(None, -offset)
        for k, evidence in enumerate(learned):
            if evidence.direction is None:
                raise InputError("this detector was fitted with direction=False")
            each = np.full(len(z), evidence.direction_median)
            if len(z) > offset:
                each[own] = evidence.direction.score(z[offset:, k] - z[:-offset, k])
            total += each
        return total / len(learned)

    def embed(self, data: Any, *, progress: Progress | bool = False) -> NDArray[np.float32]:
        """Return the trajectory Z: the embedding of each patch, (n_patches, n_encoders · d_z).

        Patches that hold a missing value are NaN.
        """
        with shown(progress) as report:
            z = self._trajectory(data, report)
        return z.reshape(len(z), -1)

    def _shape(self) -> Shape:
        shape = self.model_.shape
        if shape is None:
            raise ConfigError(
                "this detector has no encoders, since its training rows show no period that a "
                "patch could follow; fit one with shape='always', or give patch_length"
            )
        return shape

    def _trajectory(self, data: Any, progress: Progress = silent) -> NDArray[np.float32]:
        shape, table = self._shape(), gathered(data, self.channels_)
        length = shape.config.length
        if len(table) < length:
            raise TooShortError(f"got {len(table)} rows; need at least patch_length={length}")
        rows = table.block(0, len(table))
        patches = PatchSet([rows], length, shape.scale)
        found = embed(shape.engine.engine, patches, patches.grid(1), progress)
        z = np.concatenate(list(found))
        broken = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        for row in broken.tolist():
            z[max(0, row - length + 1) : row + 1] = np.nan
        return z

    # ------------------------------------------------------------------ alarms

    def detect(
        self,
        data: Any,
        *,
        budget: Budget | str | None = None,
        rules: Rules | None = None,
        first: int = 0,
        step: int | None = None,
        sort: bool = False,
        progress: Progress | bool = False,
    ) -> Detection:
        """Find the events of a table: when, how rare, which signal, which channels.

        `budget` is the number of false alarms to accept on normal data: "1 per week", "1 in
        10000 rows" or a :class:`Budget`; by default one a week where the model's rows have a time,
        else one in 10,000 rows. `rules` say what makes one event.
        Rows before `first`, such as those of the training, make no events. `step` is the time
        between rows in nanoseconds where the model's had no time. `sort` puts rows in order of
        time, and rows of the answer are counted so.

        What looks like a stretch that a person accepted (see `accept`) is taken out of the rows
        before they are scored, and listed as `accepted`.
        """
        table = gathered(data, self.channels_)
        kept = table if as_chunks(data) is not None else clean_frame(data, self.channels_)[0]
        if sort:
            table = kept = table.ordered()
        table, accepted = self._without_accepted(table)
        model = self.model_
        stream = Stream(
            model, budget=Budget.of(budget), rules=rules, step=step, live=False, alarms=True
        )
        bear = tolerance(accepted, len(table), model.config.length)
        with shown(progress) as report, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", VaceWarning)
            parts = list(self._run(stream, table, report, first=first, bear=bear))
            signals = {
                name: np.concatenate([part.signals[name] for part in parts]) for name in model.lines
            }
            scores = next(iter(signals.values()))
            self._check_scored(scores, stream.trouble, _count_idle(parts))
        judged = StreamResult(
            [change for part in parts for change in part.changes],
            np.concatenate([part.evidence for part in parts]),
            np.concatenate([part.surprise for part in parts]),
        )
        if not len(judged.evidence):  # a person gave the threshold
            judged = _by_score(
                model, table, ordered_sum(signals.values()), stream.threshold, rules, first
            )
        found = find_events(
            model, table, signals, judged, stream.threshold, first=first, accepted=accepted
        )
        return Detection.of(found, kept, [str(warning.message) for warning in caught], model)

    def expect(self, data: Any) -> Any:
        """Return the expected value of every channel, given the others, as a table.

        For each channel the columns `name`, `name expected`, `name lower` and `name upper`, with an
        interval of three standard deviations of what is left; NaN where a row has no score.
        """
        table = gathered(data, self.channels_)
        _, expected = expected_cells(self.model_, table, range(len(table.names)))
        columns: dict[str, Any] = {}
        for i, name in enumerate(table.names):
            columns[name] = table.values[:, i]
            columns[f"{name} expected"] = expected.value[:, i]
            columns[f"{name} lower"] = expected.lower[:, i]
            columns[f"{name} upper"] = expected.upper[:, i]
        return frame_like(data, columns)

    def predict(self, data: Any, *, budget: Budget | str | None = None) -> NDArray[np.int8]:
        """Return 1 for each row of an event, 0 for all others, (n_rows,)."""
        return self.detect(data, budget=budget).predictions

    def fit_predict(
        self, data: Any, y: Any = None, *, budget: Budget | str | None = None
    ) -> NDArray[np.int8]:
        """Fit on `data`, then predict the same rows; `y` is ignored."""
        return self.fit(data).predict(data, budget=budget)

    def decision_function(
        self, data: Any, *, budget: Budget | str | None = None
    ) -> NDArray[np.float64]:
        """Return by how much the evidence of each row exceeds its limit, (n_rows,).

        Above 0 there is an alarm; `predict` says 1 for all rows of its event, which begins before.
        `vace_ad.compat.sklearn` has scikit-learn's opposite sign. NaN where a row has no evidence.
        """
        return self.detect(data, budget=budget).evidence - 1

    def explain(self, data: Any, start: int, end: int) -> Blame:
        """Return each channel's share in what happened in rows [start, end)."""
        table = gathered(data, self.channels_)
        return explain_rows(self.model_, table, start, end, self.model_.period)

    # ---------------------------------------------------------------- feedback

    @property
    def feedback(self) -> Feedback:
        """Feedback on events; written beside the model file once there is one."""
        found: Feedback = self.__dict__.setdefault("_feedback", Feedback())
        return found

    def accept(
        self,
        what: Any,
        data: Any = None,
        *,
        verdict: str = "normal",
        note: str = "",
        who: str = "",
    ) -> Verdict:
        """Mark an event or a range as normal, or with verdict="fault" as a fault.

        `what` is an event, or (start, end) as rows or as times, the end of times included; `data`
        the table, or the Detection, that it is in. Similar rows raise no alarm from now on, and
        `update` trains on the marked rows; rows of a fault are never trained on. Without `data`,
        only `update` uses the feedback. `undo` takes the `id` of the returned verdict.
        """
        if isinstance(data, Detection):
            data = data.data
        table = None if data is None else gathered(data, self.channels_)
        line = make_verdict(what, table, verdict, self.model_, note, who)
        if line.pattern is not None and not isinstance(what, Event):
            line = with_ratio(line, self.detect(table).anomalies)
        if line.verdict == "normal" and table is not None and line.pattern is None:
            warnings.warn(
                "no channel deviates from its past by more than in training, so similar events "
                "cannot be recognised and will alarm again; update trains on these rows",
                VaceWarning,
                stacklevel=2,
            )
        self.feedback.add(line)
        return line

    def update(self, data: Any, *, progress: Progress = silent) -> Self:
        """Update the model with more normal rows; the rows of the fit are not needed.

        Only the new rows take time. Levels, swings, relations, spikes, forecast residuals,
        distances, surges, shapes, the drift range of channels and the calibration of alarms come
        from old and new together; units of channels, the regressions, the period and the encoders
        stay. New rows count by their number, at most as much as the old ones. Ranges that were
        accepted count in full, however short; those marked as faults are left out.
        """
        model = self.model_
        tables, _ = training_tables(data, self.config, sort=False, expected=model.channels)
        tables = [table.aligned(model.channels) for table in tables]
        normal, accepted = split_by_feedback(tables, self.feedback.active, model.config)
        self._take(model.updated(normal, accepted, progress))
        return self

    def undo(self, id: str) -> Verdict:
        """Remove the feedback with this id."""
        return self.feedback.undo(id)

    def _without_accepted(self, table: Table) -> tuple[Table, list[Stretch]]:
        """The table without the rows that match accepted patterns, and where these were."""
        if not self.feedback.active:
            return table, []
        named = named_stretches(self.feedback.active, table)
        patterns = self.feedback.patterns
        if not patterns:
            return table, named
        recogniser = self.model_.recogniser(patterns)
        steps = StepTracker(self.model_.step_rule).add(table.time, len(table))
        rows, _, found = recogniser.add(table.block(0, len(table)), steps.cuts())
        return replace(table, values=rows), merge_matches(found + recogniser.finish(), named)

    # ------------------------------------------------------------------- files

    def save(self, path: str | PathLike[str]) -> None:
        """Save the fitted detector to a file, and feedback, if there is any, beside it."""
        self.model_.save(path)
        self.feedback.move(path)


def _count_idle(parts: Iterable[Added]) -> int:
    return sum(int(part.idle.sum()) for part in parts)


def _by_score(
    model: Model,
    table: Table,
    scores: Scores,
    threshold: Threshold,
    rules: Rules | None,
    first: int,
) -> StreamResult:
    """Alarms of rows by a given threshold of the score."""
    feed = ScoreFeed(model, threshold.value, rules)
    late = np.where(np.arange(len(scores)) < first, np.nan, scores)
    changes = [*feed.add(table.block(0, len(table)), table.time, late), *feed.finish()]
    return StreamResult(
        changes, scores / threshold.value if threshold.value > 0 else scores, scores
    )


def load(path: str | PathLike[str], **computing: Any) -> VACE:
    """Load a detector from a file; `engine`, `precision` and `device` may differ from the fit.

    Feedback in the file beside it, `pump.feedback.jsonl` for `pump.vace`, is read too.
    """
    model = Model.load(path, **computing)
    detector = VACE(**model.config.to_dict())
    detector._take(model)
    detector.__dict__["_feedback"] = Feedback.beside(path)
    return detector
