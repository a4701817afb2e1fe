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
            low, high = _RANGES.get(each.name, (-math.inf, math.inf))
            if isinstance(value, int | float) and not low <= value <= high:
                raise ConfigError(f"{each.name}={value!r}: must lie between {low} and {high}")


@dataclass(frozen=True)
class Reproduction(_Checked):
    """The settings of the paper; symbols in comments are the paper's."""

    fit_stride: int = 1  # smallest number of rows between two training patches
    variance_floor: Literal["absolute", "relative"] = "relative"  # ε of the patch normalisation:
    # 1e-5 in squared units of the data, or in units of each channel's training variance

    # encoder
    encoder: Literal["channel", "shared"] = "channel"  # depthwise then pointwise, or one kernel
    channel_expansion: int = 8  # c_e, filters per channel
    widths: tuple[int, int, int, int] = (32, 64, 64, 64)  # of stages 2 to 5; the last is d_z
    batch_norm: bool = True
    batch_norm_statistics: Literal["calibrated", "running"] = "calibrated"  # a pass over training
    # patches, or the running averages (momentum 0.1) of the training
    batch_norm_blend: float = 0.95  # α: statistics are (1 − α)·(0, 1) + α·data; calibrated only

    # velocity pretext
    iterations: int = 0  # T_iter; 0 trains nothing
    pretext: bool = True  # False: the iterations only feed BatchNorm (the paper's ablation)
    pretext_offset: int | None = None  # δ in training; None: velocity_offset
    missing_neighbour: Literal["skip", "zero"] = "skip"  # patches without one are no anchors, or
    # get a zero patch that BatchNorm sees and the loss does not
    last_iteration: Literal["gradient", "batch_norm"] = "gradient"  # λ ends at 1/T_iter, or at 0
    checkpoint: Literal["last", "lowest"] = "last"  # weights kept: the last, or of lowest λ·loss
    batch_size: int = 512  # anchors per iteration
    learning_rate: float = 1e-4
    final_learning_rate: float = 1e-5  # end of the cosine schedule
    weight_decay: float = 1e-4

    # position
    position: Literal["mahalanobis", "memory"] = "mahalanobis"  # Gaussian, or a memory bank
    position_distance: Literal["squared", "root"] = "squared"  # the Mahalanobis distance
    regularisation: float = 1e-6  # ε added to the covariance's eigenvalues

    # direction
    direction: bool = True  # whether the direction of motion counts
    direction_weight: float = 1.0  # w
    velocity_offset: int | None = None  # δ in scoring; None: half a patch
    velocity: Literal["forward", "backward"] = "backward"  # scored: from a patch on, or up to it
    prototypes: int = 500  # maximum of K
    prototype_share: float = 0.1  # prototypes as a share of the training patches, if less than K
    prototype_neighbours: int = 3  # k_np
    prototype_method: Literal["spherical", "minibatch"] = "spherical"  # k-means by cosine, or
    # scikit-learn's MiniBatch k-means
    prototype_seed: int | None = None  # random seed of the k-means; None: random_state
    missing_direction: Literal["training", "mean"] = "training"  # of patches without a velocity:
    # the median of training, or the mean of the scored series

    # composition
    normalisation: Literal["training", "zscore", "minmax"] = "training"  # of both signals: in
    # units of held-out training scores, composed on a log scale; or over the scored series

    # diagnostics
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
    """The settings of :class:`vace_ad.VACE`."""

    patch_length: int | None = None  # P, number of rows in a patch; None: the period of the
    # training rows where they have one, otherwise 96
    stride: int | None = None  # largest number of rows between two scored patches: see
    # grid_stride; None: a sixth of a patch
    shape: Literal["auto", "always"] = "auto"  # auto: use patches where training has a period, or
    # where patch_length is given; always: for every series
    encoders: int = 2  # number of encoders with different seeds whose evidence is averaged
    amplitude: bool = True  # whether other evidence than the shape of patches is used
    drift_half_life: int = 8000  # half-life of the baseline, in rows
    adapt: bool = True  # whether the limits of alarms adapt to the scored rows
    new_normal_after: int = 1_000  # rows after which a lasting change becomes normal; 0: never
    robust: bool = True  # whether to leave outliers among the training rows out of the fit, if
    # these are at most a twentieth of the rows
    extra_signals: tuple[str, ...] = ()  # signals of installed packages, added to the score
    off: str | None = None  # the condition under which the machine is off: none of these rows is
    # trained on, scored or reported as missing
    run_up: int = 5  # rows after it was off that also count as off
    run_down: int = 5  # rows before it is off that raise no alarm; alarms are delayed as long
    context: tuple[str, ...] = ()  # columns used to predict the others, and never suspects
    watch: tuple[str, ...] = ()  # channels that may raise alarms; all others are context
    maintenance: tuple[str, ...] = ()  # planned windows, FROM..TO each, whose rows count as off
    calendar: tuple[str, ...] = ()  # holidays as dates or regions such as DE-BY, and a time zone:
    # time of day, day of the week and holidays become context
    components: tuple[str, ...] = ()  # component/sensor for each channel that belongs to one
    max_gap: int = 5  # missing rows of a channel that are interpolated; longer gaps are predicted
    max_missing: float = 0.5  # share of channels above which a row has no score
    max_fit_rows: int = 100_000  # longer training parts are thinned to evenly spaced pieces
    max_fit_patches: int = 2_000  # maximum; the training stride grows, up to δ, to keep it
    engine: Literal["auto", "openvino", "torch", "numpy"] = "auto"  # library that runs encoders
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # number format of the encoders
    device: str = "cpu"  # device of the torch engine and of training
    random_state: int = 0  # random seed
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


_LIMIT = 2**31 - 1
_RANGES: dict[str, tuple[float, float]] = {
    "patch_length": (4, 100_000),
    "stride": (1, 100_000),
    "fit_stride": (1, 100_000),
    "max_fit_patches": (100, _LIMIT),
    "max_fit_rows": (1000, _LIMIT),
    "run_up": (0, 100_000),
    "run_down": (0, 4_096),
    "max_gap": (0, 1_000_000),
    "max_missing": (0.0, 1.0),
    "channel_expansion": (1, 1024),
    "encoders": (1, 256),
    "batch_norm_blend": (0.0, 1.0),
    "iterations": (0, 1_000_000),
    "pretext_offset": (1, 100_000),
    "batch_size": (2, 1_000_000),
    "learning_rate": (1e-12, 1e3),
    "final_learning_rate": (0.0, 1e3),
    "weight_decay": (0.0, 1e3),
    "regularisation": (1e-12, 1e6),
    "direction_weight": (0.0, 1e6),
    "velocity_offset": (1, 100_000),
    "prototypes": (1, 1_000_000),
    "prototype_share": (1e-6, 1.0),
    "prototype_neighbours": (1, 1000),
    "prototype_seed": (0, _LIMIT),
    "drift_half_life": (1, _LIMIT),
    "new_normal_after": (0, _LIMIT),
    "random_state": (0, _LIMIT),
}

# The paper's text, to the letter.
_PAPER: dict[str, Any] = {
    "patch_length": 96,
    "stride": 1,
    "shape": "always",
    "fit_stride": 1,
    "max_fit_patches": _LIMIT,
    "max_fit_rows": _LIMIT,
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
