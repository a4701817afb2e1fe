"""What a reader sees of the page and where the curves lie on the screen."""

from __future__ import annotations

from collections.abc import Callable

from report.chromium import Chromium

FROM, TO = "Number(document.getElementById('stack').dataset.from)", "Number(stack.dataset.to)"
CURRENT = "document.querySelector('tr[aria-current=true]').dataset.event"

Open = Callable[..., Chromium]


def window(page: Chromium) -> tuple[float, float]:
    return page.js(FROM), page.js(TO)


def span(page: Chromium) -> float:
    start, end = window(page)
    return end - start


def on_curves(page: Chromium, share: float, height: float = 60) -> tuple[float, float]:
    """Return the place on the screen at a share of the axis's width."""
    left, top, width, _ = page.box("#stack")
    gutter = float(page.js("getComputedStyle(stack).getPropertyValue('--gutter')")[:-2])
    return left + gutter + share * (width - gutter), top + height


def readout(page: Chromium, channel: str) -> str:
    return str(
        page.js(
            "[...document.querySelectorAll('.panel')].find((p) => "
            f"p.querySelector('b').textContent === {channel!r})"
            ".querySelector('header > span').textContent"
        )
    )
