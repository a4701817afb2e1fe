"""Tables of every format that is read, by the reader and now and then by the whole command."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sqlite3
import sys
import warnings
import zipfile
import zlib
from datetime import timedelta
from pathlib import Path
from random import Random

import numpy as np
import polars as pl

from fuzz.mutate import cells_damaged, damaged, json_text_damaged
from fuzz.target import BrokenError, Target
from vace_ad.app.loading import load_table
from vace_ad.cli.main import main
from vace_ad.errors import VaceWarning
from vace_ad.frames.read_options import ReadOptions
from vace_ad.frames.where import rows_where

N = 60
RESULTS = {"events.csv", "report.html", "run.json", "scores.parquet", "model.vace"}


def frame(n: int = N) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    time = np.datetime64("2026-01-01T00:00", "us") + np.arange(n) * np.timedelta64(60, "s")
    waves = np.sin(np.arange(n)[:, None] / [2.0, 5.0]) + 0.1 * rng.normal(size=(n, 2))
    columns = {"time": time, "flow": waves[:, 0].round(3), "level": waves[:, 1].round(3)}
    return pl.DataFrame(columns).with_columns(state=pl.lit(1))


def odd_frames() -> list[pl.DataFrame]:
    """Tables of columns that no sensor gives."""
    n = 30
    plain, numbers = frame(n), pl.Series(range(n))
    odd = {
        "list": pl.Series([[1.0, 2.0]] * n),
        "struct": pl.Series([{"a": 1, "b": "x"}] * n),
        "binary": pl.Series([b"\xff\x00"] * n),
        "null": pl.Series([None] * n),
        "decimal": numbers.cast(pl.Decimal(20, 3)),
        "duration": pl.Series([timedelta(seconds=i) for i in range(n)]),
        "category": pl.Series(["a", "b", "c"] * (n // 3)).cast(pl.Categorical),
        "flag": pl.Series([True, False] * (n // 2)),
        "day": numbers.cast(pl.Date),
        "clock": pl.Series([0] * n).cast(pl.Time),
        "large": pl.Series([2**63 + i for i in range(n)], dtype=pl.UInt64),
        "wild": pl.Series([float("nan"), float("inf"), -1e308] * (n // 3)),
        "text": pl.Series(["1", "x", ""] * (n // 3)),
        "array": pl.Series([[1, 2]] * n, dtype=pl.Array(pl.Int8, 2)),
    }
    whole = plain.with_columns(column.alias(name) for name, column in odd.items())
    return [whole, *(plain.with_columns(c.alias(name)) for name, c in odd.items())]


class Table(Target):
    """A file that is read as a table."""

    suffix = ".csv"

    def __init__(self) -> None:
        warnings.simplefilter("ignore", VaceWarning)

    def run(self, data: bytes, folder: Path, *, thorough: bool = False) -> None:
        path = folder / f"t{self.suffix}"
        path.write_bytes(data)
        try:
            loaded = load_table(path, ReadOptions(max_size="300MB"))
            shape = (len(loaded.table), len(loaded.table.names))
            if loaded.table.values.shape != shape or not all(shape):
                raise BrokenError(f"a table of shape {loaded.table.values.shape}, not {shape}")
            loaded.source.words()
            loaded.frame()
        finally:
            if thorough or zlib.crc32(data) % 25 == 0:
                command(path, folder)


def command(path: Path, folder: Path) -> None:
    """`vace detect`: one sentence and status 2, or status 0 and whole results."""
    out, said = folder / "out", io.StringIO()
    quick = ["--patch-length", "8", "--set", "encoders=1", "--set", "engine=numpy"]
    before, sys.argv = sys.argv, ["vace", "detect", str(path), "--out", str(out), *quick]
    sys.argv += ["--max-size", "300MB"]
    status: object = None
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            main()
    except SystemExit as ended:
        status = ended.code or 0
    finally:
        sys.argv = before
    left = {each.name for each in folder.iterdir()} - {path.name, "out"}
    if status not in (0, 2):
        raise BrokenError(f"status {status}: {said.getvalue()[-300:]}")
    if status == 2 and said.getvalue().count("\n") != 1:
        raise BrokenError(f"more than one sentence: {said.getvalue()[:300]}")
    if left or (out.exists() and not {each.name for each in out.iterdir()} >= RESULTS):
        raise BrokenError(f"half-written results: {sorted(left)}, status {status}")


class Csv(Table):
    """Text with cells: delimiters, decimal signs, encodings, headers."""

    def seeds(self) -> list[bytes]:
        plain = frame().write_csv().encode()
        german = frame(20).write_csv(separator=";").replace(".", ",").encode("utf-16")
        long = frame(20).unpivot(index="time").write_csv(separator="\t").encode()
        bare = frame(20).drop("time").write_csv(include_header=False).encode()
        units = b"# made by a logger\n\ntime,flow\n,[m3/h]\n" + plain.split(b"\n", 1)[1]
        quoted = frame(20).write_csv(quote_style="always", line_terminator="\r\n").encode("latin-1")
        groups = "Bericht;;\n\nZeit;Pumpe 1;\n;Druck;Druck\n;bar;°C\n" + "".join(
            f"19-Sep-26 00:{i:02}:00;38.15{i % 9},00;{i % 7},5\n" for i in range(20)
        )
        days = "Datum\tx\n" + "".join(f"{46284 + i / 144}\t{i % 5}\n" for i in range(20))
        return [plain, german, long, bare, units, quoted, groups.encode(), days.encode()]

    def damage(self, data: bytes, rng: Random) -> bytes:
        return rng.choice((damaged, cells_damaged, cells_damaged))(data, rng)


class Parquet(Table):
    """Typed files with a footer; also columns of types that no sensor has."""

    suffix = ".parquet"

    def seeds(self) -> list[bytes]:
        return [self.packed(each) for each in (frame(), *odd_frames())]

    def packed(self, table: pl.DataFrame) -> bytes:
        file = io.BytesIO()
        table.write_parquet(file, compression="uncompressed")
        return file.getvalue()

    def damage(self, data: bytes, rng: Random) -> bytes:
        return damaged(data, rng)


class Arrow(Parquet):
    """Arrow files and streams."""

    suffix = ".arrow"

    def seeds(self) -> list[bytes]:
        file = io.BytesIO()
        frame().write_ipc_stream(file)
        return [*super().seeds(), file.getvalue()]

    def packed(self, table: pl.DataFrame) -> bytes:
        file = io.BytesIO()
        table.write_ipc(file)
        return file.getvalue()


class PackedArrow(Arrow):
    """Arrow files and streams whose buffers are packed, each with the size it claims."""

    def packed(self, table: pl.DataFrame) -> bytes:
        file = io.BytesIO()
        table.write_ipc(file, compression="zstd")
        return file.getvalue()


class Sqlite(Table):
    """Databases, and what is asked of them."""

    suffix = ".db"

    def seeds(self) -> list[bytes]:
        database = sqlite3.connect(":memory:")
        database.execute("CREATE TABLE readings (time TEXT, flow REAL, level REAL)")
        rows = [(str(time), flow, level) for time, flow, level, _ in frame(200).iter_rows()]
        database.executemany("INSERT INTO readings VALUES (?, ?, ?)", rows)
        database.commit()
        with contextlib.closing(database):
            return [database.serialize()]

    def damage(self, data: bytes, rng: Random) -> bytes:
        return damaged(data, rng)

    def run(self, data: bytes, folder: Path, *, thorough: bool = False) -> None:
        path = folder / "t.db"
        path.write_bytes(data)
        try:
            how = ReadOptions(query="SELECT * FROM readings", max_size="300MB")
            load_table(f"sqlite:///{path}", how)
        finally:
            if path.read_bytes() != data or list(folder.iterdir()) != [path]:
                raise BrokenError("reading wrote something")


class Where(Target):
    """Conditions on rows, in words."""

    def seeds(self) -> list[bytes]:
        return [
            b"state == 1 and flow > -0.5 or not (level <= 1e3)",
            b"`flow` != 3 and name == 'run'",
        ]

    def damage(self, data: bytes, rng: Random) -> bytes:
        return rng.choice((damaged, cells_damaged))(data, rng)

    def run(self, data: bytes, folder: Path, *, thorough: bool = False) -> None:
        table = frame().with_columns(name=pl.lit("run"))
        rows = rows_where(table, data.decode("utf-8", "replace"))
        if rows.dtype != pl.Boolean or len(rows) != len(table) or rows.null_count():
            raise BrokenError("a condition that does not say of each row whether it holds")


class Json(Table):
    """JSON lines, lists of objects, columns, and the answers of Prometheus."""

    suffix = ".json"

    def seeds(self) -> list[bytes]:
        small, stamps = frame(20), [1_767_225_600 + 60 * i for i in range(20)]
        cells = [[stamp, str(i % 7)] for i, stamp in enumerate(stamps)]
        series = [{"metric": {"__name__": "up", "job": job}, "values": cells} for job in ("a", "b")]
        answer = {"status": "success", "data": {"resultType": "matrix", "result": series}}
        rows = json.loads(small.write_json())
        columns = {name: small[name].to_list() for name in ("flow", "level")}
        return [
            small.write_ndjson().encode(),
            *(json.dumps(each).encode() for each in (rows, columns, answer)),
        ]

    def damage(self, data: bytes, rng: Random) -> bytes:
        if data.count(b"\n") > 2 and rng.random() < 0.7:
            lines = data.splitlines()
            i = rng.randrange(len(lines))
            lines[i] = json_text_damaged(lines[i], rng)
            return b"\n".join(lines) + b"\n"
        return rng.choice((damaged, json_text_damaged, json_text_damaged))(data, rng)


class LineProtocol(Table):
    """What programs send to InfluxDB."""

    suffix = ".lp"

    def seeds(self) -> list[bytes]:
        stamps = [(1_767_225_600 + 60 * i) * 10**9 for i in range(20)]
        plain = "".join(f"pump,site=a\\ b,id={i % 2} flow={i}.5,on=t {s}\n" for i, s in
                        enumerate(stamps))  # fmt: skip
        kinds = "".join(f'm f=1i,u=2u,s="a \\"b\\" ,=",b=false,x=1e3 {s}\n' for s in stamps)
        return [plain.encode(), kinds.encode()]

    def damage(self, data: bytes, rng: Random) -> bytes:
        return rng.choice((damaged, cells_damaged, cells_damaged))(data, rng)


class Excel(Table):
    """Workbooks: the archive, and the XML in it."""

    suffix = ".xlsx"

    def seeds(self) -> list[bytes]:
        import openpyxl

        books = []
        for gap in (0, 2):
            book, file = openpyxl.Workbook(), io.BytesIO()
            sheet = book.active
            for _ in range(gap):
                sheet.append(["written by hand"])
            sheet.append(["time", "flow", "note"])
            for time, flow, *_ in frame(20).iter_rows():
                sheet.append([time, flow, "=1+1" if gap else "x"])
            book.save(file)
            books.append(file.getvalue())
        return books

    def damage(self, data: bytes, rng: Random) -> bytes:
        if rng.random() < 0.2:
            return damaged(data, rng)
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                parts = {name: archive.read(name) for name in archive.namelist()}
            name = rng.choice([*parts, *(part for part in parts if "sheet" in part)])
        except (zipfile.BadZipFile, OSError, EOFError, zlib.error, IndexError, NotImplementedError,
                RuntimeError, ValueError):  # fmt: skip
            return damaged(data, rng)
        parts[name] = rng.choice((damaged, _tags_damaged))(parts[name], rng)
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for part, content in parts.items():
                archive.writestr(part, content)
        return file.getvalue()


def _tags_damaged(data: bytes, rng: Random) -> bytes:
    return cells_damaged(data.replace(b"<", b"\n<"), rng, b'"= >').replace(b"\n<", b"<")


class Packed(Csv):
    """Compressed text: the container, what is in it, and what unpacks to much."""

    suffix = ".csv.gz"

    def seeds(self) -> list[bytes]:
        plain = super().seeds()
        bomb = gzip.compress(b"time,flow\n" + b"2026-01-01,0\n" * 200_000)
        members = gzip.compress(plain[0][:500]) + gzip.compress(plain[0][500:])
        zst = io.BytesIO()
        frame().write_csv(zst, compression="zstd", check_extension=False)
        inside = [gzip.compress(seed) for seed in (plain[0], Parquet().seeds()[0])]
        return [*inside, members, bomb, zst.getvalue()]

    def damage(self, data: bytes, rng: Random) -> bytes:
        if rng.random() < 0.5:
            return damaged(data, rng)
        try:
            inner = zlib.decompressobj(wbits=31).decompress(data, 10**6)
        except zlib.error:
            return damaged(data, rng)
        return gzip.compress(super().damage(inner, rng), 1)
