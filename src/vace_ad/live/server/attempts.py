"""How often a wrong token may come from one address: a few, then one every few seconds."""

from __future__ import annotations

import time
from ipaddress import IPv6Address, ip_address

BURST = 10  # wrong tokens at once
SECONDS = 6.0  # until one more may come
_ADDRESSES = 10_000  # remembered at most


class Attempts:
    """Wrong tokens by address; a network of IPv6 (/64) counts as one."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}  # when an address has all its attempts again

    def wait(self, address: str) -> float:
        """Seconds until a token of this address is looked at; 0 is now."""
        left = self._until.get(_network(address), 0.0) - time.monotonic()
        return max(0.0, left - (BURST - 1) * SECONDS)

    def failed(self, address: str) -> None:
        """A wrong token came."""
        key, now = _network(address), time.monotonic()
        self._until[key] = max(now, self._until.pop(key, 0.0)) + SECONDS
        if len(self._until) > _ADDRESSES:
            self._until = {name: end for name, end in self._until.items() if end > now}
        while len(self._until) > _ADDRESSES:
            del self._until[next(iter(self._until))]  # who failed longest ago


def _network(address: str) -> str:
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return address
    return str(found.ipv4_mapped or found.packed[:8].hex())
