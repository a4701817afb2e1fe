import json
import os
import struct

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from test_detector import SMALL, waves
from vace_ad import VACE, load
from vace_ad.errors import ConfigError, ModelFileError, VaceWarning


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "plant.vace"
    det = VACE(**SMALL, random_state=5, precision="float32").fit(waves())  # any processor
    det.save(path)
    return det, path


def metadata(path):
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(size))["__metadata__"]


def rewritten(path, target, *, arrays=None, **changed):
    """The same model with other arrays or metadata, as somebody might forge it."""
    save_file(arrays or load_file(path), target, {**metadata(path), **changed})
    return target


def test_a_model_scores_the_same_after_saving(model):
    det, path = model
    again = load(path)
    test = waves(200, seed=1)
    np.testing.assert_array_equal(again.score(test), det.score(test))
    assert again.config == det.config
    assert again.channels_ == det.channels_
    assert again.geometry_ == det.geometry_
    assert again.facts_ == json.loads(json.dumps(det.facts_))


@pytest.mark.parametrize("engine", ["torch", "numpy", "openvino"])
def test_every_engine_scores_a_loaded_model_alike(model, engine):
    det, path = model
    test = waves(200, seed=1)
    scores, expected = load(path, engine=engine).score(test), det.score(test)
    assert np.abs(scores - expected).max() < 1e-4 * expected.max()


@pytest.mark.parametrize(
    "settings",
    [
        {"position": "memory"},
        {"direction": False},
        {"batch_norm": False},
        {"encoder": "shared"},
        {"encoders": 3},
        {"preset": "released", "iterations": 2, "batch_size": 16, "pretext_offset": 16},
    ],
)
def test_every_kind_of_model_round_trips(settings, tmp_path):
    det = VACE(**{**SMALL, **settings}).fit(waves(300))
    det.save(tmp_path / "m.vace")
    test = waves(100, seed=1)
    np.testing.assert_array_equal(load(tmp_path / "m.vace").score(test), det.score(test))


def test_only_computing_may_change_on_loading(model):
    with pytest.raises(ConfigError, match="patch_length"):
        load(model[1], patch_length=8)


def test_nothing_is_left_behind_when_writing_fails(model, tmp_path):
    det, _ = model
    with pytest.raises(OSError, match="missing"):
        det.save(tmp_path / "missing" / "m.vace")
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        det.save(tmp_path / "taken")
    assert sorted(os.listdir(tmp_path)) == ["taken"]


def test_a_missing_file(tmp_path):
    with pytest.raises(ModelFileError, match="does not exist"):
        load(tmp_path / "none.vace")
    with pytest.raises(ModelFileError, match="is a folder"):
        load(tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.01, 0.5, 0.999])
def test_truncated(model, tmp_path, share):
    content = model[1].read_bytes()
    cut = tmp_path / "cut.vace"
    cut.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ModelFileError, match="truncated"):
        load(cut)


def test_altered_values_are_found_by_the_checksum(model, tmp_path):
    content = bytearray(model[1].read_bytes())
    content[-20] ^= 1
    forged = tmp_path / "forged.vace"
    forged.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"altered|finite"):
        load(forged)


def test_foreign_files(model, tmp_path):
    foreign = tmp_path / "foreign.vace"
    foreign.write_bytes(b"\x80\x04\x95pickle" * 100)
    with pytest.raises(ModelFileError):
        load(foreign)
    save_file({"weights": np.ones(3)}, foreign)
    with pytest.raises(ModelFileError, match="not a model of vace-ad"):
        load(foreign)


def test_a_huge_header_is_refused_without_being_read(tmp_path):
    bomb = tmp_path / "bomb.vace"
    bomb.write_bytes(struct.pack("<Q", 2**62) + b"{}")
    with pytest.raises(ModelFileError):
        load(bomb)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format_version": 99}, "format version 99"),
        ({"config": {"patch_length": -1}}, "patch_length"),
        ({"config": {"evil": 1}}, "evil"),
        ({"channels": []}, "channels"),
        ({"channels": [1, 2, 3]}, "channels"),
        ({"channels": ["a"]}, "expected"),
        ({"constants": {}}, "description"),
        ({"constants": 3}, "description"),
        ({"facts": 3}, "altered"),
    ],
)
def test_descriptions_that_do_not_hold(model, tmp_path, change, words):
    description = {**json.loads(metadata(model[1])["description"]), **change}
    forged = rewritten(model[1], tmp_path / "f.vace", description=json.dumps(description))
    with pytest.raises(ModelFileError, match=words):
        load(forged)


@pytest.mark.parametrize("text", ["", "[", "[]", "null", "[" * 100_000])
def test_descriptions_that_are_no_description(model, tmp_path, text):
    forged = rewritten(model[1], tmp_path / "f.vace", description=text)
    with pytest.raises(ModelFileError, match="description"):
        load(forged)


def test_arrays_that_do_not_fit(model, tmp_path):
    path = model[1]
    arrays = load_file(path)
    name = next(key for key in arrays if key.endswith("kernel"))
    for odd in (
        {**arrays, "extra": np.ones(2)},
        {key: value for key, value in arrays.items() if key != name},
        {**arrays, name: arrays[name].astype(np.float64)},
        {**arrays, name: arrays[name][:-1]},
    ):
        with pytest.raises(ModelFileError, match=r"lacks arrays|expected"):
            load(rewritten(path, tmp_path / "f.vace", arrays=odd))
    broken = {**arrays, name: np.full_like(arrays[name], np.nan)}
    with pytest.raises(ModelFileError, match="not finite"):
        load(rewritten(path, tmp_path / "f.vace", arrays=broken))


def forged(path, target, change):
    """The model with other arrays and a checksum that fits."""
    from vace_ad.tensor_file import digest

    arrays = load_file(path)
    change(arrays)
    checksum = digest(metadata(path)["description"], arrays)
    return rewritten(path, target, arrays=arrays, sha256=checksum)


def test_numbers_that_give_no_finite_score_are_refused_on_loading(model, tmp_path):
    same = forged(model[1], tmp_path / "same.vace", lambda arrays: None)
    load(same)

    def vast(arrays):
        for name in arrays:
            if arrays[name].dtype == np.float32:
                arrays[name] = np.full_like(arrays[name], 3e38)

    with pytest.raises(ModelFileError, match=r"cannot be used|overflow"):
        load(forged(model[1], tmp_path / "f.vace", vast))


def test_a_calibration_that_no_fit_gives_is_refused(model, tmp_path):
    def zeros(arrays):
        arrays["calibration_scores"] = np.zeros_like(arrays["calibration_scores"])

    with pytest.raises(ModelFileError, match="calibration scores are all the same"):
        load(forged(model[1], tmp_path / "f.vace", zeros))


def test_a_model_of_constant_rows_can_be_loaded(tmp_path):
    with pytest.warns(VaceWarning, match="every channel is constant"):
        detector = VACE(patch_length=16).fit(np.ones((300, 2)))
    detector.save(tmp_path / "m.vace")
    load(tmp_path / "m.vace")


def test_a_link_is_followed_on_saving(model, tmp_path):
    det, _ = model
    (tmp_path / "disk").mkdir()
    (tmp_path / "m.vace").symlink_to(tmp_path / "disk" / "m.vace")
    det.save(tmp_path / "m.vace")
    assert (tmp_path / "m.vace").is_symlink()
    load(tmp_path / "disk" / "m.vace")
