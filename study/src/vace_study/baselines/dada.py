"""DADA (2025), zero-shot: how much a pretrained network's reconstructions differ under masks.

Weights: a folder with config.json and pytorch_model.bin (or model.safetensors with the same
names), named by the setting `weights` or the environment variable VACE_DADA_WEIGHTS. Terms for the
weights are not stated by their authors, so none are shipped or fetched; the Python files of that
release are never run, and the .bin file is read as tensors only.

The score of a row is the variance over ten reconstructions (five random masks and their
complements), not an error. How the published number cut its windows is not known; here they lie
side by side. Not said and chosen here: every window and channel has masks of its own.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import ModelFileError, NotFittedError
from vace_study.baselines.contract import Method
from vace_study.baselines.networks.backend import choose_device, import_torch
from vace_study.baselines.networks.scaling import Scale
from vace_study.baselines.networks.windows import place_tiles, tile_starts
from vace_study.baselines.weights import (
    Source,
    check_tensors,
    fingerprint,
    number,
    read_tensors,
)

if TYPE_CHECKING:
    from vace_study.baselines.modules.dada import DADAModule

Array = NDArray[np.float64]

SOURCE = Source(
    "DADA",
    "VACE_DADA_WEIGHTS",
    "the files config.json and pytorch_model.bin of the authors' pretrained DADA",
)
_PREFIX = "model."  # of all names in the file
_BATCH = 64  # windows of one channel at a time


@dataclass
class DADA:
    """Variance of the reconstructions under masks, mean over channels."""

    weights: str | None = None  # folder; else VACE_DADA_WEIGHTS
    masks: int = 5  # random ones; their complements come on top
    shown: float = 0.5  # probability that a mask leaves a patch visible
    device: str = "auto"
    random_state: int = 0

    def fit(self, table: Array) -> DADA:
        """Read the weights; the training rows give the scale only."""
        import_torch("DADA")
        self._module = load(self.weights, choose_device(self.device))
        self._scale = Scale.of(np.asarray(table, np.float64))
        return self

    def score(self, table: Array) -> Array:
        """Score every row of the table."""
        if not hasattr(self, "_module"):
            raise NotFittedError("this DADA has read no weights yet; call fit first")
        values = self._scale(np.asarray(table, np.float64))
        length = self._module.sizes.seq_len
        starts = tile_starts(len(values), length)
        tiles = values[starts[:, None] + np.arange(length)]  # (n_tiles, length, channels)
        series = tiles.transpose(0, 2, 1).reshape(-1, length).astype(np.float32)
        spread = self._spread(series).reshape(len(starts), -1, length)
        return place_tiles(spread.mean(axis=1), len(values))

    @property
    def notes_(self) -> tuple[str, ...]:
        """Which weights were read; kept with the result."""
        return (f"weights {self._module.fingerprint}",)

    def _spread(self, series: NDArray[np.float32]) -> Array:
        """Variance over the copies of each row of each window of one channel."""
        import torch

        rng = np.random.default_rng(self.random_state)
        parts = []
        for first in range(0, len(series), _BATCH):
            part = torch.from_numpy(series[first : first + _BATCH]).to(self._module_device())
            masks = rng.random((len(part), self.masks, self._module.sizes.n_patches)) < self.shown
            both = np.concatenate([masks, ~masks], axis=1).astype(np.float32)
            with torch.inference_mode():
                copies = self._module(part, torch.from_numpy(both).to(part.device))
                parts.append(copies.double().var(dim=1).cpu().numpy())
        return np.concatenate(parts)

    def _module_device(self) -> Any:
        return self._module.input_embed.weight.device


def load(folder: str | None, device: str) -> DADAModule:
    """The network with the weights of a folder; every name and shape must fit."""
    import torch

    from vace_study.baselines.modules.dada import DADAModule, Sizes

    where = SOURCE.folder(folder)
    config = SOURCE.config(where)
    widths = config.get("bn_dims")
    if isinstance(widths, list) and len(widths) == 1 and isinstance(widths[0], list):
        widths = widths[0]  # the authors' class stores most values as one-element tuples
    if not isinstance(widths, list) or not all(isinstance(each, int) for each in widths):
        raise ModelFileError(f"config.json in {str(where)!r} has bn_dims = {widths!r}; need a list")
    names = [name for name in Sizes._fields if name != "bn_dims"]
    sizes = Sizes(
        **{name: number(config, name, where) for name in names},
        bn_dims=tuple(widths),
    )
    if sizes.seq_len % sizes.patch_len or sizes.k > len(widths):
        raise ModelFileError(
            f"config.json in {str(where)!r} has seq_len {sizes.seq_len}, patch_len "
            f"{sizes.patch_len}, k {sizes.k} and {len(widths)} bottlenecks; seq_len must be a "
            "multiple of patch_len, and k at most the number of bottlenecks"
        )
    module = DADAModule(sizes)
    path = SOURCE.file(where, "model.safetensors", "pytorch_model.bin")
    tensors = read_tensors(path)
    state = module.state_dict()
    check_tensors(
        tensors, {_PREFIX + name: tuple(each.shape) for name, each in state.items()}, path
    )
    module.load_state_dict({name: torch.from_numpy(tensors[_PREFIX + name]) for name in state})
    module.fingerprint = fingerprint(tensors)
    return module.eval().to(device)


def _method(name: str, **changed: Any) -> Method:
    settings = asdict(DADA(**changed))
    del settings["random_state"]
    return Method(
        name, lambda seed: DADA(**changed, random_state=seed), settings, category="Neural Networks"
    )


METHODS = (_method("dada"),)
