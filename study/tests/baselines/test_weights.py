"""Folders of weights: what is missing, broken or of another shape is told by name."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from vace_ad.errors import ConfigError, ModelFileError
from vace_study.baselines.weights import Source, check_tensors, number, read_tensors

SOURCE = Source("Demo", "VACE_DEMO_WEIGHTS", "the files of a demo")


def test_a_setting_comes_before_the_environment(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("VACE_DEMO_WEIGHTS", str(tmp_path / "one"))
    assert SOURCE.folder(None) == tmp_path / "one"
    assert SOURCE.folder(str(tmp_path / "two")) == tmp_path / "two"


def test_no_folder_and_no_such_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("VACE_DEMO_WEIGHTS", raising=False)
    with pytest.raises(ConfigError, match=r"download the files of a demo.*VACE_DEMO_WEIGHTS"):
        SOURCE.folder(None)
    with pytest.raises(ConfigError, match="does not exist"):
        SOURCE.folder(str(tmp_path / "nowhere"))


def test_the_first_file_that_is_there(tmp_path):
    (tmp_path / "b").touch()
    assert SOURCE.file(tmp_path, "a", "b") == tmp_path / "b"
    with pytest.raises(ModelFileError, match="has no a or c"):
        SOURCE.file(tmp_path, "a", "c")


@pytest.mark.parametrize(("text", "told"), [("{", "not JSON"), ("[1]", "no JSON object")])
def test_a_configuration_that_is_none(tmp_path, text, told):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelFileError, match=told):
        SOURCE.config(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"depth": 3}))
    assert SOURCE.config(tmp_path) == {"depth": 3}


@pytest.mark.parametrize("value", [None, 0, -1, 2.0, "3", True, [1, 2], []])
def test_what_is_no_number(tmp_path, value):
    with pytest.raises(ModelFileError, match="has depth = "):
        number({"depth": value}, "depth", tmp_path)
    assert number({"depth": [7]}, "depth", tmp_path) == 7


def test_tensors_of_any_precision_are_read_as_single(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"a": np.array([1.5, 2.5], np.float16)}, path)
    found = read_tensors(path)["a"]
    assert found.dtype == np.float32
    assert found.tolist() == [1.5, 2.5]


def test_all_that_does_not_fit_is_told_at_once(tmp_path):
    tensors = {"a": np.zeros((2, 3), np.float32), "c": np.zeros(1, np.float32)}
    with pytest.raises(ModelFileError) as caught:
        check_tensors(tensors, {"a": (3, 2), "b": (1,)}, tmp_path / "model.safetensors")
    for part in ("missing: b", "not known: c", "a is (2, 3), expected (3, 2)"):
        assert part in str(caught.value)
