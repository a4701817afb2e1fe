"""DeepAnT's network: two convolutions, a pooling over time, two dense layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class DeepAnTModule(nn.Module):
    """The next row from a window: 137·D + 7,152 weights at the published sizes."""

    def __init__(
        self, channels: int, widths: tuple[int, ...], *, transposed: bool, with_maximum: bool
    ) -> None:
        super().__init__()
        stages: list[nn.Module] = []
        for n_in, n_out in zip((channels, *widths), widths, strict=False):
            stages += [nn.Conv1d(n_in, n_out, kernel_size=3), nn.ReLU(), nn.MaxPool1d(2)]
        self.convolutions = nn.Sequential(*stages)
        last = widths[-1]
        self.head = nn.Sequential(
            nn.Linear(2 * last, last), nn.ReLU(), nn.Dropout(0.25), nn.Linear(last, channels)
        )
        self._transposed, self._with_maximum = transposed, with_maximum

    def forward(self, x: Tensor) -> Tensor:
        """(batch, window, channels) to (batch, channels)."""
        batch, window, channels = x.shape
        # The published code reads the numbers of a window, row after row, as if they lay channel
        # after channel: a "channel" is then a run of `window` numbers of all channels.
        laid = x.transpose(1, 2) if self._transposed else x.reshape(batch, channels, window)
        maps = self.convolutions(laid)  # (batch, widths[-1], about window / 4)
        mean = maps.mean(dim=2)
        second = maps.amax(dim=2) if self._with_maximum else mean
        predicted: Tensor = self.head(torch.cat([mean, second], dim=1))
        return predicted
