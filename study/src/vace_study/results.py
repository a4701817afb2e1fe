"""The rows of a run, averaged: over seeds first, then over series."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import TypeVar

from vace_ad.errors import InputError
from vace_study.protocols import PROTOCOLS, check_protocols
from vace_study.rows import Row
from vace_study.store import read_rows

T = TypeVar("T")


@dataclass(frozen=True)
class Results:
    """What a run found under one protocol."""

    protocol: str
    rows: Sequence[Row]  # every status
    left_out: tuple[str, ...] = ()  # methods with too few series for a comparison

    @classmethod
    def load(cls, folder: str | Path, protocol: str | None = None, split: str = "all") -> Results:
        """Read a run; without a protocol, `tsb-ad` where the run holds it, else the other."""
        rows = [row for row in read_rows(folder) if split in ("all", row.split)]
        if not rows:
            raise InputError(f"{folder} holds no row of the split {split!r}")
        present = {row.protocol for row in rows}
        if protocol is None:
            protocol = next(name for name in PROTOCOLS if name in present)
        check_protocols((protocol,))
        if protocol not in present:
            raise InputError(
                f"{folder} holds no row of the protocol {protocol}, only of {', '.join(present)}"
            )
        return cls(protocol, [row for row in rows if row.protocol == protocol])

    def common(self, least: int = 1) -> Results:
        """Only the series on which every method has a result.

        Where these are fewer than `least`, the method with the fewest series is left out, and the
        next, until they are not; `left_out` names them.
        """
        each = {method: set(self.values(method, "VUS-PR")) for method in self.methods}
        shared, left_out = _shared(each.values()), []
        while len(each) > 1 and len(shared) < least:
            fewest = min(each, key=lambda method: len(each[method]))
            left_out.append(fewest)
            del each[fewest]
            shared = _shared(each.values())
        rows = [row for row in self.rows if row.series in shared and row.method not in left_out]
        return Results(self.protocol, rows, tuple(left_out))

    def only(self, methods: Collection[str]) -> Results:
        """The rows of these methods."""
        return Results(self.protocol, [row for row in self.rows if row.method in methods])

    def matched(self, methods: Sequence[str]) -> Results:
        """These methods, as far as they ran, on the series and seeds that all of them have.

        Differences between them then come from the methods alone.
        """
        each = {
            method: {(row.series, row.seed) for row in self.good if row.method == method}
            for method in methods
        }
        shared = _shared(found for found in each.values() if found)
        rows = [
            row
            for row in self.rows
            if row.method in each and (row.status != "ok" or (row.series, row.seed) in shared)
        ]
        return Results(self.protocol, rows)

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """The methods that have a result, in the order of their first row."""
        return tuple(dict.fromkeys(row.method for row in self.good))

    @cached_property
    def good(self) -> list[Row]:
        """The rows with measures."""
        return [row for row in self.rows if row.status == "ok"]

    @cached_property
    def families(self) -> dict[str, str]:
        """Each series that has a result, and its family."""
        return {row.series: row.family for row in self.good}

    def values(self, method: str, measure: str) -> dict[str, float]:
        """A measure, or a number of the geometry, by series; the mean over seeds."""
        found: dict[str, list[float]] = defaultdict(list)
        for row in self.good:
            if row.method == method and (value := _number(row, measure)) is not None:
                found[row.series].append(value)
        return {series: fmean(each) for series, each in found.items()}

    def mean(self, method: str, measure: str) -> float | None:
        """The mean over series; None where a series of the method has no row with the measure."""
        found = self.values(method, measure)
        whole = found and len(found) == len(self.values(method, "VUS-PR"))
        return fmean(found.values()) if whole else None

    def by_seed(self, method: str, measure: str) -> dict[int, float]:
        """The mean over series for each seed, of the series that every seed has."""
        table: dict[int, dict[str, float]] = defaultdict(dict)
        for row in self.good:
            if row.method == method and (value := _number(row, measure)) is not None:
                table[row.seed][row.series] = value
        if not table:
            return {}
        shared = set.intersection(*(set(column) for column in table.values()))
        return {
            seed: fmean(column[name] for name in shared) for seed, column in table.items() if shared
        }

    def spread(self, method: str, measure: str) -> float | None:
        """The standard deviation between seeds of the mean over series; None for one seed."""
        means = list(self.by_seed(method, measure).values())
        return stdev(means) if len(means) > 1 else None

    def cost(self, method: str, what: str) -> dict[str, float]:
        """A cost of a method by series, such as `cpu_seconds`; the mean over the rows that know."""
        found: dict[str, list[float]] = defaultdict(list)
        for row in self.good:
            if row.method == method and (value := getattr(row, what)) is not None:
                found[row.series].append(value)
        return {series: fmean(each) for series, each in found.items()}

    def seeds(self, method: str) -> int | str:
        """How many seeds a method ran with on each series; "1 to 3" where not the same on all."""
        counts = self._seed_counts(method).values()
        fewest, most = min(counts, default=0), max(counts, default=0)
        return most if fewest == most else f"{fewest} to {most}"

    def _seed_counts(self, method: str) -> dict[str, int]:
        """The number of seeds by series."""
        return Counter(row.series for row in self.good if row.method == method)

    def notes(self) -> list[str]:
        """What a reader must know: failures, caps, series without anomalies, uneven coverage."""
        notes = []
        failed = [row for row in self.rows if row.status == "failed"]
        for method in dict.fromkeys(row.method for row in failed):
            mine = [row for row in failed if row.method == method]
            notes.append(
                f"{method}: {len(mine)} rows failed, first {mine[0].series}: {mine[0].error}"
            )
        for method in self.methods:
            mine = [row for row in self.good if row.method == method]
            capped = [[note for note in row.notes if note.startswith("capped: ")] for row in mine]
            if any(capped):
                first = next(each for each in capped if each)
                notes.append(
                    f"{method}: {sum(map(bool, capped))} of {len(mine)} rows with caps to save "
                    f"time, first {', '.join(first)}"
                )
        for method in self.methods:
            counts = self._seed_counts(method)
            every = len({row.seed for row in self.good if row.method == method})
            if (whole := sum(n == every for n in counts.values())) < len(counts):
                notes.append(
                    f"{method}: {every} seeds on {whole} of {len(counts)} series, fewer on the "
                    "others; a deviation between seeds is of the series with all"
                )
        quiet = dict.fromkeys(row.series for row in self.rows if row.status == "no-anomaly")
        if quiet:
            notes.append(f"no anomaly in the evaluated rows: {', '.join(quiet)}")
        if self.left_out:
            notes.append(f"left out, with too few series: {', '.join(self.left_out)}")
        sizes = {name: len(self.values(name, "VUS-PR")) for name in self.methods}
        if len(set(sizes.values())) > 1:
            each = ", ".join(f"{name} {count}" for name, count in sizes.items())
            notes.append(f"the methods have different numbers of series: {each}")
        return notes


def _shared(sets: Iterable[set[T]]) -> set[T]:
    every = list(sets)
    return set.intersection(*every) if every else set()


def _number(row: Row, name: str) -> float | None:
    value = row.measures.get(name, row.geometry.get(name))
    return value if isinstance(value, float | int) else None
