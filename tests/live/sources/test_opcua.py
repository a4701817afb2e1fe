import asyncio
import math
import threading
import time

import pytest

from live.running import until
from live.servers import free_port
from vace_ad.errors import ConfigError
from vace_ad.live.settings import read_settings


@pytest.fixture(autouse=True, scope="module")
def installed():
    """Imported by the worker that runs these tests, and not by all when they collect."""
    pytest.importorskip("asyncua", reason="pip install 'vace-ad[opcua]'")


class Plant:
    """A real server with two pumps, in a thread of its own."""

    def __init__(self, port):
        self.url = f"opc.tcp://127.0.0.1:{port}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.do(self._start())

    def do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(120)

    async def _start(self):
        from asyncua import Server, ua

        self.server = Server()
        await self.server.init()
        self.server.set_endpoint(self.url)
        self.server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
        space = await self.server.register_namespace("urn:plant")
        folder = await self.server.nodes.objects.add_folder(f"ns={space};s=Plant", "Plant")
        self.nodes = {}
        for pump in ("p1", "p2"):
            thing = await folder.add_object(f"ns={space};s={pump}", pump)
            for channel in ("flow", "level"):
                name = f"{pump}.{channel}"
                node = await thing.add_variable(f"ns={space};s={name}", channel, 1.0)
                self.nodes[name] = node
            await thing.add_variable(f"ns={space};s={pump}.text", "text", "idle")
        await self.server.start()

    def write(self, name, value, status="Good"):
        from asyncua import ua

        code = getattr(ua.StatusCodes, status)
        data = ua.DataValue(ua.Variant(value, ua.VariantType.Double), ua.StatusCode(code))
        self.do(self.nodes[name].write_value(data))

    def stop(self):
        self.do(self.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


def make(url, **more):
    from vace_ad.live.sources.opcua import OpcUaSource

    given = {"url": url, "folder": "ns=2;s=Plant", "interval": "50ms", **more}
    given = {key: value for key, value in given.items() if value is not None}
    return OpcUaSource(read_settings(OpcUaSource.SETTINGS, given, "source"))


def drained(source, condition, seconds=20):
    """Records until they satisfy a condition."""
    records = []

    def enough():
        batch = source.read(0.05)
        records.extend(batch.records if batch else [])
        return condition(records)

    until(enough, seconds)
    return records


@pytest.fixture(scope="module")
def plant():
    one = Plant(free_port())
    yield one
    one.stop()


def test_a_real_server(plant):
    source = make(plant.url, repeat="1h")
    source.open(None)
    try:
        first = drained(source, lambda got: len(got) >= 4)
        assert {(one.entity, *one.values) for one in first} == {
            (pump, channel) for pump in ("p1", "p2") for channel in ("flow", "level")
        }
        assert source.problem is None
        plant.write("p1.flow", 7.5)
        (change,) = drained(source, lambda got: got)
        assert (change.entity, change.values) == ("p1", {"flow": 7.5})
        assert abs(change.time - time.time_ns()) < 60 * 10**9
        plant.write("p1.flow", 8.5, "BadSensorFailure")
        (bad,) = drained(source, lambda got: got)
        assert math.isnan(bad.values["flow"])
    finally:
        source.close()


def test_changes_within_the_deadband_are_not_sent_and_values_are_repeated(plant):
    nodes = {"pump/flow": plant.nodes["p2.flow"].nodeid.to_string()}
    source = make(plant.url, folder=None, nodes=nodes, deadband=0.5, repeat="500ms")
    source.open(None)
    try:
        drained(source, lambda got: got)
        plant.write("p2.flow", 1.25)
        again = drained(source, lambda got: len(got) >= 2)
        assert [one.values for one in again] == [{"flow": 1.0}] * len(again)
        plant.write("p2.flow", 3.0)
        drained(source, lambda got: got and got[-1].values == {"flow": 3.0})
    finally:
        source.close()


def test_a_server_that_goes_is_said_and_waited_for():
    port = free_port()
    source = make(f"opc.tcp://127.0.0.1:{port}", repeat="200ms")
    source.open(None)
    try:
        until(lambda: "next try in" in source.problem)
        first = Plant(port)
        drained(source, lambda got: len(got) >= 4, 40)
        until(lambda: source.problem is None)
        first.stop()
        until(lambda: source.problem is not None, 30)
        second = Plant(port)
        second.write("p2.level", 42.0)
        drained(source, lambda got: any(one.values.get("level") == 42.0 for one in got), 40)
        second.stop()
    finally:
        source.close()


def test_the_password_is_not_shown(monkeypatch):
    monkeypatch.setenv("OPCUA_PASSWORD", "sesame")
    source = make("opc.tcp://127.0.0.1:1", username="w", password_env="OPCUA_PASSWORD")
    source.open(None)
    until(lambda: "next try" in source.problem)
    source.close()
    assert "sesame" not in source.problem + repr(source.settings)


def test_one_of_folder_and_nodes():
    with pytest.raises(ConfigError, match="one of folder"):
        make("opc.tcp://127.0.0.1:1", nodes={"a/b": "i=1"})
