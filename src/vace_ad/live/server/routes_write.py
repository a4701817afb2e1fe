"""Requests that change something: log in, mark an alarm, push rows, score rows."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from vace_ad.live.alarms import iso
from vace_ad.live.records import BadRecordError, read_time
from vace_ad.live.server.auth import COOKIE, Attempts, sender_of, session
from vace_ad.live.server.limits import body_of, finite, known_entity
from vace_ad.live.sources.push import FullError, HttpSource, PushSource

if TYPE_CHECKING:
    from vace_ad.live.runner import Watch

_KEPT_SECONDS = 30.0  # a push that takes longer is answered 503; it may come again
MARKS = {  # and the column of the store that each sets
    "acknowledge": "acknowledged", "normal": "normal", "fault": "fault", "undo": "normal",
}  # fmt: skip
_ROWS = 100_000  # of one request to score
_Source = TypeVar("_Source", bound=PushSource[Any])


class WriteRoutes:
    """Handlers of a watch that runs in another thread."""

    def __init__(self, watch: Watch, attempts: Attempts) -> None:
        self._watch, self._config, self._attempts = watch, watch.config, attempts

    # -------------------------------------------------------------------- people

    async def login(self, request: Request) -> Response:
        """Exchange the token of the form for a cookie."""
        body = (await body_of(request, 10_000)).decode("utf-8", "replace")
        given = parse_qs(body).get("token", [""])[0]
        token, sender = self._config.server.secret("token"), sender_of(request.scope)
        wait = self._attempts.wait(sender)
        if wait:
            words = f"too many wrong tokens from this address; try again in {wait:.0f} s"
            raise HTTPException(429, words, {"Retry-After": f"{wait:.0f}"})
        answer = RedirectResponse("/", 303)
        if token is None:
            return answer
        if hmac.compare_digest(given.encode(), token.encode()):
            answer.set_cookie(COOKIE, session(token), httponly=True, samesite="strict")
        else:
            self._attempts.failed(sender)
        return answer

    async def mark(self, request: Request) -> Response:
        """Mark an alarm: acknowledge, normal (no alarms like it), fault, or undo."""
        mark = request.path_params["mark"]
        column = MARKS.get(mark)
        if column is None:
            raise HTTPException(404, f"the mark must be one of {', '.join(MARKS)}")
        alarm = request.path_params["alarm"]
        now = None if mark == "undo" else datetime.now(UTC).isoformat(timespec="seconds")

        def write() -> bool:
            with closing(self._watch.store.reopen()) as store:
                if mark != "acknowledge":  # one verdict an alarm: the last one counts
                    store.mark(alarm, "fault" if column == "normal" else "normal", None)
                return store.mark(alarm, column, now)

        if not await run_in_threadpool(write):
            raise HTTPException(404, "no such alarm")
        if column != "acknowledged":
            await run_in_threadpool(self._watch.verdicts.submit, alarm, mark)
        self._watch.status.tell("marked", {"alarm": alarm, column: now})
        return JSONResponse({"alarm": alarm, column: now})

    async def remove(self, request: Request) -> Response:
        """Remove an entity: its alarms are resolved, its state and its model are deleted."""
        name = known_entity(self._watch, request.query_params.get("name", ""))
        done = asyncio.wrap_future(self._watch.verdicts.remove(name))
        try:
            found = await asyncio.wait_for(done, _KEPT_SECONDS)
        except TimeoutError:
            raise HTTPException(503, "not done in time; try again", {"Retry-After": "5"}) from None
        if not found:
            raise HTTPException(404, "no entity of this name")
        return JSONResponse({"forgotten": name})

    async def deploy(self, request: Request) -> Response:
        """Tell a deploy: no new alarm until it has settled, then its level is normal."""
        watch, entity = self._watch, request.query_params.get("entity", "")
        if entity:
            known_entity(watch, entity)
        when = request.query_params.get("time")
        try:
            time = watch.clock.time_ns() if when is None else read_time(when)
        except BadRecordError as error:
            raise HTTPException(422, str(error)) from None
        watch.deploys.add(time, entity)
        return JSONResponse({"deploy": iso(time), "entity": entity or None})

    # ------------------------------------------------------------------ programs

    async def rows(self, request: Request) -> Response:
        """Push records; the answer comes when they are on disk."""
        kind = request.headers.get("content-type", "application/json").partition(";")[0].strip()
        n = await self._rows(request, kind)
        return JSONResponse({"records": n})

    async def write(self, request: Request) -> Response:
        """Push records as to InfluxDB, for programs such as Telegraf."""
        await self._rows(request, "text/plain")
        return Response(status_code=204)

    async def _rows(self, request: Request, kind: str) -> int:
        precision = request.query_params.get("precision", "ns")
        source = self._source("http", HttpSource)
        return await self._push(request, source, lambda body: source.parse(body, kind, precision))

    async def remote_write(self, request: Request) -> Response:
        """Push series by Prometheus remote write."""
        from vace_ad.live.sources.remote_write import RemoteWriteSource

        source = self._source("remote-write", RemoteWriteSource)
        # a Prometheus sends again after 503; after 429 it drops what it has
        await self._push(request, source, source.parse, wrong=400, busy=503)
        return Response(status_code=204)

    async def otlp(self, request: Request) -> Response:
        """Push metrics by OTLP over HTTP, as protobuf or JSON."""
        from vace_ad.live.sources.otlp import JSON, OtlpSource

        source = self._source("otlp", OtlpSource)
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        packed = request.headers.get("content-encoding", "")
        await self._push(request, source, lambda body: source.parse(body, kind, packed), wrong=400)
        return Response(b"{}" if kind == JSON else b"", media_type=kind)

    def _source(self, kind: str, wanted: type[_Source]) -> _Source:
        source = self._watch.source
        if not isinstance(source, wanted):
            raise HTTPException(409, f'this needs [source] kind = "{kind}"')
        return source

    async def _push(
        self,
        request: Request,
        source: PushSource[Any],
        parse: Callable[[bytes], Sequence[Any]],
        wrong: int = 422,
        busy: int = 429,
    ) -> int:
        """Hand over what a request brought; returns the number of records once they are stored."""
        body = await body_of(request, self._config.server.body)
        try:
            items = await run_in_threadpool(parse, body)
        except BadRecordError as error:
            raise HTTPException(wrong, str(error)) from None
        if not items:
            return 0
        try:
            kept = source.push(items)
            await asyncio.wait_for(asyncio.wrap_future(kept), _KEPT_SECONDS)
        except FullError as error:
            raise HTTPException(busy, str(error), {"Retry-After": "1"}) from None
        except TimeoutError:
            raise HTTPException(503, "not stored yet; send again", {"Retry-After": "5"}) from None
        return len(items)

    async def score(self, request: Request) -> Response:
        """Score rows; nothing is stored."""
        body = await body_of(request, self._config.server.body)
        try:
            data = json.loads(body)
            rows = np.array(data["rows"], dtype=np.float64)
            names = data.get("channels")
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
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
        named = isinstance(given, list) and all(isinstance(name, str) for name in given)
        if not named or sorted(given) != sorted(wanted):
            raise HTTPException(422, f"the model's channels are {', '.join(wanted[:20])}")
        if rows.shape[1] != len(wanted):
            raise HTTPException(422, f"rows of {len(wanted)} cells are expected")
        stream = model.stream()
        rows = rows[:, [given.index(name) for name in wanted]]
        first, rest = stream.add(rows, None), stream.finish()
        scores = [*first.scores.tolist(), *rest.scores.tolist()]
        return {"scores": [finite(score) for score in scores]}
