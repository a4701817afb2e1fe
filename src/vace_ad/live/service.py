"""The watch as a process: signals, server, reload, dry run and backtest."""

from __future__ import annotations

import logging
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from vace_ad.errors import ConfigError, InputError
from vace_ad.frames.time import duration_words
from vace_ad.live.alarms import iso
from vace_ad.live.clock import SetClock
from vace_ad.live.config import Config, load_config
from vace_ad.live.detector import Detectors
from vace_ad.live.plugins import make_source
from vace_ad.live.records import read_time
from vace_ad.live.replay import Replay
from vace_ad.live.runner import Watch
from vace_ad.live.settings import shown
from vace_ad.live.sources import Source
from vace_ad.live.store import Store
from vace_ad.wording import listed, plural

log = logging.getLogger("vace_ad.live")
_MINUTE = 60 * 10**9
_WHOLE = 0.9  # of the span that was asked for must be there
MakeDetectors = Callable[[Config], Detectors]
TRIED = 2_000  # rows of a file that a dry run scores
_UNUSED = {
    "bad": ("line", "without a record"),
    "no_model": ("reading", "of entities without a model"),
    "unknown_channel": ("reading", "of channels that the model does not know"),
    "future": ("reading", "ahead of the clock"),
    "late": ("reading", "behind the rows that were done"),
    "empty": ("row", "without a value"),
}


def make_detectors(config: Config) -> Detectors:
    """The real detector, with the budget and the step of a configuration."""
    model = config.model
    return Detectors(
        config.budget,
        model.random_state,
        config.align.step,
        settings=model.learned,
        maintenance=model.maintenance,
        rest=config.alarms.resolve_after,
    )


class Service:
    """Runs a watch until SIGTERM or the end of its source; SIGHUP reads the file again."""

    def __init__(self, config: Config, make: MakeDetectors = make_detectors) -> None:
        self._config: Config | None = config
        self._make = make
        self._watch: Watch | None = None

    def run(self) -> None:
        """Watch; again after each reload."""
        with self._signals():
            while self._config is not None:
                config, self._config = self._config, None
                self._once(config)

    def _once(self, config: Config) -> None:
        watch = self._watch = Watch(config, self._make(config))
        server = None
        try:
            if config.server.address is not None:
                from vace_ad.live.server.serve import Server

                server = Server(watch)
                server.start()
                log.info("page at %s", config.link)
            watch.run()
        finally:
            if server is not None:
                server.stop()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        handlers = {
            signal.SIGTERM: self._stop,
            signal.SIGINT: self._stop,
            signal.SIGHUP: self._reload,
        }
        before = {kind: signal.signal(kind, handler) for kind, handler in handlers.items()}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        log.info("%s: stopping", signal.Signals(number).name)
        if self._watch is not None:
            self._watch.stop()

    def _reload(self, number: int, frame: FrameType | None) -> None:
        """Read the file again; a file with an error changes nothing."""
        watch = self._watch
        if watch is None or watch.config.path is None:
            return
        try:
            self._config = load_config(watch.config.path)
        except ConfigError as error:
            log.error("SIGHUP: the old configuration stays: %s", error)
            return
        log.info("SIGHUP: starting again with the new configuration")
        watch.stop()


def plan(config: Config, make: MakeDetectors = make_detectors) -> list[str]:
    """What a watch would read, train and send, and how the first rows of a file are scored.

    A source that can be queried is queried once. Nothing is written, sent or taken from a broker.
    """
    source = make_source(config)
    lines = [f"reads   {config.source.kind}: {shown(config.source.settings)}"]
    lines += [f"        {line}" for line in source.check()]
    align = config.align
    step = "as they come" if align.step is None else f"every {duration_words(align.step)}"
    late = duration_words(align.lateness) if align.lateness else "no lateness"
    lines.append(f"rows    {step}; {late}; missing cells: {align.fill}")
    if config.model.learn is not None:
        span = duration_words(config.model.learn)
        lines.append(f"trains  a model for each entity on its first {span}, then alarms start")
    elif "{entity}" in str(config.model.file):
        lines.append(f"model   one each: {config.model.file}")
    else:
        assert config.model.file is not None
        model = make(config).load(config.model.file)
        channels = f"{len(model.channels)} channels: {listed(model.channels, 8)}"
        lines.append(f"model   {config.model.file}: {channels}")
    quiet = duration_words(config.alarms.resolve_after) if config.alarms.resolve_after else "0"
    lines.append(f"alarms  {config.budget.words}, for each entity; resolved after {quiet}")
    for part in config.sinks:
        lines.append(f"sends   {part.name}: {shown(part.settings) or 'standard output'}")
    if not config.sinks:
        lines.append("sends   nothing: there is no [[sink]]")
    lines += _first_rows(config, make, source)
    lines.append(f"state   {config.state.path}: {_state_words(config.state.path)}")
    lines.append(f"serves  {config.link or 'nothing: [server] has no address'}")
    return lines


def _first_rows(config: Config, make: MakeDetectors, source: Source[Any]) -> list[str]:
    """The first rows of a file through the real stream."""
    if config.model.learn is not None:
        return []
    if not source.rereadable:
        return [f"tries   nothing: {config.source.kind} gives its rows to a watch that runs only"]
    with _without_effects(config) as alone:
        watch = Watch(alone, make(alone), source.look_back(0, 0))
        watch.start()
        try:
            while watch.status.counts["rows"] < TRIED and watch.step() and not watch.source.problem:
                pass
        finally:
            watch.close()
    if watch.source.problem:
        return [f"tries   nothing: {watch.source.problem}"]
    counts, problem = watch.status.counts, watch.status.problems.get("score")
    found = f"{plural(counts['rows'], 'row')}: {counts['rows'] - counts['unscored']:,} with a score"
    words = ", ".join([found, *_unused(counts)])
    return [f"tries   {words}", *([f"        {problem}"] if problem else [])]


def _unused(counts: Counter[str]) -> list[str]:
    """Input that is in no row, in words."""
    return [
        f"{plural(counts[why], word)} {rest}"
        for why, (word, rest) in _UNUSED.items()
        if counts[why]
    ]


@contextmanager
def _without_effects(config: Config) -> Iterator[Config]:
    """The same watch with a temporary state, without sinks and server."""
    with tempfile.TemporaryDirectory() as folder:
        state = config.state.model_copy(update={"path": Path(folder) / "state"})
        server = config.server.model_copy(update={"address": None})
        still = config.retrain.model_copy(update={"every": None})  # models stay as they are
        yield replace(config, state=state, sinks=(), server=server, retrain=still)


def _state_words(path: Path) -> str:
    if not path.exists():
        return "new"
    with closing(Store(path)) as store:
        return (
            f"goes on with {plural(len(store.roster()), 'entity', 'entities')}, "
            f"{plural(store.n_open(), 'open alarm')}, "
            f"{plural(sum(store.waiting().values()), 'unsent message')}"
        )


def backtest(
    config: Config, span: int, make: MakeDetectors = make_detectors, now: int | None = None
) -> tuple[list[dict[str, Any]], Watch]:
    """The alarms of the last `span` nanoseconds, the oldest first.

    The clock follows the records, so that missing data is found as in live operation.
    """
    with _without_effects(config) as config:
        clock = SetClock()
        end = now or time.time_ns()
        past = make_source(config).look_back(end - span - (config.model.learn or 0), end)
        source = Replay(past, clock, config.alarms.silence_after)
        watch = Watch(config, make(config), source, clock)
        watch.run()
        _check_span(source, watch, span, config.model.learn or 0)
        with closing(Store(config.state.path)) as store:
            found = store.alarms(limit=100_000)
    recent = [alarm for alarm in found if read_time(alarm["onset"]) >= source.newest - span]
    return sorted(recent, key=lambda alarm: str(alarm["onset"])), watch


def _check_span(source: Replay, watch: Watch, span: int, learn: int) -> None:
    """Refuse to count alarms of a time span without records."""
    counts = watch.status.counts
    if source.first is None or not counts["rows"]:
        why = ", ".join(_unused(counts))
        raise InputError(
            "--backtest: the source has no rows, so there is nothing to count"
            + (f" (not used: {why})" if why else "; look at [source] with --dry-run")
        )
    there = source.newest - source.first
    if there < _WHOLE * (span + learn):
        needs = f" after {duration_words(learn)} of training" if learn else ""
        rest = there - learn
        advice = (
            f"ask for --backtest {rest // _MINUTE}min"
            if rest >= _MINUTE
            else "keep more history, or shorten the training"
        )
        raise InputError(
            f"--backtest asks for {duration_words(span)}{needs}, and the source has only "
            f"{duration_words(there)} ({iso(source.first)} to {iso(source.newest)}); {advice}"
        )
