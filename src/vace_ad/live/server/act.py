"""What people and programs do: log in, judge an alarm, push rows, ask for scores."""

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

from vace_ad.live.records import BadRecordError
from vace_ad.live.server.attempts import Attempts
from vace_ad.live.server.bounds import body_of, finite
from vace_ad.live.server.guard import COOKIE, sender_of, session
from vace_ad.live.sources.http import HttpSource
from vace_ad.live.sources.push import FullError, PushSource

if TYPE_CHECKING:
    from vace_ad.live.runner import Watch

_KEPT_SECONDS = 30.0  # a push that takes longer is answered 503; it may come again
_ROWS = 100_000  # of one request to score
_Source = TypeVar("_Source", bound=PushSource)


class Acting:
    """Requests that bring something, to a watch that runs in another thread."""

    def __init__(self, watch: Watch, attempts: Attempts) -> None:
        self._watch, self._config, self._attempts = watch, watch.config, attempts

    # -------------------------------------------------------------------- people

    async def login(self, request: Request) -> Response:
        """A token from the form becomes a cookie."""
        body = (await body_of(request, 10_000)).decode("utf-8", "replace")
        given = parse_qs(body).get("token", [""])[0]
        token, sender = self._config.token, sender_of(request.scope)
        wait = self._attempts.wait(sender)
        if wait:
            words = f"too many wrong tokens came from this address; try again in {wait:.0f} s"
            raise HTTPException(429, words, {"Retry-After": f"{wait:.0f}"})
        answer = RedirectResponse("/", 303)
        if token is None:
            return answer
        if hmac.compare_digest(given.encode(), token.reveal().encode()):
            answer.set_cookie(COOKIE, session(token), httponly=True, samesite="strict")
        else:
            self._attempts.failed(sender)
        return answer

    async def mark(self, request: Request) -> Response:
        """A person has seen an alarm, or says that it was normal or a fault, or takes that back."""
        columns = {"acknowledge": "acknowledged", "undo": "normal"}
        columns |= {"normal": "normal", "fault": "fault"}
        mark = request.path_params["mark"]
        column = columns.get(mark)
        if column is None:
            raise HTTPException(404, "acknowledge, normal, fault or undo")
        alarm = request.path_params["alarm"]
        now = None if mark == "undo" else datetime.now(UTC).isoformat(timespec="seconds")

        def write() -> bool:
            with closing(self._watch.store.again()) as store:
                if mark != "acknowledge":  # one verdict an alarm: the last one counts
                    store.mark(alarm, "fault" if column == "normal" else "normal", None)
                return store.mark(alarm, column, now)

        if not await run_in_threadpool(write):
            raise HTTPException(404, "no such alarm")
        if column != "acknowledged":
            await run_in_threadpool(self._watch.say, alarm, mark)
        self._watch.status.tell("marked", {"alarm": alarm, column: now})
        return JSONResponse({"alarm": alarm, column: now})

    async def forget(self, request: Request) -> Response:
        """An entity is known no more; answered when that is kept."""
        name = request.query_params.get("name", "")
        if name not in self._watch.known:
            raise HTTPException(404, "no entity of this name")
        done = asyncio.wrap_future(self._watch.forget(name))
        try:
            found = await asyncio.wait_for(done, _KEPT_SECONDS)
        except TimeoutError:
            raise HTTPException(503, "not done in time; ask again", {"Retry-After": "5"}) from None
        if not found:
            raise HTTPException(404, "no entity of this name")
        return JSONResponse({"forgotten": name})

    # ------------------------------------------------------------------ programs

    async def rows(self, request: Request) -> Response:
        """Records, answered when they are kept."""
        kind = request.headers.get("content-type", "application/json").partition(";")[0].strip()
        n = await self._rows(request, kind)
        return JSONResponse({"records": n})

    async def write(self, request: Request) -> Response:
        """The same for programs that write to InfluxDB, such as Telegraf."""
        await self._rows(request, "text/plain")
        return Response(status_code=204)

    async def _rows(self, request: Request, kind: str) -> int:
        precision = request.query_params.get("precision", "ns")
        source = self._source("http", HttpSource)
        return await self._push(request, source, lambda body: source.parse(body, kind, precision))

    async def remote_write(self, request: Request) -> Response:
        """Series of a Prometheus; one that has to wait must hear 503, or it drops what it has."""
        from vace_ad.live.sources.remote_write import RemoteWriteSource

        source = self._source("remote-write", RemoteWriteSource)
        await self._push(request, source, source.parse, wrong=400, busy=503)
        return Response(status_code=204)

    async def otlp(self, request: Request) -> Response:
        """Metrics of an OpenTelemetry exporter or collector, as protobuf or JSON."""
        from vace_ad.live.sources.otlp import OtlpSource

        source = self._source("otlp", OtlpSource)
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        packed = request.headers.get("content-encoding", "")
        await self._push(request, source, lambda body: source.parse(body, kind, packed), wrong=400)
        return Response(source.answer(kind), media_type=kind)

    def _source(self, kind: str, wanted: type[_Source]) -> _Source:
        source = self._watch.source
        if not isinstance(source, wanted):
            raise HTTPException(409, f'these are taken with [source] kind = "{kind}"')
        return source

    async def _push(
        self,
        request: Request,
        source: PushSource,
        parse: Callable[[bytes], Sequence[Any]],
        wrong: int = 422,
        busy: int = 429,
    ) -> int:
        """Hand over what a request brought; returns how many records, once they are kept."""
        body = await body_of(request, self._config.server["body"])
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
            raise HTTPException(503, "not kept in time; send again", {"Retry-After": "5"}) from None
        return len(items)

    async def score(self, request: Request) -> Response:
        """Scores of rows that a program brings itself; nothing is kept."""
        body = await body_of(request, self._config.server["body"])
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
        return {"scores": [finite(score) for score in scores]}
