"""Faults at chosen system calls: a forked child waits, strace attaches, the child goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import pytest


class Outcome(NamedTuple):
    """What came of an action with a fault in it."""

    met: bool  # whether the fault happened
    status: int  # 0 the action ended, 1 it raised, negative: the signal that killed it


@cache
def works() -> bool:
    """Whether strace may attach to processes here."""
    if shutil.which("strace") is None or not hasattr(os, "fork"):
        return False
    return faulted(lambda: None, "trace=none").status == 0


def needed() -> None:
    """Skip, and say why, where faults cannot be injected."""
    if not works():
        pytest.skip("strace is not installed, or may not attach to processes here")


def faulted(action: Callable[[], None], rule: str) -> Outcome:
    """Run an action in a child under a rule of strace."""
    ready, go = os.pipe()
    child = _forked(action, before=lambda: (os.close(go), os.read(ready, 1)))
    os.close(ready)
    with tempfile.NamedTemporaryFile("r") as trace:
        tracer = subprocess.Popen(
            ["strace", "-f", "-p", str(child), "-o", trace.name, "-e", rule],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert tracer.stderr is not None
        tracer.stderr.readline()  # "attached", or why not
        try:
            os.write(go, b"x")
        finally:
            os.close(go)
        _, status = os.waitpid(child, 0)
        tracer.wait()
        tracer.stderr.close()
        code = os.waitstatus_to_exitcode(status)
        return Outcome(code < 0 or "(INJECTED)" in trace.read(), code)


def starved(action: Callable[[], None], n: int) -> Outcome:
    """Run an action in a child in which the n-th allocation of Python fails."""
    import _testcapi

    def act() -> None:
        _testcapi.set_nomemory(n, n + 1)
        try:
            action()
        finally:
            _testcapi.remove_mem_hooks()

    _, status = os.waitpid(_forked(act), 0)
    code = os.waitstatus_to_exitcode(status)
    return Outcome(code != 0, code)


def _forked(action: Callable[[], None], before: Callable[[], object] = lambda: None) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            before()
            action()
            status = 0
        finally:
            os._exit(status)
    return child
