"""Routes, checks of what a request asks for, and JSON without NaN."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from vace_ad.live.runner import Watch

Handler = Callable[[Request], Awaitable[Response]]
_BODY_SECONDS = 30.0


def routes_of(handlers: Mapping[str, Handler]) -> list[Route]:
    """Routes of handlers by method and path, "GET /api/status"."""
    pairs = ((name.split(), handler) for name, handler in handlers.items())
    return [Route(path, handler, methods=[method]) for (method, path), handler in pairs]


async def body_of(request: Request, most: int) -> bytes:
    """The body, up to a bound."""
    length = request.headers.get("content-length", "")
    too_large = HTTPException(413, f"the body has more than {most:,} bytes")
    if number(length, 0, 0, most + 1) > most:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise HTTPException(408, f"the body did not arrive within {_BODY_SECONDS:.0f} s") from None
    except ClientDisconnect:
        raise HTTPException(400, "the connection closed before the whole body arrived") from None
    return b"".join(parts)


def known_entity(watch: Watch, name: str) -> str:
    """The name, if an entity has it."""
    if name not in watch.known:
        raise HTTPException(404, "no entity of this name")
    return name


def finite(value: float | None) -> float | None:
    """The value, or None where it is not a finite number."""
    return value if value is not None and math.isfinite(value) else None


def number(text: str | None, default: int, low: int, high: int) -> int:
    """A whole number in plain digits, within two bounds."""
    if not text or not text.isascii() or not text.isdigit():
        return default
    return high if len(text) > 18 else min(high, max(low, int(text)))
