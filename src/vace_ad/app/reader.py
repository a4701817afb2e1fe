"""`vace_ad.read`: the reader of the command line, for Python."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from vace_ad.caller import spelt
from vace_ad.errors import ConfigError, VaceWarning

if TYPE_CHECKING:
    import polars as pl


def read(places: Any, **how: Any) -> pl.DataFrame:
    """Read a table as the command line does: a polars table of its time and its channels.

    `places` is a path, a folder, a glob, a pattern such as ``data/{machine}.csv``, a connection
    string, or a list of them; the format is told from the content. It may also be a pandas, polars
    or Arrow table: an irregular one is evened out by ``read(table, resample="1min")``, as on the
    command line. Keywords are the command
    line's options: ``time_column``, ``time_zone``, ``sort``, ``resample``, ``columns``,
    ``drop``, ``long``, ``by``, ``sheet``, ``header_row``, ``query``, ``max_size``,
    ``delimiter``, ``decimal``, ``encoding``, ``header``. What was done about odd columns, gaps
    and the like comes as :class:`vace_ad.errors.VaceWarning`.

    With ``by``, the columns that name a machine stay in the table, for
    :class:`vace_ad.fleet.Fleet`; each machine's rows are then checked where they are used.
    """
    from vace_ad.app.loading import Reading, load_any

    known = [name for name in Reading.__dataclass_fields__ if name != "options"]
    for name in how:
        if name not in known:
            raise ConfigError(
                f"{name!r} is not a way to read a table; there are {', '.join(known)}"
            )
    reading = Reading(**how)
    if reading.where is not None:
        raise ConfigError(
            "where chooses the rows that `vace detect` and `vace fit` learn from; here, filter the "
            "table before the fit"
        )
    if reading.by is not None:
        from vace_ad.app.keyed import read_keyed

        frame, notes = read_keyed(places, reading)
    else:
        loaded = load_any(places, reading)
        frame, notes = loaded.frame(), loaded.notes
    for note in notes:
        warnings.warn(spelt(note), VaceWarning, stacklevel=2)
    return frame
