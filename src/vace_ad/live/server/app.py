"""The application: its routes, the pages, health and metrics."""

from __future__ import annotations

from importlib import resources
from pathlib import PurePath
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vace_ad.errors import VaceError
from vace_ad.live.server.auth import Attempts
from vace_ad.live.server.openapi import openapi
from vace_ad.live.server.routes_read import ReadRoutes
from vace_ad.live.server.routes_write import WriteRoutes
from vace_ad.live.status import exposition

if TYPE_CHECKING:
    from vace_ad.live.runner import Watch

_OWN = ("live.js", "docs.js", "live.css")
_SHARED = ("dom.js", "format.js", "curve.js", "range.js", "early.js", "style.css")  # of the report
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}


class Routes:
    """The routes of a watch."""

    def __init__(self, watch: Watch, attempts: Attempts) -> None:
        self._watch = watch
        self._read, self._write = ReadRoutes(watch), WriteRoutes(watch, attempts)
        self.routes: list[Route] = []

    def app(self) -> Starlette:
        """The application."""
        read, write = self._read, self._write
        handlers = {
            "GET /": self.page, "GET /docs": self.docs, "GET /static/{name}": self.static,
            "POST /login": write.login, "GET /healthz": self.healthz, "GET /readyz": self.readyz,
            "GET /metrics": self.metrics, "GET /openapi.json": self.openapi,
            "GET /api/status": read.status, "GET /api/entities": read.entities,
            "GET /api/entity": read.entity, "DELETE /api/entity": write.remove,
            "GET /api/alarms": read.alarms, "POST /api/alarms/{alarm}/{mark}": write.mark,
            "POST /api/deploy": write.deploy,
            "GET /api/events": read.events, "POST /api/rows": write.rows,
            "POST /api/v2/write": write.write, "POST /api/v1/write": write.remote_write,
            "POST /v1/metrics": write.otlp, "POST /score": write.score,
        }  # fmt: skip
        for name, handler in handlers.items():
            method, path = name.split()
            self.routes.append(Route(path, handler, methods=[method]))
        handle = {HTTPException: _problem, VaceError: _problem}
        routes = [*self.routes, *self._multivariate()]
        return Starlette(routes=routes, exception_handlers=handle)

    def _multivariate(self) -> list[Route]:
        """The routes that Azure's clients know, where a folder of data was given."""
        folder = self._watch.config.server.multivariate
        if folder is None:
            return []
        from vace_ad.live.server.multivariate import Multivariate

        return Multivariate(folder, self._watch.config.server.body).routes()

    # ----------------------------------------------------------------- operators

    async def healthz(self, request: Request) -> Response:
        """Whether the process is alive."""
        return JSONResponse({"alive": True})

    async def readyz(self, request: Request) -> Response:
        """Whether readings arrive and are stored."""
        status = self._watch.status
        body = {"ready": status.ready, "problems": dict(status.problems)}
        return JSONResponse(body, 200 if status.ready else 503)

    async def metrics(self, request: Request) -> Response:
        """Counters and latencies for Prometheus."""
        sinks = [delivery.sink for delivery in self._watch.deliveries]
        text = exposition(self._watch.status, sinks)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        """The description of the API."""
        return JSONResponse(openapi(self.routes))

    # -------------------------------------------------------------------- the page

    async def page(self, request: Request) -> Response:
        """The page."""
        return _file("page.html")

    async def docs(self, request: Request) -> Response:
        """The page that shows the description of the API."""
        return _file("docs.html")

    async def static(self, request: Request) -> Response:
        """Scripts and styles, by name from a short list."""
        name = request.path_params["name"]
        if name not in (*_OWN, *_SHARED):
            raise HTTPException(404, "no such file")
        return _file(name)


async def _problem(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)
    return JSONResponse({"error": str(error)}, 422)


def _file(name: str) -> Response:
    package = "vace_ad.report" if name in _SHARED else "vace_ad.live.server"
    content = resources.files(package).joinpath("static", name).read_bytes()
    return Response(content, media_type=_TYPES[PurePath(name).suffix])
