"""USAD's network: one encoder and two decoders on the flattened window."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn


class Errors(NamedTuple):
    """Mean squared errors of each window, (batch,)."""

    first: Tensor  # of decoder 1
    second: Tensor  # of decoder 2
    both: Tensor  # of decoder 2 on the encoding of decoder 1's output


class USADModule(nn.Module):
    """Two autoencoders with a shared encoder; a sigmoid keeps outputs in 0…1."""

    def __init__(self, size: int, hidden: int, latent: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            *(nn.Linear(size, hidden), nn.ReLU()),
            *(nn.Linear(hidden, hidden), nn.ReLU()),
            *(nn.Linear(hidden, latent), nn.ReLU()),
        )
        self.first, self.second = (
            nn.Sequential(
                *(nn.Linear(latent, hidden), nn.ReLU()),
                *(nn.Linear(hidden, hidden), nn.ReLU()),
                *(nn.Linear(hidden, size), nn.Sigmoid()),
            )
            for _ in range(2)
        )

    def forward(self, x: Tensor) -> Errors:
        """(batch, window, channels) to the three errors."""
        flat = x.flatten(start_dim=1)  # (batch, window · channels)
        code = self.encoder(flat)
        first, second = self.first(code), self.second(code)
        both = self.second(self.encoder(first))
        return Errors(*((each - flat).square().mean(dim=1) for each in (first, second, both)))
