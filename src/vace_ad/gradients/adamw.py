"""AdamW: Adam's step with weight decay apart from it (Loshchilov and Hutter, 2019)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vace_ad.engine.encoder import Encoder
from vace_ad.gradients.backprop import Gradients

Array = NDArray[np.float32]
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class AdamW:
    """Moments of the gradients of one encoder."""

    def __init__(self, weight_decay: float) -> None:
        self._decay = weight_decay
        self._moments: dict[tuple[int, str], tuple[Array, Array]] = {}
        self._steps = 0

    def step(self, encoder: Encoder, gradients: list[Gradients], rate: float) -> Encoder:
        """The encoder after one step."""
        self._steps += 1
        stages = []
        for i, (stage, found) in enumerate(zip(encoder, gradients, strict=True)):
            kernel = self._moved(i, "kernel", stage.kernel, found.kernel, rate)
            norm = stage.norm
            if norm is not None and found.gamma is not None and found.beta is not None:
                norm = replace(
                    norm,
                    gamma=self._moved(i, "gamma", norm.gamma, found.gamma, rate),
                    beta=self._moved(i, "beta", norm.beta, found.beta, rate),
                )
            stages.append(replace(stage, kernel=kernel, norm=norm))
        return tuple(stages)

    def _moved(self, i: int, name: str, value: Array, gradient: Array, rate: float) -> Array:
        zeros = np.zeros_like(value)
        first, second = self._moments.get((i, name), (zeros, zeros))
        first = (BETA1 * first + (1 - BETA1) * gradient).astype(np.float32)
        second = (BETA2 * second + (1 - BETA2) * gradient * gradient).astype(np.float32)
        self._moments[i, name] = first, second
        size = rate / (1 - BETA1**self._steps)
        spread = np.sqrt(second) / np.sqrt(1 - BETA2**self._steps) + EPSILON
        return np.asarray(value * (1 - rate * self._decay) - size * first / spread, np.float32)
