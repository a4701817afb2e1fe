"""Prometheus's remote write, version 1: its messages, and the snappy around them.

The messages are those of Prometheus's `prompb/remote.proto` and `types.proto`, as far as they are
used here; fields that are left out are skipped by the reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from vace_ad.errors import needs
from vace_ad.live.protobuf import Messages, message_class
from vace_ad.live.records import BadRecordError

HEADERS = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
_MESSAGES: Messages = {
    "Label": {"name": (1, "STRING"), "value": (2, "STRING")},
    "Sample": {"value": (1, "DOUBLE"), "timestamp": (2, "INT64")},
    "TimeSeries": {"labels": (1, "Label"), "samples": (2, "Sample")},
    "Metadata": {"type": (1, "INT32"), "metric_family_name": (2, "STRING")},
    "WriteRequest": {"timeseries": (1, "TimeSeries"), "metadata": (3, "Metadata")},
}
_COUNTER_TYPE = 1  # of a metric's metadata
_LARGEST = 64 << 20  # bytes that a request may become


class Written(NamedTuple):
    """What a request brought."""

    # labels as pairs; samples as (milliseconds, value)
    series: list[tuple[tuple[tuple[str, str], ...], list[tuple[int, float]]]]
    types: dict[str, bool]  # by metric: whether its metadata call it a counter


@cache
def _request() -> Any:
    """The class of a request."""
    return message_class(_MESSAGES, "proto3", "prometheus", "remote write")


def _snappy() -> Any:
    with needs("cramjam", "prometheus", "remote write"):
        from cramjam import snappy
    return snappy


def check_installed() -> None:
    """Raise MissingExtraError now, not at the first request."""
    _request()
    _snappy()


def decode(body: bytes) -> Written:
    """The series of a request; a body that is none is a BadRecordError."""
    try:
        size = _snappy().decompress_raw_len(body)
        if size > _LARGEST:
            raise BadRecordError(f"the request is {size:,} bytes unpacked, more than {_LARGEST:,}")
        plain = bytes(_snappy().decompress_raw(body))
        request = _request().FromString(plain)
    except BadRecordError:
        raise
    except Exception as error:  # cramjam and protobuf raise their own kinds
        raise BadRecordError(f"not a remote write request in snappy: {error}") from None
    return Written(
        [
            (
                tuple((label.name, label.value) for label in series.labels),
                [(sample.timestamp, sample.value) for sample in series.samples],
            )
            for series in request.timeseries
        ],
        {one.metric_family_name: one.type == _COUNTER_TYPE for one in request.metadata},
    )


def encode(series: Iterable[tuple[Mapping[str, str], Iterable[tuple[int, float]]]]) -> bytes:
    """A request of series: labels, and samples as (milliseconds, value)."""
    request = _request()()
    for labels, samples in series:
        one = request.timeseries.add()
        for name, value in sorted(labels.items()):  # Prometheus wants them in this order
            one.labels.add(name=name, value=value)
        for time, number in samples:
            one.samples.add(timestamp=time, value=number)
    return bytes(_snappy().compress_raw(request.SerializeToString()))
