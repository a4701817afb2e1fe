"""OPC UA: values by subscription, with deadband; bad quality is a missing cell."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from math import nan
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator

from vace_ad.errors import ConfigError, needs
from vace_ad.live.records import BadRecordError, Record, nanoseconds, read_name, read_number
from vace_ad.live.settings import Duration, FilePath, Table, Text, UserSettings, host_of, key, url
from vace_ad.live.sources import Backoff, Batch, Source

_MOST = 100_000  # readings that wait; the server's queue holds the rest
_BATCH = 10_000
_SECONDS = 30.0  # for a request: a server of many variables, or a busy one, takes long to answer
_CLOSE_SECONDS = 4.0  # seconds


def _deadband(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise ValueError("a number that is not negative, in the units of the value")
    return float(value)


Deadband = Annotated[float, BeforeValidator(_deadband)]
OpcUaUrl = Annotated[str, url("opc.tcp")]


class OpcUaSettings(UserSettings):
    """Keys of the source."""

    url: OpcUaUrl = key(..., "the server", '"opc.tcp://127.0.0.1:4840"')
    folder: Text | None = key(
        None, "a node: its objects are entities, their variables channels", '"ns=2;s=Plant"'
    )
    nodes: Table | None = key(
        None, "or single nodes: node id by entity/channel", '{ "pump/flow" = "ns=2;s=Pump.Flow" }'
    )
    interval: Duration = key("1s", "time between samples, which the server also publishes")
    deadband: Deadband = key(0.0, "smaller changes are not sent, in the units of the value")
    repeat: Duration = key("10s", "time after which values that do not change are used again")
    security: Text | None = key(None, "security policy and mode", '"Basic256Sha256,SignAndEncrypt"')
    cert_file: FilePath | None = key(None, "with security: client certificate", '"watch.der"')
    key_file: FilePath | None = key(None, "with security: its key", '"watch.pem"')


class OpcUaSource(Source[OpcUaSettings]):
    """Variables of a server, each a channel of an entity."""

    SETTINGS = OpcUaSettings
    needs_step = True
    TEMPLATE: ClassVar[Any] = {
        "source": {"url": '"opc.tcp://127.0.0.1:4840"', "folder": '"ns=2;s=Plant"'},
        "align": {"step": '"10s"', "lateness": '"2s"', "fill": '"hold"'},
        "model": {"learn": '"14d"'},
    }

    def __init__(self, settings: OpcUaSettings) -> None:
        super().__init__(settings)
        with needs("asyncua", "opcua", "OPC UA"):
            import asyncua  # noqa: F401
        if (settings.folder is None) == (settings.nodes is None):
            raise ConfigError('[source] needs one of folder = "ns=2;s=Plant" and [source.nodes]')
        logging.getLogger("asyncua").setLevel(logging.ERROR)  # `problem` says it in our words
        self._inbox: queue.Queue[Record] = queue.Queue(_MOST)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._count, self._ended = 0, ""
        self._lost = 0  # readings for which there was no room, since the last batch
        self._places: dict[Any, tuple[str, str]] = {}  # by node: entity, channel
        self._last: dict[Any, tuple[str, str, float]] = {}  # the same with the last value
        self.problem = "not connected yet"

    def open(self, position: Any) -> None:
        """Connect; a subscription begins with the values of now."""
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._connect_again()), name="opcua", daemon=True
        )
        self._thread.start()

    # ----------------------------------------------------------- the client's thread

    async def _connect_again(self) -> None:
        backoff = Backoff(first=0.5)
        while not self._stop.is_set():
            try:
                await self._session(backoff)
            except (Exception, asyncio.CancelledError) as error:  # of sockets and of asyncua
                words = str(error) or type(error).__name__
                wait = backoff.failed(time.monotonic())
                where = host_of(self.settings.url)
                self.problem = f"{where} {words}; next try in {wait:.1f} s"
                await asyncio.to_thread(self._stop.wait, wait)

    async def _session(self, backoff: Backoff) -> None:
        """One connection, from its start to its loss."""
        client, self._ended = await self._client(), ""
        try:
            async with client:
                await self._subscribed(client, backoff)
        finally:
            client.disconnect_socket()  # also when the server vanishes during the disconnect
            await asyncio.sleep(0)

    async def _subscribed(self, client: Any, backoff: Backoff) -> None:
        """Values of one connection, until it ends."""
        self._places = await self._find_places(client)
        if not self._places:
            raise BadRecordError("has no variable where source.folder or nodes point to")
        settings = self.settings
        interval = settings.interval / 1e6
        subscription = await client.create_subscription(interval, self)
        nodes = [client.get_node(node) for node in self._places]
        if settings.deadband:
            for node in nodes:  # 1: absolute, in the units of the value
                await subscription.deadband_monitor(node, settings.deadband, 1, 10)
        else:
            await subscription.subscribe_data_change(nodes, queuesize=10)
        backoff.worked()
        self.problem = None
        again = time.monotonic() + settings.repeat / 1e9
        while not self._stop.is_set():
            await asyncio.sleep(0.05)
            if self._ended:
                raise ConnectionError(self._ended)
            if time.monotonic() >= again:
                await client.check_connection()  # raises what the connection died of
                self._repeat(time.time_ns())
                again += settings.repeat / 1e9

    async def _client(self) -> Any:
        from asyncua import Client

        settings = self.settings
        client = Client(settings.url, timeout=_SECONDS)
        if settings.username:
            client.set_user(settings.username)
            client.set_password(settings.secret("password") or "")
        if settings.security:
            files = f"{settings.cert_file},{settings.key_file}"
            await client.set_security_string(f"{settings.security},{files}")
        return client

    async def _find_places(self, client: Any) -> dict[Any, tuple[str, str]]:
        """Entity and channel of every node that is watched."""
        if self.settings.nodes is not None:
            found = {}
            for name, node in self.settings.nodes.items():
                entity, _, channel = name.rpartition("/")
                if not entity:
                    raise BadRecordError(f"source.nodes: {name!r} must be entity/channel")
                found[client.get_node(node).nodeid] = entity, channel
            return found
        return await self._browsed(client.get_node(self.settings.folder))

    async def _browsed(self, folder: Any) -> dict[Any, tuple[str, str]]:
        from asyncua import ua

        found = {}
        for thing in await folder.get_children(nodeclassmask=ua.NodeClass.Object):
            entity = (await thing.read_browse_name()).Name
            for variable in await thing.get_variables():
                channel = (await variable.read_browse_name()).Name
                try:
                    place = read_name(entity, "an entity"), read_name(channel, "a channel")
                except BadRecordError as error:
                    self.notes.append(f"a variable is left out: {error}")
                    continue
                found[variable.nodeid] = place
        return found

    def datachange_notification(self, node: Any, _value: Any, notified: Any) -> None:
        """A value came, with its quality and its time; called by asyncua."""
        node, data = node.nodeid, notified.monitored_item.Value
        place = self._places.get(node)
        if place is None:
            return
        good = data.StatusCode is None or data.StatusCode.is_good()
        value = nan
        if good:
            try:
                value = read_number(data.Value.Value)
            except BadRecordError:
                self._last.pop(node, None)
                return  # text and structures are not channels
        self._last[node] = (*place, value)
        moment = data.SourceTimestamp or data.ServerTimestamp
        self._put(*place, time.time_ns() if moment is None else nanoseconds(moment), value)

    def status_change_notification(self, status: Any) -> None:
        """The subscription ended: connect again; called by asyncua."""
        self._ended = f"ended the subscription: {getattr(status, 'Status', status)}"

    def _repeat(self, now: int) -> None:
        """Repeat the last values: a live subscription without notifications means no change."""
        for entity, channel, value in list(self._last.values()):
            self._put(entity, channel, now, value)

    def _put(self, entity: str, channel: str, at: int, value: float) -> None:
        try:
            self._inbox.put_nowait(Record(entity, at, {channel: value}))
        except queue.Full:
            self._lost += 1

    # ------------------------------------------------------------- the watch's thread

    def read(self, timeout: float) -> Batch | None:
        """The values that came."""
        records: list[Record] = []
        try:
            records.append(self._inbox.get(timeout=timeout))
            while len(records) < _BATCH:
                records.append(self._inbox.get_nowait())
        except queue.Empty:
            pass
        self._count += len(records)
        lost, self._lost = self._lost, 0
        why = (
            f"{_MOST:,} readings waited, so {lost:,} were lost: the watch is too slow; take a "
            "longer source.interval, or a deadband"
        )
        return Batch(records, self._count, lost, why if lost else "") if records else None

    def close(self) -> None:
        """Disconnect."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)
