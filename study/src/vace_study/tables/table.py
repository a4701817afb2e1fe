"""A table of cells, written for a terminal, Markdown, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from vace_ad.errors import ConfigError

Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """A title that names the protocol, columns, rows, and what the reader must know."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    narrow: Sequence[str] = ()  # columns that fit a terminal and a page; none: all of them
    best: Collection[tuple[int, str]] = ()  # rows and columns of the cells that are set in bold
    apart: int | None = None  # rows from here on do not compare with those above

    def only(self, columns: Sequence[str]) -> Table:
        """Some of the columns, in this order, after the one that names the row."""
        unknown = [name for name in columns if name not in self.columns]
        if unknown:
            raise ConfigError(
                f"--columns: there is no {unknown[0]!r}; there are {', '.join(self.columns)}"
            )
        name = "method" if "method" in self.columns else self.columns[0]
        kept = list(dict.fromkeys([name, *columns]))
        place = [self.columns.index(column) for column in kept]
        return replace(self, columns=kept, rows=[[row[i] for i in place] for row in self.rows])

    def to_csv(self) -> str:
        """CSV with six decimals, without title and notes."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_text(cell, 6) for cell in row] for row in self.rows)
        return out.getvalue()

    def to_markdown(self) -> str:
        """Title, a pipe table with three decimals, notes."""
        sides = ["---:" if self._is_number(i) else "---" for i in range(len(self.columns))]
        cells = self._cells(lambda text: text.replace("|", "\\|"), "**{}**")
        lines = [_pipes(row) for row in ([*self.columns], sides, *cells)]
        notes = [f"- {note}" for note in self.notes]
        return "\n".join([f"**{self.title}**", "", *lines, "", *notes]).rstrip() + "\n"

    def to_latex(self) -> str:
        """A tabular for the package booktabs; title and notes as comments."""
        sides = "".join("r" if self._is_number(i) else "l" for i in range(len(self.columns)))
        body = [f"{' & '.join(row)} \\\\" for row in self._cells(_escaped, "\\textbf{{{}}}")]
        if self.apart is not None:
            body.insert(self.apart, "\\midrule")
        head = " & ".join(_escaped(column) for column in self.columns)
        lines = [
            f"% {self.title}",
            f"\\begin{{tabular}}{{{sides}}}",
            "\\toprule",
            f"{head} \\\\",
            "\\midrule",
            *body,
            "\\bottomrule",
            "\\end{tabular}",
            *(f"% {note}" for note in self.notes),
        ]
        return "\n".join(lines) + "\n"

    def to_text(self) -> str:
        """For people at a terminal: aligned columns, as wide as they need."""
        cells = [[*self.columns], *([_text(cell, 3) for cell in row] for row in self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        numbers = [self._is_number(i) for i in range(len(self.columns))]
        lines = [
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, numbers, strict=True)
            ).rstrip()
            for row in cells
        ]
        rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
        body = lines[1:]
        if self.apart is not None:
            body.insert(self.apart, rule)
        return "\n".join([self.title, "", lines[0], rule, *body, "", *self.notes]) + "\n"

    def _cells(self, escaped: Callable[[str], str], bold: str) -> list[list[str]]:
        """The cells as text, the best ones in bold."""
        return [
            [
                bold.format(text) if (i, column) in self.best else text
                for column, text in zip(
                    self.columns, (escaped(_text(cell, 3)) for cell in row), strict=True
                )
            ]
            for i, row in enumerate(self.rows)
        ]

    def _is_number(self, column: int) -> bool:
        cells = [row[column] for row in self.rows if row[column] is not None]
        return bool(cells) and all(isinstance(cell, int | float) for cell in cells)


def _text(cell: Cell, decimals: int) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{round(cell, decimals) + 0.0:.{decimals}f}"  # no minus sign before a zero
    return str(cell)


def _pipes(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    for letter in "&%_#$":
        text = text.replace(letter, f"\\{letter}")
    return text.replace("±", "$\\pm$")


def highest(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], compared: Sequence[int]
) -> set[tuple[int, str]]:
    """The highest cell of each column among rows that compare; equal to three decimals is equal."""
    found: set[tuple[int, str]] = set()
    for place, column in enumerate(columns):
        values = {i: round(cell, 3) for i in compared if isinstance(cell := rows[i][place], float)}
        if len(values) > 1:
            top = max(values.values())
            found |= {(i, column) for i, value in values.items() if value == top}
    return found
