"""Connections: idle ones are closed after a while, and earlier when all are taken."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0  # in which a request must have come, from the connection's start or the last


class Connection(H11Protocol):
    """A connection of the server; uvicorn by itself waits for ever for the first request."""

    _since = 0.0  # when it last had something to do, by the loop's clock
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; if there are too many, the one that has been idle for longest ends."""
        super().connection_made(transport)
        self._rest()
        most = self.limit_concurrency
        if most is not None and len(self.connections) >= most:
            others = (one for one in self.connections if isinstance(one, Connection))
            idle = [one for one in others if one is not self and one.idle]
            if idle:
                min(idle, key=lambda one: one._since).end()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """A request is answered; the next one may come."""
        self._since = self.loop.time()
        super().on_response_complete()

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def end(self) -> None:
        """Close, and leave the count at once."""
        self.connections.discard(self)
        self.transport.close()

    def _rest(self) -> None:
        self._since = self.loop.time()
        self._timer = self.loop.call_later(HEADER_SECONDS, self._look)

    def _look(self) -> None:
        left = self._since + HEADER_SECONDS - self.loop.time() if self.idle else HEADER_SECONDS
        if left <= 0:
            self.end()
        else:
            self._timer = self.loop.call_later(left, self._look)
