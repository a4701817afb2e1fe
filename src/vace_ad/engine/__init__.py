"""Engines that compute embeddings: OpenVINO, torch or NumPy, behind one interface; and threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from vace_ad.config import VACEConfig
from vace_ad.errors import ConfigError

if TYPE_CHECKING:
    from vace_ad.engine.encoder import Encoder


class Engine(Protocol):
    """Weights in, patches in, embeddings out."""

    name: str  # what was chosen, for people
    batch: int  # patches a call is quickest with
    callers: int  # threads that may call at a time and gain by it

    def embed(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        """(n, n_channels, P) normalised patches to (n, n_encoders, d_z) embeddings."""
        ...


def make_engine(encoders: Sequence[Encoder], n_channels: int, config: VACEConfig) -> Engine:
    """The engine of the config."""
    return choose_engine(
        encoders, n_channels, config.length, config.engine, config.precision, config.device
    )


def choose_engine(
    encoders: Sequence[Encoder],
    n_channels: int,
    patch_length: int,
    choice: str = "auto",
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    device: str = "cpu",
) -> Engine:
    """The engine asked for; `auto` is OpenVINO, else NumPy, unless a GPU is asked for."""
    if choice == "auto":
        has_openvino = find_spec("openvino") is not None
        choice = "torch" if device != "cpu" else "openvino" if has_openvino else "numpy"
    if choice == "openvino":
        from vace_ad.engine.openvino import OpenVINOEngine

        return OpenVINOEngine(encoders, n_channels, patch_length, precision)
    if choice == "torch":
        from vace_ad.engine.torch import TorchEngine

        return TorchEngine(encoders, device, precision)
    if precision == "bfloat16":
        raise ConfigError(
            "precision='bfloat16': NumPy computes in float32; install OpenVINO with "
            "pip install 'vace-ad[openvino]', or use precision='auto'"
        )
    from vace_ad.engine.numpy import NumpyEngine

    return NumpyEngine(encoders)


_pool: tuple[int, Executor] | None = None
_ABANDONED: list[Engine | None] = []  # by forked processes, never used nor freed


class EngineSlot:
    """An engine that is made when first needed, in every process anew.

    An engine holds threads and compiled code, which neither a copy, nor a pickle, nor a forked
    process can take along; the weights are all it takes to make another.
    """

    def __init__(self, encoders: Sequence[Encoder], n_channels: int, config: VACEConfig) -> None:
        self._recipe = (tuple(encoders), n_channels, config)
        self._forget()

    def _forget(self) -> None:
        self._made: Engine | None = None
        self._process = os.getpid()
        self._lock = threading.Lock()

    @property
    def engine(self) -> Engine:
        """The engine of this process."""
        if self._process != os.getpid():
            # Freeing the other process's engine would wait for threads that a fork left behind.
            _ABANDONED.append(self._made)
            self._forget()
        with self._lock:
            if self._made is None:
                self._made = make_engine(*self._recipe)
            return self._made

    def __getstate__(self) -> Any:
        return self._recipe

    def __setstate__(self, recipe: Any) -> None:
        self._recipe = recipe
        self._forget()


def thread_count() -> int:
    """As many threads as BLAS would use.

    So OMP_NUM_THREADS, the processors this process may run on, and limits set by threadpoolctl
    (as joblib does in its workers) all hold for us too.
    """
    counts = [library["num_threads"] for library in _blas().info()]
    return max(counts) if counts else os.cpu_count() or 1


@cache
def _blas() -> ThreadpoolController:
    """NumPy's library of matrix products, looked for once: it is loaded before us, and stays."""
    return ThreadpoolController().select(user_api="blas")


def pool() -> Executor:
    """Threads of this process that stay, for small parts of work."""
    global _pool
    if _pool is None or _pool[0] != os.getpid():  # a forked process has none of its parent's
        _pool = (os.getpid(), ThreadPoolExecutor(thread_count(), "vace"))
    return _pool[1]


@contextmanager
def workers() -> Iterator[Executor]:
    """That many threads, while BLAS itself uses one in each.

    Threads that each work on their own part are quicker than one product at a time shared by all
    threads, above all on a busy machine, and what they compute does not depend on their number.
    """
    threads = thread_count()
    with _blas().limit(limits=1), ThreadPoolExecutor(threads, "vace") as executor:
        yield executor
