"""The HTTP server, in a thread of its own."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from vace_ad.errors import ConfigError, needs

if TYPE_CHECKING:
    from vace_ad.live.runner import Watch


class Server:
    """Serves a watch until `stop`."""

    def __init__(self, watch: Watch) -> None:
        with needs("starlette, uvicorn and prometheus-client", "live", "the server of vace watch"):
            import uvicorn

            from vace_ad.live.server.app import application
        from vace_ad.live.server.auth import Attempts, Guard
        from vace_ad.live.server.connections import Connection

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
        self._failed = False

    def _run(self) -> None:
        try:
            self._server.run()
        except SystemExit:  # the address is taken
            self._failed = True

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
