"""A fitted detector in other processes, threads and copies of itself: the same scores."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest

from test_detector import waves
from vace_ad import VACE

SMALL = {"patch_length": 16, "stride": 4, "widths": (16, 16, 16, 8)}
TEST = waves(300, seed=1)


@pytest.fixture(scope="module", params=["auto", "numpy", "torch"])
def fitted(request) -> VACE:
    detector = VACE(**SMALL, engine=request.param).fit(waves())
    detector.score(TEST)  # so that its engine is made
    return detector


def same(detector: VACE, other: VACE) -> None:
    assert np.array_equal(other.score(TEST), detector.score(TEST))
    assert other.config == detector.config
    assert other.channels_ == detector.channels_
    assert other.model_.digest == detector.model_.digest
    found, wanted = other.detect(TEST), detector.detect(TEST)
    assert found.events == wanted.events


def test_pickle(fitted):
    same(fitted, pickle.loads(pickle.dumps(fitted)))


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_copies(fitted, how):
    same(fitted, how(fitted))


def test_a_copy_is_fitted_without_its_source(fitted):
    before = fitted.score(TEST)
    copy.deepcopy(fitted).fit(waves(300, seed=8))
    assert np.array_equal(fitted.score(TEST), before)


def test_joblib_files(fitted, tmp_path):
    joblib.dump(fitted, tmp_path / "d.joblib")
    same(fitted, joblib.load(tmp_path / "d.joblib"))


def test_joblib_workers(fitted):
    if fitted.config.engine == "torch":
        pytest.skip("two more processes that import torch; one does so below")
    scores = joblib.Parallel(n_jobs=2)(joblib.delayed(fitted.score)(TEST) for _ in range(2))
    for found in scores:
        assert np.array_equal(found, fitted.score(TEST))


def test_an_unpickled_detector_in_a_fresh_process(fitted, tmp_path):
    (tmp_path / "d.pickle").write_bytes(pickle.dumps((fitted, TEST)))
    code = (
        "import pickle, sys; d, x = pickle.load(open(sys.argv[1], 'rb'));"
        "sys.stdout.write(d.score(x).tobytes().hex())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "d.pickle")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == fitted.score(TEST).tobytes().hex()


def _score_into(queue, detector):
    queue.put(detector.score(TEST))


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process(fitted):
    if fitted.config.engine == "torch":
        pytest.skip("torch's own threads do not survive a fork")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_score_into, args=(queue, fitted))
    process.start()
    try:
        found = queue.get(timeout=60)
    finally:
        process.join(10)
        if process.is_alive():
            process.kill()
    assert np.array_equal(found, fitted.score(TEST))


def test_threads(fitted):
    fresh = pickle.loads(pickle.dumps(fitted))  # whose engine is yet to be made, by all at once
    with ThreadPoolExecutor(4) as executor:
        for found in executor.map(lambda _: fresh.score(TEST), range(8)):
            assert np.array_equal(found, fitted.score(TEST))


def test_streams_in_threads(fitted):
    def scores(_):
        stream = fitted.stream()
        parts = [stream.add(TEST[a : a + 20]).scores for a in range(0, 300, 20)]
        return np.concatenate([*parts, stream.finish().scores])

    with ThreadPoolExecutor(4) as executor:
        for found in executor.map(scores, range(4)):
            assert np.array_equal(found, fitted.score(TEST))


def test_scoring_leaves_nothing_in_a_pickle():
    fitted = VACE(**SMALL).fit(waves())
    before = pickle.dumps(fitted.model_)
    fitted.score(waves(200, seed=9))
    fitted.detect(waves(200, seed=9))
    assert pickle.dumps(fitted.model_) == before
