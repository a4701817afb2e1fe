"""`vace_ad.read`: the reader of the command line, for Python."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import fields
from typing import Any

import polars as pl

from vace_ad.app.loading import load_any, read_keyed
from vace_ad.errors import ConfigError, VaceWarning
from vace_ad.frames.read_options import ReadOptions
from vace_ad.settings import spelt

_OF_FITS = ("where", "labels")
_KEYWORDS = [
    each for each in fields(ReadOptions) if "help" in each.metadata and each.name not in _OF_FITS
]


def read(places: Any, **how: Any) -> pl.DataFrame:
    """Read a table as the command line does: a polars table of its time and its channels.

    `places` is a path, a folder, a glob, a pattern such as ``data/{machine}.csv``, a connection
    string, or a list of them; the format is told from the content. It may also be a pandas, polars
    or Arrow table: an irregular one is evened out by ``read(table, resample="1min")``, as on the
    command line. Columns that are left out, gaps and similar findings are reported as
    :class:`vace_ad.errors.VaceWarning`. Keywords are the options of `vace detect`.

    With ``by``, the columns that identify a machine stay in the table, for
    :class:`vace_ad.fleet.Fleet`; each machine's rows are then checked where they are used.
    """
    known = [each.name for each in _KEYWORDS]
    for name in how:
        if name == "where":
            raise ConfigError(
                "where chooses the rows that `vace detect` and `vace fit` learn from; here, filter "
                "the table before the fit"
            )
        if name == "labels":
            raise ConfigError(
                "labels are past faults, which `VACE.fit` takes: fit(table, labels=…)"
            )
        if name not in known:
            raise ConfigError(
                f"{name!r} is not an option of read; the options are {', '.join(known)}"
            )
    reading = ReadOptions(**how)
    if reading.by is not None:
        frame, notes = read_keyed(places, reading)
    else:
        loaded = load_any(places, reading)
        frame, notes = loaded.frame(), loaded.notes
    for note in notes:
        warnings.warn(spelt(note), VaceWarning, stacklevel=2)
    return frame


# What `help` and editors show: each keyword with its meaning, from where it is declared.
read.__doc__ = "\n".join(
    [inspect.cleandoc(read.__doc__ or ""), "", "Parameters", "----------"]
    + [
        f"{each.name} : {each.type}, default {each.default!r}\n    {each.metadata['help']}"
        for each in _KEYWORDS
    ]
)
read.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter("places", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        *(
            inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default)
            for each in _KEYWORDS
        ),
    ]
)
