"""A browser for the tests that need one, installed where that is possible."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from report.chromium import Chromium, find_chromium

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
