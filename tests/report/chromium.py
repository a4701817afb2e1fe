"""A browser for tests: Chromium without a window, spoken to over two pipes.

Chromium reads commands of its DevTools protocol from descriptor 3 and answers on descriptor 4,
as JSON ended by a zero byte. That needs no port, no driver and no package.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--mute-audio", "--remote-debugging-pipe", "--no-pings",
    "--disable-default-apps", "--disable-domain-reliability", "--dns-prefetch-disable",
    "--disable-client-side-phishing-detection",
    "--disable-features=OptimizationHints,MediaRouter,Translate",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no name leads anywhere
)  # fmt: skip
# Wires the pipes, leaves the network where that is wanted and allowed (a namespace of its own, as
# root or as a user who may make one), and becomes the browser.
START = """
import ctypes, os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
if sys.argv[3] == "offline":
    unshare = getattr(ctypes.CDLL(None), "unshare", lambda flags: -1)
    network, user = 0x40000000, 0x10000000
    if unshare(network):
        unshare(network | user)
os.execv(sys.argv[4], sys.argv[4:])
"""
KEYS = {"ArrowLeft": 37, "ArrowRight": 39, "Enter": 13, "Tab": 9, "Home": 36, "End": 35}


def find_chromium() -> str | None:
    """Return the path of Chromium or Chrome, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


class Chromium:
    """One page in one browser."""

    def __init__(self, program: str, profile: Path, *, offline: bool = True) -> None:
        """Start it; `offline` gives it a network of its own, without anything in it."""
        self._buffer, self._count, self._session = b"", 0, ""
        self.complaints: list[str] = []  # exceptions, console errors, refused requests
        self.requests: list[str] = []  # every address the page asked for
        self._start([program, *FLAGS, f"--user-data-dir={profile}", "about:blank"], offline)
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    @property
    def offline(self) -> bool:
        """Whether it sees another network than this process."""
        ours, its = (f"/proc/{who}/ns/net" for who in ("self", self._process.pid))
        return os.path.exists(its) and os.readlink(its) != os.readlink(ours)

    def _start(self, command: list[str], offline: bool) -> None:
        to_browser, self._commands = os.pipe()
        self._answers, from_browser = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
        how = [*map(str, ends), "offline" if offline else "online"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, *how, *command],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (to_browser, from_browser, *ends):
            os.close(end)

    def _attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        os.close(self._commands)  # Chromium leaves when its pipe closes
        os.close(self._answers)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive(60)
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])

    def js(self, expression: str) -> Any:
        """Return the value of an expression in the page, awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def open(
        self, path: Path, size: tuple[int, int] = (1280, 900), dark: bool = False, ready: str = ""
    ) -> None:
        """Open a file and wait until the page has drawn itself."""
        self.complaints, self.requests = [], []
        width, height = size
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        self.call("Emulation.setTouchEmulationEnabled", enabled=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.call("Emulation.setEmulatedMedia", features=[scheme, still])
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.until(ready or "document.getElementById('stack')?.dataset.from !== undefined")
        self.settle()

    def until(self, condition: str, seconds: float = 20) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.js(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"not within {seconds} s: {condition}; {self.complaints}")
            time.sleep(0.02)

    def settle(self) -> None:
        """Wait for a few frames, so that what was asked for is drawn."""
        frame = "await new Promise((done) => requestAnimationFrame(done));"
        self.js(f"(async () => {{ {frame * 4} }})()")

    def box(self, selector: str) -> tuple[float, float, float, float]:
        """Return left, top, width and height of an element in the window."""
        found = self.js(
            "(() => { const b = document.querySelector("
            f"{json.dumps(selector)}).getBoundingClientRect(); "
            "return [b.left, b.top, b.width, b.height]; })()"
        )
        return tuple(found)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Move, press, release or turn the wheel: mouseMoved, mousePressed, ..."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        """Click with the left button."""
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", buttons=1, clickCount=1)
        self.settle()

    def drag(self, start: tuple[float, float], end: tuple[float, float], shift: bool) -> None:
        """Press at one place, move in steps, release at another."""
        held = {"button": "left", "buttons": 1, "modifiers": 8 if shift else 0}
        self.mouse("mousePressed", *start, clickCount=1, **held)
        for i in range(1, 6):
            x, y = (a + (b - a) * i / 5 for a, b in zip(start, end, strict=True))
            self.mouse("mouseMoved", x, y, **held)
        self.mouse("mouseReleased", *end, clickCount=1, **held)
        self.settle()

    def touch(self, kind: str, *points: tuple[float, float]) -> None:
        """Put fingers on the screen, move them, lift them: touchStart, touchMove, touchEnd."""
        fingers = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
        self.call("Input.dispatchTouchEvent", type=kind, touchPoints=fingers)

    def key(self, name: str) -> None:
        """Press and release a key."""
        text = {"text": name} if len(name) == 1 else {}
        code = KEYS.get(name, ord(name[0].upper()))
        both = {"key": name, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **both, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **both)
        self.settle()

    def screenshot(self, path: Path, whole: bool = False) -> None:
        """Write a picture of the window, or of the whole page."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _receive(self, seconds: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], seconds)
            part = os.read(self._answers, 1 << 16) if ready else b""
            if not part:
                raise RuntimeError(f"Chromium said nothing for {seconds} s, or has gone")
            self._buffer += part
        text, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"])[:800])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(params["args"])[:800])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
