"""Sources: one base class, one file for each kind.

A source returns batches of records with a position; `acknowledge` means that everything up to a
position is on disk. It reconnects by itself, with backoff; `problem` says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from vace_ad.errors import ConfigError
from vace_ad.live.records import BadRecordError, Names, Record
from vace_ad.live.settings import Settings, Text, key

S = TypeVar("S", bound=Settings)
T = TypeVar("T")
_NOTES = 1000  # that a source may have: names in them come from outside
_LONGEST_WAIT = 60.0  # seconds between two attempts


class Batch(NamedTuple):
    """Records, and the position after them."""

    records: list[Record]
    position: Any  # plain values, stored as JSON
    bad: int = 0  # items that are not records
    why: str = ""  # what was wrong with the first of them
    end: bool = False  # nothing will follow


class Source(Generic[S]):
    """Where records come from. A subclass has `SETTINGS` and `read`; the rest is optional."""

    SETTINGS: ClassVar[type[Settings]] = Settings
    TEMPLATE: ClassVar[Mapping[str, Mapping[str, str]]] = {}  # values of --init, by section
    EXAMPLES: ClassVar[Mapping[str, Mapping[str, Mapping[str, str]]]] = {}  # the same for tables
    needs_step: ClassVar[bool] = False  # brings single readings, so [align] step is required
    needs_server: ClassVar[bool] = False  # is fed by the HTTP server
    rereadable: bool = False  # can be read from its start without effect on others
    live: bool = True  # records are recent: missing data can be detected by the clock
    eager: bool = False  # a sender waits for the acknowledgement: commit each batch at once
    problem: str | None = None  # why no records come; None if all is well

    def __init__(self, settings: S) -> None:
        self.settings = settings
        self.notes: list[str] = []  # to be logged
        self._noted: set[str] = set()
        self.lost: list[str] = []  # entities that another process watches from now on
        self.silent: list[str] = []  # entities that reported their own end

    def open(self, position: Any) -> Any:
        """Start after a position that was committed before; None at the first start.

        A source that cannot find its first position again returns it, to be committed at once.
        """

    def read(self, timeout: float) -> Batch | None:
        """Return the next batch, or None if nothing came within so many seconds."""
        raise NotImplementedError

    def acknowledge(self, position: Any) -> None:
        """Everything up to this position is on disk."""

    def check(self) -> list[str]:
        """What a source that can be queried has now, in lines for `--dry-run`."""
        return []

    def note(self, words: str) -> None:
        """Log a message once."""
        if words not in self._noted and len(self._noted) < _NOTES:
            self._noted.add(words)
            self.notes.append(words)

    def look_back(self, start: int, end: int) -> Source[S]:
        """A source of the records between two times only, in nanoseconds; then it ends."""
        raise ConfigError(
            "--backtest: a source of this kind keeps no past; it works with csv and jsonl files "
            "and with prometheus"
        )

    def close(self) -> None:
        """Release files, sockets and threads."""


class NameSettings(Settings):
    """Which fields of a record hold what."""

    time: Text = key("time", "the field that holds the time")
    entity: Text = key("entity", "the field that names the entity")
    channel: Text = key("channel", "in long format: the field that names the channel")
    value: Text = key("value", "in long format: the field that holds the value")
    name: Text | None = key(None, "the entity of records that do not name one", '"pump"')

    def names(self, default: str | None = None) -> Names:
        """The same for the parsers."""
        return Names(self.time, self.entity, self.channel, self.value, self.name or default)


def parse_all(
    items: Iterable[T], parse: Callable[[T], Iterable[Record]]
) -> tuple[list[Record], int, str]:
    """The records of all items, the number of bad items, and what is wrong with the first."""
    records: list[Record] = []
    bad, why = 0, ""
    for item in items:
        try:
            records += parse(item)
        except (BadRecordError, UnicodeDecodeError) as error:
            bad, why = bad + 1, why or str(error)
    return records, bad, why


class Backoff:
    """Wait longer after each failure, up to a minute, and not at all after a success."""

    def __init__(self, first: float = 0.5) -> None:
        self._first, self.failures = first, 0  # since the last success
        self.until = 0.0

    def failed(self, now: float) -> float:
        """Note a failure; return the seconds to wait."""
        wait = min(_LONGEST_WAIT, self._first * 2.0 ** min(self.failures, 20))
        self.failures += 1
        self.until = now + wait
        return wait

    def worked(self) -> None:
        """Note a success."""
        self.failures, self.until = 0, 0.0
