import sys

import pytest

from vace_ad.errors import ConfigError, MissingExtraError
from vace_study.baselines import resolve
from vace_study.baselines.networks.backend import choose_device, seeded


def test_without_torch_the_install_line_is_said(monkeypatch, rng):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingExtraError, match=r"USAD needs torch.*pip install 'vace-ad-study\[networks\]'"
    ):
        resolve("usad").make(0).fit(rng.normal(size=(200, 2)))


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == choose_device("cpu") == "cpu"
    with pytest.raises(ConfigError, match="finds no GPU"):
        choose_device("cuda")
    with pytest.raises(ConfigError, match="must be one of auto, cpu, cuda"):
        choose_device("tpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto") == "cuda"


def test_a_seed_is_borrowed_and_given_back():
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    with seeded(7, "cpu"):
        first = torch.rand(2)
    with seeded(7, "cpu"):
        assert torch.equal(torch.rand(2), first)
    assert torch.equal(torch.rand(4), expected)
    with pytest.raises(ZeroDivisionError), seeded(7, "cpu"):
        raise ZeroDivisionError
