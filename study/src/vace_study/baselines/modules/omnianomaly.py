"""OmniAnomaly's network as TSB-AD has it: a recurrent variational autoencoder."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

_LAYERS = 2


class Reconstruction(NamedTuple):
    """What the network makes of a batch."""

    values: Tensor  # as the batch, (batch, window, channels)
    mean: Tensor  # of the latents, in the GRU's layout
    log_variance: Tensor


class OmniAnomalyModule(nn.Module):
    """GRU, a normal latent for each step, a decoder that ends in a sigmoid."""

    def __init__(self, channels: int, hidden: int, latent: int, *, transposed: bool) -> None:
        super().__init__()
        self.gru = nn.GRU(channels, hidden, num_layers=_LAYERS)
        self.encoder = nn.Sequential(
            *(nn.Linear(hidden, hidden), nn.PReLU()),
            *(nn.Linear(hidden, hidden), nn.PReLU()),
            nn.Linear(hidden, 2 * latent),
        )
        self.decoder = nn.Sequential(
            *(nn.Linear(latent, hidden), nn.PReLU()),
            *(nn.Linear(hidden, hidden), nn.PReLU()),
            *(nn.Linear(hidden, channels), nn.Sigmoid()),
        )
        self._transposed, self._hidden = transposed, hidden

    def forward(self, x: Tensor, random_state: bool) -> Reconstruction:
        """(batch, window, channels); the GRU starts at zero, or at a uniform draw in [0, 1)."""
        batch, window, channels = x.shape
        # The published code reads the batch's numbers in their order as (window, batch, channels),
        # so a sequence of the GRU mixes windows; the output is read back the same way.
        laid = x.transpose(0, 1) if self._transposed else x.reshape(window, batch, channels)
        shape = (_LAYERS, batch, self._hidden)
        start = (torch.rand if random_state else torch.zeros)(shape, device=x.device)
        states, _ = self.gru(laid.contiguous(), start)
        mean, log_variance = self.encoder(states).chunk(2, dim=-1)  # (window, batch, latent) each
        drawn = mean + torch.exp(log_variance / 2) * torch.randn_like(mean)
        values = self.decoder(drawn)
        back = values.transpose(0, 1) if self._transposed else values.reshape(x.shape)
        return Reconstruction(back, mean, log_variance)
