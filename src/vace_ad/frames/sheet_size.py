"""How many cells a workbook's sheets span, before a reader lays them out.

A reader of sheets reserves every cell between the first and the last, so that one cell in the last
corner, or one that is repeated, takes more memory than the file has any right to.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator

from vace_ad.frames.limits import check_cells, too_large

# What a damaged, locked or foreign archive ends in.
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)
_BLOCK = 1 << 20
_TAIL = 4096  # bytes of a block that are looked at again with the next: longer than any tag here
_CELL = re.compile(rb"""\sr=["']([A-Z]{1,3})(\d{1,7})["']""")  # of .xlsx
_REPEATS = re.compile(  # of .ods: a cell with a value, or the beginning of a row
    rb"<table:(table-row|table-cell)\b([^>]*)>"
)
_COUNT = re.compile(rb"""number-(?:rows|columns)-repeated=["'](\d+)["']""")
_CELL_BYTES = 32  # that a reader of sheets takes for a cell, empty or not


def check_sheets(name: str, data: bytes, most: int) -> None:
    """Refuse a workbook whose sheets would take more than `most` bytes."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(part.file_size for part in archive.infolist()) > most:
            raise too_large(name, most)
        for part in archive.infolist():
            if part.filename.startswith("xl/worksheets/") and part.filename.endswith(".xml"):
                rows, columns = _last_cell(_blocks(archive, part))
            elif part.filename == "content.xml":
                rows, columns = _repeated(_blocks(archive, part))
            else:
                continue
            check_cells(name, rows, columns, most, cell=_CELL_BYTES)


def _blocks(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> Iterator[bytes]:
    tail = b""
    with archive.open(part) as file:
        while block := file.read(_BLOCK):
            yield tail + block
            tail = block[-_TAIL:]


def _last_cell(blocks: Iterator[bytes]) -> tuple[int, int]:
    """The last row and column that a sheet names."""
    rows, letters = 0, set[bytes]()
    for block in blocks:
        found = _CELL.findall(block)
        letters.update(column for column, _ in found)
        rows = max(rows, max((int(row) for _, row in found), default=0))
    return rows, max(map(_column, letters), default=0)


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _repeated(blocks: Iterator[bytes]) -> tuple[int, int]:
    """Rows and columns of an OpenDocument sheet, repeated cells with a value counted."""
    rows = columns = 0
    for block in blocks:
        repeat = width = 1
        for kind, attributes in _REPEATS.findall(block):
            count = _COUNT.search(attributes)
            times = int(count[1]) if count else 1
            if kind == b"table-row":
                repeat, width = times, 0
            elif b"value-type" in attributes:
                width += times
                rows, columns = max(rows, repeat), max(columns, width)
    return rows, columns
