"""Embeddings by OpenVINO: the graph is built from the weights, BatchNorm folded, without torch."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.engine import thread_count
from vace_ad.engine.encoder import Encoder, Stage
from vace_ad.errors import ConfigError, needs

Array = NDArray[np.float32]
SIZE = 8  # patches a request: enough to be quick, few enough to stay in cache and to be prompt
FEW = 2  # patches that are quicker one at a time than in a request filled up with zeros
MANY = 4 * SIZE  # patches beside which a request filled up costs less than a second graph
AHEAD = 2  # requests a thread: one that is computed, one that waits


class OpenVINOEngine:
    """All encoders in one graph over the same patches, several requests at a time.

    A request holds eight patches, or one where few come, and is computed by one thread, so a
    patch's embedding depends neither on how many others came with it nor on the number of
    threads. The last, smaller request is filled up with zeros.
    """

    batch = 16 * SIZE

    def __init__(
        self, encoders: Sequence[Encoder], n_channels: int, patch_length: int, precision: str
    ) -> None:
        with needs("openvino", "openvino", "engine='openvino'"):
            import openvino as ov

        core = ov.Core()
        half = _use_bfloat16(precision, core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"))
        threads = thread_count()
        properties = {
            "INFERENCE_PRECISION_HINT": "bf16" if half else "f32",
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": threads,
            "ENABLE_CPU_PINNING": False,  # or two processes may share one core
        }

        @lru_cache
        def compiled(size: int) -> Any:
            graph = _graph(encoders, (size, n_channels, patch_length))
            return core.compile_model(graph, "CPU", properties)

        self._compiled = compiled
        self.callers = threads
        self._most = AHEAD * threads
        # Requests nobody waits for, by size; threads may share an engine.
        self._idle: dict[int, deque[_Request]] = {SIZE: deque(), 1: deque()}
        self.name = f"openvino {'bfloat16' if half else 'float32'}"

    def embed(self, patches: Array) -> Array:
        """(n, n_channels, P) to (n, n_encoders, d_z)."""
        rest = len(patches) % SIZE
        single = rest if rest <= FEW and len(patches) < MANY else 0
        whole = len(patches) - single
        parts = [self._in_requests(patches[:whole], SIZE)] if whole else []
        parts += [self._in_requests(patches[whole:], 1)] if single else []
        return np.concatenate(parts) if len(parts) != 1 else parts[0]

    def _in_requests(self, patches: Array, size: int) -> Array:
        made: list[Array] = []
        running: deque[_Request] = deque()
        for a in range(0, len(patches), size):
            full = len(running) == self._most
            request = self._collect(running, made) if full else self._take(size)
            request.start(patches[a : a + size])
            running.append(request)
        while running:
            self._idle[size].append(self._collect(running, made))
        return np.concatenate(made)[: len(patches)]

    def _take(self, size: int) -> _Request:
        try:
            return self._idle[size].pop()
        except IndexError:
            return _Request(self._compiled(size).create_infer_request())

    @staticmethod
    def _collect(running: deque[_Request], made: list[Array]) -> _Request:
        """Wait for the oldest request and keep its embeddings."""
        request = running.popleft()
        made.append(request.result())
        return request


class _Request:
    """A request with its own place for the patches: handing arrays over costs more than copying."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self._in, self._out = request.get_input_tensor(0).data, request.get_output_tensor(0).data

    def start(self, patches: Array) -> None:
        """Begin with so many patches; zeros fill up what lacks."""
        self._in[: len(patches)] = patches
        self._in[len(patches) :] = 0
        self._request.start_async()

    def result(self) -> Array:
        """Wait, and take the embeddings."""
        self._request.wait()
        return np.array(self._out, np.float32)


def _use_bfloat16(precision: str, capabilities: Sequence[str]) -> bool:
    """Whether to compute in bfloat16: only where the processor itself does."""
    has = "BF16" in capabilities
    if precision == "bfloat16" and not has:
        raise ConfigError(
            "precision='bfloat16': this processor has no bfloat16 arithmetic; use "
            "precision='auto', which takes bfloat16 where there is some and float32 elsewhere"
        )
    return has and precision != "float32"


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
