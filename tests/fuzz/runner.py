"""Runs targets in child processes with limits on time and memory; keeps and counts findings."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import vace_ad
from fuzz.worker import GROWTH, Beat

TESTS = Path(__file__).parents[1]
CORPUS = Path(__file__).parent / "corpus"
HANG = 10.0  # seconds that one input may take
DEATHS = 5  # children that may hang or die before a target is given up
START = 120.0  # seconds until a target is ready: it may fit a model


@dataclass
class Found:
    """An input that broke a promise."""

    target: str
    kind: str  # the exception's name, Hang, Growth or Crash
    place: str
    words: str
    data: bytes

    @property
    def file(self) -> str:
        """A name for the corpus."""
        return f"{self.kind}-{hashlib.sha256(self.data).hexdigest()[:8]}"


@dataclass
class Round:
    """What came of a target."""

    target: str
    taken: int = 0
    refused: int = 0
    seconds: float = 0.0
    found: list[Found] = field(default_factory=list)

    def words(self) -> str:
        """One line for people."""
        n = self.taken + self.refused
        rate = n / self.seconds if self.seconds else 0
        kinds = len({(one.kind, one.place) for one in self.found})
        return (
            f"{self.target:14}{n:8,} inputs {rate:6.0f} a second  {self.taken:7,} taken "
            f"{self.refused:7,} refused  {kinds} findings"
        )


def fuzz(target: str, seed: int, seconds: float, inputs: int = 2**62) -> Round:
    """Attack a target, or several with commas between, for some seconds or inputs each.

    A child that hangs or dies is followed by another, which goes another way.
    """
    result, whole = Round(target), seconds * len(target.split(","))
    for _ in range(DEATHS):
        child = _Child([target, str(seed), f"{seconds:.1f}", str(inputs)], result)
        ended = child.run(whole)
        result.seconds += child.worked
        seed += 1_000_003
        if ended or child.began is None or result.seconds > whole:
            break  # where it never got ready, that is a finding
    return result


def replay(corpus: Path = CORPUS) -> Round:
    """Try everything that was ever found."""
    result = Round("corpus")
    child = _Child([str(corpus)], result, "fuzz.replay")
    child.run(600)
    return result


class _Child:
    """A worker, watched."""

    def __init__(self, arguments: list[str], result: Round, module: str = "fuzz.worker") -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="vace-fuzz-")
        folder = Path(self._folder.name)
        self._beat, self._input, self._result = Beat(folder), folder / "input", result
        package = str(Path(vace_ad.__file__).resolve().parents[1])  # the same as here
        paths = [str(TESTS), package, *filter(None, [os.environ.get("PYTHONPATH")])]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RUST_BACKTRACE": "0"}
        self._log = (folder / "stderr").open("w+b")
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments, str(folder)],
            stdout=subprocess.PIPE, stderr=self._log, env=env, cwd=folder, text=True,
        )  # fmt: skip
        self.began: float | None = None
        self.worked, self._base, self._done, self._count = 0.0, 0, False, 0

    def run(self, seconds: float) -> bool:
        """Wait for its end; False where it had to be ended, or died."""
        reader = threading.Thread(target=self._read)
        reader.start()
        started, problem = time.monotonic(), None
        while self._process.poll() is None and problem is None:
            time.sleep(0.05)
            problem = self._problem(started, seconds)
        if problem is not None:
            self._process.kill()
        self._process.wait()
        reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        if problem is None and not self._done:
            problem = f"Crash status {self._process.returncode}: {self._tail()}"
        if problem is not None:
            kind, _, words = problem.partition(" ")
            data = self._input.read_bytes() if self._input.exists() else b""
            self._result.found.append(Found(self._result.target, kind, "", words, data))
        if self.began is not None:
            self.worked = time.monotonic() - self.began
        if not self._done:
            self._result.refused += self._beat.get()[1]
        self._log.close()
        self._folder.cleanup()
        return problem is None

    def _problem(self, started: float, seconds: float) -> str | None:
        now, (since, _) = time.monotonic(), self._beat.get()
        if since and now - since > HANG:
            return f"Hang more than {HANG:.0f} s for one input"
        if self.began is None and now - started > START:
            return "Hang before the first input"
        if self.began is not None and now - self.began > seconds + START:
            return "Hang after the last input"
        if self._base and (more := _memory(self._process.pid) - self._base) > GROWTH:
            return f"Growth {more >> 20} MB more"
        return None

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            try:
                line = json.loads(text)
            except ValueError:
                continue  # something else was printed
            if "ready" in line:
                self.began, self._base = self.began or time.monotonic(), line["base"]
            elif "found" in line:
                what = (line["target"], line["found"], line["place"], line["words"])
                self._result.found.append(Found(*what, base64.b64decode(line["data"])))
            elif "counts" in line:
                self._result.taken += line["counts"]["taken"]
                self._result.refused += line["counts"]["refused"]
            elif "end" in line:
                self._done = True

    def _tail(self) -> str:
        self._log.seek(0)
        return self._log.read()[-600:].decode("utf-8", "replace")


def _memory(pid: int) -> int:
    """The memory that a process has now, bytes; 0 where that is not known."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def keep(found: Found, corpus: Path = CORPUS) -> Path:
    """Put a finding into the corpus, where every round of tests tries it again."""
    folder = corpus / found.target
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / found.file
    path.write_bytes(found.data)
    return path
