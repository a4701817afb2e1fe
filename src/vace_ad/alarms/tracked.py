"""An event while it is tracked: its lines, its rows, the channels' contributions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.constants import MOST_MARGIN, MOST_TIMES
from vace_ad.alarms.evidence import UNIT, Nats, whole
from vace_ad.alarms.scan import describe
from vace_ad.signals.cells import HALF_LIVES

MAIN = 0.1  # of an event's contributions that a main channel has
KEPT = 512  # rows whose shares and surprise are kept for events that are dated back
# Of an event's rows for who is at fault: where a fault spreads, its first rows tell.
FADING = whole(0.5 ** (np.arange(KEPT) / HALF_LIVES[-1]))


class Member(NamedTuple):
    """A line's part in an event."""

    start: int
    end: int
    top: int  # its highest W


@dataclass
class Tracked:
    """An event as far as it is known."""

    alarm: int  # the row that opened it
    since: int  # the row from which on contributions are added up
    running: Nats  # (n_channels,), contributions of all rows since then, the first ones most
    shares: Nats  # (n_channels,), those up to its last row
    lines: dict[int, Member] = field(default_factory=dict)  # the one that raised it first
    open: set[int] = field(default_factory=set)  # lines that are not over
    end: int = 0  # of the line that reaches farthest
    reported: float = 0.0  # margin when it was reported last
    resting: bool = False  # whether nothing but the score has risen for the time of `rest`
    lasting: bool = False  # whether it ended because what stays became the new baseline
    confirmed: bool = False  # whether the score was above its level meanwhile
    over: dict[int, float] = field(default_factory=dict)  # margins of lines that are over
    margins: dict[int, float] = field(default_factory=dict)  # of its lines, when it is reported

    @property
    def margin(self) -> float:
        """Nats by which it is rarer than the budget allows."""
        return max(self.margins.values())

    @property
    def strongest(self) -> int:
        """The line with the largest margin."""
        return max(self.margins, key=lambda line: self.margins[line])

    @property
    def rows(self) -> tuple[int, int]:
        """The rows [start, end): from where what raised it began to where its highest line ends.

        A value that is repeated belongs to it for as long as it is. The score looks back at many
        rows, so cells may tell an earlier end than it does, but no later one.
        """
        first = next(iter(self.lines.values()))
        kinds = [describe(line, len(self.shares)).kind for line in self.lines]
        members = list(zip(kinds, self.lines.values(), strict=True))
        cells = [member for kind, member in members if kind != "score"] or [first]
        highest = max(cells, key=lambda member: member.top)
        last = min([highest.end, *(member.end for kind, member in members if kind == "score")])
        stuck = [member.end for kind, member in members if kind == "stuck"]
        return first.start, max(last, self.alarm + 1, *stuck)

    @property
    def last_seen(self) -> int:
        """The row after the last one that shows it.

        Averages of the past and the score look back at it long after it is over. What its main
        channels should be by the other channels, and values that are repeated, do not.
        """
        main = set(np.flatnonzero(self.running >= MAIN * self.running.sum()).tolist())
        kinds = [(describe(line, len(self.shares)), one.end) for line, one in self.lines.items()]
        direct = [end for (kind, i), end in kinds if kind in ("relation", "stuck") and i in main]
        others = [end for (kind, _), end in kinds if kind != "score"]
        return max(direct or others or [self.end])

    def suspicion(self, degrees: int) -> NDArray[np.float64]:
        """What lines and contributions say of each channel, (n_channels,).

        log(1 + m) + log(1 + c): m is the largest margin of its lines, from 0 to `MOST_MARGIN`; c
        its mean contribution over its `degrees` of freedom, about 1 in normal rows, up to
        `MOST_TIMES`.
        """
        margins = np.zeros(len(self.shares))
        for line, margin in self.margins.items():
            channel = describe(line, len(self.shares)).channel
            if channel is not None:
                margins[channel] = max(margins[channel], min(margin, MOST_MARGIN))
        rows = max(self.end, self.alarm + 1) - self.since
        mean = self.shares / UNIT / FADING[:rows].sum()
        return np.asarray(np.log1p(margins) + np.log1p(np.minimum(mean / degrees, MOST_TIMES)))

    def plain(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "alarm": self.alarm,
            "since": self.since,
            "end": self.end,
            "told": self.reported,
            "resting": self.resting,
            "lasting": self.lasting,
            "confirmed": self.confirmed,
            "running": self.running.tolist(),
            "shares": self.shares.tolist(),
            "lines": [[line, *member] for line, member in self.lines.items()],
            "open": sorted(self.open),
            "over": [[line, margin] for line, margin in self.over.items()],
        }

    @classmethod
    def restored(cls, plain: Mapping[str, Any]) -> Self:
        """The reverse of `plain`."""
        return cls(
            int(plain["alarm"]),
            int(plain["since"]),
            np.array(plain["running"], np.int64),
            np.array(plain["shares"], np.int64),
            {int(line): Member(int(a), int(b), int(m)) for line, a, b, m in plain["lines"]},
            {int(line) for line in plain["open"]},
            int(plain["end"]),
            float(plain["told"]),
            bool(plain["resting"]),
            bool(plain["lasting"]),
            bool(plain["confirmed"]),
            {int(line): float(margin) for line, margin in plain["over"]},
        )


def joined(before: Member, now: Member) -> Member:
    """A line that rises again within the same event."""
    return Member(min(before.start, now.start), max(before.end, now.end), max(before.top, now.top))


What = Literal["open", "update", "rest", "wake", "resolve"]  # resting or not, an event goes on


class Notice(NamedTuple):
    """What became of an event at a row."""

    what: What
    row: int
    event: Tracked
