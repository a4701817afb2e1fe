"""The page in a real browser: an alarm appears without a reload."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.feeds import config, feed, settings, write
from live.running import running
from report.chromium import Chromium, find_chromium
from vace_ad.live.config import make_config

SERVER = {"address": "127.0.0.1:0"}
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium found: apt-get install chromium")
    page = Chromium(program, tmp_path_factory.mktemp("profile"), offline=False)  # our loopback
    yield page
    page.close()


def show(browser, url, size=(1280, 900), dark=False):
    width, height = size
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
    )  # fmt: skip
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.call("Emulation.setEmulatedMedia", features=[scheme])
    browser.call("Page.navigate", url="about:blank")
    browser.until("location.href === 'about:blank'")
    time.sleep(0.2)  # what the page before still asked for
    browser.js("1")
    browser.complaints, browser.requests = [], []
    browser.call("Page.navigate", url=url)
    browser.until("document.getElementById('link')?.textContent === 'live'")


@pytest.mark.parametrize(("size", "dark"), [((1280, 900), False), ((390, 800), True)])
def test_an_alarm_appears_without_a_reload(browser, tmp_path, size, dark):
    lines = feed(n_rows=200, entities=("pump-1", HOSTILE))
    write(tmp_path, lines[:180])
    with running(config(tmp_path, server=SERVER, alarms={"group": "1min"})) as (_, url):
        show(browser, url, size, dark)
        browser.until("document.querySelectorAll('#entities li').length === 2")
        browser.until("document.getElementById('headline').textContent === 'No open alarms.'")
        browser.js("window.sameplace = 1")
        write(tmp_path, lines[180:240], "a")
        browser.until("document.querySelectorAll('#open .alarm').length === 2")
        assert browser.js("window.sameplace") == 1  # no reload
        heading = "document.querySelector('#open .incident .top').textContent"
        assert browser.js(heading).startswith("One incident, 2 entities: ")
        words = browser.js("document.getElementById('open').textContent")
        assert "level" in words
        assert HOSTILE in words
        assert browser.js("document.querySelectorAll('#open img').length") == 0
        browser.js("document.querySelector('#open .alarm .link').click()")
        browser.until("document.querySelectorAll('#channels li').length === 3")
        browser.until("document.getElementById('score').width > 100")
        browser.js("document.querySelector('#open [data-act=acknowledge]').click()")
        browser.until("document.getElementById('open').textContent.includes('acknowledged')")
        assert browser.js("document.documentElement.dataset.theme") == ("dark" if dark else "light")
        wide = (
            "[...document.querySelectorAll('body *')].filter((e) => "
            "e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)"
            ".map((e) => `${e.tagName}#${e.id}`)"
        )
        assert browser.js(wide) == []
        write(tmp_path, lines[240:], "a")
        browser.until("document.querySelectorAll('#open .alarm').length === 0")
        browser.until("document.querySelectorAll('#history .alarm').length === 2")
        assert browser.complaints == []
        assert all(request.startswith((url, "data:", "about:")) for request in browser.requests)


def test_the_description_can_be_read(browser, tmp_path):
    write(tmp_path, [])
    with running(config(tmp_path, server=SERVER)) as (_, url):
        browser.call("Page.navigate", url=f"{url}/docs")
        browser.until("document.querySelectorAll('.route').length > 10")


def test_a_lost_connection_is_said(browser, tmp_path):
    write(tmp_path, [])
    with running(config(tmp_path, server=SERVER)) as (_, url):
        show(browser, url)
    browser.until("document.getElementById('link').textContent.includes('disconnected')")


def test_no_card_moves_when_an_entity_is_opened_and_its_threshold_is_shown(browser, tmp_path):
    write(tmp_path, feed(n_rows=105, entities=("pump-1", "pump-2")))
    with running(config(tmp_path, server=SERVER)) as (_, url):
        show(browser, url)
        browser.until("document.querySelectorAll('#open .alarm').length === 2")
        browser.until("document.querySelectorAll('#entities li').length === 2")
        places = (
            "JSON.stringify([...document.querySelectorAll('section')].map((e) => "
            "{ const r = e.getBoundingClientRect(); return [e.id, r.top, r.left, r.height]; }))"
        )
        before = browser.js(places)
        browser.js("document.querySelector('#entities .link').click()")
        browser.until("document.querySelectorAll('#channels li').length === 3")
        assert browser.js(places) == before
        assert "alarms above 1.00" in browser.js("document.getElementById('now').textContent")
        picture(browser, "live-open")


def test_learning_is_not_called_quiet(browser, tmp_path):
    write(tmp_path, feed(n_rows=60, entities=("pump-1",)))
    data = settings(tmp_path, server=SERVER)
    data["model"] = {"learn": "30min"}
    with running(make_config(data)) as (_, url):
        show(browser, url, (390, 800))
        words = "1 entity is still learning and cannot raise alarms yet."
        browser.until(f"document.getElementById('headline').textContent === '{words}'")
        summary = browser.js("document.getElementById('summary').textContent")
        assert "1 entity" in summary
        assert "1 entities" not in summary
        picture(browser, "live-learning")


def picture(browser, name):
    """Keep a picture where $PICTURES says, for a person to look at."""
    folder = os.environ.get("PICTURES")
    if folder:
        shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True)
        Path(folder, f"{name}.png").write_bytes(base64.b64decode(shot["data"]))
