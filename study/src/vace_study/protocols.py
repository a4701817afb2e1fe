"""The two ways of measuring a detector on a series; numbers of one do not compare with the other.

`tsb-ad`     the benchmark's own: train on the first rows, score and evaluate all rows, the
             training rows included; VUS window from channel 0 of the whole series.
`test-only`  what the VACE paper's code does: score and evaluate the rows after the training part
             alone; VUS window from channel 0 of that part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vace_ad.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vace_study.series import Series

PROTOCOLS = ("tsb-ad", "test-only")


@dataclass(frozen=True)
class Exam:
    """What a detector is given under a protocol, and what it is measured against."""

    train: NDArray[np.float64]  # (n_train, n_channels)
    scored: NDArray[np.float64]  # (n_scored, n_channels)
    labels: NDArray[np.int8]  # (n_scored,)
    window: int  # of VUS


def check_protocols(protocols: tuple[str, ...]) -> None:
    """Refuse a protocol that does not exist."""
    for protocol in protocols:
        if protocol not in PROTOCOLS:
            raise ConfigError(f"protocol={protocol!r}: must be one of {', '.join(PROTOCOLS)}")


def exam(series: Series, protocol: str) -> Exam:
    """The exam of a series under a protocol; the training part is the same in both."""
    from vace_ad.metrics import sliding_window

    check_protocols((protocol,))
    first = series.name.train_rows if protocol == "test-only" else 0
    scored = series.values[first:]
    return Exam(
        train=series.values[: series.name.train_rows],
        scored=scored,
        labels=series.labels[first:],
        window=int(sliding_window(scored[:, 0])),
    )
