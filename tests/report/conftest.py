"""A browser for the tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from report.chromium import Chromium, find_chromium
from report.plant import make_plant
from report.reader import Open
from vace_ad.report import ReportData, write_report


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """Chromium without a window; tests skip where there is none."""
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium found: apt-get install chromium")
    page = Chromium(program, tmp_path_factory.mktemp("profile"))
    yield page
    page.close()


@pytest.fixture(scope="session")
def plant() -> ReportData:
    return make_plant(20_000, 10)


@pytest.fixture(scope="session")
def plant_page(plant: ReportData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the plant, which most tests open."""
    path = tmp_path_factory.mktemp("plant") / "report.html"
    write_report(plant, path)
    return path


@pytest.fixture
def show(browser: Chromium, plant: ReportData, plant_page: Path, tmp_path: Path) -> Open:
    """Write a report, open it, and insist that it loads without a complaint or a request."""

    def open_report(data: ReportData, **how: Any) -> Chromium:
        path = plant_page
        if data is not plant:
            path = tmp_path / "report.html"
            write_report(data, path)
        browser.open(path, **how)
        assert browser.complaints == []
        assert browser.requests == [path.as_uri()]
        return browser

    return open_report
