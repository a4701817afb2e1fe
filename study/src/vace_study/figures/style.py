"""One look for all figures, and how they are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vace_ad.errors import ConfigError, MissingExtraError
from vace_study import published
from vace_study.results import Results

# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
MARKS = "osD^vPX*<>hpd8H"
ANOMALY, TRAINING, GRID = "#E53935", "#EEF2F6", "#DDDDDD"

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#444444",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "savefig.bbox": "tight",
    "svg.hashsalt": "vace",  # the same picture gives the same file
}


@contextmanager
def canvas(rows: int, columns: int, size: tuple[float, float], **kwargs: Any) -> Iterator[Any]:
    """A figure and its axes (rows, columns), drawn without a screen, closed at the end."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError("a figure", "matplotlib", "plot") from error
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        yield figure, figure.subplots(rows, columns, squeeze=False, **kwargs)


def save(figure: Any, folder: str | Path, name: str) -> list[Path]:
    """Write PNG and SVG, without a date, so that a repeated run changes nothing."""
    import matplotlib

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    with matplotlib.rc_context(_STYLE):
        figure.savefig(paths[0], metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def values_of(results: Results, name: str) -> dict[str, float]:
    """VUS-PR by series of a method of the run, or of a published system such as `PCA`."""
    if name in results.methods:
        return results.values(name, "VUS-PR")
    known = published.per_series()
    if name in known and results.protocol == "tsb-ad":
        return {series: known[name][series] for series in results.families if series in known[name]}
    raise ConfigError(
        f"the run holds no result of {name!r}; it holds {', '.join(results.methods)}"
        + (f"; published: {', '.join(known)}" if results.protocol == "tsb-ad" else "")
    )


def chosen(results: Results, methods: Sequence[str], least: int = 1) -> list[str]:
    """The methods asked for, else those of the run."""
    names = list(methods) or list(results.methods)
    if len(names) < least:
        raise ConfigError(
            f"this figure needs {least} methods or more, {len(names)} came; name them with "
            "--methods, published systems such as PCA or DeepAnT too"
        )
    return names
