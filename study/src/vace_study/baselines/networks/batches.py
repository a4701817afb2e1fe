"""Windows of a table as batches of tensors, gathered when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Windows:
    """Windows of `length` rows that begin at `starts`."""

    def __init__(
        self,
        table: NDArray[np.float64],  # (n_rows, n_channels), scaled
        starts: NDArray[np.intp],  # (n_windows,)
        length: int,
        device: str,
    ) -> None:
        self._rows = torch.from_numpy(np.array(table, np.float32)).to(device)
        self._starts = torch.from_numpy(np.array(starts, np.int64)).to(device)
        self._steps = torch.arange(length, device=device)

    def __len__(self) -> int:
        return len(self._starts)

    def take(self, places: Tensor) -> Tensor:
        """The windows at these places: (len(places), length, n_channels)."""
        return self._rows[self._starts[places][:, None] + self._steps]

    def batches(
        self, size: int, *, shuffle: bool = False, drop_last: bool = False
    ) -> Iterator[Tensor]:
        """All windows, in order or shuffled by torch's generator of the moment."""
        n = len(self)
        order = torch.randperm(n) if shuffle else torch.arange(n)
        end = n - n % size if drop_last and n >= size else n
        for first in range(0, end, size):
            yield self.take(order[first : min(first + size, end)].to(self._rows.device))
