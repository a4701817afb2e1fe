"""What can be asked of the server, as OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

import vace_ad


def _route(words: str, body: dict[str, Any] | None = None, **answers: str) -> dict[str, Any]:
    told = {code.strip("_"): {"description": text} for code, text in answers.items()}
    route: dict[str, Any] = {"summary": words, "responses": told or {"200": {"description": "yes"}}}
    if body is not None:
        route["requestBody"] = {"required": True, "content": body}
    return route


def _query(name: str, words: str, kind: str = "string") -> dict[str, Any]:
    return {"name": name, "in": "query", "description": words, "schema": {"type": kind}}


_CELL = {"type": ["number", "null"]}
_STATE = _query("state", "open, resolved or all")
_ALARM = {"name": "alarm", "in": "path", "required": True, "schema": {"type": "string"}}
_RECORD = {
    "type": "object",
    "required": ["time"],
    "properties": {
        "time": {"description": "ISO 8601, or a count since 1970 in s, ms, µs or ns"},
        "entity": {"type": "string"},
    },
    "additionalProperties": _CELL,
}
_ROWS = {
    "application/json": {"schema": {"oneOf": [_RECORD, {"type": "array", "items": _RECORD}]}},
    "text/csv": {"schema": {"type": "string"}},
    "text/plain": {"schema": {"type": "string", "description": "Influx line protocol"}},
}
_SCORE = {
    "application/json": {
        "schema": {
            "type": "object",
            "required": ["rows"],
            "properties": {
                "rows": {"type": "array", "items": {"type": "array", "items": _CELL}},
                "channels": {"type": "array", "items": {"type": "string"}},
                "entity": {"type": "string"},
            },
        }
    }
}  # fmt: skip
_REFUSED = {
    "_413": "the body is too large", "_422": "not a record; the answer says why",
    "_429": "too much waits already; send again later",
}  # fmt: skip
OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "vace watch", "version": vace_ad.__version__},
    "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    "paths": {
        "/healthz": {"get": _route("Whether the process lives")},
        "/readyz": {
            "get": _route("Whether readings come and are kept", _200="yes", _503="no, and why not")
        },
        "/metrics": {"get": _route("Counters and latencies for Prometheus")},
        "/api/status": {"get": _route("Counters and problems")},
        "/api/entities": {
            "get": _route("Entities and what they do")
            | {"parameters": [_query("search", "part of the name"), _query("limit", "", "integer")]}
        },
        "/api/entity": {
            "get": _route("Evidence, channels, what is expected of them", _200="yes", _404="none")
            | {"parameters": [_query("name", "the entity")]},
            "delete": _route(
                "Forget an entity: its alarms end, its state and what was learned of it go",
                _200="it is done and kept", _404="none",
            )
            | {"parameters": [_query("name", "the entity")]},
        },
        "/api/alarms": {
            "get": _route("Alarms, the newest first")
            | {"parameters": [_STATE, _query("limit", "", "integer")]}
        },
        "/api/alarms/{alarm}/acknowledge": {
            "post": _route("Somebody has seen it: no repeats", _200="yes", _404="no such alarm")
            | {"parameters": [_ALARM]}
        },
        "/api/alarms/{alarm}/fault": {
            "post": _route("This was a fault, noted with it", _200="yes", _404="no such alarm")
        },
        "/api/alarms/{alarm}/normal": {
            "post": _route(
                "This was normal: the like alarms no more", _200="yes", _404="no such alarm"
            )
            | {"parameters": [_ALARM]}
        },
        "/api/alarms/{alarm}/undo": {
            "post": _route("This was not normal after all", _200="yes", _404="no such alarm")
            | {"parameters": [_ALARM]}
        },
        "/api/events": {"get": _route("News as server-sent events")},
        "/api/rows": {"post": _route("Push records", _ROWS, _200="they are kept", **_REFUSED)},
        "/api/v2/write": {
            "post": _route(
                "Push records as to InfluxDB",
                {"text/plain": {"schema": {"type": "string"}}},
                _204="they are kept",
                **_REFUSED,
            )
            | {"parameters": [_query("precision", "ns, us, ms or s")]}
        },
        "/score": {"post": _route("Scores of rows; nothing is kept", _SCORE, _200="the scores")},
    },
}  # fmt: skip
