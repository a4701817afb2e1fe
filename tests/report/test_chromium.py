"""The browser of the tests has no network."""

from __future__ import annotations

import http.server
import os
import threading
from collections.abc import Iterator

import pytest

from report.chromium import Chromium


@pytest.fixture
def address() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_it_reaches_nothing(browser: Chromium, address: str) -> None:
    if not browser.offline:
        assert os.geteuid() != 0 or not os.path.exists("/proc/self/ns/net")
        pytest.skip("this user may not make a network namespace")
    browser.call("Page.navigate", url="about:blank")
    asked = f"fetch({address!r}, {{mode: 'no-cors'}}).then(() => 'reached', () => 'refused')"
    assert browser.js(asked) == "refused"


def test_no_name_leads_anywhere(browser: Chromium) -> None:
    asked = "fetch('http://localhost.example/').then(() => 'reached', () => 'refused')"
    assert browser.js(asked) == "refused"
