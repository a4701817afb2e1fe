"""The HTTP server, in a thread of its own.

Idle connections are closed after a while, and earlier when all are taken.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from vace_ad.errors import ConfigError, needs

with needs("starlette, uvicorn and prometheus-client", "live", "the server of vace watch"):
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from vace_ad.live.server.app import application
    from vace_ad.live.server.auth import Attempts, Guard

if TYPE_CHECKING:
    from vace_ad.live.runner import Watch

HEADER_SECONDS = 10.0  # in which a request must have come, from the connection's start or the last


class Server:
    """Serves a watch until `stop`."""

    def __init__(self, watch: Watch) -> None:
        assert watch.config.server.address is not None
        host, port = watch.config.server.address
        config, attempts = watch.config, Attempts()
        app = application(watch, attempts)
        guarded = Guard(app, host, config.server.secret("token"), config.server.link, attempts)
        self._where = f"{host}:{port}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                guarded,
                http=Connection,
                host=host,
                port=port,
                log_config=None,
                access_log=False,
                ws="none",
                lifespan="off",
                server_header=False,
                limit_concurrency=config.server.connections + 1,
                timeout_keep_alive=5,
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(target=self._run, name="server", daemon=True)

    def _run(self) -> None:
        with suppress(SystemExit):  # the address is taken
            self._server.run()

    def start(self) -> None:
        """Listen; raises ConfigError if the address is taken."""
        self._thread.start()
        end = time.monotonic() + 10
        while not self._server.started and self._thread.is_alive() and time.monotonic() < end:
            time.sleep(0.01)
        if not self._server.started:
            raise ConfigError(
                f"server.address: cannot listen on {self._where}; is another watch running there?"
            )

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._server.servers[0].sockets[0].getsockname()[1])

    def stop(self) -> None:
        """Stop within two seconds."""
        self._server.should_exit = True
        self._thread.join(2)


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
