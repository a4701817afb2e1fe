"""The model of an entity: one for all, a file for each, or one trained on its rows.

Models that are trained here can be retrained on a schedule, on the recent rows of their entity.
"""

from __future__ import annotations

import logging
import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from vace_ad.alarms.events import ANOMALY
from vace_ad.errors import ConfigError, StateError
from vace_ad.frames.sampling import TOLERANCE
from vace_ad.frames.time import duration_words
from vace_ad.live.alarms import identity
from vace_ad.live.config import Config
from vace_ad.live.database import Pending
from vace_ad.live.detector import Detectors, LiveModel, Rows, Times, journal_matrix
from vace_ad.live.entity import WATCHING, Entity
from vace_ad.live.store import Store

log = logging.getLogger("vace_ad.live")
Trained = tuple[LiveModel | None, str]  # a model, None for the present one; and words on it
T = TypeVar("T")
_PLAIN = re.compile(r"[\w-][\w.-]*")


class Worker:
    """Runs jobs one after the other, in a thread of its own.

    It is a daemon: a fit of minutes must not hold up the end of the process.
    """

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def submit(self, job: Callable[[], T]) -> Future[T]:
        """Queue a job; the future has what it returns or raises."""
        done: Future[T] = Future()
        self._jobs.put((done, job))
        return done

    def _run(self) -> None:
        while True:
            self._next()

    def _next(self) -> None:
        done, job = self._jobs.get()
        try:
            done.set_result(job())
        except Exception as error:  # of any library: it must not end the thread
            done.set_exception(error)


class EntityModels:
    """The models of all entities, loaded once, and the fits that are under way."""

    def __init__(self, config: Config, detectors: Detectors) -> None:
        self._detectors, self._state, self._retrain = detectors, config.state.path, config.retrain
        self._file: Path | None = config.model.file
        self._cache: dict[Path, LiveModel] = {}
        self._fits: dict[str, Future[Trained]] = {}
        self._worker: Worker | None = None
        self.shared = self._file is not None and "{entity}" not in str(self._file)
        self.any()  # a wrong file stops the start, not the first row

    def of(self, name: str) -> LiveModel | None:
        """The model of an entity; None where there is none (yet)."""
        path = self._path(name)
        return None if path is None or not path.exists() else self._load(path)

    def any(self) -> LiveModel | None:
        """The shared model, if that is what there is."""
        return self._load(self._file) if self.shared and self._file is not None else None

    def _trained(self, name: str) -> Path:
        """The file of a model that is trained here."""
        return self._state.with_name(self._state.name + ".models") / f"{identity(name)}.vace"

    def _path(self, name: str) -> Path | None:
        if self._file is None:
            return self._trained(name)
        if self.shared:
            return self._file
        if not _PLAIN.fullmatch(name):
            return None  # a name from the network must not choose a folder
        return Path(str(self._file).replace("{entity}", name))

    def _load(self, path: Path) -> LiveModel:
        if path not in self._cache:
            self._cache[path] = self._detectors.load(path)
        return self._cache[path]

    def release(self, name: str) -> None:
        """Unload the model of an entity that was moved to disk."""
        path = self._path(name)
        if path is not None and not self.shared:
            self._cache.pop(path, None)

    def set_aside(self, name: str) -> None:
        """Rename the trained model of an entity: it cannot be read."""
        path = self._trained(name)
        if path.exists():
            path.replace(path.with_suffix(".damaged"))

    def forget(self, name: str) -> None:
        """Delete the trained model of an entity; a file named in the configuration stays."""
        self.release(name)
        self._fits.pop(name, None)
        self._trained(name).unlink(missing_ok=True)

    def fit(self, entity: Entity, store: Store) -> None:
        """Start to train in the background, once."""
        if entity.name in self._fits:
            return
        journal = store.journal(entity.name, 0, entity.learned)
        rows, time = journal_matrix(journal, len(entity.channels))
        path, channels = self._trained(entity.name), tuple(entity.channels)
        log.info("%s: training on %d rows of %d channels", entity.name, len(rows), len(channels))
        self._start(entity.name, lambda: (self._detectors.fit(rows, channels, time, path), ""))

    def retrain(self, entities: Iterable[Entity], store: Store, write: Callable[[], None]) -> None:
        """Start the trainings that are due; `write` brings all rows into the store first."""
        every = self._retrain.every
        if every is None:
            return
        watching = (one for one in entities if one.phase == WATCHING)
        due = [one for one in watching if one.seen - one.trained >= every]
        if due:
            write()
        for entity in due:
            self._train_newer(entity, store)

    def _train_newer(self, entity: Entity, store: Store) -> None:
        """Start to train a newer model in the background, on the last rows of an entity."""
        path, model = self._path(entity.name), entity.model
        if entity.name in self._fits or path is None or model is None:
            return
        entity.trained = entity.seen
        rows, time, *known = recent_rows(entity, store, self._retrain.kept)
        log.info("%s: training a newer model on %d rows", ascii(entity.name), len(rows))
        self._start(entity.name, lambda: self._detectors.retrain(model, rows, time, path, *known))

    def _start(self, name: str, make: Callable[[], Trained]) -> None:
        self._worker = self._worker or Worker("fit")
        self._fits[name] = self._worker.submit(make)

    def done(self) -> Iterator[tuple[str, LiveModel | Exception | None, str]]:
        """The fits that have finished since the last call; None: the present model stays."""
        for name in [name for name, fit in self._fits.items() if fit.done()]:
            try:
                model, words = self._fits.pop(name).result()
            except Exception as error:
                yield name, error, ""
                continue
            path = self._path(name)
            assert path is not None
            if model is not None:
                self._cache[path] = model
            yield name, model, words


class Retraining(NamedTuple):
    """Rows to train and evaluate a newer model on; spans are (start, end) in nanoseconds."""

    rows: Rows
    time: Times
    faults: list[tuple[int, int]]  # confirmed by a person
    doubtful: list[tuple[int, int]]  # alarms without a verdict: left out of training


def recent_rows(entity: Entity, store: Store, kept: int) -> Retraining:
    """The rows of the last `kept` nanoseconds, and the alarms in them."""
    since = entity.seen - kept
    rows = [row for row in store.journal(entity.name) if row[1] >= since]
    found = Retraining(*journal_matrix(rows, len(entity.channels)), [], [])
    for start, resolved, fault in store.stretches(entity.name, ANOMALY):
        end = entity.seen if resolved is None else resolved
        if end >= since:
            (found.faults if fault else found.doubtful).append((start, end))
    return found


def check_model(model: LiveModel | None, config: Config, store: Store) -> None:
    """Refuse another step than the model's, and a state of another model; None: no shared one."""
    if model is None:
        return
    step, wanted = model.step, config.align.step
    if step and wanted and abs(step - wanted) > TOLERANCE * step:
        raise ConfigError(
            f"the model was fitted on rows every {duration_words(step)}, and align.step is "
            f"{duration_words(wanted)}: no row would have a score; make them the same"
        )
    before = store.meta("model")
    if before is not None and before != model.identity:
        raise StateError(
            f"{store.path} belongs to another model ({before}) than "
            f"{config.model.file} ({model.identity}); take that model back, or start "
            "with another [state] path"
        )
    if before is None:
        store.commit(Pending(meta={"model": model.identity}))
