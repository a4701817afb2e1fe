"""Options of `vace evaluate`, and operating measures of predictions or of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vace_ad.errors import InputError
from vace_ad.settings import setting
from vace_ad.wording import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vace_ad.alarms import Budget
    from vace_ad.frames.spans import Span
    from vace_ad.metrics import Operating

_OPERATING = "Operating measures"


@dataclass(frozen=True)
class EvaluateOptions:
    """What is evaluated, and against what."""

    label_column: str = setting("label", "Column of labels, 1 = anomalous, 0 = normal.")
    score_column: str = setting("score", "Column of scores, high = anomalous.")
    window: str = setting(
        "100",
        "Largest window of VUS in rows: a number, or 'auto' for the period of a channel, "
        "as TSB-AD does. The channel is --series-column, else the first numeric column that "
        "is neither label, score nor prediction and is not always increasing.",
        "auto|N",
    )
    series_column: str | None = setting(
        None, "Channel whose period sets the window with --window auto."
    )
    prediction_column: str | None = setting(
        None,
        "Column of 0/1 predictions. Without it and without --threshold, each measure "
        "that needs predictions uses its own best threshold.",
    )
    threshold: float | None = setting(None, "Predict rows whose score exceeds this value.")
    step_seconds: float | None = setting(
        None, "Seconds between rows, for false alarms per day and delays."
    )
    budget: str | None = setting(
        None,
        "False alarms to accept: '1 per week' (or day, or month), '1 in 10000 rows'. Sets the "
        "number allowed and, with --model, the limit of alarms.",
        "WORDS",
        panel=_OPERATING,
    )
    model: Path | None = setting(
        None,
        "Model file to compute scores and alarms with, as a table and as a stream.",
        panel=_OPERATING,
    )
    labels_file: Path | None = setting(
        None,
        "Table with the label column, with the same rows in the same order; or past faults, "
        "as CSV of start,end: then the time from alarm to failure is reported too.",
        "FILE",
        flag="--labels",
        panel=_OPERATING,
    )
    causes: Path | None = setting(
        None,
        'JSON file of true channels, {"plant": [{"start": 120, "end": 180, "channels": '
        '["flow"]}]}, by the name of the table; with --model.',
        "FILE",
        panel=_OPERATING,
    )
    drop_missing: bool = setting(
        False, "Drop rows without a label or a score.", flag="--drop-missing"
    )
    as_json: bool = setting(False, "Print one JSON object instead of a table.", flag="--json")

    def refuse_clashes(self) -> None:
        """Refuse options that do not go together, before anything is read."""
        names = ("threshold", "prediction_column")
        given = [f"--{n.replace('_', '-')}" for n in names if getattr(self, n) is not None]
        if len(given) > 1:
            raise InputError("--threshold and --prediction-column cannot be combined; give one")
        if self.model is not None and (given or self.drop_missing):
            other = given[0] if given else "--drop-missing"
            raise InputError(f"--model and {other} cannot be combined: the model makes the alarms")
        if self.model is None and self.causes is not None:
            raise InputError("--causes needs --model, which names channels: add it")
        if self.model is None and not given:
            counted = (("--step-seconds", self.step_seconds), ("--budget", self.budget))
            for name, value in counted:
                if value is not None:
                    raise InputError(
                        f"{name} needs predictions, to count false alarms and delays; "
                        "add --threshold, --prediction-column or --model"
                    )


@dataclass(frozen=True)
class Judged:
    """Scores and alarms on labelled rows, of a model or of columns."""

    scores: NDArray[Any]  # (n_rows,), finite
    words: str = "best threshold for each measure"  # what the predictions are
    predictions: NDArray[Any] | None = None  # (n_rows,)
    counted: Operating | None = None
    alarms: Sequence[tuple[int, int, int]] = ()  # rows [start, end) of events, and of each alarm


def judge_model(path: Path, labels: NDArray[Any], asked: EvaluateOptions) -> Judged:
    """Score rows with a model, and evaluate its events."""
    import numpy as np

    from vace_ad.alarms import Budget
    from vace_ad.app.loading import load_table
    from vace_ad.detector import load
    from vace_ad.frames.read_options import ReadOptions
    from vace_ad.metrics.backtest import operate, read_causes

    assert asked.model is not None
    detector = load(asked.model)
    loaded = load_table(path, ReadOptions(), detector.channels_)
    if len(loaded.table) != len(labels):
        raise InputError(
            f"{path} has {len(loaded.table):,} rows for the model and {len(labels):,} labels; "
            "expected one label a row: sort the table by time and drop repeated times first"
        )
    step = detector.model_.step or _nanoseconds(asked.step_seconds)
    chosen = Budget.of(asked.budget).at(step)
    causes = asked.causes
    known = [] if causes is None else _causes_of(path, read_causes(causes), causes)
    found = detector.detect(loaded.table, budget=chosen, step=step)
    counted = operate(detector, loaded.table, labels, chosen, step=step, causes=known, found=found)
    if not np.isfinite(found.scores).any():
        raise InputError(f"no row of {path} has a score; look for missing values")
    scores = np.nan_to_num(found.scores, nan=float(np.nanmin(found.scores)))
    words = f"events of {asked.model.name}, {found.threshold.words}"
    alarms = [
        (one.start, one.end, one.start if one.alarm is None else one.alarm)
        for one in found.anomalies
    ]
    return Judged(scores, words, found.predictions, counted, alarms)


def past_faults(file: Path | None, column: str) -> list[Span]:
    """The stretches of a file of past faults; none where it has a label for each row."""
    from vace_ad.frames.spans import read_spans

    if file is None or file.suffix not in (".csv", ".txt"):
        return []
    try:
        with file.open(encoding="utf-8-sig") as lines:
            names = lines.readline().replace(";", ",").replace('"', "").strip().split(",")
    except (OSError, UnicodeDecodeError):
        return []  # the reader reports what is wrong
    return [] if column in [name.strip() for name in names] else read_spans(file)


def judge_columns(
    scores: NDArray[Any],
    predictions: NDArray[Any] | None,
    labels: NDArray[Any],
    asked: EvaluateOptions,
) -> Judged:
    """Evaluate given predictions, or those of a threshold; runs of predicted rows are events."""
    import numpy as np

    from vace_ad.frames.segments import run_edges
    from vace_ad.metrics import operating

    words = f"column {asked.prediction_column!r}"
    if predictions is None:
        if asked.threshold is None:
            return Judged(scores)
        predictions, words = scores > asked.threshold, f"score above {asked.threshold:g}"
    rate = None if asked.budget is None else _rate(asked.budget, asked.step_seconds)
    edges = run_edges(np.asarray(predictions) == 1).tolist()
    counted = operating(labels, edges, rate=rate)
    return Judged(scores, words, predictions, counted, [(a, b, a) for a, b in edges])


def in_words(counted: Operating) -> dict[str, str]:
    """The measures for display; what could not be measured is left out."""
    from vace_ad.metrics.operating import EARLY, PLACES

    found = counted.summary()
    allowed = "" if counted.allowed is None else f" ({counted.allowed:.1f} allowed)"
    words = {
        "events found": f"{counted.found} of {counted.events}",
        "false alarms": f"{counted.false_alarms}{allowed}",
        "normal rows inside events": f"{found['normal_rows_in_events']:.2%}",
    }
    if counted.onsets:
        words["onset, median"] = f"{found['onset_median']:+.0f} rows"
        words[f"onset more than {EARLY} rows early"] = f"{found['onset_early_share']:.0%}"
        quartiles = [f"{found[f'length_{which}']:.2f}" for which in ("low", "median", "high")]
        words["length over label, quartiles"] = ", ".join(quartiles)
    if counted.live:
        words["found live"] = f"{len(counted.delays)} of {counted.live}"
    if counted.delays:
        words["delay live, median"] = f"{found['delay_median']:.0f} rows"
        words["delay live, worst"] = f"{found['delay_worst']:.0f} rows"
    if counted.blamed:
        places = ", ".join(str(k) for k in PLACES)
        hits = ", ".join(f"{found[f'blame_{k}']:.2f}" for k in PLACES)
        words[f"true channel in the first {places}"] = f"{hits} ({len(counted.blamed)} events)"
    return words


def _rate(budget: str, step_seconds: float | None) -> float | None:
    from vace_ad.alarms import Budget

    chosen: Budget = Budget.of(budget)
    if chosen.per != "rows" and step_seconds is None:
        raise InputError(
            f"--budget {budget!r} needs the time between rows: add --step-seconds, or write the "
            "budget as '1 in 10000 rows'"
        )
    return chosen.rate(_nanoseconds(step_seconds))


def _nanoseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e9)


def _causes_of(
    path: Path, causes: dict[str, list[dict[str, Any]]], file: Path
) -> list[dict[str, Any]]:
    """The causes of this table: by its name, or the only ones there are."""
    for name in (path.name, path.stem):
        if name in causes:
            return causes[name]
    if len(causes) == 1:
        return next(iter(causes.values()))
    raise InputError(
        f"{file} has no causes of {path.name!r}, only of {listed([*map(repr, causes)], 3)}; name "
        "the entry like the table"
    )
