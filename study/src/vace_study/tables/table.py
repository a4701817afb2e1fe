"""A table of cells, written for a terminal, Markdown, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """A title that names the protocol, columns, rows, and what the reader must know."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()

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
        cells = [[_text(cell, 3).replace("|", "\\|") for cell in row] for row in self.rows]
        lines = [_pipes(row) for row in ([*self.columns], sides, *cells)]
        notes = [f"- {note}" for note in self.notes]
        return "\n".join([f"**{self.title}**", "", *lines, "", *notes]).rstrip() + "\n"

    def to_latex(self) -> str:
        """A tabular for the package booktabs; title and notes as comments."""
        sides = "".join("r" if self._is_number(i) else "l" for i in range(len(self.columns)))
        body = [" & ".join(_escaped(_text(cell, 3)) for cell in row) for row in self.rows]
        head = " & ".join(_escaped(column) for column in self.columns)
        lines = [
            f"% {self.title}",
            f"\\begin{{tabular}}{{{sides}}}",
            "\\toprule",
            f"{head} \\\\",
            "\\midrule",
            *(f"{line} \\\\" for line in body),
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
        return "\n".join([self.title, "", lines[0], rule, *lines[1:], "", *self.notes]) + "\n"

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
