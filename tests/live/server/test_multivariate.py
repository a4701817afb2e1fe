"""A client of Azure's multivariate detector, written from its REST reference, version 1.1."""

import json

import numpy as np
import polars as pl
import pytest

from live.feeds import config
from live.running import ask, running, until
from vace_ad.app.mvad import TrainRequest, read_source
from vace_ad.live.server.multivariate import Multivariate

N, TRAIN = 700, 600
START = np.datetime64("2021-01-01T00:00", "s")


def stamp(row):
    return f"{START + row * np.timedelta64(60, 's')}Z"


def sample():
    rng = np.random.default_rng(0)
    level = np.sin(np.arange(N) / 9)
    columns = {f"variable_{k}": level * (k + 1) + rng.normal(0, 0.1, N) for k in range(3)}
    columns["variable_1"][660:680] += 6
    return pl.DataFrame({"timestamp": [stamp(i) for i in range(N)], **columns})


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    frame = sample()
    frame.write_csv(folder / "sample.csv")
    (folder / "many").mkdir()
    for name in frame.columns[1:]:
        frame.select("timestamp", value=name).write_csv(folder / "many" / f"{name}.csv")
    return folder


class Client:
    """The operations of the service."""

    def __init__(self, endpoint, key):
        self._base = f"{endpoint}/anomalydetector/v1.1/multivariate"
        self._key = {"Ocp-Apim-Subscription-Key": key}

    def call(self, path, body=None, method=None):
        return ask(self._base + path, body, self._key, method)

    def train(self, **changes):
        body = {"dataSource": "https://account.blob.core.windows.net/container/sample.csv?sig=x",
                "dataSchema": "OneTable", "startTime": stamp(0), "endTime": stamp(TRAIN - 1),
                "displayName": "sample", "slidingWindow": 28,
                "alignPolicy": {"alignMode": "Outer", "fillNAMethod": "Linear",
                                "paddingValue": 0}}  # fmt: skip
        return self.call("/models", {**body, **changes})

    def trained(self, **changes):
        _, headers, model = self.train(**changes)
        assert headers["location"].endswith(f"/multivariate/models/{model['modelId']}")
        self.wait(lambda: self.call(f"/models/{model['modelId']}")[2]["modelInfo"]["status"])
        return self.call(f"/models/{model['modelId']}")[2]

    def wait(self, status):
        until(lambda: status() in ("READY", "FAILED"), seconds=120)


@pytest.fixture(scope="module")
def client(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("state")
    (folder / "feed.jsonl").touch()
    (folder / "token").write_text("the-key")
    server = {"address": "127.0.0.1:0", "multivariate": str(data),
              "token_file": str(folder / "token")}  # fmt: skip
    with running(config(folder, server=server)) as (_, url):
        yield Client(url, "the-key")


@pytest.fixture(scope="module")
def model(client):
    return client.trained()


def test_a_model_is_trained_and_described(client, model):
    info = model["modelInfo"]
    assert (info["status"], info["errors"]) == ("READY", [])
    assert info["displayName"] == "sample"
    assert info["alignPolicy"]["fillNAMethod"] == "Linear"
    states = info["diagnosticsInfo"]["variableStates"]
    assert [one["variable"] for one in states] == ["variable_0", "variable_1", "variable_2"]
    assert states[0]["effectiveCount"] == TRAIN
    assert states[0]["lastTimestamp"] == stamp(TRAIN - 1)
    _, _, listed = client.call("/models?skip=0&top=10")
    assert model["modelId"] in [one["modelId"] for one in listed["models"]]
    assert listed["currentCount"] <= listed["maxCount"]


def test_a_batch_names_the_fault_and_its_variable(client, model):
    body = {"dataSource": "sample.csv", "topContributorCount": 2, "startTime": stamp(TRAIN),
            "endTime": stamp(N)}  # fmt: skip
    status, headers, result = client.call(f"/models/{model['modelId']}:detect-batch", body)
    assert status == 202
    assert headers["operation-id"] == result["resultId"]
    assert headers["operation-location"].endswith(f"/detect-batch/{result['resultId']}")
    place = f"/detect-batch/{result['resultId']}"
    client.wait(lambda: client.call(place)[2]["summary"]["status"])
    _, _, result = client.call(place)
    assert result["summary"]["errors"] == []
    assert result["summary"]["setupInfo"]["topContributorCount"] == 2
    assert [one["timestamp"] for one in result["results"]] == [stamp(i) for i in range(TRAIN, N)]
    values = [one["value"] for one in result["results"]]
    flagged = [i for i, one in enumerate(values) if one["isAnomaly"]]
    assert set(flagged) & set(range(60, 80))
    assert all(0 <= one["severity"] <= 1 and 0 <= one["score"] <= 2 for one in values)
    first = values[flagged[0]]["interpretation"]
    assert first[0]["variable"] == "variable_1"
    assert len(first) <= 2
    assert 0 < first[0]["contributionScore"] <= 1
    assert "changedVariables" in first[0]["correlationChanges"]


def test_the_last_rows_are_judged_at_once(client, model):
    frame = sample()[600:670]
    variables = [{"name": name, "timestamps": frame["timestamp"].to_list(),
                  "values": frame[name].to_list()} for name in frame.columns[1:]]  # fmt: skip
    body = {"variables": variables, "topContributorCount": 10}
    status, _, answer = client.call(f"/models/{model['modelId']}:detect-last", body)
    assert status == 200
    assert [one["timestamp"] for one in answer["results"]] == [stamp(i) for i in range(628, 670)]
    assert answer["results"][-1]["value"]["isAnomaly"]
    assert answer["variableStates"][0]["effectiveCount"] == 70
    body["variables"][0]["values"] = [1.0]
    status, headers, answer = client.call(f"/models/{model['modelId']}:detect-last", body)
    assert status == 400
    assert headers["x-ms-error-code"] == answer["code"] == "InvalidParameter"
    assert "70 timestamps and 1 values" in answer["message"]


def test_a_folder_of_tables(data):
    body = {"dataSource": "x", "startTime": stamp(0), "endTime": stamp(1)}
    one = read_source(data / "sample.csv", TrainRequest.model_validate(body))
    many = TrainRequest.model_validate({**body, "dataSchema": "MultiTable"})
    assert read_source(data / "many", many).equals(one)


@pytest.mark.parametrize(
    ("policy", "filled"),
    [
        ({"fillNAMethod": "Previous"}, [1.0, 1.0, 3.0]),
        ({"fillNAMethod": "Subsequent"}, [1.0, 3.0, 3.0]),
        ({"fillNAMethod": "Zero"}, [1.0, 0.0, 3.0]),
        ({"fillNAMethod": "Fixed", "paddingValue": 7}, [1.0, 7.0, 3.0]),
        ({}, [1.0, None, 3.0]),
        ({"alignMode": "Inner"}, [1.0, 3.0]),
    ],
)
def test_variables_are_aligned_as_the_policy_says(tmp_path, policy, filled):
    time = pl.Series("timestamp", [stamp(i) for i in range(3)])
    pl.DataFrame([time, pl.Series("v", [1, 2, 3])]).write_csv(tmp_path / "a.csv")
    pl.DataFrame([time, pl.Series("v", [1, 2, 3])])[[0, 2]].write_csv(tmp_path / "b.csv")
    info = {"dataSource": "x", "dataSchema": "MultiTable", "startTime": stamp(0),
            "endTime": stamp(2), "alignPolicy": policy}  # fmt: skip
    assert read_source(tmp_path, TrainRequest.model_validate(info))["b"].to_list() == filled


def test_a_model_is_deleted(client):
    name = client.trained(endTime=stamp(9))["modelId"]
    assert client.call(f"/models/{name}", method="DELETE")[0] == 204
    status, _, answer = client.call(f"/models/{name}")
    assert (status, answer["code"]) == (404, "ModelNotExist")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dataSource": "../../etc/passwd"}, "not in the folder of data"),
        ({"dataSource": "nothing.csv"}, "not in the folder of data"),
        ({"startTime": "yesterday"}, "startTime"),
        ({"displayName": "x" * 25}, "displayName"),
        ({"slidingWindow": 2}, "slidingWindow"),
        ({"alignPolicy": {"fillNAMethod": "Magic"}}, "alignPolicy.fillNAMethod"),
    ],
)
def test_a_bad_request_says_why(client, changes, words):
    status, _, answer = client.train(**changes)
    assert (status, answer["code"]) == (400, "InvalidParameter")
    assert words in answer["message"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"startTime": "2030-01-01T00:00:00Z", "endTime": "2030-02-01T00:00:00Z"}, "has no row"),
        ({"endTime": "2020-01-01T00:00:00Z"}, "is before startTime"),
        ({"dataSchema": "MultiTable"}, "MultiTable and the data source a file"),
        ({"endTime": stamp(9)}, "rows"),
        ({"alignPolicy": {"fillNAMethod": "Fixed"}}, "without paddingValue"),
    ],
)
def test_a_training_that_fails_says_why(client, changes, words):
    info = client.trained(**changes)["modelInfo"]
    assert info["status"] == "FAILED"
    assert words in info["errors"][0]["message"]
    name = client.call("/models")[2]["models"][0]["modelId"]
    status, _, answer = client.call(f"/models/{name}:detect-last", {"variables": []})
    assert (status, answer["code"]) == (400, "ModelNotReady")


def test_a_key_is_needed(client):
    other = Client(client._base.partition("/anomalydetector")[0], "wrong")
    assert other.call("/models")[0] == 401


def test_what_a_stop_interrupted_has_failed(tmp_path):
    models = tmp_path / ".vace-models"
    models.mkdir()
    name = "45aad126-aafd-11ea-b8fb-d89ef3400c5f"
    known = {"modelId": name, "createdTime": "", "modelInfo": {"status": "RUNNING", "errors": []}}
    (models / f"{name}.json").write_text(json.dumps(known))
    Multivariate(tmp_path, 1000)
    info = json.loads((models / f"{name}.json").read_text())["modelInfo"]
    assert info["status"] == "FAILED"
    assert "train again" in info["errors"][0]["message"]
