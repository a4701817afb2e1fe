"""What a method is: a name, its settings, and a function from a seed to a fresh detector."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Detector(Protocol):
    """Anything that learns from a table and scores a table, row by row.

    Both tables are float64 (n_rows, n_channels). `score` returns float64 (n_rows,), finite, high
    where a row is anomalous. A table too short to be used raises `vace_ad.errors.TooShortError`.
    A detector that left something out to save time says so in `notes_`, a tuple of strings that
    begin with "capped: "; they are kept with the result.
    """

    def fit(self, table: NDArray[np.float64], /) -> object:
        """Learn from the training rows."""

    def score(self, table: NDArray[np.float64], /) -> NDArray[np.float64]:
        """Score every row of the table."""


@dataclass(frozen=True)
class Method:
    """A named way to make a detector."""

    name: str
    make: Callable[[int], Detector]  # seed → fresh detector
    settings: Mapping[str, Any] = field(default_factory=dict)  # plain values; what the hash covers
    seeded: bool = True  # False: the seed changes nothing, so one run says it all
    category: str = "User"
    version: int = 1  # of the code behind the settings; raised by any change that moves a score

    @property
    def config_hash(self) -> str:
        """Twelve hexadecimal digits that change when any setting or the code's version does.

        Version 1 is left out of what is hashed: rows from before versions were told stay valid.
        """
        told: dict[str, Any] = dict(self.settings)
        if self.version != 1:
            told = {"settings": told, "version": self.version}
        canonical = json.dumps(told, sort_keys=True, default=str)
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]
