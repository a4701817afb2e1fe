import inspect
import re
from typing import get_type_hints

import numpy as np
import pytest

from vace_ad import VACE, VACEConfig
from vace_ad.config import Reproduction
from vace_ad.errors import ConfigError, NotFittedError


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"patch_length": 2}, ["patch_length=2", "between 4"]),
        ({"patch_length": 96.0}, ["patch_length=96.0", "an integer"]),
        ({"patch_length": True}, ["patch_length=True", "an integer"]),
        ({"encoder": "cnn"}, ["encoder='cnn'", "'channel'", "'shared'"]),
        ({"direction": 1}, ["direction=1", "True or False"]),
        ({"widths": [1, 2, 3, 4]}, ["widths", "tuple"]),
        ({"widths": (1, 2, 3)}, ["widths", "four"]),
        ({"batch_norm_blend": 1.5}, ["batch_norm_blend=1.5", "between 0.0 and 1.0"]),
        ({"velocity_offset": "x"}, ["velocity_offset='x'", "integer or None"]),
        ({"batch_norm_statistics": "running"}, ["iterations"]),
        ({"random_state": -1}, ["random_state=-1"]),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(settings, words):
    with pytest.raises(ConfigError) as caught:
        VACEConfig.from_preset(None, **{"iterations": 0, **settings})
    for word in words:
        assert word in str(caught.value)


def test_unknown_names_are_refused_with_the_nearest_known_one():
    with pytest.raises(ConfigError, match="did you mean 'patch_length'"):
        VACE(patch_lenght=48)


def test_unknown_preset_lists_the_known_ones():
    with pytest.raises(ConfigError, match="paper, released"):
        VACE(preset="fast")


def test_frozen():
    with pytest.raises(AttributeError):
        VACEConfig().patch_length = 3


def test_presets_follow_the_table_of_disagreements():
    paper, released = both = VACEConfig.from_preset("paper"), VACEConfig.from_preset("released")
    rows = {
        "position_distance": ("squared", "root"),
        "normalisation": ("zscore", "minmax"),
        "training_offset": (48, 96),
        "missing_neighbour": ("skip", "zero"),
        "last_iteration": ("gradient", "batch_norm"),
        "checkpoint": ("last", "lowest"),
        "prototype_seed": (None, 42),
        "active_dimension": ("share", "eigenvalue"),
    }
    for name, expected in rows.items():
        found = [getattr(c, name, None) or getattr(c.reproduction, name, None) for c in both]
        assert tuple(found) == expected
    assert paper.stride == released.stride == 1
    assert paper.offset == released.offset == 48


def test_parameters_round_trip_as_scikit_learn_expects():
    from sklearn.base import clone

    det = VACE(preset="paper", random_state=3)
    again = clone(det)
    assert again.config == det.config
    assert det.set_params(patch_length=48).config.patch_length == 48
    assert "patch_length=48" in repr(det)


@pytest.mark.parametrize(("length", "stride", "grid"), [(96, 16, 16), (50, 16, 5), (16, 16, 8)])
def test_the_grid_fits_the_velocity_offset(length, stride, grid):
    assert VACEConfig.from_preset(None, patch_length=length, stride=stride).grid_stride == grid


def test_every_setting_is_a_keyword_of_the_detector_with_its_meaning():
    signature = inspect.signature(VACE.__init__).parameters
    default = VACEConfig().to_dict()
    named = {name: one for name, one in signature.items() if name not in ("self", "preset")}
    assert list(named) == [*default, "unknown"]
    assert {name: repr(named[name].default) for name in default} == {
        name: repr(value) for name, value in default.items()
    }
    hints = {**get_type_hints(VACEConfig), **get_type_hints(Reproduction)}
    assert {name: get_type_hints(VACE.__init__)[name] for name in default} == {
        name: hints[name] for name in default
    }
    documented = re.findall(r"^(\w+)\n    \S", inspect.getdoc(VACE.__init__), re.M)
    assert documented == ["preset", *default]


def test_a_setting_that_is_given_goes_before_the_preset():
    assert VACE(preset="paper").config.encoders == 1
    assert VACE(preset="paper", encoders=2).config.encoders == 2  # also where it is the default
    with pytest.raises(ConfigError, match="did you mean 'patch_length'"):
        VACE(patchlength=3)


def test_after_a_fit_there_is_one_config(rng):
    x = np.sin(np.arange(900)[:, None] / [8, 8]) + 0.05 * rng.normal(size=(900, 2))
    detector = VACE(encoders=1).fit(x)
    assert detector.get_params()["patch_length"] is None
    assert detector.config is detector.model_.config
    assert detector.config.patch_length == detector.model_.reach == 48
    detector.set_params(encoders=3)
    assert detector.config.encoders == 3
    with pytest.raises(NotFittedError, match="encoders was changed from 1 to 3"):
        detector.score(x)
