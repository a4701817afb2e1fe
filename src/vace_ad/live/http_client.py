"""HTTP requests of sources and sinks: a time limit, no redirects, TLS, a token or a password.

urllib stays: httpx saves 15 lines, brings three packages of 2 MB, and trusts its own certificates
instead of the system's unless told otherwise.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from vace_ad.live.settings import FilePath, HttpUrl, LoginSettings, Text, key

_SECONDS = 4.0  # shorter than the time in which a watch stops
_LONGEST_ANSWER = 256 << 20


class HttpSettings(LoginSettings):
    """Keys of a connection to a server."""

    url: HttpUrl = key(..., "the server", '"http://127.0.0.1:8080"')
    token_env: Text | None = key(None, "bearer token: environment variable", '"VARIABLE"')
    token_file: FilePath | None = key(None, "bearer token: file that holds it", '"token.txt"')


class RequestError(Exception):
    """No good answer; `status` is None where there was none at all."""

    def __init__(self, words: str, status: int | None = None) -> None:
        super().__init__(words)
        self.status = status


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None  # a token must not follow to another host


class HttpClient:
    """Sends requests with the settings of a source or a sink."""

    def __init__(self, settings: HttpSettings) -> None:
        self._opener = build_opener(_NoRedirect)
        if settings.url.startswith("https:"):  # reading certificates takes a while
            context = ssl.create_default_context(
                cafile=None if settings.ca_file is None else str(settings.ca_file)
            )
            self._opener = build_opener(_NoRedirect, HTTPSHandler(context=context))
        self._headers: dict[str, str] = {}
        token = settings.secret("token")
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        elif settings.username:
            pair = f"{settings.username}:{settings.secret('password') or ''}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"

    def send(
        self, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """GET, or POST with a body; the answer's body, or RequestError."""
        request = Request(url, body, {**self._headers, **(headers or {})})
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                data: bytes = answer.read(_LONGEST_ANSWER)
                return data
        except HTTPError as error:
            with error:
                words = error.read(300).decode("utf-8", "replace")
            raise RequestError(f"answered {error.code}: {words!r}", error.code) from None
        except (URLError, OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise RequestError(f"cannot be reached: {reason}") from None
