"""Tables in and out: numpy, pandas, polars, Arrow and files; time, gaps, names."""

from vace_ad.frames.table import Table, as_table

__all__ = ["Table", "as_table"]
