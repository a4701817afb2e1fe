"""The exceptions, as a tree.

VaceError
├── ConfigError            a setting outside what is allowed, or of an unknown name
├── InputError             a table that cannot be used as it is
│   ├── TooShortError      too few rows for one patch, or for a fit
│   ├── ChannelMismatchError   other channels than the detector was fitted on
│   └── TableReadError     a file that cannot be read as a table
├── ModelFileError         a model file that is truncated, altered, foreign or newer
├── StateError             a stream's state that is damaged, or of another model
├── FeedbackError          feedback that cannot be read, or that names nothing
├── MissingExtraError      an optional dependency that is not installed
└── NotFittedError         a detector that is not fitted

VaceWarning (a UserWarning) is for what works, but should be known.

Every message says what was given, what was expected and what to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from vace_ad.settings import Hint, hints, spelt
from vace_ad.wording import listed


class VaceError(Exception):
    """Base of all errors that this package raises on purpose."""

    def told(self, *, options: bool = False) -> str:
        """The message; settings that it names are keywords, or options of the command line."""
        return spelt(" ".join(map(str, self.args)), options=options)

    def __str__(self) -> str:
        return self.told()

    @property
    def hints(self) -> tuple[Hint, ...]:
        """The settings that it names, for programs."""
        return hints(" ".join(map(str, self.args)))


class ConfigError(VaceError, ValueError):
    """A setting outside what is allowed, or of an unknown name."""


class InputError(VaceError, ValueError):
    """A table that cannot be used as it is."""


class TooShortError(InputError):
    """Too few rows for one patch, or for a fit."""


class ChannelMismatchError(InputError):
    """Other channels than the detector was fitted on."""

    def __init__(self, missing: Sequence[str], extra: Sequence[str]) -> None:
        self.missing, self.extra = tuple(missing), tuple(extra)
        parts = []
        if missing:
            parts.append(f"missing: {listed([*map(repr, missing)], 8)}")
        if extra:
            parts.append(f"not known at fit: {listed([*map(repr, extra)], 8)}")
        super().__init__(
            f"the table's channels are not those of the fit ({'; '.join(parts)}); "
            "rename, add or drop columns, or fit again on this table"
        )


class TableReadError(InputError):
    """A file that cannot be read as a table."""


class ModelFileError(VaceError, ValueError):
    """A model file that is truncated, altered, foreign or newer."""


class StateError(VaceError, ValueError):
    """A stream's state that is damaged, or of another model."""


class FeedbackError(VaceError, ValueError):
    """Feedback that cannot be read, or that names nothing."""


class MissingExtraError(VaceError, ImportError):
    """An optional dependency that is not installed."""

    def __init__(self, purpose: str, module: str, extra: str, package: str = "vace-ad") -> None:
        line = f"'{package}[{extra}]'" if extra else package
        folder = "." if package == "vace-ad" else "./study"
        here = f"'{folder}[{extra}]'" if extra else folder
        super().__init__(
            f"{purpose} needs {module}, which is not installed: pip install {line}, or in a clone "
            f"of the repository pip install {here}"
        )


@contextmanager
def needs(module: str, extra: str, purpose: str, package: str = "vace-ad") -> Iterator[None]:
    """Imports of an optional dependency; one that fails names the line that installs it."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(purpose, module, extra, package) from error


class NotFittedError(VaceError, ValueError, AttributeError):
    """A detector that is not fitted."""


class VaceWarning(UserWarning):
    """Something that works, but that a person should know."""
