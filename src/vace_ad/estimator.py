"""What scikit-learn's tools expect of a detector: parameters and fitted attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Never, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.calibration import Calibration
from vace_ad.config import CHANGEABLE, PLANNED, Default, VACEConfig, default
from vace_ad.errors import NotFittedError
from vace_ad.model import Model


class Estimator:
    """Settings, and the model that was fitted with them."""

    def __init__(
        self,
        *,
        preset: str | None = None,
        patch_length: int | None = default(None),
        stride: int | None = default(None),
        shape: Literal["auto", "always"] = default("auto"),
        encoders: int = default(2),
        amplitude: bool = default(True),
        drift_half_life: int = default(8_000),
        adapt: bool = default(True),
        new_normal_after: int = default(1_000),
        robust: bool = default(True),
        extra_signals: tuple[str, ...] = default(()),
        off: str | None = default(None),
        run_up: int = default(5),
        run_down: int = default(5),
        context: tuple[str, ...] = default(()),
        watch: tuple[str, ...] = default(()),
        maintenance: tuple[str, ...] = default(()),
        calendar: tuple[str, ...] = default(()),
        components: tuple[str, ...] = default(()),
        max_gap: int = default(5),
        max_missing: float = default(0.5),
        max_fit_rows: int = default(100_000),
        max_fit_patches: int = default(2_000),
        engine: Literal["auto", "openvino", "torch", "numpy"] = default("auto"),
        precision: Literal["auto", "float32", "bfloat16"] = default("auto"),
        device: str = default("cpu"),
        random_state: int = default(0),
        fit_stride: int = default(1),
        variance_floor: Literal["absolute", "relative"] = default("relative"),
        encoder: Literal["channel", "shared"] = default("channel"),
        channel_expansion: int = default(8),
        widths: tuple[int, int, int, int] = default((32, 64, 64, 64)),
        batch_norm: bool = default(True),
        batch_norm_statistics: Literal["calibrated", "running"] = default("calibrated"),
        batch_norm_blend: float = default(0.95),
        iterations: int = default(0),
        pretext: bool = default(True),
        pretext_offset: int | None = default(None),
        missing_neighbour: Literal["skip", "zero"] = default("skip"),
        last_iteration: Literal["gradient", "batch_norm"] = default("gradient"),
        checkpoint: Literal["last", "lowest"] = default("last"),
        batch_size: int = default(512),
        learning_rate: float = default(1e-4),
        final_learning_rate: float = default(1e-5),
        weight_decay: float = default(1e-4),
        position: Literal["mahalanobis", "memory"] = default("mahalanobis"),
        position_distance: Literal["squared", "root"] = default("squared"),
        regularisation: float = default(1e-6),
        direction: bool = default(True),
        direction_weight: float = default(1.0),
        velocity_offset: int | None = default(None),
        velocity: Literal["forward", "backward"] = default("backward"),
        prototypes: int = default(500),
        prototype_share: float = default(0.1),
        prototype_neighbours: int = default(3),
        prototype_method: Literal["spherical", "minibatch"] = default("spherical"),
        prototype_seed: int | None = default(None),
        missing_direction: Literal["training", "mean"] = default("training"),
        normalisation: Literal["training", "zscore", "minmax"] = default("training"),
        active_dimension: Literal["share", "eigenvalue"] = default("share"),
        **unknown: Never,
    ) -> None:
        """Store the settings; `set_params` changes them.

        The other parameters below are those of the paper, its ablations and its released code, with
        the paper's symbols.

        Parameters
        ----------
        preset
            None for the default, "paper" for the paper's text, "released" for its authors' code.
            Other keywords change single settings of the preset.
        patch_length
            Number of rows in a patch. None: the period of the training rows where they have one,
            otherwise 96.
        stride
            Largest number of rows between two scored patches. None: a sixth of a patch.
        shape
            "auto": use patches where training has a period, or where `patch_length` is given.
            "always": use them for every series.
        encoders
            Number of encoders with different seeds whose evidence is averaged.
        amplitude
            Whether evidence other than the shape of patches is used.
        drift_half_life
            Half-life of the baseline, in rows: a lasting change becomes normal at this rate.
        adapt
            Whether the limits of alarms adapt to the scored rows.
        new_normal_after
            Number of rows after which a lasting change becomes normal and its event ends, marked
            as `lasting`. 0: never.
        robust
            Whether to leave outliers among the training rows out of the fit, if these are at most a
            twentieth of the rows.
        extra_signals
            Names of signals of installed packages, added to the score; see the entry point
            `vace_ad.signals`.
        off
            Condition under which the machine is off, such as "pump_speed < 5 or status ==
            'stopped'". These rows are not trained on, not scored and not reported as missing.
        run_up
            Number of rows after the machine was off that also count as off.
        run_down
            Number of rows before the machine is off that raise no alarm. If `off` is given, every
            alarm is delayed by as many rows.
        context
            Columns used to predict the others, and never suspects: ambient conditions, set points,
            product codes. A column of text becomes a channel of 0 and 1 for each of its values.
        watch
            Channels that may raise alarms; all others are context.
        maintenance
            Planned windows, each "FROM..TO" as in "2026-03-01T06:00..2026-03-01T14:00", whose rows
            count as off. May be changed after the fit.
        calendar
            Holidays as dates ("2026-12-25"), regions whose public holidays the package `holidays`
            knows ("DE-BY"), and a time zone ("Europe/Berlin"). Time of day, day of the week and
            holidays are then context, and a holiday is expected to be like a Sunday. Dates may be
            changed after the fit.
        components
            Component of each channel, as "component/channel", for example "pump/flow"; events then
            also have shares by component. Channels with such names need no setting.
        max_gap
            Longest gap of a channel that is interpolated, in rows; values in longer gaps are
            predicted from the other channels.
        max_missing
            Share of missing channels above which a row has no score.
        max_fit_rows
            Maximum number of training rows; of more rows, evenly spaced pieces are used.
        max_fit_patches
            Maximum number of training patches; the training stride grows, up to δ, to keep it.
        engine
            Library that computes the embeddings: "openvino", "torch", "numpy", or "auto" for the
            first that is installed.
        precision
            Number format of the embeddings: "float32", "bfloat16", or "auto" for the one that is
            fast on this machine.
        device
            Device of the torch engine and of training, such as "cpu" or "cuda".
        random_state
            Random seed.

        Other Parameters
        ----------------
        fit_stride
            Smallest number of rows between two training patches.
        variance_floor
            ε of the patch normalisation: "absolute", 1e-5 in squared units of the data, or
            "relative" to each channel's training variance.
        encoder
            "channel": depthwise then pointwise, or "shared": one kernel for all channels.
        channel_expansion
            Filters per channel, c_e.
        widths
            Widths of the encoder's stages 2 to 5; the last is d_z.
        batch_norm
            Whether the encoder has batch normalisation.
        batch_norm_statistics
            "calibrated" by a pass over training patches, or the "running" averages of training.
        batch_norm_blend
            α: calibrated statistics are (1 − α)·(0, 1) + α·data.
        iterations
            Iterations of the velocity pretext, T_iter; 0: no training.
        pretext
            False: the iterations only update the batch normalisation.
        pretext_offset
            δ in training; None: `velocity_offset`.
        missing_neighbour
            Patches without a neighbour are no anchors ("skip"), or get a patch of zeros ("zero").
        last_iteration
            λ ends at 1/T_iter ("gradient"), or at 0 ("batch_norm").
        checkpoint
            Weights kept: the "last", or those of the "lowest" λ·loss.
        batch_size
            Anchors per iteration.
        learning_rate
            Learning rate of the first iteration.
        final_learning_rate
            Learning rate of the last iteration; the schedule is a cosine.
        weight_decay
            Weight decay of the optimiser.
        position
            "mahalanobis" for a Gaussian, "memory" for a memory bank.
        position_distance
            The Mahalanobis distance, "squared" or its "root".
        regularisation
            ε added to the eigenvalues of the covariance.
        direction
            Whether the direction signal is used.
        direction_weight
            Weight w of the direction signal.
        velocity_offset
            δ in scoring; None: half a patch.
        velocity
            Velocity that is scored: from a patch to the next ("forward"), or from the one before it
            ("backward").
        prototypes
            Maximum number of prototypes, K.
        prototype_share
            Number of prototypes as a share of the training patches, if that is less than K.
        prototype_neighbours
            Number of nearest prototypes, k_np.
        prototype_method
            "spherical" k-means by cosine, or scikit-learn's "minibatch" k-means.
        prototype_seed
            Random seed of the k-means; None: `random_state`.
        missing_direction
            Direction score of patches without a velocity: the median of "training", or the "mean"
            of the scored series.
        normalisation
            Normalisation of both signals: in units of held-out "training" scores, or over the
            scored series by "zscore" or "minmax".
        active_dimension
            Active dimensions of the diagnostics: variance above a "share" of 1/d_z, or an
            "eigenvalue" above 1e-10.
        """
        given = {k: v for k, v in locals().items() if k not in ("self", "preset", "unknown")}
        given = {k: v for k, v in given.items() if not isinstance(v, Default)}
        self._asked = VACEConfig.from_preset(preset, **given, **unknown)

    @property
    def config(self) -> VACEConfig:
        """The settings; after a fit, with the values that the fit chose."""
        model: Model | None = getattr(self, "_model", None)
        return self._asked if model is None or self._changed(model) else model.config

    @property
    def settings_text(self) -> str:
        """The settings that differ from the default, as Python code."""
        defaults = VACEConfig().to_dict()
        changed = [f"{k}={v!r}" for k, v in self._asked.to_dict().items() if v != defaults[k]]
        return f"VACE({', '.join(changed)})"

    def _is_fitted(self) -> bool:
        try:
            return self.model_ is not None
        except NotFittedError:
            return False

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return every setting by name, as given; `deep` is ignored."""
        return self._asked.to_dict()

    def set_params(self, **settings: Any) -> Self:
        """Change settings. All except `maintenance` and `calendar` need a new `fit`."""
        self._asked = VACEConfig.from_preset(None, **{**self._asked.to_dict(), **settings})
        model: Model | None = getattr(self, "_model", None)
        if model is not None and not settings.keys().isdisjoint(PLANNED):  # needs no new fit
            planned = {name: getattr(self._asked, name) for name in PLANNED}
            self._model = replace(model, config=replace(model.config, **planned))
        return self

    def _take(self, model: Model) -> None:
        self._model = model
        self.__dict__.pop("calibration_", None)

    # ----------------------------------------------------------------- learned

    @property
    def model_(self) -> Model:
        """The fitted model, which does not change."""
        model: Model | None = getattr(self, "_model", None)
        if model is None:
            raise NotFittedError("this detector has learned nothing yet: call fit first")
        for name, then, now in self._changed(model):
            raise NotFittedError(
                f"{name} was changed from {then!r} to {now!r} after the fit: call fit again"
            )
        return model

    def _changed(self, model: Model) -> list[tuple[str, Any, Any]]:
        """Settings that were changed after the fit; what is None was left to it."""
        now, then = self._asked.to_dict(), model.config.to_dict()
        return [
            (name, then[name], value)
            for name, value in now.items()
            if name not in CHANGEABLE and value is not None and value != then[name]
        ]

    @property
    def channels_(self) -> tuple[str, ...]:
        """The names of the channels, without those of the calendar."""
        return self.model_.inputs

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """The names of the channels as an array, for scikit-learn's tools."""
        return np.asarray(self.channels_, dtype=object)

    @property
    def n_features_in_(self) -> int:
        """Number of channels."""
        return len(self.channels_)

    @property
    def facts_(self) -> Mapping[str, Any]:
        """Details of the fit."""
        return self.model_.facts

    @property
    def geometry_(self) -> Any:
        """Diagnostics of the training embeddings; None without encoders."""
        shape = self.model_.shape
        return None if shape is None else shape.geometry

    @property
    def calibration_scores_(self) -> NDArray[np.float64]:
        """Held-out scores of the training rows: each by a model that was not fitted on it."""
        return self.model_.calibration_scores

    @cached_property
    def calibration_(self) -> Calibration:
        """How scores are distributed in normal operation, from `calibration_scores_`."""
        return self.model_.calibration
