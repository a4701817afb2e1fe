"""torch, where to run it, and random numbers that leave the caller's own untouched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

from vace_ad.errors import ConfigError, needs

Device = Literal["auto", "cpu", "cuda"]


def import_torch(purpose: str) -> Any:
    """The torch module, or an error with the line that installs it."""
    with needs("torch", "networks", purpose, package="vace-ad-study"):
        import torch
    return torch


def choose_device(wanted: str) -> str:
    """`cpu` or `cuda`; `auto` takes a GPU where there is one."""
    torch = import_torch("a neural baseline")
    if wanted not in get_args(Device):
        raise ConfigError(f"device={wanted!r}: must be one of {', '.join(get_args(Device))}")
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device='cuda': torch finds no GPU here; use device='cpu' or 'auto'")
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return wanted


@contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """torch's random numbers from this seed inside the block, and as they were after it.

    Layers draw their first weights from torch's global generator, so it is borrowed, not set.
    """
    torch = import_torch("a neural baseline")
    on_gpu = device == "cuda"
    with torch.random.fork_rng(devices=[torch.cuda.current_device()] if on_gpu else []):
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            torch.cuda.manual_seed(seed)
        yield
