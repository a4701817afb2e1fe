import asyncio
import json
import sys

import numpy as np
import polars as pl
import pytest

from live import real
from live.feeds import config, feed, write
from vace_ad import VACE
from vace_ad.assistant import AssistantTools, server
from vace_ad.errors import ConfigError, InputError
from vace_ad.live.runner import Watch


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with a fault in `b`, a model, and a file outside."""
    place = tmp_path_factory.mktemp("plant")
    (place / "data").mkdir()
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1200, 3))
    rows[1000:1015, 1] += 15
    times = pl.datetime_range(
        pl.datetime(2026, 1, 5), pl.datetime(2026, 1, 5, 3, 19, 50), "10s", eager=True
    )
    frame = pl.DataFrame({"time": times, **dict(zip("abc", rows.T, strict=True))})
    frame.write_csv(place / "data" / "plant.csv")
    VACE(patch_length=16, encoders=1).fit(frame[:900]).save(place / "data" / "plant.vace")
    (place / "secret.csv").write_text("time,a\n1,2\n")
    (place / "data" / "link.csv").symlink_to(place / "secret.csv")
    return place


@pytest.fixture
def tools(folder):
    return AssistantTools([folder / "data"])


def test_files_are_those_of_the_folder_and_links_lead_nowhere(tools):
    assert {one["name"] for one in tools.list_files()["files"]} == {"plant.csv", "plant.vace"}
    for name in ("../secret.csv", "link.csv", "/etc/passwd", "a/../../secret.csv"):
        with pytest.raises(InputError, match="not in the folders"):
            tools.detect(name)
    with pytest.raises(InputError, match="is not a file"):
        tools.detect("nope.csv")
    with pytest.raises(ConfigError, match="is not a folder"):
        AssistantTools([tools._folders[0] / "nope"])
    with pytest.raises(ConfigError, match="no folder"):
        AssistantTools([])


def test_detect_with_and_without_a_model(tools):
    found = tools.detect("plant.csv", model="plant.vace", budget="1 per week")
    hit = [one for one in found["events"] if one["start"] < 1015 and one["end"] > 1000]
    assert hit[0]["severity"] == max(one["severity"] for one in found["events"])
    assert max(hit[0]["shares"], key=hit[0]["shares"].get) == "b"
    learned = tools.detect("plant.csv", train_share=0.7)
    assert learned["trained_on_rows"] == 840
    assert any(one["start"] < 1015 and one["end"] > 1000 for one in learned["events"])


def test_explain_says_what_should_have_been(tools):
    found = tools.explain("plant.csv", "plant.vace", 1000, 1015)
    first = found["suspects"][0]
    assert first["channel"] == "b"
    assert first["mean"] > first["upper"] > first["expected"] > first["lower"]
    with pytest.raises(InputError, match="has rows 0 to 1200"):
        tools.explain("plant.csv", "plant.vace", 10, 5000)


def test_a_model_is_described_and_a_new_one_replaces_nothing(tools):
    assert tools.describe_model("plant.vace")["channels"] == ["a", "b", "c"]
    with pytest.raises(InputError, match="nothing is replaced"):
        tools.fit("plant.csv", "plant.vace")
    with pytest.raises(InputError, match="not in the folders"):
        tools.fit("plant.csv", "../other.vace")


def test_what_happened_reads_a_watch_and_changes_nothing(folder, tmp_path):
    from datetime import UTC, datetime

    from live.fakes import FakeCore
    from live.feeds import START

    write(tmp_path, feed(n_rows=200, faults=((100, 106, 1),), entities=("pump",)))
    Watch(
        config(tmp_path, source={"kind": "jsonl", "path": str(tmp_path / "feed.jsonl"),
                                 "follow": False}), FakeCore(),
    ).run()  # fmt: skip
    state = tmp_path / "watch.state"
    before = state.read_bytes()
    tools = AssistantTools([folder / "data"], [state])
    age = (datetime.now(UTC).timestamp() - START / 1e9) / 3600 + 1
    found = tools.what_happened(hours=min(age, 8784))
    assert [one["entity"] for one in found["alarms"]] == ["pump"]
    assert "level" in found["alarms"][0]["summary"]
    assert tools.what_happened(hours=min(age, 8784), entity="other")["alarms"] == []
    assert tools.what_happened(hours=0.001)["alarms"] == []
    assert state.read_bytes() == before
    with pytest.raises(InputError, match="no watch was named"):
        AssistantTools([folder / "data"]).what_happened()


def test_a_client_sees_reading_tools_alone_and_errors_in_words(folder):
    mcp = pytest.importorskip("mcp", reason="pip install 'vace-ad[mcp]'")
    parameters = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "vace_ad.cli.main", "mcp", "--allow", str(folder / "data")],
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    parameters.args[:2] = ["-c", "from vace_ad.cli.main import main; main()"]

    async def talk():
        async with mcp.Client(parameters) as client:
            tools = (await client.list_tools()).tools
            good = await client.call_tool("describe_model", {"model": "plant.vace"})
            bad = await client.call_tool("detect", {"table": "../secret.csv"})
            return tools, good, bad

    tools, good, bad = asyncio.run(asyncio.wait_for(talk(), 120))
    assert {tool.name for tool in tools} == {
        "list_files", "detect", "explain", "describe_model", "what_happened",
    }  # fmt: skip
    assert all(tool.description for tool in tools)
    assert json.loads(good.content[0].text)["channels"] == ["a", "b", "c"]
    assert "not in the folders" in bad.content[0].text


def test_writing_is_asked_for():
    pytest.importorskip("mcp", reason="pip install 'vace-ad[mcp]'")
    tools = AssistantTools([real.__file__ and __import__("pathlib").Path(real.__file__).parent])

    async def names(**how):
        return {tool.name for tool in await server(tools, **how).list_tools()}

    assert asyncio.run(names(write=True)) - asyncio.run(names()) == {"fit"}
