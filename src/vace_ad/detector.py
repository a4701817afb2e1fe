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
from vace_ad.alarms.expected import expected_columns, explain_rows
from vace_ad.alarms.runs import Rules
from vace_ad.alarms.suspects import Blame
from vace_ad.batch import judged_table, run, run_to_end, scores_to_end
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
from vace_ad.frames.several import of_each
from vace_ad.frames.spans import as_spans
from vace_ad.frames.table import as_chunks
from vace_ad.frames.training_data import training_tables
from vace_ad.frames.write import frame_like
from vace_ad.model import Model
from vace_ad.progress import Progress, shown, silent
from vace_ad.signals.shape import Shape, patch_scores
from vace_ad.stream import Stream
from vace_ad.views import detector_repr

Scores = NDArray[np.float64]


class VACE(Estimator):
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

    `fit` takes a list of tables as series that do not follow each other. Of such a list `score`,
    `signals`, `detect`, `predict`, `decision_function` and `expect` give a list of answers.

    Settings are keywords, listed with the constructor.
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

    # ----------------------------------------------------------------- scoring

    @of_each
    def score(self, data: Any, *, sort: bool = False, progress: Progress | bool = False) -> Scores:
        """Return an anomaly score for each row, float64 (n_rows,); NaN where a row has no score.

        `data` is a table, an iterator of tables that follow each other, or the path of a Parquet
        file; the last two are worked off piece by piece and give the same scores. `sort` takes
        rows in order of time; each score still stands where its row does.
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
        """Return the signals that add up to the score, (n_rows,) each.

        "position" and "direction" measure shape; "level", "scale", "spike", "relation",
        "forecast", "distance" and "surge" of what patch normalisation removes or hides. Takes
        what `score` takes.
        """
        with shown(progress) as report:
            return dict(run_to_end(Stream(self.model_, live=False), data, report).signals)

    def score_chunks(self, chunks: Iterable[Any]) -> Iterator[Scores]:
        """Yield the scores of a series given as tables of any size, as rows become complete.

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

        `budget`, `rules` and `step` are those of `detect`. Rows that match an accepted
        pattern raise no alarm.
        """
        accepted = self.feedback.patterns
        return Stream(
            self.model_, budget=Budget.of(budget), rules=rules, step=step, accepted=accepted
        )

    # -------------------------------------------------------------- the method

    def position_scores(self, data: Any) -> Scores:
        """The position signal of each patch, (n_patches,), mean over encoders."""
        return patch_scores.position_scores(self._shape(), self.model_.table(data))

    def direction_scores(self, data: Any) -> Scores:
        """Return the direction signal of each patch, (n_patches,), mean over encoders.

        A patch without the neighbour that its velocity needs has the training's median.
        """
        return patch_scores.direction_scores(self._shape(), self.model_.table(data))

    def embed(self, data: Any, *, progress: Progress | bool = False) -> NDArray[np.float32]:
        """Return the trajectory Z: the embedding of each patch, (n_patches, n_encoders · d_z).

        Patches that hold a missing value are NaN.
        """
        with shown(progress) as report:
            table = self.model_.table(data)
            z = patch_scores.trajectory(self._shape(), table, report)
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
        10000 rows" or a :class:`Budget`; by default one a week where the model's rows have a time,
        else one in 10,000 rows. `rules` say what makes one event.
        Rows before `first`, such as those of the training, make no events. `step` is the time
        between rows in nanoseconds where the model's had no time. `sort` puts rows in order of
        time, and rows of the answer are counted so.

        What looks like a stretch that a person accepted (see `accept`) is taken out of the rows
        before they are scored, and listed as `accepted`.
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
        """Return the expected value of every channel, given the others, as a table.

        For each channel the columns `name`, `name expected`, `name lower` and `name upper`, with an
        interval of three standard deviations of what is left; NaN where a row has no score.
        """
        columns = expected_columns(self.model_, self.model_.table(data), self.channels_)
        return frame_like(data, columns)

    @of_each
    def predict(self, data: Any, *, budget: Budget | str | None = None) -> NDArray[np.int8]:
        """Return 1 for each row of an event, 0 for all others, (n_rows,)."""
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
        """Return by how much the evidence of each row exceeds its limit, (n_rows,).

        Above 0 there is an alarm; `predict` says 1 for all rows of its event, which begins before.
        `vace_ad.compat.sklearn` has scikit-learn's opposite sign. NaN where a row has no evidence.
        """
        return self.detect(data, budget=budget).evidence - 1

    def explain(self, data: Any, start: int, end: int) -> Blame:
        """Return each channel's share in what happened in rows [start, end)."""
        table = self.model_.table(data)
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

        Only the new rows take time. Levels, swings, relations, spikes, forecast residuals,
        distances, surges, shapes, the drift range of channels and the calibration of alarms come
        from old and new together; units of channels, the regressions, the period and the encoders
        stay. New rows count by their number, at most as much as the old ones. Ranges that were
        accepted count in full, however short; those marked as faults are left out.
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
        """Save the fitted detector to a file, and feedback, if there is any, beside it."""
        self.model_.save(path)
        self.feedback.move(path)


def load(path: str | PathLike[str], **computing: Any) -> VACE:
    """Load a detector from a file; `engine`, `precision` and `device` may differ from the fit.

    Feedback in the file beside it, `pump.feedback.jsonl` for `pump.vace`, is read too.
    """
    model = Model.load(path, **computing)
    detector = VACE(**model.config.to_dict())
    detector._take(model)
    detector.__dict__["_feedback"] = Feedback.beside(path)
    return detector
