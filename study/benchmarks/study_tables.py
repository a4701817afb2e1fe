"""Tables and figures of the study from the committed rows, nothing run: seconds.

    python study/benchmarks/study_tables.py

Reads reproduce-rows.csv; writes the tables beside it and the figures into docs/figures. A table or
figure whose rows are not there yet is left out, and said.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from common import RESULTS, ROOT, Line, write

from vace_ad.errors import VaceError
from vace_study import published
from vace_study.baselines.vace import ABLATION, SENSITIVITY
from vace_study.compare import paired
from vace_study.figures import FIGURES
from vace_study.figures.style import save, values_of
from vace_study.ranks import rank
from vace_study.results import Results
from vace_study.rows import MEASURES, Row
from vace_study.store import read_rows
from vace_study.tables import TABLES
from vace_study.tables.category import category_table
from vace_study.tables.main import NEWER

ROWS = "reproduce-rows.csv"
FIGURES_FOLDER = ROOT / "docs" / "figures"
PROTOCOLS = ("tsb-ad", "test-only")
LEAST = 5  # series that a comparison of all methods needs
MANY = 40  # series of a comparison of fewer methods that can tell them apart
VARIANTS = {*ABLATION, *SENSITIVITY} - {"vace-released"}
STUDIES = {"ablation": "eval", "sensitivity": "tuning", "geometry": "all", "msl": "all"}
REGIMES = (  # the paper's; the other ablations have the full model's embeddings
    "vace-released", "vace-no-pretext", "vace-no-pretext-calibrated", "vace-no-batchnorm",
    "vace-no-channel-encoder",
)  # fmt: skip
BEST = ("vace", "vace-released", "paano", "pca")  # few enough to tell apart in one picture
WIDE = ("vace", "vace-released", "deepant", "usad", "pca")  # of all kinds, on many families


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=Path, default=RESULTS / ROWS, help="the committed rows")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the tables")
    parser.add_argument("--figures", type=Path, default=FIGURES_FOLDER)
    options = parser.parse_args()
    write_tables(options.rows, options.out)
    write_submission(options.rows, options.out.parent / "submission" / "VACE_M.csv")
    draw_figures(options.rows, options.figures)


# -------------------------------------------------------------------------------------- tables


def write_tables(path: Path, out: Path) -> None:
    """Every table that the rows allow."""
    rows = read_rows(path)
    for results in _by_protocol(rows):
        common = results.common(LEAST)
        protocol = results.protocol
        _table(lambda r=results: TABLES["main"](r), out / f"main-{protocol}")
        _table(lambda r=common: TABLES["main"](r), out / f"main-common-{protocol}")
        for measure in ("VUS-PR", *NEWER):
            name = "category" if measure == "VUS-PR" else f"category-{measure}"
            _table(lambda r=results, m=measure: category_table(r, m), out / f"{name}-{protocol}")
        _table(lambda r=results: TABLES["measures"](r), out / f"measures-{protocol}")
        _ranks(common, common.methods, out / f"ranks-{protocol}.csv")
        many = results.common(MANY)
        _ranks(many, many.methods, out / f"ranks-many-{protocol}.csv")
        if protocol == "tsb-ad":  # published values by series are
            _table(lambda r=results: TABLES["rivals"](r), out / f"rivals-{protocol}")
            _ranks(results, _with_rivals(results), out / f"ranks-rivals-{protocol}.csv")
    for name, split in STUDIES.items():
        _table(
            lambda name=name, split=split: TABLES[name](Results.load(path, "test-only", split)),
            out / f"{name}-test-only",
        )
    write(list(_beside(rows)), out / "published-baselines.csv")
    write(list(_by_family(rows)), out / "published-families.csv")


def write_submission(path: Path, out: Path) -> None:
    """The default's rows in the form of the benchmark's leaderboard, seed 0."""
    lines: list[Line] = [
        {
            "file": f"{row.series}.csv",
            "Time": f"{row.cpu_seconds or 0:.3f}",  # a busy machine does not change it
            "Memory": f"{row.peak_memory_mb or 0:.0f}",
            **{name: row.measures.get(name) for name in MEASURES[:9]},
        }
        for row in read_rows(path)
        if (row.method, row.seed, row.protocol) == ("vace", 0, "tsb-ad")
        and (row.split, row.status) == ("eval", "ok")
    ]
    if lines:
        write(sorted(lines, key=lambda line: str(line["file"])), out)


def _by_protocol(rows: Sequence[Row]) -> Iterator[Results]:
    """The evaluation split under each protocol that has rows of it, without the studies' variants.

    Variants of one method are no systems to rank, and have few series.
    """
    for protocol in PROTOCOLS:
        mine = [
            row
            for row in rows
            if row.protocol == protocol and row.split == "eval" and row.method not in VARIANTS
        ]
        if any(row.status == "ok" for row in mine):
            yield Results(protocol, mine)


def _table(make: Callable[[], Any], path: Path) -> None:
    try:
        table = make()
    except VaceError as error:
        print(f"{path.name} is left out: {error}")
        return
    path.with_suffix(".csv").write_text(table.to_csv())
    path.with_suffix(".md").write_text(table.to_markdown())


def _with_rivals(results: Results) -> list[str]:
    """The default, and every published system that has a value for each series."""
    return ["vace", *published.per_series()] if "vace" in results.methods else []


def _ranks(results: Results, methods: Iterable[str], path: Path) -> None:
    """Mean ranks, and of each pair of methods the p-value by Wilcoxon and Holm."""
    try:
        found = rank({name: values_of(results, name) for name in methods})
    except VaceError as error:
        print(f"{path.name} is left out: {error}")
        return
    means = dict(zip(found.methods, found.ranks, strict=True))
    lines: list[Line] = [
        {"method": name, "mean_rank": f"{at:.3f}", "series": found.n_series} for name, at in
        means.items()
    ]  # fmt: skip
    lines += [
        {"method": one, "other": other, "p_holm": f"{p:.4g}", "series": found.n_series}
        for (one, other), p in found.pair_p.items()
    ]
    write(lines, path, friedman_p=f"{found.friedman_p:.4g}")


def _beside(rows: Iterable[Row]) -> Iterable[Line]:
    """Each value beside the published one of the same series, where there is one."""
    for row in rows:
        known = _published(row.method).get(row.series)
        if row.protocol == "tsb-ad" and row.status == "ok" and known is not None:
            ours = row.measures["VUS-PR"]
            yield {
                "method": row.method,
                "series": row.series,
                "seed": row.seed,
                "protocol": row.protocol,
                "ours": round(ours, 6),
                "published": known,
                "gap": f"{round(ours - known, 6) + 0.0:.6f}",
            }


def _by_family(rows: Sequence[Row]) -> Iterable[Line]:
    """Family means of each method beside the published ones, over the very same series."""
    results = Results("tsb-ad", [r for r in rows if r.protocol == "tsb-ad" and r.split == "eval"])
    for method in results.methods:
        known = _published(method)
        ours = {s: v for s, v in results.values(method, "VUS-PR").items() if s in known}
        for family in dict.fromkeys(results.families[series] for series in ours):
            mine = {s: v for s, v in ours.items() if results.families[s] == family}
            gap = paired(mine, known)
            assert gap is not None
            yield {
                "method": method,
                "family": family,
                "series": len(mine),
                "of": published.FAMILIES.get(family, ""),
                "seeds": results.seeds(method),
                "ours": f"{fmean(mine.values()):.4f}",
                "published_same_series": f"{fmean(known[s] for s in mine):.4f}",
                "gap": f"{gap.mean:+.4f}",
                "low": "" if gap.low is None else f"{gap.low:+.4f}",
                "high": "" if gap.high is None else f"{gap.high:+.4f}",
                "capped": " | ".join(_caps(results, method)),
            }


def _published(method: str) -> dict[str, float]:
    return published.per_series().get(published.COUNTERPARTS.get(method, ""), {})


def _caps(results: Results, method: str) -> list[str]:
    """The caps of a method's first row that has any."""
    for row in results.good:
        found = [note.removeprefix("capped: ") for note in row.notes if note.startswith("capped: ")]
        if row.method == method and found:
            return found
    return []


# ------------------------------------------------------------------------------------- figures


def draw_figures(path: Path, out: Path) -> None:
    """Every figure that the rows allow."""
    rows = read_rows(path)
    told = Results("test-only", [r for r in rows if r.geometry and r.protocol == "test-only"])
    regimes = [name for name in REGIMES if name in told.methods]
    _figure("geometry", told.matched(regimes), regimes, out)
    for results in _by_protocol(rows):
        common, many = results.common(LEAST), results.common(MANY)
        few = [name for name in BEST if name in results.methods]
        shared = results.only(few).common()
        wide = [name for name in WIDE if name in results.methods]
        wanted = {
            "scatter": (results, few[:3]),
            "density": (shared, few),
            "categories": (results.only(wide).common(), wide),
            "critical-difference": (common, list(common.methods)),
            "cost": (common, list(common.methods)),
        }
        files = {name: (name, *of) for name, of in wanted.items()}
        files["critical-difference-many"] = ("critical-difference", many, list(many.methods))
        if results.protocol == "tsb-ad" and "vace" in results.methods:
            files["scatter-rivals"] = ("scatter", results, ["vace", *published.RIVALS])
            every = _with_rivals(results)
            files["critical-difference-rivals"] = ("critical-difference", results, every)
        for file, (name, of, methods) in files.items():
            _figure(name, of, methods, out, file)


def _figure(
    name: str, results: Results, methods: Sequence[str], out: Path, file: str | None = None
) -> None:
    file = f"{file or name}-{results.protocol}"
    try:
        save(FIGURES[name](results, methods), out, file)
    except VaceError as error:
        print(f"{file} is left out: {error}")


if __name__ == "__main__":
    main()
