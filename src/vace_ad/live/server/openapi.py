"""The routes as OpenAPI 3.1: summaries are the handlers' docstrings, the rest stands here.

FastAPI would derive the parameters from signatures; it weighs 2.7 MB with what it brings, answers
a wrong number with an error where this server uses the nearest bound, and saves 40 lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.routing import Route

import vace_ad
from vace_ad.live.server.routes_write import MARKS

_CELL = {"type": ["number", "null"]}
_TEXT = {"schema": {"type": "string"}}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_RECORD = {
    "type": "object",
    "required": ["time"],
    "properties": {
        "time": {"description": "ISO 8601, or a count since 1970 in s, ms, µs or ns"},
        "entity": {"type": "string"},
    },
    "additionalProperties": _CELL,
}
_SCORE = {
    "type": "object",
    "required": ["rows"],
    "properties": {
        "rows": {"type": "array", "items": {"type": "array", "items": _CELL}},
        "channels": {"type": "array", "items": {"type": "string"}},
        "entity": {"type": "string"},
    },
}
_BODIES: dict[str, dict[str, Any]] = {
    "/api/rows": {
        "application/json": {"schema": {"oneOf": [_RECORD, {"type": "array", "items": _RECORD}]}},
        "text/csv": _TEXT,
        "text/plain": {"schema": {"type": "string", "description": "Influx line protocol"}},
    },
    "/api/v2/write": {"text/plain": _TEXT},
    "/api/v1/write": {"application/x-protobuf": _BINARY},
    "/v1/metrics": {"application/x-protobuf": _BINARY, "application/json": {"schema": {}}},
    "/score": {"application/json": {"schema": _SCORE}},
}
_QUERY = {  # of a path: parameters
    "/api/entities": {"search": "part of the name", "limit": "most entities, 200 by default"},
    "/api/entity": {"name": "the entity"},
    "/api/deploy": {"entity": "the entity, all without it", "time": "ISO 8601, now without it"},
    "/api/alarms": {"state": "open, resolved or all", "limit": "most alarms, 200 by default"},
    "/api/rows": {"precision": "unit of times in line protocol: ns, us, ms or s"},
    "/api/v2/write": {"precision": "ns, us, ms or s"},
}
_NO_ENTITY = {"404": "no entity of this name"}
_BUSY = "too many records wait; send again later"
_PUSHED = {"409": "the source is of another kind", "413": "the body is too large"}
_ANSWERS = {  # of a path, beside 200
    "/readyz": {"503": "not ready; the answer says why"},
    "/api/entity": _NO_ENTITY,
    "/api/deploy": {**_NO_ENTITY, "422": "no time"},
    "/api/alarms/{alarm}/{mark}": {"404": "no such alarm or mark"},
    "/api/events": {"503": "too many listeners"},
    "/score": {
        "404": "no model",
        "413": "the body is too large",
        "422": "not rows of the model's channels",
    },
    "/api/rows": {**_PUSHED, "422": "not a record; the answer says why", "429": _BUSY},
    "/v1/metrics": {"400": "not such a request; the answer says why", **_PUSHED, "429": _BUSY},
    "/api/v1/write": {"400": "not such a request; the answer says why", **_PUSHED, "503": _BUSY},
}
_ANSWERS["/api/v2/write"] = _ANSWERS["/api/rows"]
_EMPTY = ("/api/v2/write", "/api/v1/write")  # answered without a body
_PAGES = ("/", "/docs", "/static/{name}", "/login", "/openapi.json")


def openapi(routes: Sequence[Route]) -> dict[str, Any]:
    """The description of all routes but the pages for people."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if route.path not in _PAGES:
            (method,) = (route.methods or set()) - {"HEAD"}
            paths.setdefault(route.path, {})[method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "vace watch", "version": vace_ad.__version__},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "paths": paths,
    }


def _operation(route: Route) -> dict[str, Any]:
    good = "204" if route.path in _EMPTY else "200"
    answers = {good: "done", **_ANSWERS.get(route.path, {})}
    operation: dict[str, Any] = {
        "summary": (route.endpoint.__doc__ or "").splitlines()[0],
        "responses": {code: {"description": words} for code, words in answers.items()},
        "parameters": [
            *(_parameter(name, "path", name) for name in route.param_convertors),
            *(
                _parameter(name, "query", words)
                for name, words in _QUERY.get(route.path, {}).items()
            ),
        ],
    }
    if route.path in _BODIES:
        operation["requestBody"] = {"required": True, "content": _BODIES[route.path]}
    return operation


def _parameter(name: str, place: str, words: str) -> dict[str, Any]:
    kind: dict[str, Any] = {"type": "integer" if name == "limit" else "string"}
    if name == "mark":
        kind["enum"] = list(MARKS)
    required = place == "path"
    return {"name": name, "in": place, "description": words, "schema": kind, "required": required}
