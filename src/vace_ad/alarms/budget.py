"""False-alarm budgets: alarms per time or rows, a false-alarm rate, or a threshold.

Every door takes the same words and has the same default. The default is one false alarm a week
where rows have a time, but never more than one in 1,000 rows; and one in 10,000 rows, about a week
of minutes, where they have none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from vace_ad.alarms.calibration import Calibration
from vace_ad.errors import ConfigError, InputError
from vace_ad.settings import option

_DAY = 86_400 * 10**9
PERIODS = {"day": _DAY, "week": 7 * _DAY, "month": 30 * _DAY}  # nanoseconds

DEFAULT_ROWS = 10_000  # that budgets in rows are counted in
FEWEST_ROWS = 1_000  # of a week that has one false alarm by default; a shorter one has fewer

# Below this many independent rows above it, the calibration rows say little about a threshold.
_FAR = 0.3

_WORDS = re.compile(
    r"(?P<amount>one|\d+(\.\d+)?) *((false )?alarms? *)?"
    r"((per|an?|/) *(?P<per>day|week|month)|(in|per|/) *(?P<rows>\d[\d,]*) rows)"
)
UNDERSTOOD = "'1 per week' (or a day, or a month) or '1 in 10000 rows'"


@dataclass(frozen=True)
class Budget:
    """Number of false alarms to accept on normal data.

    The meaning of `amount` depends on `per`:

    ========== ===========================================================
    per        amount
    ========== ===========================================================
    default    multiple of the default, which depends on the step of rows
    day        alarms a day; also week and month. Needs times or a step
    rows       alarms in every 10,000 rows
    share      share of normal rows whose score is above a threshold
    threshold  the threshold itself, as a score
    ========== ===========================================================
    """

    amount: float = 1.0
    per: Literal["default", "day", "week", "month", "rows", "share", "threshold"] = "default"

    def __post_init__(self) -> None:
        if self.per not in ("default", "rows", "share", "threshold", *PERIODS):
            raise ConfigError(
                f"got a budget per {self.per!r}; it is per {', '.join(PERIODS)}, rows, share or "
                "threshold"
            )
        if self.per == "share" and not 0 < self.amount < 1:
            raise ConfigError(
                f"got a false-alarm rate of {self.amount!r}; it is a share of rows between 0 and "
                "1, such as 0.001 (or a quantile such as 0.999)"
            )
        if self.per not in ("share", "threshold") and not self.amount > 0:
            raise ConfigError(
                f"got {self.amount!r} alarms a {self.per}; it must be more than 0, such as 1"
            )

    @classmethod
    def of(cls, budget: Budget | str | None) -> Budget:
        """Return the budget of a text such as "1 per week", a Budget as it is, or the default."""
        if budget is None:
            return cls()
        if isinstance(budget, Budget):
            return budget
        found = _WORDS.fullmatch(budget.strip().lower())
        if found is None:
            raise ConfigError(f"budget {budget!r} is not understood; write {UNDERSTOOD}")
        amount = 1.0 if found["amount"] == "one" else float(found["amount"])
        if not found["rows"]:
            return cls(amount, found["per"])  # type: ignore[arg-type]
        rows = float(found["rows"].replace(",", ""))
        if not rows:
            raise ConfigError(f"budget {budget!r} counts alarms in no rows; write {UNDERSTOOD}")
        return cls(amount * DEFAULT_ROWS / rows, "rows")

    def at(self, step: int | None) -> Budget:
        """Resolve the default for rows with this step (nanoseconds); return others unchanged."""
        if self.per != "default":
            return self
        if step is None:
            return Budget(self.amount, "rows")
        if PERIODS["week"] / step >= FEWEST_ROWS:
            return Budget(self.amount, "week")
        return Budget(self.amount * DEFAULT_ROWS / FEWEST_ROWS, "rows")

    @property
    def words(self) -> str:
        """The budget in words."""
        amount = f"{self.amount:g}"
        if self.per == "threshold":
            return f"scores above {amount}"
        if self.per == "share":
            return f"about {amount} of normal rows"
        alarms = "one false alarm" if self.amount == 1 else f"{amount} false alarms"
        in_rows = f"in {DEFAULT_ROWS:,} rows"
        if self.per == "default":
            return f"about {alarms} a week, or {in_rows} without time"
        return f"about {alarms} {in_rows if self.per == 'rows' else f'a {self.per}'}"

    def rate(self, step: int | None) -> float | None:
        """Return the alarms per row on normal data, or None for a share or a threshold.

        `step` is the time between rows, in nanoseconds.
        """
        if self.per == "default":
            return self.at(step).rate(step)
        if self.per == "rows":
            return self.amount / DEFAULT_ROWS
        if self.per in PERIODS:
            if step is None:
                raise InputError(
                    f"alarms a {self.per} need the time between rows, and the model was fitted on "
                    f"rows without time; give it as {option('step')}, or a budget such as "
                    "'1 in 10000 rows'"
                )
            return self.amount * step / PERIODS[self.per]
        return None


@dataclass(frozen=True)
class Threshold:
    """The threshold of alarms, and its meaning.

    Attributes
    ----------
    value
        1 for evidence divided by its limit, otherwise a score.
    words
        The budget in words.
    note
        A warning, for example that limits are extrapolated.
    given
        Whether the user gave the value, so that it is not estimated.
    """

    value: float
    words: str
    note: str | None = None
    given: bool = False


def score_threshold(budget: Budget, calibration: Calibration) -> Threshold:
    """The score that a share of normal rows or a plain threshold stands for."""
    if budget.per == "threshold":
        return Threshold(float(budget.amount), budget.words, given=True)
    value, note = calibration.tail.quantile(budget.amount), None
    if budget.amount * calibration.n_rows < _FAR * calibration.spacing:
        note = (
            f"the budget is far beyond what {calibration.n_rows:,} training rows can show; the "
            "threshold is extrapolated: train on more rows, or allow more alarms"
        )
    return Threshold(value, budget.words, note)
