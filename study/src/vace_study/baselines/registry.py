"""Methods by name: built in, from an installed plug-in, or `package.module:Name`.

A plug-in is an entry point of the group `vace_ad.detectors` that names a :class:`Method`, or a
class or function that makes a detector; the same things can be named as `package.module:Name`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from vace_ad.errors import ConfigError
from vace_study.baselines.contract import Detector, Method

GROUP = "vace_ad.detectors"
_MODULES = (  # of this package, each with a tuple METHODS
    "vace",
    "pca",
    "iforest",
    "charts",
    "var",
    "cells",
    "paano",
    "deepant",
    "omnianomaly",
    "usad",
    "lstmad",
    "timesnet",
    "anomaly_transformer",
    "dcdetector",
    "kanad",
    "xlstmad",
    "catch",
    "crossad",
    "axonad",
    "dada",
    "tspulse",
    "amplitude",
)


def names() -> tuple[str, ...]:
    """The methods that can be run by name, built-in ones first."""
    plugged = (point.name for point in entry_points(group=GROUP))
    return tuple(dict.fromkeys([*_built_in(), *plugged]))


def groups() -> dict[str, tuple[str, ...]]:
    """Names that stand for several methods: the paper's ablation and sensitivity studies."""
    from vace_study.baselines import vace

    return {"ablation": vace.ABLATION, "sensitivity": vace.SENSITIVITY}


def expand(specs: Iterable[str]) -> tuple[str, ...]:
    """The methods behind names and groups of names, each once, in order; all are resolved."""
    known = groups()
    flat = [name for spec in specs for name in known.get(spec, (spec,))]
    unique = tuple(dict.fromkeys(flat))
    for name in unique:
        resolve(name)
    return unique


def resolve(spec: str) -> Method:
    """The method called `spec`, or found at `package.module:Name`."""
    if spec in (built_in := _built_in()):
        return built_in[spec]
    for point in entry_points(group=GROUP):
        if point.name == spec:
            return _as_method(spec, point.load())
    if ":" in spec:
        return _as_method(spec, _imported(spec))
    close = get_close_matches(spec, [*names(), *groups()], n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(names())}"
    raise ConfigError(
        f"there is no method {spec!r}; {hint} A detector of your own is package.module:Name"
    )


def _built_in() -> dict[str, Method]:
    modules = (import_module(f"vace_study.baselines.{module}") for module in _MODULES)
    return {method.name: method for module in modules for method in module.METHODS}


def _imported(spec: str) -> Any:
    module, _, attribute = spec.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"the method {spec!r} cannot be loaded ({error}); "
            "write package.module:Name, and install the package or run from its folder"
        ) from error


def _as_method(spec: str, found: Any) -> Method:
    """A method from what a plug-in offers: a Method, or a callable that makes a detector."""
    if isinstance(found, Method):
        return found
    if not callable(found):
        raise ConfigError(
            f"{spec!r} is a {type(found).__name__}; needed is a Method, or a class or function "
            "that makes a detector with fit and score"
        )
    seeded = "random_state" in inspect.signature(found).parameters

    def make(seed: int) -> Detector:
        detector: Detector = found(random_state=seed) if seeded else found()
        return detector

    return Method(spec, make, _settings(make(0), found), seeded=seeded)


def _settings(detector: Any, origin: Any) -> dict[str, Any]:
    """What tells one configuration of a foreign detector from another."""
    params = detector.get_params() if hasattr(detector, "get_params") else {}
    params.pop("random_state", None)
    return {"origin": f"{origin.__module__}:{origin.__qualname__}", **params}
