"""LSTMAD's network: a recurrent encoder hands its state to a decoder that predicts the next row."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class LSTMADModule(nn.Module):
    """Encoder and decoder of equal shape; the decoder starts from a row of zeros."""

    def __init__(self, channels: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.encoder, self.decoder = (
            nn.LSTM(channels, hidden, num_layers=layers, batch_first=True) for _ in range(2)
        )
        self.head = nn.Linear(hidden, channels)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, window, channels) to (batch, channels)."""
        _, state = self.encoder(x)
        decoded, _ = self.decoder(x.new_zeros(len(x), 1, x.shape[2]), state)
        predicted: Tensor = self.head(functional.gelu(decoded[:, 0]))
        return predicted
