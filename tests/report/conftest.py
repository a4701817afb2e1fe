"""A browser for the tests that need one, installed where that is possible."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from report.chromium import Chromium, find_chromium
from report.plant import make_plant
from report.reader import Open
from vace_ad.report import ReportData, write_report

INSTALL_SECONDS = 240


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """Chromium without a window; tests skip where there is none and none can be installed."""
    program = find_chromium() or _install()
    if program is None:
        pytest.skip("no Chromium found: apt-get install chromium")
    page = Chromium(program, tmp_path_factory.mktemp("profile"))
    yield page
    page.close()


@pytest.fixture(scope="session")
def plant() -> ReportData:
    return make_plant(20_000, 10)


@pytest.fixture
def show(browser: Chromium, tmp_path: Path) -> Open:
    """Write a report, open it, and insist that it loads without a complaint or a request."""

    def open_report(data: ReportData, **how: Any) -> Chromium:
        path = tmp_path / "report.html"
        write_report(data, path)
        browser.open(path, **how)
        assert browser.complaints == []
        assert browser.requests == [path.as_uri()]
        return browser

    return open_report


def _install() -> str | None:
    """Install Debian's package where we are root, one process at a time, and not for ever."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    with open(Path(tempfile.gettempdir()) / "vace-chromium.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if find_chromium() is None:
            steps = "apt-get -qq update && apt-get -qq -y --no-install-recommends install chromium"
            try:
                subprocess.run(
                    ["timeout", str(INSTALL_SECONDS), "sh", "-c", steps],
                    env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    check=True,
                )
            except subprocess.CalledProcessError as error:
                pytest.skip(f"Chromium could not be installed by apt-get: {error}")
    return find_chromium()
