"""Faults at chosen system calls: a forked child waits, strace attaches, the child goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache

import pytest


@cache
def works() -> bool:
    """Whether strace may attach to processes here."""
    if shutil.which("strace") is None or not hasattr(os, "fork"):
        return False
    return faulted(lambda: None, "trace=none") == 0


def needed() -> None:
    """Skip, and say why, where faults cannot be injected."""
    if not works():
        pytest.skip("strace is not installed, or may not attach to processes here")


def faulted(action: Callable[[], None], rule: str) -> int:
    """Run an action in a child under a rule of strace; its exit status, negative for a signal.

    Status 1 is an OSError that the action raised, 2 any other exception.
    """
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        status = 2
        try:
            os.close(go)
            os.read(ready, 1)
            action()
            status = 0
        except OSError:
            status = 1
        finally:
            os._exit(status)
    os.close(ready)
    tracer = subprocess.Popen(
        ["strace", "-f", "-p", str(child), "-o", os.devnull, "-e", rule],
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
    return os.waitstatus_to_exitcode(status)
