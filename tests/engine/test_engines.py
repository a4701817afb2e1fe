"""Every engine against the plain torch module, on real and on adversarial patches."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from threadpoolctl import threadpool_limits

from vace_ad.config import VACEConfig
from vace_ad.engine import choose_engine, make_engine
from vace_ad.engine.encoder import calibrate, init_encoder
from vace_ad.engine.openvino import SIZE, _use_bfloat16
from vace_ad.engine.patches import PatchSet
from vace_ad.engine.torch import from_module, to_module
from vace_ad.errors import ConfigError, MissingExtraError

ENGINES = pytest.mark.parametrize("engine", ["openvino", "torch", "numpy"])
DATA = Path(os.environ.get("VACE_DATA", Path(__file__).parents[3] / "shared" / "data"))


def adversarial(rng: np.random.Generator) -> np.ndarray:
    """Rows whose channels are ordinary, tiny, hugely offset, constant, spiked and stepped."""
    n = 400
    noise = rng.normal(size=(n, 6)).cumsum(axis=0)
    noise[:, 1] *= 1e-12
    noise[:, 2] += 1e12
    noise[:, 3] = 7.25e6
    noise[::97, 4] = 1e9
    noise[:, 5] = np.arange(n) >= n // 2
    return noise


def real() -> np.ndarray:
    found = sorted((DATA / "TSB-AD-M").glob("*_MSL_*.parquet"))
    if not found:
        pytest.skip("no real series: set VACE_DATA to the folder that holds TSB-AD-M")
    return pl.read_parquet(found[0]).drop("Label").to_numpy().astype(float)[:600]


def prepare(rows: np.ndarray, rng: np.random.Generator, **settings):
    """Calibrated encoders at their real widths, and normalised patches.

    With 32 bits: by default OpenVINO takes 16 where the processor has such products.
    """
    config = VACEConfig.from_preset("paper", **{"precision": "float32", **settings})
    patches = PatchSet([rows], config.patch_length, np.ones(rows.shape[1]))
    sample = patches.gather(np.arange(0, len(patches), 9))
    encoders = [
        calibrate(init_encoder(config, rows.shape[1], rng), sample, 0.95)
        for _ in range(config.encoders)
    ]
    return config, encoders, sample


def plain(encoders, patches) -> np.ndarray:
    with torch.no_grad():
        made = [to_module(e, "cpu").eval()(torch.from_numpy(patches)).numpy() for e in encoders]
    return np.stack(made, axis=1)


@ENGINES
@pytest.mark.parametrize("source", ["adversarial", "real"])
def test_embeddings_are_those_of_the_plain_module(engine, source):
    rng = np.random.default_rng(0)
    rows = real() if source == "real" else adversarial(rng)
    config, encoders, patches = prepare(rows, rng, engine=engine, encoders=2)
    found = make_engine(encoders, rows.shape[1], config).embed(patches)
    assert found.shape == (len(patches), 2, 64)
    assert found.dtype == np.float32
    assert np.abs(found - plain(encoders, patches)).max() < 1e-5


@ENGINES
@pytest.mark.parametrize("settings", [{"encoder": "shared"}, {"batch_norm": False}])
def test_ablations(engine, settings):
    rng = np.random.default_rng(0)
    if "batch_norm" in settings:
        settings = {**settings, "batch_norm_statistics": "calibrated"}
    config, encoders, patches = prepare(adversarial(rng), rng, engine=engine, **settings)
    found = make_engine(encoders, 6, config).embed(patches)
    assert np.abs(found - plain(encoders, patches)).max() < 1e-5


@pytest.mark.parametrize("engine", ["openvino", "numpy"])
@pytest.mark.parametrize("n_channels", [1, 2, 6, 33])
def test_a_patch_has_the_same_embedding_in_any_company(n_channels, engine):
    rng = np.random.default_rng(n_channels)
    rows = rng.normal(size=(600, n_channels)).cumsum(axis=0)
    config, encoders, patches = prepare(rows, rng, engine=engine, encoders=2)
    engine = make_engine(encoders, n_channels, config)
    together = engine.embed(patches)
    for size in (1, 3, SIZE, SIZE + 1):
        parts = [engine.embed(patches[a : a + size]) for a in range(0, len(patches), size)]
        assert np.array_equal(np.concatenate(parts), together)
    shuffled = rng.permutation(len(patches))
    assert np.array_equal(engine.embed(patches[shuffled]), together[shuffled])


@pytest.mark.parametrize("engine", ["openvino", "numpy"])
def test_threads_do_not_change_a_bit(engine):
    rng = np.random.default_rng(0)
    config, encoders, patches = prepare(adversarial(rng), rng, engine=engine)
    many = make_engine(encoders, 6, config).embed(patches)
    with threadpool_limits(1):
        one = make_engine(encoders, 6, config).embed(patches)
    assert np.array_equal(many, one)


@pytest.mark.parametrize("engine", ["openvino", "numpy"])
def test_one_engine_serves_several_threads(engine):
    rng = np.random.default_rng(0)
    config, encoders, patches = prepare(adversarial(rng), rng, engine=engine)
    engine = make_engine(encoders, 6, config)
    wanted = engine.embed(patches)
    with ThreadPoolExecutor(4) as executor:
        for found in executor.map(lambda _: engine.embed(patches), range(8)):
            assert np.array_equal(found, wanted)


@pytest.mark.parametrize("engine", ["openvino", "numpy"])
def test_strided_patches_are_read_right(engine):
    rng = np.random.default_rng(0)
    config, encoders, patches = prepare(adversarial(rng), rng, engine=engine)
    engine = make_engine(encoders, 6, config)
    assert np.array_equal(engine.embed(patches[::2]), engine.embed(patches)[::2])


def test_bfloat16_only_where_the_processor_has_it():
    assert _use_bfloat16("auto", ["FP32", "BF16"])
    assert _use_bfloat16("bfloat16", ["FP32", "BF16"])
    assert not _use_bfloat16("float32", ["FP32", "BF16"])
    assert not _use_bfloat16("auto", ["FP32"])
    with pytest.raises(ConfigError, match="precision='auto'"):
        _use_bfloat16("bfloat16", ["FP32"])


def test_bfloat16_of_torch_stays_near():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 6)).cumsum(axis=0)
    config, encoders, patches = prepare(rows, rng, engine="torch", precision="bfloat16")
    found = make_engine(encoders, 6, config).embed(patches)
    wanted = plain(encoders, patches)
    assert np.abs(found - wanted).max() < 0.01 * np.abs(wanted).max()


def test_a_module_and_back():
    config = VACEConfig.from_preset(None, widths=(12, 10, 8, 6))
    encoder = init_encoder(config, 3, np.random.default_rng(0))
    patches = np.random.default_rng(1).normal(size=(30, 3, 20)).astype(np.float32)
    encoder = calibrate(encoder, patches, 0.9)
    back = from_module(to_module(encoder, "cpu"), encoder)
    for a, b in zip(encoder, back, strict=True):
        assert np.array_equal(a.kernel, b.kernel)
        assert all(
            np.array_equal(x, y)
            for x, y in zip(vars(a.norm).values(), vars(b.norm).values(), strict=True)
        )


def test_without_openvino_numpy_computes_and_the_install_line_is_named(monkeypatch):
    rng = np.random.default_rng(0)
    encoders = prepare(adversarial(rng), rng, engine="numpy")[1]
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'vace-ad\[openvino\]'"):
        choose_engine(encoders, 6, 96, "openvino")
    monkeypatch.setattr("vace_ad.engine.find_spec", lambda name: None)
    assert choose_engine(encoders, 6, 96).name == "numpy float32"
    with pytest.raises(ConfigError, match=r"precision='bfloat16'.*vace-ad\[openvino\]"):
        choose_engine(encoders, 6, 96, precision="bfloat16")
