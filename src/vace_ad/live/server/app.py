"""The application: its routes, the pages, and how errors are answered."""

from __future__ import annotations

from importlib import resources
from pathlib import PurePath
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from vace_ad.errors import VaceError
from vace_ad.live.server.auth import Attempts
from vace_ad.live.server.limits import Handler, routes_of
from vace_ad.live.server.openapi import openapi
from vace_ad.live.server.routes_read import ReadRoutes
from vace_ad.live.server.routes_write import WriteRoutes

if TYPE_CHECKING:
    from vace_ad.live.runner import Watch

_OWN = ("live.js", "docs.js", "live.css")
_SHARED = ("dom.js", "format.js", "curve.js", "range.js", "early.js", "style.css")  # of the report
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}


def application(watch: Watch, attempts: Attempts) -> Starlette:
    """The application of a watch."""
    read, write = ReadRoutes(watch), WriteRoutes(watch, attempts)

    async def described(request: Request) -> Response:
        return JSONResponse(openapi(routes))

    routes = routes_of({
        "GET /": _page("page.html"), "GET /docs": _page("docs.html"),
        "GET /static/{name}": _static, "GET /openapi.json": described,
        "POST /login": write.login, "GET /healthz": read.healthz, "GET /readyz": read.readyz,
        "GET /metrics": read.metrics,
        "GET /api/status": read.status, "GET /api/entities": read.entities,
        "GET /api/entity": read.entity, "DELETE /api/entity": write.remove,
        "GET /api/alarms": read.alarms, "POST /api/alarms/{alarm}/{mark}": write.mark,
        "POST /api/deploy": write.deploy,
        "GET /api/events": read.events, "POST /api/rows": write.rows,
        "POST /api/v2/write": write.write, "POST /api/v1/write": write.remote_write,
        "POST /v1/metrics": write.otlp, "POST /score": write.score,
    })  # fmt: skip
    every, folder = list(routes), watch.config.server.multivariate
    if folder is not None:  # the routes that Azure's clients know
        from vace_ad.live.server.multivariate import Multivariate

        every += Multivariate(folder, watch.config.server.body).routes()
    handle = {HTTPException: _problem, VaceError: _problem}
    return Starlette(routes=every, exception_handlers=handle)


def _page(name: str) -> Handler:
    async def page(request: Request) -> Response:
        return _file(name)

    return page


async def _static(request: Request) -> Response:
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
