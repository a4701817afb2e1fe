"""xLSTMAD's network (2025): an encoder and a decoder, both stacks of the package xlstm."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from vace_ad.errors import needs

_ROUNDING = 10  # of the inner widths: the package's own 64 does not fit query blocks of 5


def stack(width: int, window: int) -> nn.Module:
    """Three blocks, the middle one an sLSTM; 38,696 weights at width 40."""
    package = _package()
    memory = package.mLSTMLayerConfig(
        conv1d_kernel_size=8,
        qkv_proj_blocksize=5,
        num_heads=4,
        proj_factor=2.0,
        round_proj_up_to_multiple_of=_ROUNDING,
    )
    recurrent = package.sLSTMLayerConfig(
        backend="vanilla",  # the others need a GPU
        num_heads=4,
        conv1d_kernel_size=4,
        bias_init="powerlaw_blockdependent",
    )
    config = package.xLSTMBlockStackConfig(
        mlstm_block=package.mLSTMBlockConfig(mlstm=memory),
        slstm_block=package.sLSTMBlockConfig(
            slstm=recurrent,
            feedforward=package.FeedForwardConfig(proj_factor=1.3, act_fn="gelu"),
        ),
        context_length=window,
        num_blocks=3,
        embedding_dim=width,
        slstm_at=[1],
    )
    made: nn.Module = package.xLSTMBlockStack(config)
    return made


class XLSTMADModule(nn.Module):
    """Rows from a window: the window itself, or rows after it.

    `whole`: the decoder runs over all states of the encoder. `repeated`: it gets the last state
    alone, and is applied to its own output, step by step, with no memory between the steps.
    """

    def __init__(
        self, channels: int, width: int, window: int, decoding: Literal["whole", "repeated"]
    ) -> None:
        super().__init__()
        self.enter = nn.Linear(channels, width)
        self.encoder, self.decoder = stack(width, window), stack(width, window)
        self.leave = nn.Linear(width, channels)
        self._decoding = decoding

    def forward(self, x: Tensor, steps: int) -> Tensor:
        """(batch, window, channels) to (steps, batch, channels)."""
        states = self.encoder(self.enter(x))  # (batch, window, width)
        if self._decoding == "whole":
            decoded = self.decoder(states).transpose(0, 1)
        else:
            state, outputs = states[:, -1:], []
            for _ in range(steps):
                state = self.decoder(state)
                outputs.append(state[:, 0])
            decoded = torch.stack(outputs)
        left: Tensor = self.leave(nn.functional.gelu(decoded))
        return left


def _package() -> Any:
    with needs("xlstm", "xlstm", "xLSTMAD", package="vace-ad-study"):
        import xlstm
    return xlstm
