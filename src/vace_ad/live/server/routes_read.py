"""Requests that change nothing: health, entities, alarms, counters, and events as they come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
from prometheus_client import generate_latest
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from vace_ad.live.detector import SHOWN
from vace_ad.live.entity import Entity
from vace_ad.live.server.limits import finite, known_entity, number

if TYPE_CHECKING:
    from vace_ad.alarms.recent import Latest
    from vace_ad.live.runner import Watch

_DRAWN, _ROWS = 4, 200  # channels whose curves are shown, and their last rows
_QUIET = 15.0  # seconds after which a stream of events says that it lives


class ReadRoutes:
    """Handlers of a watch that runs in another thread."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self._config = watch, watch.config
        self._listeners = 0

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
        text = generate_latest(self._watch.status.registry)
        return Response(text, media_type="text/plain; version=0.0.4")

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
        limit = number(request.query_params.get("limit"), 200, 1, 5000)
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
            return {"seen": None, "score": None, "threshold": None, "alarms": None}
        stream = entity.stream
        return {
            "seen": entity.seen // 10**6 or None,
            "score": finite(entity.scores.last),
            "threshold": None if stream is None else finite(stream.limit),
            "alarms": len(entity.life.open),
        }

    async def entity(self, request: Request) -> Response:
        """Evidence and scores of an entity, its channels and their expected ranges."""
        name = known_entity(self._watch, request.query_params.get("name", ""))
        entity = self._watch.entities.get(name)
        answer: dict[str, Any] = {"name": name, "state": self._watch.known[name], "scores": []}
        if entity is None:
            return JSONResponse({**answer, "evidence": [], "channels": [], "idle": True})
        latest = await run_in_threadpool(entity.latest, SHOWN)
        answer["model"] = entity.model_words
        answer["scores"] = [[time // 10**6, finite(score)] for time, score in entity.scores]
        answer |= _expected(entity, latest)
        return JSONResponse({**answer, **self._short(entity), "idle": False})

    async def alarms(self, request: Request) -> Response:
        """Alarms, the newest first."""
        state = {"open": False, "resolved": True}.get(request.query_params.get("state", "all"))
        limit = number(request.query_params.get("limit"), 200, 1, 5000)

        def read() -> list[dict[str, Any]]:
            with closing(self._watch.store.reopen()) as store:
                return store.alarms(state, limit)

        return JSONResponse(await run_in_threadpool(read))

    async def events(self, request: Request) -> Response:
        """Changes as server-sent events."""
        if self._listeners >= max(1, self._config.server.connections // 2):
            raise HTTPException(503, "too many listeners")
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


def _expected(entity: Entity, latest: Latest | None) -> dict[str, Any]:
    """The evidence, each channel with what is expected of it, and curves of the most suspicious."""
    names, newest = list(entity.channels), dict(entity.newest)
    low, high = np.full((2, len(names)), np.nan)
    if latest is not None and len(latest.times):
        low, high = latest.lower[-1], latest.upper[-1]
    channels = [
        {"name": name, "value": finite(newest.get(name)), "low": _short(a), "high": _short(b)}
        for name, a, b in zip(names, low, high, strict=True)
    ]
    if latest is None or not len(latest.times):
        return {"evidence": [], "channels": channels, "curves": []}
    events = [alarm.event for alarm in list(entity.life.open.values()) if alarm.event]
    suspects = [name for event in events for name, _ in event.shares]
    reach = np.maximum((high - low) / 2, 1e-300)
    off = np.abs(latest.values[-1] - (low + high) / 2) / reach
    far = np.argsort(-np.nan_to_num(off), kind="stable")
    order = dict.fromkeys([*(n for n in suspects if n in names), *(names[i] for i in far.tolist())])
    there = ~np.isnat(latest.times)  # rows put in for missing ones have no time

    def points(*columns: Any) -> list[list[Any]]:
        times = latest.times[there].astype("datetime64[ms]").astype(np.int64).tolist()
        cells = (map(_short, column[there].tolist()) for column in columns)
        return [list(point) for point in zip(times, *cells, strict=True)]

    curves = []
    for name in list(order)[:_DRAWN]:
        i = names.index(name)
        lines = points(latest.values[:, i], latest.lower[:, i], latest.upper[:, i])
        curves.append({"name": name, "suspect": name in suspects, "points": lines[-_ROWS:]})
    return {"evidence": points(latest.evidence), "channels": channels, "curves": curves}


def _short(value: float) -> float | None:
    """A number with the digits that can be seen; None where there is none."""
    known = finite(float(value))
    return None if known is None else float(f"{known:.6g}")
