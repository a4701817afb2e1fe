"""Modules of the package that a command enters, in order: `walk.py detect table.csv`.

A module is entered when a function that is written in it runs; importing it alone does not count.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from types import FrameType

from vace_ad.cli.main import app


def entered(arguments: list[str]) -> list[str]:
    """The modules that a command enters, in order of first entry."""
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        name = str(frame.f_globals.get("__name__", ""))
        code = frame.f_code
        function = code.co_flags & inspect.CO_OPTIMIZED  # no body of a module or class
        written = code.co_filename.endswith(".py")  # not generated, as by dataclasses
        if event == "call" and function and written and name.startswith("vace_ad."):
            found[name] = None

    sys.setprofile(note)
    try:
        app(arguments, standalone_mode=False)
    finally:
        sys.setprofile(None)
    return list(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of `vace`")
    modules = entered(parser.parse_args().arguments)
    print(*modules, sep="\n")
    print(f"{len(modules)} of {sum(one.startswith('vace_ad') for one in sys.modules)} imported")
