"""Embeddings by torch, on the CPU or a GPU, and the bridge between its modules and our weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.engine.encoder import BATCH_NORM_EPSILON, Encoder, Norm
from vace_ad.errors import MissingExtraError

if TYPE_CHECKING:
    import torch


def import_torch(purpose: str, extra: str = "train") -> Any:
    """The torch module, or an error with the line that installs it."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(purpose, "torch", extra) from error
    return torch


class TorchEngine:
    """The encoder as torch runs it, in evaluation mode."""

    batch = 256
    callers = 1

    def __init__(self, encoders: Sequence[Encoder], device: str, precision: str) -> None:
        self._torch = import_torch("engine='torch'")
        self._half = precision == "bfloat16"
        self._device = device
        self._modules = [to_module(encoder, device).eval() for encoder in encoders]
        self.name = f"torch {'bfloat16' if self._half else 'float32'} on {device}"

    def embed(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        """(n, n_channels, P) to (n, n_encoders, d_z)."""
        torch = self._torch
        kind = torch.device(self._device).type
        with torch.inference_mode(), torch.autocast(kind, torch.bfloat16, enabled=self._half):
            x = torch.from_numpy(patches).to(self._device)
            hidden = [module[:-2](x).float() for module in self._modules]  # (n, d_z, P)
            z = torch.stack([h.mean(dim=2) for h in hidden], dim=1)
        return np.asarray(z.cpu().numpy(), np.float32)


def to_module(encoder: Encoder, device: str) -> torch.nn.Sequential:
    """The torch module of an encoder, with its weights and BatchNorm statistics."""
    import torch
    from torch import nn

    def tensor(array: NDArray[np.float32]) -> torch.Tensor:
        return torch.from_numpy(array.copy())

    layers: list[nn.Module] = []
    for stage in encoder:
        n_out, n_in, taps = stage.kernel.shape
        layer = nn.Conv1d(
            n_in * stage.groups, n_out, taps, groups=stage.groups, padding=taps // 2, bias=False
        )
        layer.weight.data = tensor(stage.kernel)
        layers.append(layer)
        if stage.norm is not None:
            norm = nn.BatchNorm1d(n_out, eps=BATCH_NORM_EPSILON)
            norm.weight.data, norm.bias.data = tensor(stage.norm.gamma), tensor(stage.norm.beta)
            norm.running_mean, norm.running_var = tensor(stage.norm.mean), tensor(stage.norm.var)
            layers.append(norm)
        layers.append(nn.ReLU(inplace=True))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten()).to(device)


def from_module(module: torch.nn.Module, like: Encoder) -> Encoder:
    """The weights of a torch module made from an encoder of this shape."""
    from torch import nn

    def array(tensor: Any) -> NDArray[np.float32]:
        return np.asarray(tensor.detach().cpu().numpy(), np.float32).copy()

    convolutions = [layer for layer in module.modules() if isinstance(layer, nn.Conv1d)]
    norms = [layer for layer in module.modules() if isinstance(layer, nn.BatchNorm1d)]
    stages = []
    for i, (stage, layer) in enumerate(zip(like, convolutions, strict=True)):
        norm = None
        if norms:
            n = norms[i]
            norm = Norm(array(n.weight), array(n.bias), array(n.running_mean), array(n.running_var))
        stages.append(replace(stage, kernel=array(layer.weight), norm=norm))
    return tuple(stages)
