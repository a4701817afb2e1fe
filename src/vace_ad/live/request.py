"""HTTP requests by the standard library: bounded, without redirects, with TLS and a token."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from vace_ad.live import fields as f
from vace_ad.live.fields import Field, Secret

SECONDS = 4.0  # shorter than the time in which we promise to stop
_LONGEST_ANSWER = 256 << 20
CONNECTION = {
    **f.secret("token", "the bearer token to send"),
    "username": Field(f.text, None, "for basic authentication", '"watch"'),
    **f.secret("password", "its password"),
    "ca_file": Field(f.path, None, "TLS: certificates to trust, if not the system's", '"ca.pem"'),
}


class RequestError(Exception):
    """No good answer; `status` is None where there was none at all."""

    def __init__(self, words: str, status: int | None = None) -> None:
        super().__init__(words)
        self.status = status


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None  # a token must not follow to another host


class Caller:
    """Sends requests with the settings of a source or a sink."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._opener = build_opener(_NoRedirect)
        if str(settings.get("url")).startswith("https:"):  # reading certificates takes a while
            ca = settings.get("ca_file")
            context = ssl.create_default_context(cafile=None if ca is None else str(ca))
            self._opener = build_opener(_NoRedirect, HTTPSHandler(context=context))
        self._headers: dict[str, str] = {}
        token, password = settings.get("token"), settings.get("password")
        if isinstance(token, Secret):
            self._headers["Authorization"] = f"Bearer {token.reveal()}"
        elif settings.get("username"):
            import base64

            pair = f"{settings['username']}:{password.reveal() if password else ''}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"

    def send(
        self, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """GET, or POST with a body; the answer's body, or RequestError."""
        request = Request(url, body, {**self._headers, **(headers or {})})
        try:
            with self._opener.open(request, timeout=SECONDS) as answer:
                data: bytes = answer.read(_LONGEST_ANSWER)
                return data
        except HTTPError as error:
            with error:
                words = error.read(300).decode("utf-8", "replace")
            raise RequestError(f"answered {error.code}: {words!r}", error.code) from None
        except (URLError, OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise RequestError(f"cannot be reached: {reason}") from None
