"""Scores, expected values, bands and alarm states written back to Prometheus as series."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from math import isfinite

from vace_ad.alarms.events import ANOMALY
from vace_ad.live import remote_write_codec
from vace_ad.live.http_client import HttpSettings
from vace_ad.live.settings import HttpUrl, Table, Text, key
from vace_ad.live.sinks import Body, HttpSink, RowSink, Scored, SinkRefusedError

_TOGETHER = 2_000  # samples of one request, as Prometheus itself sends them
_HALVINGS = 8  # of a request that was refused: an older sample refuses all that come with it
Labels = tuple[tuple[str, str], ...]
Sample = tuple[Labels, int, float]  # labels, milliseconds, value


class RemoteWriteSettings(HttpSettings):
    """Keys of the sink."""

    url: HttpUrl = key(..., "the server", '"http://127.0.0.1:9090"')
    path: Text = key("/api/v1/write", "path at which the server takes remote write")
    entity: Text = key("entity", "the label that names the entity")
    channels: bool = key(True, "whether values and bands of channels are written")
    labels: Table | None = key(None, "labels added to each series", '{ site = "north" }')
    pending: int = key(
        500_000,
        "most samples kept while the server is down; the oldest are dropped",
        low=1,
        high=10**8,
    )


class RemoteWriteSink(HttpSink[RemoteWriteSettings], RowSink[RemoteWriteSettings]):
    """`vace_score`, `vace_value`, `vace_expected`, `vace_lower`, `vace_upper`, `vace_alarm_state`.

    Each has the label of the entity, and those of channels `channel`; `vace_alarm_state` has
    `kind` and is 1 while an alarm of this kind is open, else 0.
    """

    SETTINGS = RemoteWriteSettings
    repeat = 60 * 10**9  # a series that is not written for 5 minutes ends
    repeat_acknowledged = True

    def __init__(self, settings: RemoteWriteSettings) -> None:
        super().__init__(settings)
        remote_write_codec.check_installed()
        self._samples: deque[Sample] = deque(maxlen=settings.pending)
        self._lock = threading.Lock()
        self.bands = settings.channels

    def rows(self, scored: Scored) -> None:
        """Keep samples of scored rows until the next flush; what is not finite is left out."""
        own, found = {self.settings.entity: scored.entity}, []
        times = [at // 10**6 for at in scored.times]
        state = [float(one) for one in scored.alarming]
        found += self._column("vace_score", own, times, scored.scores)
        found += self._column("vace_alarm_state", {**own, "kind": ANOMALY}, times, state)
        series = {
            "vace_value": scored.values, "vace_expected": scored.expected,
            "vace_lower": scored.lower, "vace_upper": scored.upper,
        }  # fmt: skip
        for name, cells in series.items():
            if cells is None or not self.bands:
                continue
            for i, channel in enumerate(scored.channels):
                labels = {**own, "channel": channel}
                found += self._column(name, labels, times, cells[:, i].tolist())
        with self._lock:
            self._samples.extend(found)

    def _column(
        self, name: str, more: Mapping[str, str], times: Sequence[int], values: Sequence[float]
    ) -> list[Sample]:
        labels = tuple({**(self.settings.labels or {}), "__name__": name, **more}.items())
        return [
            (labels, at, value) for at, value in zip(times, values, strict=True) if isfinite(value)
        ]

    def send(self, messages: Sequence[Body]) -> None:
        """Write the states of alarms that no row tells of: silence, and rows without a score."""
        now = time.time_ns() // 10**6
        newest = {message["alarm"]: message for message in messages if message["kind"] != ANOMALY}
        samples = []
        for message in newest.values():
            own = {self.settings.entity: message["entity"] or "source", "kind": message["kind"]}
            if message["channel"]:
                own["channel"] = message["channel"]
            state = float(message["what"] != "resolve")
            samples += self._column("vace_alarm_state", own, [now], [state])
        if samples:
            self._post(samples)

    def flush(self) -> bool:
        """Write the samples that wait, the oldest first; those refused for good are dropped."""
        sent = False
        while True:
            with self._lock:
                some = [self._samples.popleft() for _ in range(min(_TOGETHER, len(self._samples)))]
            if not some:
                return sent
            try:
                self._write_halves(some, _HALVINGS)
            except SinkRefusedError:
                raise
            except BaseException:
                with self._lock:  # the newest stay where there is no room for all
                    room = self.settings.pending - len(self._samples)
                    self._samples.extendleft(reversed(some[len(some) - min(room, len(some)) :]))
                raise
            sent = True

    def _write_halves(self, samples: list[Sample], halvings: int) -> None:
        """Write samples; of refused ones, the half that is good."""
        try:
            self._post(samples)
        except SinkRefusedError as error:
            times = sorted({at for _, at, _ in samples})
            if " answered 400" not in str(error) or not halvings:
                raise
            if len(times) == 1:
                return  # older than what the server has, as after a restart
            middle = times[len(times) // 2]
            self._write_halves([one for one in samples if one[1] < middle], halvings - 1)
            self._write_halves([one for one in samples if one[1] >= middle], halvings - 1)

    def _post(self, samples: Sequence[Sample]) -> None:
        series: dict[Labels, list[tuple[int, float]]] = {}
        for labels, at, value in samples:
            series.setdefault(labels, []).append((at, value))
        pairs = ((dict(labels), sorted(points)) for labels, points in series.items())
        self.post(remote_write_codec.encode(pairs), remote_write_codec.HEADERS, self.settings.path)
