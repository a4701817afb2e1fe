"""Embeddings by OpenVINO: the graph is built from the weights, BatchNorm folded, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.method.encoder import Encoder, Stage


class OpenVINOEngine:
    """All encoders in one graph over the same patches, a fixed number of patches a call.

    The shape is fixed so that a patch's embedding never depends on how many others came with it;
    a last, smaller batch is filled up with zeros.
    """

    batch = 64

    def __init__(
        self, encoders: Sequence[Encoder], n_channels: int, patch_length: int, precision: str
    ) -> None:
        import openvino as ov

        core = ov.Core()
        half = precision != "float32" and "BF16" in core.get_property(
            "CPU", "OPTIMIZATION_CAPABILITIES"
        )
        if precision == "bfloat16":
            half = True
        graph = _graph(encoders, (self.batch, n_channels, patch_length))
        self._request = core.compile_model(
            graph,
            "CPU",
            {
                "INFERENCE_PRECISION_HINT": "bf16" if half else "f32",
                "PERFORMANCE_HINT": "LATENCY",
            },
        ).create_infer_request()
        self.name = f"openvino {'bfloat16' if half else 'float32'}"

    def embed(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        """(n, n_channels, P) to (n, n_encoders, d_z)."""
        made = []
        for a in range(0, len(patches), self.batch):
            part = patches[a : a + self.batch]
            if len(part) < self.batch:
                fill = np.zeros((self.batch - len(part), *part.shape[1:]), np.float32)
                full = np.concatenate([part, fill])
            else:
                full = part
            out = self._request.infer([full], share_inputs=True)[0]
            made.append(np.array(out[: len(part)], np.float32))
        return np.concatenate(made)


def _graph(encoders: Sequence[Encoder], shape: tuple[int, int, int]) -> Any:
    import openvino as ov
    from openvino import opset13 as ops

    patches = ops.parameter(shape, np.float32)
    embeddings = []
    for encoder in encoders:
        hidden = patches
        for stage in encoder:
            hidden = _stage(ops, hidden, stage)
        mean = ops.reduce_mean(hidden, np.array([2]), keep_dims=False)  # (n, d_z)
        embeddings.append(ops.unsqueeze(mean, np.array([1])))
    return ov.Model([ops.concat(embeddings, axis=1)], [patches], "vace")


def _stage(ops: Any, hidden: Any, stage: Stage) -> Any:
    kernel, bias = stage.folded()
    n_out, n_in, taps = kernel.shape
    pad = taps // 2
    if stage.groups > 1:
        grouped = kernel.reshape(stage.groups, n_out // stage.groups, n_in, taps)
        made = ops.group_convolution(hidden, ops.constant(grouped), [1], [pad], [pad], [1])
    else:
        made = ops.convolution(hidden, ops.constant(kernel), [1], [pad], [pad], [1])
    return ops.relu(ops.add(made, ops.constant(bias.reshape(1, n_out, 1))))
