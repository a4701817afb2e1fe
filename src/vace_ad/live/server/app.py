"""The routes: what a person, a program and a monitor ask of a watch."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from vace_ad.errors import VaceError
from vace_ad.live.entity import Entity
from vace_ad.live.records import BadRecordError
from vace_ad.live.server.guard import COOKIE, session
from vace_ad.live.server.openapi import OPENAPI
from vace_ad.live.sources.http import FullError, HttpSource

if TYPE_CHECKING:
    from vace_ad.live.runner import Watch

_KEPT_SECONDS = 30.0  # a push that takes longer is answered 503; it may come again
_ROWS = 100_000  # of one request to score
_QUIET = 15.0  # seconds after which a stream of events says that it lives
_FILES = {
    "live.js": ("vace_ad.live.server", "text/javascript"),
    "docs.js": ("vace_ad.live.server", "text/javascript"),
    "live.css": ("vace_ad.live.server", "text/css"),
    "dom.js": ("vace_ad.report", "text/javascript"),
    "format.js": ("vace_ad.report", "text/javascript"),
    "curve.js": ("vace_ad.report", "text/javascript"),
    "early.js": ("vace_ad.report", "text/javascript"),
    "style.css": ("vace_ad.report", "text/css"),
}


class Routes:
    """The answers, from a watch that runs in another thread."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self._config = watch, watch.config
        self._listeners = 0

    def app(self) -> Starlette:
        """The application."""
        get, post = ["GET"], ["POST"]
        return Starlette(
            routes=[
                Route("/", self.page, methods=get),
                Route("/docs", self.docs, methods=get),
                Route("/static/{name}", self.static, methods=get),
                Route("/login", self.login, methods=post),
                Route("/healthz", self.healthz, methods=get),
                Route("/readyz", self.readyz, methods=get),
                Route("/metrics", self.metrics, methods=get),
                Route("/openapi.json", self.openapi, methods=get),
                Route("/api/status", self.status, methods=get),
                Route("/api/entities", self.entities, methods=get),
                Route("/api/entity", self.entity, methods=get),
                Route("/api/alarms", self.alarms, methods=get),
                Route("/api/alarms/{alarm}/{mark}", self.mark, methods=post),
                Route("/api/events", self.events, methods=get),
                Route("/api/rows", self.rows, methods=post),
                Route("/api/v2/write", self.write, methods=post),
                Route("/score", self.score, methods=post),
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

    async def login(self, request: Request) -> Response:
        """A token from the form becomes a cookie."""
        import hmac
        from urllib.parse import parse_qs

        body = (await self._body(request, 10_000)).decode("utf-8", "replace")
        given = parse_qs(body).get("token", [""])[0]
        token = self._config.token
        answer = RedirectResponse("/", 303)
        if token is not None and hmac.compare_digest(given.encode(), token.reveal().encode()):
            answer.set_cookie(COOKIE, session(token), httponly=True, samesite="strict")
        return answer

    async def status(self, request: Request) -> Response:
        """Counters and problems."""
        watch, status = self._watch, self._watch.status
        return JSONResponse(
            {
                "ready": status.ready,
                "problems": dict(status.problems),
                "counts": dict(status.counts),
                "entities": len(watch.known),
                "phases": dict(status.phases),
                "waiting": status.waiting,
                "source": watch.config.source.kind,
            }
        )

    async def entities(self, request: Request) -> Response:
        """Entities whose name contains a text, by name."""
        limit = _number(request.query_params.get("limit"), 200, 1, 5000)
        search = request.query_params.get("search", "").lower()
        known = sorted(self._watch.known.copy().items())
        found = [(name, phase) for name, phase in known if search in name.lower()]
        rows = [
            {"name": name, "state": phase, **self._short(self._watch.entities.get(name))}
            for name, phase in found[:limit]
        ]
        return JSONResponse({"total": len(found), "entities": rows})

    def _short(self, entity: Entity | None) -> dict[str, Any]:
        if entity is None:
            return {"seen": None, "score": None, "alarms": None}
        score = entity.scores[-1][1] if entity.scores else None
        return {
            "seen": entity.seen // 10**6 or None,
            "score": _finite(score),
            "alarms": len(entity.life.open),
        }

    async def entity(self, request: Request) -> Response:
        """The live score of an entity, its channels and their usual ranges."""
        name = request.query_params.get("name", "")
        if name not in self._watch.known:
            raise HTTPException(404, "no entity of this name")
        entity = self._watch.entities.get(name)
        answer: dict[str, Any] = {"name": name, "state": self._watch.known[name], "scores": []}
        if entity is None:
            return JSONResponse({**answer, "channels": [], "idle": True})
        ranges = dict(entity.model.ranges()) if entity.model else {}
        answer["scores"] = [[time // 10**6, _finite(score)] for time, score in _copied(entity)]
        answer["channels"] = [
            {
                "name": channel,
                "value": _finite(entity.latest.get(channel)),
                "low": _finite(ranges.get(channel, (None, None))[0]),
                "high": _finite(ranges.get(channel, (None, None))[1]),
            }
            for channel in list(entity.channels)
        ]
        return JSONResponse({**answer, **self._short(entity), "idle": False})

    async def alarms(self, request: Request) -> Response:
        """Alarms, the newest first."""
        state = {"open": False, "resolved": True}.get(request.query_params.get("state", "all"))
        limit = _number(request.query_params.get("limit"), 200, 1, 5000)

        def read() -> list[dict[str, Any]]:
            with closing(self._watch.store.again()) as store:
                return store.alarms(state, limit)

        return JSONResponse(await run_in_threadpool(read))

    async def mark(self, request: Request) -> Response:
        """A person has seen an alarm, or says that this was normal."""
        columns = {"acknowledge": "acknowledged", "normal": "normal"}
        column = columns.get(request.path_params["mark"])
        if column is None:
            raise HTTPException(404, "acknowledge or normal")
        alarm, now = request.path_params["alarm"], datetime.now(UTC).isoformat(timespec="seconds")

        def write() -> bool:
            with closing(self._watch.store.again()) as store:
                return store.mark(alarm, column, now)

        if not await run_in_threadpool(write):
            raise HTTPException(404, "no such alarm")
        self._watch.status.tell("marked", {"alarm": alarm, column: now})
        return JSONResponse({"alarm": alarm, column: now})

    # ------------------------------------------------------------------ programs

    async def rows(self, request: Request) -> Response:
        """Records, answered when they are kept."""
        kind = request.headers.get("content-type", "application/json").partition(";")[0].strip()
        return await self._push(request, kind, request.query_params.get("precision", "ns"), 200)

    async def write(self, request: Request) -> Response:
        """The same for programs that write to InfluxDB, such as Telegraf."""
        return await self._push(
            request, "text/plain", request.query_params.get("precision", "ns"), 204
        )

    async def _push(self, request: Request, kind: str, precision: str, good: int) -> Response:
        source = self._watch.source
        if not isinstance(source, HttpSource):
            raise HTTPException(409, 'rows are taken with [source] kind = "http"')
        body = await self._body(request, self._config.server["body"])
        try:
            records = await run_in_threadpool(source.parse, body, kind, precision)
        except BadRecordError as error:
            raise HTTPException(422, str(error)) from None
        if not records:
            return Response(status_code=good) if good == 204 else JSONResponse({"records": 0})
        try:
            kept = source.push(records)
            await asyncio.wait_for(asyncio.wrap_future(kept), _KEPT_SECONDS)
        except FullError as error:
            raise HTTPException(429, str(error), {"Retry-After": "1"}) from None
        except TimeoutError:
            raise HTTPException(503, "not kept in time; send again", {"Retry-After": "5"}) from None
        return (
            Response(status_code=good) if good == 204 else JSONResponse({"records": len(records)})
        )

    async def score(self, request: Request) -> Response:
        """Scores of rows that a program brings itself; nothing is kept."""
        body = await self._body(request, self._config.server["body"])
        try:
            data = json.loads(body)
            rows = np.array(data["rows"], dtype=np.float64)
            names = data.get("channels")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise HTTPException(422, f'{{"rows": [[…], …]}} is expected: {error!r:.200}') from None
        return JSONResponse(await run_in_threadpool(self._score, rows, names, data.get("entity")))

    def _score(self, rows: Any, names: Any, entity: Any) -> dict[str, Any]:
        models = self._watch.models
        model = models.of(entity) if isinstance(entity, str) else models.any()
        if model is None:
            raise HTTPException(404, 'no model: name an entity with {"entity": …} that has one')
        if rows.ndim != 2 or len(rows) > _ROWS:
            raise HTTPException(422, f"rows are a list of lists, at most {_ROWS:,}")
        wanted = list(model.channels)
        given = wanted if names is None else names
        if not isinstance(given, list) or sorted(map(str, given)) != sorted(wanted):
            raise HTTPException(422, f"the model's channels are {', '.join(wanted[:20])}")
        if rows.shape[1] != len(wanted):
            raise HTTPException(422, f"rows of {len(wanted)} cells are expected")
        stream = model.stream()
        rows = rows[:, [given.index(name) for name in wanted]]
        first, rest = stream.add(rows, None), stream.finish()
        scores = [*first.scores.tolist(), *rest.scores.tolist()]
        return {"scores": [_finite(score) for score in scores]}

    # -------------------------------------------------------------------- events

    async def events(self, request: Request) -> Response:
        """News as server-sent events."""
        if self._listeners >= max(1, self._config.server["connections"] // 2):
            raise HTTPException(503, "too many listen already")
        return StreamingResponse(self._news(), media_type="text/event-stream",
                                 headers={"Cache-Control": "no-store"})  # fmt: skip

    async def _news(self) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[str] = asyncio.Queue(maxsize=500)
        over = asyncio.Event()

        def put(text: str) -> None:
            if text.startswith("event: end"):
                over.set()
            if not queue.full():  # who is slow asks again for everything at the next status
                queue.put_nowait(text)

        def listener(kind: str, data: Any) -> None:
            text = f"event: {kind}\ndata: {json.dumps(data)}\n\n"
            loop.call_soon_threadsafe(put, text)

        stop = self._watch.status.listen(listener)
        self._listeners += 1
        try:
            yield "retry: 2000\n\n"
            while not over.is_set():
                try:
                    yield await asyncio.wait_for(queue.get(), _QUIET)
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self._listeners -= 1
            stop()

    async def _body(self, request: Request, most: int) -> bytes:
        """The body, up to a bound."""
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > most:
            raise HTTPException(413, f"a body of at most {most:,} bytes is taken")
        parts, size = [], 0
        try:
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise HTTPException(413, f"a body of at most {most:,} bytes is taken")
                parts.append(part)
        except ClientDisconnect:
            raise HTTPException(400, "the body did not come whole") from None
        return b"".join(parts)


async def _problem(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 422
    words = error.detail if isinstance(error, HTTPException) else str(error)
    headers = error.headers if isinstance(error, HTTPException) else None
    return JSONResponse({"error": words}, status, headers=headers)


def _file(package: str, name: str) -> bytes:
    return resources.files(package).joinpath("static", name).read_bytes()


def _copied(entity: Entity) -> list[tuple[int, float]]:
    """The scores, while another thread adds to them."""
    for _ in range(5):
        try:
            return list(entity.scores)
        except RuntimeError:
            continue
    return []


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _number(text: str | None, default: int, low: int, high: int) -> int:
    return min(high, max(low, int(text))) if text and text.isdigit() else default
