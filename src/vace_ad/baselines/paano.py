"""PaAno (2026): patch embeddings by a small CNN with shared kernels, and a memory bank.

Written from the paper's description. The encoder learns from two tasks: a triplet of projections
(a patch, one 1 or 2 rows away, the farthest of the batch) and a guess whether another patch lies
exactly one patch length earlier. Two releases exist, and both are here:

- `february`: a slip of masking makes the triplet loss exactly 0, so only the guess trains, and as
  its weight ends at iteration 20 of 200, nothing changes after that; we stop there.
- `may`: the triplet works, with margin 0.1, divided by 10; 100 iterations.

Not said in the description and chosen here: triplet distances are cosine distances, and the random
negatives of the guess come from the batch.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from vace_ad.baselines.contract import Method
from vace_ad.errors import NotFittedError, TooShortError

if TYPE_CHECKING:
    import torch

    from vace_ad.config import VACEConfig
    from vace_ad.method.encoder import Encoder
    from vace_ad.method.patches import PatchSet

_PATCH = 96  # rows
_BATCH = 512  # anchors an iteration
_PRETEXT_ITERATIONS = 20  # the guess's weight falls from 1 to 0 over these
_NEGATIVES = 5  # random patches beside the true one
_RATES = (1e-4, 1e-5)  # learning rate, first and last
_MARGIN, _TRIPLET_WEIGHT = 0.1, 0.1  # of the release of May


@dataclass
class PaAno:
    """Mean cosine distance of a row's patches to the nearest training patches."""

    release: Literal["february", "may"] = "february"
    random_state: int = 0

    def fit(self, table: NDArray[np.float64]) -> PaAno:
        """Train the encoder and fill the memory bank."""
        from vace_ad.engine import make_engine
        from vace_ad.method.encoder import init_encoder
        from vace_ad.method.position import MemoryBank

        rng = np.random.default_rng(self.random_state)
        config = _config(self.random_state)
        patches = _patches(table)
        encoder = init_encoder(config, table.shape[1], rng)
        encoder = _train(encoder, patches, self.release, rng)
        self._engine = make_engine([encoder], table.shape[1], config)
        self._bank = MemoryBank.fit(self._embed(patches), self.random_state)
        return self

    def score(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score every row by the patches that cover it."""
        from vace_ad.method.patches import patch_means_to_points

        if not hasattr(self, "_bank"):
            raise NotFittedError("this PaAno has learned nothing yet; call fit first")
        return patch_means_to_points(self._bank.score(self._embed(_patches(table))), _PATCH)

    def _embed(self, patches: PatchSet) -> NDArray[np.float32]:
        """Embeddings of all patches, (n_patches, 64)."""
        step = 16 * self._engine.batch
        parts = []
        for start in range(0, len(patches), step):
            index = np.arange(start, min(start + step, len(patches)))
            parts.append(self._engine.embed(patches.gather(index))[:, 0])
        return np.concatenate(parts)


def _config(seed: int) -> VACEConfig:
    """VACE's settings under which its encoder is PaAno's: one kernel for all channels."""
    from vace_ad.config import VACEConfig

    return VACEConfig(patch_length=_PATCH, encoder="shared", random_state=seed)


def _patches(table: NDArray[np.float64]) -> PatchSet:
    from vace_ad.method.patches import PatchSet

    if len(table) < _PATCH:
        raise TooShortError(f"{len(table)} rows came; PaAno needs at least {_PATCH}, one patch")
    values = np.asarray(table, dtype=np.float64)
    return PatchSet([values], _PATCH, np.ones(values.shape[1]))


def _train(encoder: Encoder, patches: PatchSet, release: str, rng: np.random.Generator) -> Encoder:
    """The encoder whose loss was lowest; untrained where no patch has one a length earlier."""
    from vace_ad.engine.torch import from_module, import_torch, to_module

    torch = import_torch("PaAno")
    if len(patches) <= _PATCH:
        return encoder
    triplet = release == "may"
    iterations = 100 if triplet else 200
    generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
    module = to_module(encoder, "cpu").train()
    heads = _heads(generator)
    optimiser = torch.optim.AdamW(
        [*module.parameters(), *heads.parameters()], lr=_RATES[0], weight_decay=1e-4
    )
    lowest, kept = math.inf, module
    for t in range(iterations):
        weight = max(0.0, 1 - t / _PRETEXT_ITERATIONS)
        loss = _loss(module, heads, patches, weight, triplet, rng)
        for group in optimiser.param_groups:
            cosine = (1 + math.cos(math.pi * t / iterations)) / 2
            group["lr"] = _RATES[1] + (_RATES[0] - _RATES[1]) * cosine
        optimiser.zero_grad()
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        if float(loss.detach()) < lowest:
            lowest, kept = float(loss.detach()), copy.deepcopy(module)
        if not triplet and weight == 0:
            break  # the loss is exactly 0 from here on, so these are the weights kept
    return from_module(kept, encoder)


def _heads(generator: torch.Generator) -> torch.nn.ModuleDict:
    """A projection 64 → 256 → 256 for the triplet, and a linear guess on a pair of embeddings."""
    from torch import nn

    heads = nn.ModuleDict(
        {
            "project": nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256)),
            "guess": nn.Linear(128, 1),
        }
    )
    for parameter in heads.parameters():  # from our generator, never the global one
        fan = parameter.shape[1] if parameter.ndim == 2 else len(parameter)
        bound = 1 / math.sqrt(fan)
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
    return heads


def _loss(
    module: torch.nn.Module,
    heads: torch.nn.ModuleDict,
    patches: PatchSet,
    weight: float,
    triplet: bool,
    rng: np.random.Generator,
) -> torch.Tensor:
    """One batch: anchors, their patches a length earlier and, for the triplet, 1 or 2 rows on."""
    import torch

    n = min(_BATCH, len(patches) - _PATCH)
    anchors = _PATCH + rng.choice(len(patches) - _PATCH, n, replace=False)
    groups = [anchors, anchors - _PATCH]
    if triplet:
        near = anchors + rng.choice([-2, -1, 1, 2], n)
        groups.append(np.minimum(near, len(patches) - 1))
    embedded = module(torch.from_numpy(patches.gather(np.concatenate(groups)))).chunk(len(groups))
    loss = torch.zeros(())
    if weight > 0:
        loss = loss + weight * _guess_loss(heads["guess"], embedded[0], embedded[1], rng)
    if triplet:
        loss = loss + _TRIPLET_WEIGHT * _triplet_loss(heads["project"], embedded[0], embedded[2])
    return loss


def _guess_loss(
    head: torch.nn.Module, z: torch.Tensor, earlier: torch.Tensor, rng: np.random.Generator
) -> torch.Tensor:
    """Binary cross-entropy: the patch a length earlier is to be told from random ones."""
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    n = len(z)
    others = torch.from_numpy(rng.integers(n, size=n * _NEGATIVES))
    pairs = torch.cat(
        [
            torch.cat([z, earlier], dim=1),
            torch.cat([z.repeat_interleave(_NEGATIVES, 0), z[others]], dim=1),
        ]
    )  # (n · 6, 128)
    truth = torch.cat([torch.ones(n), torch.zeros(n * _NEGATIVES)])
    return binary_cross_entropy_with_logits(head(pairs)[:, 0], truth)


def _triplet_loss(head: torch.nn.Module, z: torch.Tensor, near: torch.Tensor) -> torch.Tensor:
    """Near patches nearer, by a margin, than the farthest patch of the batch."""
    from torch.nn.functional import normalize

    h, positive = normalize(head(z), dim=1), normalize(head(near), dim=1)
    to_positive = 1 - (h * positive).sum(dim=1)  # (n,)
    to_negative = (1 - h @ h.T).max(dim=1).values
    return (to_positive - to_negative + _MARGIN).clamp_min(0).mean()


def _method(name: str, release: Literal["february", "may"]) -> Method:
    settings = {"release": release, "patch_length": _PATCH, "batch_size": _BATCH}
    return Method(name, lambda seed: PaAno(release, seed), settings, category="Self-Supervised")


METHODS = (_method("paano", "february"), _method("paano-may", "may"))
