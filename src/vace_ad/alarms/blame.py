"""Deprecated name of `vace_ad.alarms.suspects`; it will be removed in the version after next."""

import warnings

from vace_ad.alarms.suspects import Blame

__all__ = ["Blame"]

warnings.warn(
    "vace_ad.alarms.blame is now vace_ad.alarms.suspects: import Blame from there",
    DeprecationWarning,
    stacklevel=2,
)
