"""A detector around a network that looks at windows; a system adds its network, loss and error.

The defaults are TSB-AD's: the first 80 % of the training rows train and the rest validate, each
part cut on its own, stride 1, shuffled, batches of 128; early stopping after three epochs that are
not 1e-4 better, with the last weights kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import InputError, NotFittedError, TooShortError
from vace_study.baselines.contract import Method
from vace_study.baselines.networks.backend import choose_device, import_torch, seeded
from vace_study.baselines.networks.windows import (
    Rule,
    Starts,
    check_rule,
    forecast_starts,
    interpolated,
    place_forecast,
    place_reconstruction,
    reconstruction_starts,
    scaled,
    split,
    strided,
    thinned,
)

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from vace_study.baselines.networks.batches import Windows
    from vace_study.baselines.networks.training import At, Keep, Parts, Step

Array = NDArray[np.float64]


@dataclass(kw_only=True)
class WindowNetwork(ABC):
    """Learns on windows of the training rows, scores windows of a table."""

    horizon: ClassVar[int] = 0  # rows after the window that are predicted; 0 reconstructs it
    least_gain: ClassVar[float] = 1e-4  # of an epoch that counts as better
    keep: ClassVar[Keep] = "last"  # which weights are used
    drop_last: ClassVar[bool] = False  # leave out a training batch that is not full

    window: int
    windows: Rule = "published"
    batch_size: int = 128
    learning_rate: float
    epochs: int
    patience: int = 3
    # Where no row is left to validate: watch the training loss, stop early, or run every epoch.
    unwatched: Literal["train on", "stop", "finish"] = "train on"
    max_train_windows: int | None = None  # evenly spaced; None takes all
    score_stride: int = 1  # windows between two that are scored; the rest is interpolated
    device: str = "auto"
    random_state: int = 0

    def fit(self, table: Array) -> Self:
        """Train the network on the training rows."""
        import_torch(f"the method {type(self).__name__}")
        from vace_study.baselines.networks.training import EarlyStopping, Loop, train

        check_rule(self.windows)
        values = np.asarray(table, np.float64)
        self._channels, self._device = values.shape[1], choose_device(self.device)
        self._learn_scale(values)
        parts = self._parts(values)
        epochs, patience = self.epochs, self.patience
        if parts.validation is None and self.unwatched == "stop":
            epochs = min(epochs, self.patience + 1)
        elif parts.validation is None and self.unwatched == "finish":
            patience = epochs
        with seeded(self.random_state, self._device):
            self.module_ = module = self._module(self._channels).to(self._device)
            optimisers = self._optimisers(module)
            self.history_ = train(
                module,
                parts,
                self._step(module, optimisers),
                self._bound(self._watched),
                optimisers,
                Loop(epochs, self.batch_size, self._rate, self.drop_last),
                EarlyStopping(patience, self.least_gain, self.keep),
            )
        return self

    def score(self, table: Array) -> Array:
        """Score every row by the windows that are its own under the rule."""
        values = self._checked(table)
        starts = self._score_starts(len(values))
        stride = self._stride(len(values))
        places = strided(len(starts), stride)
        self._note_stride(stride)
        found = self._window_scores(values, starts[places])
        return self._place(interpolated(places, found, len(starts)), len(values))

    @property
    def notes_(self) -> tuple[str, ...]:
        """What was left out of the last fit and score to save time; kept with the result."""
        usual: dict[str, Any] = {each.name: each.default for each in fields(self)}
        epochs = batches = ""
        if self.epochs < usual["epochs"]:
            epochs = f"capped: {self.epochs} of {usual['epochs']} epochs"
        if self.batch_size < (size := usual["batch_size"]):
            batches = f"capped: batches of {self.batch_size} windows, usually {size}"
        return tuple(cap for cap in (self._train_cap, batches, epochs, self._score_cap) if cap)

    def _note_stride(self, stride: int) -> None:
        self._score_cap = f"capped: one of {stride} windows scored" if stride > 1 else ""

    # ------------------------------------------------------- what a system says of itself

    @abstractmethod
    def _module(self, channels: int) -> nn.Module:
        """The network, with its first weights from torch's generator of the moment."""

    @abstractmethod
    def _losses(self, module: Any, batch: Tensor, at: At) -> Tensor:
        """The loss of a batch (b, window + horizon, channels), or several that are summed."""

    @abstractmethod
    def _errors(self, module: Any, batch: Tensor, at: At) -> Tensor:
        """The score of each window of a batch: (b,)."""

    def _watched(self, module: Any, batch: Tensor, at: At) -> Tensor:
        """What early stopping looks at, where rows validate."""
        return self._losses(module, batch, at)

    def _optimisers(self, module: nn.Module) -> Sequence[Optimizer]:
        from torch.optim import Adam

        return (Adam(module.parameters(), lr=self.learning_rate),)

    def _rate(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 1."""
        return self.learning_rate

    def _step(self, module: nn.Module, optimisers: Sequence[Optimizer]) -> Step:
        from vace_study.baselines.networks.training import descent

        return descent(optimisers[0], self._bound(self._losses))

    # ---------------------------------------------------------- how its windows are cut

    def _learn_scale(self, table: Array) -> None:  # noqa: B027, most systems need none
        """What scaling needs of the training rows: nothing under TSB-AD's rules."""

    def _scaled(self, table: Array) -> Array:
        return scaled(table, self.windows)

    def _split(self, table: Array) -> tuple[Array, Array]:
        """Rows that train, rows that validate; each scaled on its own."""
        cut = split(len(table))
        return table[:cut], table[cut:]

    def _starts(self, n_rows: int) -> Starts:
        if self.horizon:
            return forecast_starts(n_rows, self.window, self.horizon)
        return reconstruction_starts(n_rows, self.window, self.windows)

    def _train_starts(self, n_rows: int) -> Starts:
        return thinned(self._starts(n_rows), self.max_train_windows)

    def _validation_starts(self, n_rows: int) -> Starts:
        return thinned(self._starts(n_rows), self.max_train_windows)

    def _stride(self, n_rows: int) -> int:
        """Windows between two that are scored, for a table of so many rows."""
        return self.score_stride

    def _score_starts(self, n_rows: int) -> Starts:
        return self._starts(n_rows)

    def _place(self, scores: Array, n_rows: int) -> Array:
        if self.horizon:
            return place_forecast(scores, self.window, self.horizon)
        return place_reconstruction(scores, self.window, self.windows)

    # -------------------------------------------------------------------------- the rest

    def _parts(self, table: Array) -> Parts:
        """Windows that train, and windows that validate where rows are left for one."""
        from vace_study.baselines.networks.training import Parts

        first, second = self._split(table)
        if len(first) < (needed := self.window + self.horizon):
            raise TooShortError(
                f"{len(table)} rows came, {len(first)} of them to train on; {type(self).__name__} "
                f"needs {needed} of those; fit on more rows or choose a shorter window"
            )
        starts, possible = self._train_starts(len(first)), len(self._starts(len(first)))
        self._train_cap, self._score_cap = "", ""
        if len(starts) < possible:
            self._train_cap = f"capped: {len(starts)} of {possible} training windows"
        validation = None
        if len(second) >= needed:
            validation = self._cut(second, self._validation_starts(len(second)))
        return Parts(self._cut(first, starts), validation)

    def _cut(self, table: Array, starts: Starts) -> Windows:
        from vace_study.baselines.networks.batches import Windows

        return Windows(self._scaled(table), starts, self.window + self.horizon, self._device)

    def _window_scores(self, table: Array, starts: Starts) -> Array:
        """The scores of the windows that begin at `starts`; the same however often it is asked."""
        from vace_study.baselines.networks.training import score_windows

        with seeded(self.random_state, self._device):
            return score_windows(
                self.module_, self._cut(table, starts), self._bound(self._errors), self.batch_size
            )

    def _bound(self, function: Callable[[Any, Tensor, At], Tensor]) -> Step:
        return lambda batch, at: function(self.module_, batch, at)

    def _checked(self, table: Array) -> Array:
        if not hasattr(self, "module_"):
            raise NotFittedError(
                f"this {type(self).__name__} has learned nothing yet; call fit first"
            )
        values = np.asarray(table, np.float64)
        if values.shape[1] != self._channels:
            raise InputError(
                f"a table of {values.shape[1]} channels came, the fit had {self._channels}; "
                "score the same channels or fit again"
            )
        return values


def network_method(
    name: str, system: type[WindowNetwork], category: str, version: int = 1, **changed: Any
) -> Method:
    """A method of this name: the system with some settings changed."""
    settings = asdict(system(**changed))
    del settings["random_state"]

    def make(seed: int) -> WindowNetwork:
        return system(**changed, random_state=seed)

    return Method(
        name, make, {"system": system.__name__, **settings}, category=category, version=version
    )


def tsb_ad_methods(
    name: str, system: type[WindowNetwork], version: int = 1, **fixed: Any
) -> tuple[Method, ...]:
    """TSB-AD's network as published, with its current windows, and with its slips corrected too."""

    def method(name: str, **changed: Any) -> Method:
        return network_method(name, system, "Neural Networks", version, **changed)

    return (
        method(name),
        method(f"{name}-current", windows="current"),
        method(f"{name}-fixed", windows="current", **fixed),
    )
