"""What both pretrained systems owe to their folder of weights: strict names, shapes and files."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from random_weights import (
    DADA as DADA_CONFIG,
)
from random_weights import (
    SMALL_DADA,
    SMALL_TSPULSE,
    TSPULSE,
    dada_tensors,
    tspulse_tensors,
    write_folder,
)
from vace_ad.errors import ConfigError, ModelFileError
from vace_study.baselines import dada, resolve, tspulse
from vace_study.baselines.dada import DADA
from vace_study.baselines.tspulse import TSPulse

pytest.importorskip("torch")


class System(NamedTuple):
    """A system, small and as released."""

    method: str
    make: Any
    load: Any
    config: dict
    tensors: Any
    released: dict
    weights: int  # that were published
    origin: str  # what the message says to download
    variable: str
    bias: str  # a tensor of one dimension
    matrix: str


SYSTEMS = [
    System(
        "dada", DADA, dada.load, SMALL_DADA, dada_tensors, DADA_CONFIG, 1_844_714,
        "pytorch_model", "VACE_DADA_WEIGHTS", "model.input_embed.bias", "model.input_embed.weight",
    ),
    System(
        "tspulse", TSPulse, tspulse.load, SMALL_TSPULSE, tspulse_tensors, TSPULSE, 1_084_330,
        "granite-timeseries-tspulse-r1", "VACE_TSPULSE_WEIGHTS", "backbone.base_norm.bias",
        "backbone.time_encoding.patcher.weight",
    ),
]  # fmt: skip


@pytest.fixture(params=SYSTEMS, ids=lambda system: system.method)
def system(request):
    return request.param


@pytest.fixture
def tensors(system):
    return system.tensors(system.config)


@pytest.fixture
def folder(tmp_path, system, tensors):
    return write_folder(tmp_path / "weights", system.config, tensors)


def table(rows=150, channels=2):
    return np.random.default_rng(0).normal(size=(rows, channels)).cumsum(axis=0)


def test_the_released_sizes_have_the_published_number_of_weights(tmp_path, system):
    where = write_folder(tmp_path, system.released, system.tensors(system.released))
    module = system.load(str(where), "cpu")
    assert sum(each.numel() for each in module.parameters()) == system.weights


def test_without_a_folder_it_says_where_to_get_the_weights(system, monkeypatch):
    monkeypatch.delenv(system.variable, raising=False)
    with pytest.raises(ConfigError, match=f"{system.origin}.*{system.variable}"):
        system.make().fit(table())


def test_a_folder_that_does_not_exist(system, tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        system.make(weights=str(tmp_path / "nowhere")).fit(table())


def test_the_environment_names_the_folder(system, folder, monkeypatch):
    monkeypatch.setenv(system.variable, str(folder))
    by_environment = resolve(system.method).make(0)
    by_environment.fit(table())
    by_setting = system.make(weights=str(folder)).fit(table())
    np.testing.assert_array_equal(by_environment.score(table()), by_setting.score(table()))


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_a_missing_file(system, folder, file):
    (folder / file).unlink()
    with pytest.raises(ModelFileError, match=f"has no {file}"):
        system.load(str(folder), "cpu")


def test_a_missing_name(system, folder, tensors):
    del tensors[system.bias]
    write_folder(folder, system.config, tensors)
    with pytest.raises(ModelFileError, match=f"missing: {system.bias}"):
        system.load(str(folder), "cpu")


def test_extra_names_are_counted(system, folder, tensors):
    tensors |= {f"more.{i}": np.zeros(1, np.float32) for i in range(9)}
    write_folder(folder, system.config, tensors)
    with pytest.raises(ModelFileError, match=r"not known: more\.0.* and 5 more"):
        system.load(str(folder), "cpu")


def test_a_wrong_shape(system, folder, tensors):
    n_out, n_in = tensors[system.matrix].shape
    tensors[system.matrix] = np.zeros((n_in, n_out), np.float32)
    write_folder(folder, system.config, tensors)
    told = rf"{system.matrix} is \({n_in}, {n_out}\), expected \({n_out}, {n_in}\)"
    with pytest.raises(ModelFileError, match=told):
        system.load(str(folder), "cpu")


def test_a_truncated_file(system, folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ModelFileError, match="cannot be read"):
        system.load(str(folder), "cpu")


def test_which_weights_were_read_is_told(system, folder, tensors):
    before = system.make(weights=str(folder)).fit(table()).notes_
    tensors[system.bias][0] += 1
    write_folder(folder, system.config, tensors)
    after = system.make(weights=str(folder)).fit(table()).notes_
    assert before[0].startswith("weights ")
    assert after != before
