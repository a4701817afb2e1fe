"""The detector: fit makes a frozen model; score, detect and explain run a stream to its end."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from html import escape
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.budget import Budget
from vace_ad.alarms.events import Event
from vace_ad.alarms.suspects import Blame
from vace_ad.batch import (
    expected_columns,
    explain_rows,
    judged_table,
    run,
    run_to_end,
    scores_to_end,
)
from vace_ad.detection import Detection
from vace_ad.errors import ConfigError, VaceWarning
from vace_ad.estimator import Estimator
from vace_ad.feedback import (
    Feedback,
    Verdict,
    make_verdict,
    split_by_feedback,
    with_ratio,
)
from vace_ad.frames.columns import clean_frame
from vace_ad.frames.segments import Rules
from vace_ad.frames.spans import as_spans
from vace_ad.frames.table import as_chunks, frame_like
from vace_ad.frames.training_data import of_each, training_tables
from vace_ad.model import Model
from vace_ad.progress import Progress, shown, silent
from vace_ad.signals.shape import Shape, direction_scores, position_scores, trajectory
from vace_ad.stream import Stream
from vace_ad.views import detector_repr

Scores = NDArray[np.float64]


class VACE(Estimator):
    """Velocity-Aligned Channel Embeddings: finds anomalies in multivariate time series.

    Fit it on a table of normal operation, then call `detect` for events or `score` for one number
    per row. Settings are keywords of the constructor.

    >>> import numpy as np
    >>> from vace_ad import VACE
    >>> rng = np.random.default_rng(0)
    >>> normal = np.sin(np.arange(600)[:, None] / [5, 7, 9]) + 0.1 * rng.normal(size=(600, 3))
    >>> VACE(random_state=0).fit(normal[:400]).score(normal[400:]).shape
    (200,)

    Attributes that `fit` sets: `model_`, `channels_`, `geometry_` (diagnostics of the embeddings),
    `calibration_scores_` (held-out scores of the training rows) and `facts_` (details of the fit).
    After a fit, `config` holds the settings with the values that the fit chose.

    `fit` treats a list of tables as separate series. For such a list, `score`, `signals`, `detect`,
    `predict`, `decision_function` and `expect` return a list of results.
    """

    def __repr__(self) -> str:
        """The settings, and a summary of the fitted model."""
        return detector_repr.text(self) if self._is_fitted() else self.settings_text

    def _repr_html_(self) -> str:
        """The same as a table, for notebooks."""
        return detector_repr.html(self) if self._is_fitted() else escape(self.settings_text)

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

        No patch or window spans two tables or a jump in time. If there are more than `max_fit_rows`
        rows, evenly spaced pieces are used. Columns that cannot be channels (text, row counters,
        labels) are left out with a warning. If `fit` fails, the detector is unchanged.

        `y` is ignored; scikit-learn's tools pass it. `sort` sorts rows by time and averages rows of
        the same time. `labels` are past faults, whose rows are left out: a CSV file of `start,end`,
        or a list of pairs of times. `progress=True` shows progress bars, here and in other methods.
        """
        with shown(progress) as report:
            faults = () if labels is None else as_spans(labels)
            model = Model.fit(data, self._asked, report, sort=sort, faults=faults)
        self._take(model)
        return self

    # ----------------------------------------------------------------- scoring

    @of_each
    def score(self, data: Any, *, sort: bool = False, progress: Progress | bool = False) -> Scores:
        """Return an anomaly score for each row, float64 (n_rows,); NaN where a row has no score.

        `data` is a table, an iterator of consecutive tables, or the path of a Parquet file; the
        last two are processed piece by piece, with the same scores. `sort` scores the rows in order
        of time, and returns the scores in the order of the table.
        """
        if sort:
            table = self.model_.table(data)
            ordered = table.ordered()
            scores = self.score(ordered, progress=progress)
            assert ordered.time is not None
            assert table.time is not None
            return np.asarray(scores[np.searchsorted(ordered.time, table.time)])
        with shown(progress) as report:
            return scores_to_end(Stream(self.model_, live=False), data, report)

    @of_each
    def signals(self, data: Any, *, progress: Progress | bool = False) -> dict[str, Scores]:
        """Return the signals that add up to the score, by name, (n_rows,) each.

        "position" and "direction" measure the shape of patches; "level", "scale", "spike",
        "relation", "forecast", "distance" and "surge" what patch normalisation removes or hides.
        `data` is as in `score`.
        """
        with shown(progress) as report:
            return dict(run_to_end(Stream(self.model_, live=False), data, report).signals)

    def score_chunks(self, chunks: Iterable[Any]) -> Iterator[Scores]:
        """Yield scores of a series, given as an iterable of tables, as soon as they are final.

        Memory does not grow with the length of the series.
        """
        for found in run(Stream(self.model_, live=False), iter(chunks)):
            yield found.scores

    def stream(
        self,
        *,
        budget: Budget | str | None = None,
        rules: Rules | None = None,
        step: int | None = None,
    ) -> Stream:
        """Return a stream that scores rows as they arrive; see :class:`Stream`.

        `budget`, `rules` and `step` are as in `detect`. Rows that match an accepted pattern raise
        no alarm.
        """
        accepted = self.feedback.patterns
        return Stream(
            self.model_, budget=Budget.of(budget), rules=rules, step=step, accepted=accepted
        )

    # -------------------------------------------------------------- the method

    def position_scores(self, data: Any) -> Scores:
        """Return the position signal of each patch, (n_patches,), mean over encoders."""
        return position_scores(self._shape(), self.model_.table(data))

    def direction_scores(self, data: Any) -> Scores:
        """Return the direction signal of each patch, (n_patches,), mean over encoders.

        Patches without a velocity, which needs a neighbour, have the median of training.
        """
        return direction_scores(self._shape(), self.model_.table(data))

    def embed(self, data: Any, *, progress: Progress | bool = False) -> NDArray[np.float32]:
        """Return the trajectory Z: the embedding of each patch, (n_patches, n_encoders · d_z).

        Patches with a missing value are NaN.
        """
        with shown(progress) as report:
            table = self.model_.table(data)
            z = trajectory(self._shape(), table, report)
        return z.reshape(len(z), -1)

    def _shape(self) -> Shape:
        shape = self.model_.shape
        if shape is None:
            raise ConfigError(
                "this detector has no encoders, since its training rows show no period that a "
                "patch could follow; fit one with shape='always', or give patch_length"
            )
        return shape

    # ------------------------------------------------------------------ alarms

    @of_each
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
        10000 rows" or a :class:`Budget`. The default is one a week if training rows have times,
        otherwise one in 10,000 rows. `rules` merges and drops events. Rows before `first`, such as
        training rows, make no events. `step` is the time between rows in nanoseconds, if training
        rows have no times. `sort` sorts the rows by time; row numbers of the result count sorted
        rows.

        Ranges that match feedback (see `accept`) raise no alarm and are listed as `accepted`.
        """
        table = self.model_.table(data)
        kept = table if as_chunks(data) is not None else clean_frame(data, self.channels_)[0]
        if sort:
            table = kept = table.ordered()
        stream = Stream(
            self.model_, budget=Budget.of(budget), rules=rules, step=step, live=False, alarms=True
        )
        with shown(progress) as report:
            found, notes = judged_table(stream, self.feedback, table, rules, report, first)
        return Detection.of(found, kept, notes, self.model_)

    @of_each
    def expect(self, data: Any) -> Any:
        """Return the expected value of every channel, given the other channels, as a table.

        Each channel has the columns `name`, `name expected`, `name lower` and `name upper`; the
        interval is three standard deviations of the residual. NaN where a row has no score.
        """
        return frame_like(data, expected_columns(self.model_, self.model_.table(data)))

    @of_each
    def predict(self, data: Any, *, budget: Budget | str | None = None) -> NDArray[np.int8]:
        """Return 1 for each row of an anomaly, 0 for all others, (n_rows,)."""
        return self.detect(data, budget=budget).predictions

    def fit_predict(
        self, data: Any, y: Any = None, *, budget: Budget | str | None = None
    ) -> NDArray[np.int8]:
        """Fit on `data`, then predict the same rows; `y` is ignored."""
        return self.fit(data).predict(data, budget=budget)

    @of_each
    def decision_function(
        self, data: Any, *, budget: Budget | str | None = None
    ) -> NDArray[np.float64]:
        """Return the evidence of each row divided by its limit, minus 1, (n_rows,).

        Above 0 is an alarm. `predict` returns 1 for all rows of an event, also those before the
        alarm. The sign is opposite to scikit-learn's; `vace_ad.compat.sklearn` has scikit-learn's.
        """
        return self.detect(data, budget=budget).evidence - 1

    def explain(self, data: Any, start: int, end: int) -> Blame:
        """Return the share of each channel in the deviation of rows [start, end)."""
        return explain_rows(self.model_, self.model_.table(data), start, end)

    # ---------------------------------------------------------------- feedback

    @property
    def feedback(self) -> Feedback:
        """Feedback on events; saved beside the model file if there is one."""
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
        """Mark an event or a range of rows as normal, or with `verdict="fault"` as a fault.

        Events like one marked as normal raise no alarm from now on, and `update` trains on its
        rows. Rows of a fault are never trained on. `what` is an event, or a pair (start, end) of
        rows or times; an end given as a time is included. `data` is its table or Detection; without
        it, only `update` uses the feedback. `note` is a comment, `who` its author. `undo` takes the
        `id` of the returned verdict.
        """
        if isinstance(data, Detection):
            data = data.data
        table = None if data is None else self.model_.table(data)
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

        Ranges of all signals, the drift range of channels and the calibration of alarms are updated
        from old and new rows; scales of channels, regressions, period and encoders stay. New rows
        are weighted by their number, at most as much as the old ones. Accepted ranges count in
        full, however short; ranges marked as faults are left out. `progress` is a callback.
        """
        model = self.model_
        tables, _ = training_tables(data, self.config, sort=False, expected=model.inputs)
        tables = [model.table(table) for table in tables]
        normal, accepted = split_by_feedback(tables, self.feedback.active, model.config)
        self._take(model.updated(normal, accepted, progress))
        return self

    def undo(self, id: str) -> Verdict:
        """Remove the feedback with this id."""
        return self.feedback.undo(id)

    # ------------------------------------------------------------------- files

    def save(self, path: str | PathLike[str]) -> None:
        """Save the fitted detector to a file, and feedback, if any, beside it."""
        self.model_.save(path)
        self.feedback.move(path)


def load(path: str | PathLike[str], **computing: Any) -> VACE:
    """Load a detector from a file, and feedback from the file beside it.

    `engine`, `precision`, `device`, `maintenance` and `calendar` may differ from the fit. Feedback
    on `pump.vace` is in `pump.feedback.jsonl`.
    """
    model = Model.load(path, **computing)
    detector = VACE(**model.config.to_dict())
    detector._take(model)
    detector.__dict__["_feedback"] = Feedback.beside(path)
    return detector
