r"""Amazon Lookout for Equipment: its data as one table, and its JSON lines as an output.

A folder holds CSV files of one asset, each with a timestamp first: in a folder for each component,
or side by side. Sensors become columns `component/sensor`. Lookout writes them `component\sensor`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from vace_ad.app.loading import joined, timed_frame
from vace_ad.detection import Detection
from vace_ad.errors import InputError
from vace_ad.frames.spans import Span, read_spans
from vace_ad.frames.table import Table

TRAINING = ("training-data", "training_data")  # folders of AWS's own examples
LABELS = ("label-data", "label_data", "labels")
OTHERS = ("inference-data", "inference_data")
ANOMALY, NORMAL, OFF = "ANOMALY_DETECTED", "NO_ANOMALY_DETECTED", "MACHINE_OFF"
_UNITS = {"S": "s", "M": "min", "H": "h"}
_RATE = re.compile(r"PT(\d+)([SMH])")


@dataclass(frozen=True)
class Asset:
    """The data of an asset and the settings of its model."""

    frame: pl.DataFrame  # `timestamp`, then the sensors
    faults: tuple[Span, ...] = ()
    off: str | None = None  # a condition, as `--off-when` takes it
    every: str | None = None  # sampling rate, as `--resample` takes it
    until: str | None = None  # end of the training rows

    def options(self) -> dict[str, str]:
        """What `vace detect` is to be told besides the files."""
        given = {"off-when": self.off, "resample": self.every, "train-until": self.until}
        return {name: value for name, value in given.items() if value is not None}


def read_asset(folder: Path, labels: Path | None = None, model: Path | None = None) -> Asset:
    """Read the folder of an asset, its labels and the answer of `describe-model`, if any.

    Without `labels` the files in a folder `label-data` are taken, without `model` `model.json`.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the one that holds the CSV files")
    data = next((folder / name for name in TRAINING if (folder / name).is_dir()), folder)
    parts = _sensors(data)
    if not parts:
        raise InputError(
            f"{data} holds no CSV file, nor do its folders; expected is a folder for each "
            "component with CSV files whose first column is a timestamp"
        )
    files = [labels] if labels is not None else sorted(_label_files(folder))
    faults = tuple(one for file in files for one in read_spans(file))
    if model is None and (folder / "model.json").is_file():
        model = folder / "model.json"
    settings = {} if model is None else _settings(model)
    return Asset(joined(parts, data), faults, **settings)


def _label_files(folder: Path) -> Iterator[Path]:
    for name in LABELS:
        yield from (folder / name).glob("*.csv")
        if (folder / f"{name}.csv").is_file():
            yield folder / f"{name}.csv"


def _sensors(data: Path) -> list[pl.DataFrame]:
    """A table for each component; files of the same columns follow each other in time."""
    found = []
    skipped = {*LABELS, *OTHERS}
    labels = {f"{name}.csv" for name in LABELS}
    for component in sorted(path for path in data.iterdir() if path.is_dir()):
        files = sorted(component.rglob("*.csv")) if component.name not in skipped else []
        found += [timed_frame(alike, f"{component.name}/") for alike in _alike(files)]
    single = sorted(path for path in data.glob("*.csv") if path.name not in labels)
    return found + [timed_frame(alike) for alike in _alike(single)]


def _alike(files: list[Path]) -> list[list[Path]]:
    groups: dict[str, list[Path]] = {}
    for file in files:
        with file.open(encoding="utf-8-sig", errors="replace") as lines:
            groups.setdefault(lines.readline().strip(), []).append(file)
    return list(groups.values())


def _settings(file: Path) -> dict[str, Any]:
    """The off condition, the sampling rate and the end of training of a model's description."""
    try:
        text = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read as JSON: {error}") from error
    if not isinstance(text, dict):
        raise InputError(f"{file} holds no object; expected is the answer of describe-model")
    rate = (text.get("DataPreProcessingConfiguration") or {}).get("TargetSamplingRate")
    until = text.get("TrainingDataEndTime")
    return {
        "off": off_condition(text["OffCondition"]) if text.get("OffCondition") else None,
        "every": None if rate is None else sampling_rate(str(rate)),
        "until": None if until is None else _moment(until),
    }


def off_condition(text: str) -> str:
    r"""`component\sensor < 5.0` as a condition of `off`."""
    found = re.fullmatch(r"\s*(.+?)\s*(==|!=|<=|>=|<|>|=)\s*(\S+)\s*", text)
    if found is None:
        raise InputError(
            f"the off condition {text!r} is not understood; expected is component\\sensor, a "
            "comparison and a number, such as pump\\speed < 5"
        )
    name, sign, value = found.groups()
    return f"`{name.replace(chr(92), '/')}` {sign} {value}"


def sampling_rate(text: str) -> str:
    """`PT5M` as `5min`."""
    found = _RATE.fullmatch(text)
    if found is None:
        raise InputError(
            f"the sampling rate {text!r} is not understood; expected is PT1S to PT1H, such as PT5M"
        )
    return f"{found[1]}{_UNITS[found[2]]}"


def _moment(value: str | float) -> str:
    """A time as ISO 8601: the command line of AWS prints text, the interface seconds."""
    if isinstance(value, str):
        return value
    return datetime.fromtimestamp(value, UTC).isoformat()


def prediction_lines(table: Table, found: Detection) -> Iterator[str]:
    """Each row that was judged or off as Lookout writes it; rows without a score are left out.

    `anomaly_score` is the severity / 100 of the anomaly that a row is in, 0 outside. Diagnostics
    are the shares of its sensors, which sum to 1, for rows of an anomaly.
    """
    if table.time is None:
        raise InputError("JSON lines of this form need times, and the rows have none")
    stamps = np.datetime_as_string(table.time.astype("datetime64[us]"))
    off = np.zeros(len(table), bool)
    for stretch in found.idle:
        off[stretch.start : stretch.end] = True
    shares = np.full(len(table), -1)
    for i, event in enumerate(found.anomalies):
        shares[event.start : event.end] = i
    diagnostics = [_diagnostics(table.names, dict(event.shares)) for event in found.anomalies]
    units = found.unit_scores
    for row, stamp in enumerate(stamps.tolist()):
        line: dict[str, Any] = {"timestamp": stamp, "prediction": 0, "prediction_reason": OFF}
        if not off[row]:
            if np.isnan(units[row]):
                continue
            anomalous = bool(shares[row] >= 0)
            line |= {"prediction": int(anomalous), "anomaly_score": float(units[row])}
            line["prediction_reason"] = ANOMALY if anomalous else NORMAL
            if anomalous:
                line["diagnostics"] = diagnostics[shares[row]]
        yield json.dumps(line)


def _diagnostics(names: tuple[str, ...], shares: dict[str, float]) -> list[dict[str, Any]]:
    total = sum(shares.values()) or 1.0
    return [
        {"name": name.replace("/", "\\", 1), "value": shares.get(name, 0.0) / total}
        for name in names
    ]
