"""The paper's studies of its own method: ablation, sensitivity, geometry, the MSL series."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from vace_ad.config import VACEConfig
from vace_ad.errors import InputError
from vace_study import published
from vace_study.compare import paired
from vace_study.results import Results
from vace_study.rows import GEOMETRY
from vace_study.series import SeriesName
from vace_study.tables.main import NEWER
from vace_study.tables.table import Cell, Table

_FULL = "vace-released"
_CALIBRATED = "w/o Velocity Pretext (calibrated)"

# The paper's variants with its four marks (channel encoder, pretext, Mahalanobis, direction).
_ABLATIONS = {
    "w/o Channel Encoder": ("vace-no-channel-encoder", (0, 1, 1, 1)),
    "w/o Velocity Pretext": ("vace-no-pretext", (1, 0, 1, 1)),
    _CALIBRATED: ("vace-no-pretext-calibrated", (1, 0, 1, 1)),
    "w/o Mahal. Scoring": ("vace-no-mahalanobis", (1, 1, 0, 1)),
    "w/o Velocity Scoring": ("vace-no-direction", (1, 1, 1, 0)),
    "Full model": (_FULL, (1, 1, 1, 1)),
}
_STD = "std: of the mean VUS-PR over series, between seeds"
_MARKS = ("channel_encoder", "velocity_pretext", "mahalanobis", "velocity_scoring")
_PRINTED = {"VUS-PR": "VUS-PR", "AUC-PR": "AUC-PR", "F1": "Standard-F1"}
_ABLATION_MEASURES = {**_PRINTED, **{name: name for name in NEWER}}

_GEOMETRIES = {
    "w/o Velocity Pretext": "vace-no-pretext",
    _CALIBRATED: "vace-no-pretext-calibrated",
    "w/o BatchNormalisation": "vace-no-batchnorm",
    "Full model": _FULL,
}

# The methods of the paper's settings; a setting without one is the full model's own.
_SETTINGS = {
    ("patch_size", "48"): "vace-patch-48",
    ("patch_size", "128"): "vace-patch-128",
    ("velocity_offset", "24"): "vace-offset-24",
    ("velocity_offset", "96"): "vace-offset-96",
    ("iterations", "10"): "vace-iterations-10",
    ("iterations", "40"): "vace-iterations-40",
    ("velocity_weight", "0.5"): "vace-weight-0.5",
    ("velocity_weight", "2.0"): "vace-weight-2",
    ("channel_expansion", "4"): "vace-expansion-4",
    ("channel_expansion", "16"): "vace-expansion-16",
}


def ablation_table(results: Results) -> Table:
    """What each part is worth: every variant beside the full model on the rows of both."""
    printed = {row["variant"]: row for row in published.table("ablation")}
    pairs = {
        variant: results.matched([_FULL, method])
        for variant, (method, _) in _ABLATIONS.items()
        if method != _FULL and {method, _FULL} <= set(results.methods)
    }
    rows: list[list[Cell]] = []
    for variant, pair in pairs.items():
        method, marks = _ABLATIONS[variant]
        gap = paired(pair.values(method, "VUS-PR"), pair.values(_FULL, "VUS-PR"))
        if gap is None:
            continue  # no series and seed that both have
        against = [pair.mean(_FULL, "VUS-PR"), gap.mean, gap.low, gap.high]
        rows.append([variant, *marks, *_ablation_cells(pair, method), *against,
                     *_beside(printed.get(variant)), gap.n, pair.seeds(method)])  # fmt: skip
    _require(rows, "ablation")
    shown = {(row.series, row.seed) for pair in pairs.values() for row in pair.good}
    full = Results(
        results.protocol,
        [row for row in results.only([_FULL]).rows if (row.series, row.seed) in shown],
    )
    rows.append(["Full model", *_ABLATIONS["Full model"][1], *_ablation_cells(full, _FULL),
                 *[None] * 4, *_beside(printed["Full model"]), len(full.families),
                 full.seeds(_FULL)])  # fmt: skip
    told = [*(pair.only([_ABLATIONS[variant][0]]) for variant, pair in pairs.items()), full]
    columns = (
        "variant", *_MARKS, *_ABLATION_MEASURES, "std", "full model", "difference", "low", "high",
        *(f"published_{name}" for name in _PRINTED), "series", "seeds",
    )  # fmt: skip
    notes = [
        "full model, difference: VUS-PR of the full model on the variant's series and seeds, and "
        "the variant's less it, with the 95 % interval of a paired bootstrap over series; the last "
        "line is the full model on the series and seeds of any variant",
        "the published row without pretext keeps BatchNorm as it is after one batch; the "
        "calibrated one gives it as many batches as the full model",
        "PATE and DQE stand where every row of the line has them, which older ones do not",
        _STD,
        "published: 180 series, ten seeds, test-only",
        *dict.fromkeys(note for each in told for note in each.notes()),
    ]
    table = Table(f"Ablation, protocol {results.protocol}", columns, rows, notes)
    blank = [name for name in NEWER if not any(row[columns.index(name)] for row in rows)]
    return table.only([name for name in columns if name not in blank])


def _ablation_cells(results: Results, method: str) -> list[Cell]:
    means = [results.mean(method, measure) for measure in _ABLATION_MEASURES.values()]
    return [*means, results.spread(method, "VUS-PR")]


def _beside(line: Mapping[str, str] | None) -> list[Cell]:
    return [float(line[name]) if line else None for name in _PRINTED]


def sensitivity_table(results: Results) -> Table:
    """One setting at a time, on the tuning split unless told otherwise."""
    results = results.matched([_FULL, *_SETTINGS.values()])
    rows: list[list[Cell]] = []
    for line in published.table("sensitivity"):
        method = _SETTINGS.get((line["hyperparameter"], line["value"]), _FULL)
        if method in results.methods:
            values = results.values(method, "VUS-PR")
            head: list[Cell] = [line["hyperparameter"], line["value"], fmean(values.values())]
            tail: list[Cell] = [float(line["VUS-PR"]), len(values), results.seeds(method)]
            rows.append([*head, int(method == _FULL), *tail, results.spread(method, "VUS-PR")])
    if set(results.methods) == {_FULL}:
        rows = []  # the full model alone shows nothing
    _require(rows, "sensitivity")
    columns = (
        "hyperparameter",
        "value",
        "VUS-PR",
        "default",
        "published",
        "series",
        "seeds",
        "std",
    )
    notes = [_STD, "published: the 20 tuning series, test-only", *results.notes()]
    return Table(f"Sensitivity, protocol {results.protocol}", columns, rows, notes)


def geometry_table(results: Results) -> Table:
    """Diagnostics of the training embeddings: means over seeds, then over series; std of seeds."""
    printed = {row["variant"]: row for row in published.table("geometry")}
    columns = [name for key in GEOMETRY for name in (key, f"{key}_std")]
    results = Results(results.protocol, [row for row in results.rows if row.geometry])
    results = results.matched(list(_GEOMETRIES.values()))
    rows: list[list[Cell]] = []
    for variant, method in _GEOMETRIES.items():
        if not results.values(method, GEOMETRY[0]):
            continue
        numbers: list[Cell] = []
        for key in GEOMETRY:
            numbers += [results.mean(method, key), results.spread(method, key)]
        n = len(results.values(method, GEOMETRY[0]))
        rows.append([variant, *numbers, "ours", n, results.seeds(method)])
        if variant in printed:
            beside = [float(printed[variant][column]) for column in columns]
            rows.append([variant, *beside, "published", 180, 10])
    _require(rows, "ablation")
    head = ("variant", *columns, "source", "series", "seeds")
    return Table(
        f"Geometry of the embeddings, protocol {results.protocol}", head, rows, results.notes()
    )


def msl_table(results: Results) -> Table:
    """The MSL series without (NCA) and with (FM) the channel encoder, by the seeds of both."""
    methods = {"NCA": "vace-no-channel-encoder", "FM": _FULL}
    results = results.matched(list(methods.values()))
    values = {key: results.values(name, "VUS-PR") for key, name in methods.items()}
    active = {key: results.values(name, "active_dims") for key, name in methods.items()}
    by_name = {SeriesName.parse(stem).short: stem for stem in results.families}
    size = VACEConfig().reproduction.embedding_size
    rows: list[list[Cell]] = []
    for line in published.table("msl"):
        stem = by_name.get(line["series"], "")
        if any(stem in column for column in values.values()):
            ours: list[Cell] = [column.get(stem) for column in values.values()]
            dims = [_dims(column.get(stem), size) for column in active.values()]
            beside = [float(line["NCA"]), float(line["FM"])]
            dims_beside = [int(line["active_NCA"]), int(line["active_FM"])]
            rows.append([line["series"], *ours, *dims, *beside, *dims_beside])
    _require(rows, "vace-released,vace-no-channel-encoder --family MSL")
    rows.append(["mean", *(_column_mean(rows, i) for i in range(1, len(rows[0])))])
    columns = ("series", "NCA", "FM", "active_NCA", "active_FM")
    return Table(
        f"MSL series, protocol {results.protocol}",
        (*columns, *(f"published_{name}" for name in columns[1:])),
        rows,
        ["published: ten seeds, test-only", *results.notes()],
    )


def _dims(share: float | None, size: int) -> int | None:
    return None if share is None else round(share * size)


def _column_mean(rows: list[list[Cell]], column: int) -> float | None:
    numbers = [float(row[column]) for row in rows if isinstance(row[column], float | int)]  # type: ignore[arg-type]
    return fmean(numbers) if numbers else None


def _require(rows: list[list[Cell]], methods: str) -> None:
    if not rows:
        raise InputError(f"the run holds no row for this table; run --methods {methods} first")
