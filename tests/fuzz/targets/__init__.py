"""All targets by name; each is made only where it is used, since some fit a model first."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from fuzz.target import Target

_WHERE = {
    "model": "models:ModelFile",
    "state": "models:StateFile",
    "csv": "tables:Csv",
    "parquet": "tables:Parquet",
    "arrow": "tables:Arrow",
    "packed-arrow": "tables:PackedArrow",
    "sqlite": "tables:Sqlite",
    "where": "tables:Where",
    "json": "tables:Json",
    "line-protocol": "tables:LineProtocol",
    "excel": "tables:Excel",
    "packed": "tables:Packed",
    "config": "live:ConfigFile",
    "store": "live:StoreFile",
    "service": "live:Service",
    "sparkplug": "live:Sparkplug",
}
NAMES = tuple(_WHERE)


def make(name: str) -> Target:
    """A target, ready to run."""
    module, kind = _WHERE[name].split(":")
    made: Callable[[], Target] = getattr(import_module(f"fuzz.targets.{module}"), kind)
    target = made()
    target.name = name
    return target
