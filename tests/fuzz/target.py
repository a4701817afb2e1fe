"""What is attacked: seeds, how they are damaged, and what must hold whatever comes."""

from __future__ import annotations

from pathlib import Path
from random import Random

TAKEN, REFUSED = "taken", "refused"


class BrokenError(AssertionError):
    """A promise that was not kept without any exception: a silent change, a half-written file."""


class Target:
    """One kind of input.

    `run` may return, or raise an error of the project; anything else is a finding. It is started
    in a folder of its own, by the same process again and again.
    """

    name = ""

    def seeds(self) -> list[bytes]:
        """Good inputs to begin with."""
        raise NotImplementedError

    def damage(self, data: bytes, rng: Random) -> bytes:
        """An input that is almost like this one."""
        raise NotImplementedError

    def run(self, data: bytes, folder: Path, *, thorough: bool = False) -> None:
        """Hand an input to the project; `thorough` asks for the slow checks too."""
        raise NotImplementedError
