"""Every setting of the detector, in one frozen object, and the named presets.

The settings of the paper, its ablations and its released code are in :class:`Reproduction`;
`VACE(widths=…)` takes them as keywords like all others.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, Self, TypeVar, cast, get_args, get_origin, get_type_hints

from vace_ad.errors import ConfigError

T = TypeVar("T")
LARGEST = 2**31 - 1


def within(default: T, low: float, high: float) -> T:
    """A setting between two bounds."""
    return field(default=default, metadata={"bounds": (low, high)})


@cache
def _hints(settings: Any) -> dict[str, Any]:
    return get_type_hints(settings)


class _Checked:
    """Settings whose types and ranges are checked when they are made."""

    def __post_init__(self) -> None:
        kind: Any = type(self)  # mypy takes no class of a dataclass for hashable
        hints = _hints(kind)
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            _check_type(each.name, value, hints[each.name])
            low, high = each.metadata.get("bounds", (-math.inf, math.inf))
            if isinstance(value, int | float) and not low <= value <= high:
                raise ConfigError(f"{each.name}={value!r}: must lie between {low} and {high}")


@dataclass(frozen=True)
class Reproduction(_Checked):
    """The settings of the paper; symbols in comments are the paper's."""

    fit_stride: int = within(1, 1, 100_000)
    variance_floor: Literal["absolute", "relative"] = "relative"  # ε of the patch normalisation

    # encoder
    encoder: Literal["channel", "shared"] = "channel"
    channel_expansion: int = within(8, 1, 1024)  # c_e
    widths: tuple[int, int, int, int] = (32, 64, 64, 64)  # of stages 2 to 5; the last is d_z
    batch_norm: bool = True
    batch_norm_statistics: Literal["calibrated", "running"] = "calibrated"  # momentum 0.1
    batch_norm_blend: float = within(0.95, 0.0, 1.0)  # α; calibrated only

    # velocity pretext
    iterations: int = within(0, 0, 1_000_000)  # T_iter
    pretext: bool = True  # False: the iterations only feed BatchNorm (the paper's ablation)
    pretext_offset: int | None = within(None, 1, 100_000)  # δ in training
    missing_neighbour: Literal["skip", "zero"] = "skip"  # BatchNorm sees zeros, the loss does not
    last_iteration: Literal["gradient", "batch_norm"] = "gradient"  # λ ends at 1/T_iter, or at 0
    checkpoint: Literal["last", "lowest"] = "last"  # weights kept: the last, or of lowest λ·loss
    batch_size: int = within(512, 2, 1_000_000)  # anchors per iteration
    learning_rate: float = within(1e-4, 1e-12, 1e3)
    final_learning_rate: float = within(1e-5, 0.0, 1e3)  # end of the cosine schedule
    weight_decay: float = within(1e-4, 0.0, 1e3)

    # position
    position: Literal["mahalanobis", "memory"] = "mahalanobis"
    position_distance: Literal["squared", "root"] = "squared"  # the Mahalanobis distance
    regularisation: float = within(1e-6, 1e-12, 1e6)  # ε added to the covariance's eigenvalues

    # direction
    direction: bool = True
    direction_weight: float = within(1.0, 0.0, 1e6)  # w
    velocity_offset: int | None = within(None, 1, 100_000)  # δ in scoring
    velocity: Literal["forward", "backward"] = "backward"  # scored: from a patch on, or up to it
    prototypes: int = within(500, 1, 1_000_000)  # maximum of K
    prototype_share: float = within(0.1, 1e-6, 1.0)
    prototype_neighbours: int = within(3, 1, 1000)  # k_np
    prototype_method: Literal["spherical", "minibatch"] = "spherical"
    prototype_seed: int | None = within(None, 0, LARGEST)
    missing_direction: Literal["training", "mean"] = "training"

    # composition and diagnostics
    normalisation: Literal["training", "zscore", "minmax"] = "training"
    active_dimension: Literal["share", "eigenvalue"] = "share"  # above 1/d_z, or above 1e-10

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.widths) != 4 or min(self.widths) < 1:
            raise ConfigError(f"widths={self.widths!r}: must be four positive integers")
        if self.batch_norm and self.batch_norm_statistics == "running" and self.iterations == 0:
            raise ConfigError(
                "batch_norm_statistics='running' with iterations=0: running statistics need "
                "iterations; use batch_norm_statistics='calibrated'"
            )

    @property
    def over_the_set(self) -> bool:
        """Whether a row's score depends on the whole scored series."""
        return self.normalisation != "training" or self.missing_direction != "training"

    @property
    def embedding_size(self) -> int:
        """The length d_z of an embedding."""
        return self.widths[-1]


@dataclass(frozen=True)
class VACEConfig(_Checked):
    """The settings of :class:`vace_ad.VACE`, whose parameters say what each means."""

    patch_length: int | None = within(None, 4, 100_000)  # P
    stride: int | None = within(None, 1, 100_000)  # at most: see grid_stride
    shape: Literal["auto", "always"] = "auto"
    encoders: int = within(2, 1, 256)
    amplitude: bool = True
    drift_half_life: int = within(8000, 1, LARGEST)
    adapt: bool = True
    new_normal_after: int = within(1_000, 0, LARGEST)  # 0: never
    robust: bool = True
    extra_signals: tuple[str, ...] = ()
    off: str | None = None
    run_up: int = within(5, 0, 100_000)
    run_down: int = within(5, 0, 4_096)
    context: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()
    maintenance: tuple[str, ...] = ()  # FROM..TO each
    calendar: tuple[str, ...] = ()  # dates, regions such as DE-BY, and a time zone
    components: tuple[str, ...] = ()  # component/sensor for each channel that belongs to one
    max_gap: int = within(5, 0, 1_000_000)
    max_missing: float = within(0.5, 0.0, 1.0)
    max_fit_rows: int = within(100_000, 1000, LARGEST)
    max_fit_patches: int = within(2_000, 100, LARGEST)
    engine: Literal["auto", "openvino", "torch", "numpy"] = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    device: str = "cpu"
    random_state: int = within(0, 0, LARGEST)
    reproduction: Reproduction = field(default_factory=Reproduction)

    def __post_init__(self) -> None:
        for name in ("extra_signals", "context", "watch", "maintenance", "calendar", "components"):
            if isinstance(given := getattr(self, name), list):
                object.__setattr__(self, name, tuple(given))
        super().__post_init__()
        if both := set(self.context) & set(self.watch):
            raise ConfigError(f"{sorted(both)[0]!r} is in context and in watch; keep one of them")
        if not re.fullmatch(r"(cpu|cuda|mps|xpu)(:\d+)?", self.device):
            raise ConfigError(
                f"device={self.device!r}: must be 'cpu', 'cuda', 'mps' or 'xpu', with a number "
                "behind it where there are several: 'cuda:1'"
            )

    @property
    def length(self) -> int:
        """Rows of a patch."""
        return self.patch_length or LENGTH

    @property
    def window(self) -> int:
        """Rows of the longest window: a patch, or the default length where patches are long."""
        return self.length if self.length <= FOLLOWED else LENGTH

    @property
    def warm(self) -> int:
        """First rows of a stream, whose windows are its baseline from the start."""
        return min(WARM, self.length)

    @property
    def offset(self) -> int:
        """The offset δ between the patches of a velocity, in rows."""
        return self.reproduction.velocity_offset or max(1, self.length // 2)

    @property
    def grid_stride(self) -> int:
        """The largest stride up to `stride` that divides δ, so that neighbours are scored too."""
        most = self.stride or max(1, self.length // 6)
        return max(d for d in range(1, most + 1) if self.offset % d == 0)

    @property
    def training_offset(self) -> int:
        """The offset δ between the patches of a loss triple, in rows."""
        return self.reproduction.pretext_offset or self.offset

    @property
    def least_rows(self) -> int:
        """Rows of the shortest training stretch, which holds a patch and its neighbour."""
        return self.length + self.offset + 1

    @classmethod
    def from_preset(cls, preset: str | None = None, **settings: Any) -> Self:
        """The settings of a preset (None: the default), changed by keyword."""
        if preset is not None and preset not in PRESETS:
            raise ConfigError(f"preset={preset!r}: must be one of {', '.join(PRESETS)}, or None")
        known = {*_names(cls), *_names(Reproduction)} - {"reproduction"}
        for name in settings:
            if name not in known:
                close = get_close_matches(name, known, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise ConfigError(f"{name!r} is not a setting of VACE{hint}")
        chosen = {**(PRESETS[preset] if preset else {}), **settings}
        paper = {name: chosen.pop(name) for name in _names(Reproduction) if name in chosen}
        return cls(**chosen, reproduction=Reproduction(**paper))

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as one flat dictionary, for JSON and `from_preset`."""
        own = {name: getattr(self, name) for name in _names(type(self)) if name != "reproduction"}
        return {**own, **{name: getattr(self.reproduction, name) for name in _names(Reproduction)}}


WARM = 48  # rows
LENGTH = 96  # rows of a patch, and of the longest window, where nothing says otherwise
FOLLOWED = 250  # rows of the longest patch that windows follow: an hour is lost in a day
COMPUTING = ("engine", "precision", "device")  # settings that shape no score beyond rounding
PLANNED = ("maintenance", "calendar")  # what people know in advance
CHANGEABLE = (*COMPUTING, *PLANNED)  # that may be chosen anew after the fit


class Default:
    """The default of a setting in a signature: what was not given, so that a preset may set it."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


def default(value: T) -> T:
    """A keyword's default that differs from the same value given by the caller."""
    return cast(T, Default(value))


def _names(kind: type[Any]) -> list[str]:
    return [each.name for each in fields(kind)]


# The paper's text, to the letter.
_PAPER: dict[str, Any] = {
    "patch_length": 96,
    "stride": 1,
    "shape": "always",
    "fit_stride": 1,
    "max_fit_patches": LARGEST,
    "max_fit_rows": LARGEST,
    "variance_floor": "absolute",
    "widths": (128, 256, 128, 64),
    "encoders": 1,
    "iterations": 20,
    "batch_norm_statistics": "running",
    "position_distance": "squared",
    "prototype_method": "minibatch",
    "velocity": "forward",
    "missing_direction": "mean",
    "normalisation": "zscore",
    "amplitude": False,
    "robust": False,
}
# What the authors' code does where it parts from the text.
_RELEASED: dict[str, Any] = {
    **_PAPER,
    "position_distance": "root",
    "normalisation": "minmax",
    "pretext_offset": 96,
    "missing_neighbour": "zero",
    "last_iteration": "batch_norm",
    "checkpoint": "lowest",
    "prototype_seed": 42,
    "active_dimension": "eigenvalue",
}
PRESETS = MappingProxyType({"paper": _PAPER, "released": _RELEASED})


def _check_type(name: str, value: Any, hint: Any) -> None:
    """Raise ConfigError for a value of another type than the field's."""
    if hint is Reproduction:
        if not isinstance(value, Reproduction):
            raise ConfigError(f"{name}={value!r}: must be a Reproduction")
        return
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            allowed = ", ".join(repr(choice) for choice in get_args(hint))
            raise ConfigError(f"{name}={value!r}: must be one of {allowed}")
        return
    if hint in (int | None, str | None) and value is None:
        return
    whole = isinstance(value, int) and not isinstance(value, bool)
    fits, wanted = {
        bool: (isinstance(value, bool), "True or False"),
        str: (isinstance(value, str), "a string"),
        str | None: (isinstance(value, str), "a string or None"),
        float: (whole or isinstance(value, float), "a number"),
    }.get(hint, (whole, "an integer" if hint is int else "an integer or None"))
    if get_origin(hint) is tuple:
        kind = get_args(hint)[0]
        fits = isinstance(value, tuple) and all(type(item) is kind for item in value)
        wanted = "a tuple of integers" if kind is int else "a list of names"
    if not fits:
        raise ConfigError(f"{name}={value!r}: must be {wanted}")
