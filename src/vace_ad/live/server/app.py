"""The routes: what a person, a program and a monitor ask of a watch."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vace_ad.errors import VaceError
from vace_ad.live.server.act import Acting
from vace_ad.live.server.attempts import Attempts
from vace_ad.live.server.look import Looking
from vace_ad.live.server.openapi import OPENAPI

if TYPE_CHECKING:
    from vace_ad.live.runner import Watch

_FILES = {
    "live.js": ("vace_ad.live.server", "text/javascript"),
    "docs.js": ("vace_ad.live.server", "text/javascript"),
    "live.css": ("vace_ad.live.server", "text/css"),
    "dom.js": ("vace_ad.report", "text/javascript"),
    "format.js": ("vace_ad.report", "text/javascript"),
    "curve.js": ("vace_ad.report", "text/javascript"),
    "range.js": ("vace_ad.report", "text/javascript"),
    "early.js": ("vace_ad.report", "text/javascript"),
    "style.css": ("vace_ad.report", "text/css"),
}


class Routes:
    """The application, and what it says to operators and browsers."""

    def __init__(self, watch: Watch, attempts: Attempts) -> None:
        self._watch = watch
        self._look, self._act = Looking(watch), Acting(watch, attempts)

    def app(self) -> Starlette:
        """The application."""
        get, post = ["GET"], ["POST"]
        look, act = self._look, self._act
        return Starlette(
            routes=[
                Route("/", self.page, methods=get),
                Route("/docs", self.docs, methods=get),
                Route("/static/{name}", self.static, methods=get),
                Route("/login", act.login, methods=post),
                Route("/healthz", self.healthz, methods=get),
                Route("/readyz", self.readyz, methods=get),
                Route("/metrics", self.metrics, methods=get),
                Route("/openapi.json", self.openapi, methods=get),
                Route("/api/status", look.status, methods=get),
                Route("/api/entities", look.entities, methods=get),
                Route("/api/entity", look.entity, methods=get),
                Route("/api/entity", act.forget, methods=["DELETE"]),
                Route("/api/alarms", look.alarms, methods=get),
                Route("/api/alarms/{alarm}/{mark}", act.mark, methods=post),
                Route("/api/events", look.events, methods=get),
                Route("/api/rows", act.rows, methods=post),
                Route("/api/v2/write", act.write, methods=post),
                Route("/score", act.score, methods=post),
            ],
            exception_handlers={HTTPException: _problem, VaceError: _problem},
        )

    # ----------------------------------------------------------------- operators

    async def healthz(self, request: Request) -> Response:
        """The process lives."""
        return JSONResponse({"alive": True})

    async def readyz(self, request: Request) -> Response:
        """Readings come and are kept."""
        status = self._watch.status
        body = {"ready": status.ready, "problems": dict(status.problems)}
        return JSONResponse(body, 200 if status.ready else 503)

    async def metrics(self, request: Request) -> Response:
        """For Prometheus."""
        from vace_ad.live.server.metrics import exposition

        sinks = [delivery.sink for delivery in self._watch.deliveries]
        return Response(
            exposition(self._watch.status, sinks), media_type="text/plain; version=0.0.4"
        )

    async def openapi(self, request: Request) -> Response:
        """What can be asked."""
        return JSONResponse(OPENAPI)

    # -------------------------------------------------------------------- the page

    async def page(self, request: Request) -> Response:
        """The page."""
        return Response(_file("vace_ad.live.server", "page.html"), media_type="text/html")

    async def docs(self, request: Request) -> Response:
        """The description of the API, to read."""
        return Response(_file("vace_ad.live.server", "docs.html"), media_type="text/html")

    async def static(self, request: Request) -> Response:
        """Scripts and styles, by name from a short list."""
        name = request.path_params["name"]
        if name not in _FILES:
            raise HTTPException(404, "no such file")
        package, kind = _FILES[name]
        return Response(_file(package, name), media_type=kind)


async def _problem(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 422
    words = error.detail if isinstance(error, HTTPException) else str(error)
    headers = error.headers if isinstance(error, HTTPException) else None
    return JSONResponse({"error": words}, status, headers=headers)


def _file(package: str, name: str) -> bytes:
    return resources.files(package).joinpath("static", name).read_bytes()
