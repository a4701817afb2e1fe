import hashlib

import pytest

from vace_ad.errors import ConfigError
from vace_study.baselines import Method, expand, names, registry, resolve


def test_the_methods_of_the_study_are_there():
    expected = {"vace", "vace-paper", "vace-released", "paano", "paano-may", "pca", "iforest"}
    assert expected | {"pca-window", "iforest-window"} <= set(names())


def test_groups_stand_for_their_members_each_once():
    ablation = expand(["ablation"])
    assert ablation[0] == "vace-released"
    assert len(ablation) == 7  # the full model, five ablations, the calibrated one
    assert len(expand(["sensitivity"])) == 11
    assert expand(["pca", "ablation", "pca"]) == ("pca", *ablation)


def test_a_typing_error_is_met_with_a_guess():
    with pytest.raises(ConfigError, match="did you mean iforest"):
        resolve("iforst")
    with pytest.raises(ConfigError, match=r"package\.module:Name"):
        expand(["nothing-like-it"])


def test_a_detector_of_ones_own_by_its_address():
    method = resolve("toys:Distance")
    assert (method.name, method.seeded, method.category) == ("toys:Distance", True, "User")
    assert method.make(7).random_state == 7
    assert not resolve("toys:Fixed").seeded


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("no_such_package:X", "cannot be loaded"),
        ("toys:Nothing", "cannot be loaded"),
        ("toys:not_callable", "is a int"),
    ],
)
def test_an_address_that_leads_nowhere(spec, message):
    with pytest.raises(ConfigError, match=message):
        resolve(spec)


class EntryPoint:
    name = "mine"

    def load(self):
        return resolve("toys:Distance")


def test_an_installed_plug_in_is_found_by_name(monkeypatch):
    monkeypatch.setattr(registry, "entry_points", lambda group: [EntryPoint()])
    assert "mine" in names()
    assert isinstance(resolve("mine"), Method)


def test_the_hash_follows_the_settings():
    hashes = [resolve(name).config_hash for name in names()]
    assert len(set(hashes)) == len(hashes)
    one, other = Method("a", lambda seed: None, {"x": 1}), Method("b", lambda seed: None, {"x": 2})
    assert one.config_hash == Method("c", lambda seed: None, {"x": 1}).config_hash
    assert one.config_hash != other.config_hash


def test_the_hash_follows_the_version_of_the_code():
    old, new = (Method("a", lambda seed: None, {"x": 1}, version=v) for v in (1, 2))
    assert old.config_hash != new.config_hash
    # Rows from before there were versions keep their hash: sha256 of {"x": 1}.
    assert old.config_hash == hashlib.sha256(b'{"x": 1}').hexdigest()[:12]
