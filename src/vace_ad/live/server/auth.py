"""Checks before a request is read: host, origin, token; and the headers of each answer."""

from __future__ import annotations

import hmac
import time
from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vace_ad.live.settings import is_loopback

BURST = 10  # wrong tokens at once
SECONDS = 6.0  # until one more is checked
_ADDRESSES = 10_000  # remembered at most
COOKIE = "vace_session"
_KEY = "ocp-apim-subscription-key"  # in which clients of Azure send their token
_OPEN = ("/healthz", "/login")
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
_LOGIN = (
    "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>"
    "<title>vace watch</title><form method=post action=/login><p><label>Token <input name=token "
    "type=password autofocus></label> <button>Enter</button></form>"
)
_BEARER = {"www-authenticate": "Bearer"}


def session(token: str) -> str:
    """What a browser keeps instead of the token."""
    return hmac.new(token.encode(), b"vace watch session", "sha256").hexdigest()


class Attempts:
    """Wrong tokens by address; a network of IPv6 (/64) counts as one."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}  # when an address has all its attempts again

    def wait(self, address: str) -> float:
        """Seconds until a token of this address is checked; 0 is now."""
        left = self._until.get(_network(address), 0.0) - time.monotonic()
        return max(0.0, left - (BURST - 1) * SECONDS)

    def failed(self, address: str) -> None:
        """A wrong token came."""
        key, now = _network(address), time.monotonic()
        self._until[key] = max(now, self._until.pop(key, 0.0)) + SECONDS
        if len(self._until) > _ADDRESSES:
            del self._until[next(iter(self._until))]  # that failed longest ago


def _network(address: str) -> str:
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return address
    return str(found.ipv4_mapped or found.packed[:8].hex())


class Guard:
    """Refuses what is not allowed before anything is read of it."""

    def __init__(
        self, app: ASGIApp, host: str, token: str | None, link: str | None, attempts: Attempts
    ) -> None:
        self._app, self._token, self._attempts = app, token, attempts
        self._local = is_loopback(host)
        self._link = urlsplit(link).hostname if link else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, then let it through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refusal = self._refusal(HTTPConnection(scope))
        await (refusal or self._app)(scope, receive, with_headers)

    def _refusal(self, request: HTTPConnection) -> Response | None:
        scope, headers = request.scope, request.headers
        try:
            host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
            sender = urlsplit(headers.get("origin", "")).netloc
        except ValueError:  # a bracket without its other half
            return _refused(400, "the host or the origin is not an address")
        if self._local and not (is_loopback(host) or host == self._link):
            # DNS rebinding: the name of another site resolves to this address
            return _refused(421, "this host name is refused; allow it with server.link")
        foreign = "origin" in headers and sender != headers.get("host")
        if scope["method"] not in ("GET", "HEAD") and foreign:
            return _refused(403, "requests from other sites are refused")
        if self._token is None or scope["path"] in _OPEN or self._has_session(request):
            return None
        kind, _, given = headers.get("authorization", "").partition(" ")
        given = given if kind.lower() == "bearer" else headers.get(_KEY, "")
        if given:
            address = sender_of(scope)
            if self._attempts.wait(address):
                words = "too many wrong tokens from this address; try again later"
                return _refused(429, words, {"retry-after": f"{SECONDS:.0f}"})
            if hmac.compare_digest(given.encode(), self._token.encode()):
                return None
            self._attempts.failed(address)
        if scope["path"] == "/" and "text/html" in headers.get("accept", ""):
            return HTMLResponse(_LOGIN, 401, _BEARER)
        return _refused(401, "a token is needed: Authorization: Bearer TOKEN", _BEARER)

    def _has_session(self, request: HTTPConnection) -> bool:
        """Whether a browser logged in before; its cookie is too long to be guessed."""
        assert self._token is not None
        given = request.cookies.get(COOKIE, "")
        return hmac.compare_digest(given.encode(), session(self._token).encode())


def sender_of(scope: Scope) -> str:
    """The address that a request came from."""
    return str((scope.get("client") or ("unknown", 0))[0])


def _refused(status: int, words: str, headers: Mapping[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{words}\n", status, headers)
