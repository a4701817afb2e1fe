from collections import deque

import numpy as np

from vace_ad.live.score_history import SHOWN, ScoreHistory


def test_it_holds_what_a_bounded_queue_holds():
    rng = np.random.default_rng(0)
    recent, queue = ScoreHistory(), deque(maxlen=SHOWN)
    assert recent.last is None
    assert len(recent) == 0
    at = 1_767_614_400 * 10**9
    for n in [1, 3, 200, 0, SHOWN - 1, 1, SHOWN + 7, 2]:
        times = list(range(at, at + n))
        scores = rng.normal(size=n).tolist()
        recent.extend(times, scores)
        queue.extend(zip(times, scores, strict=True))
        at += n
        assert list(recent) == list(queue)
        assert len(recent) == len(queue)
        assert recent.last == queue[-1][1]


def test_who_looks_while_rows_come_sees_whole_pairs():
    recent = ScoreHistory()
    recent.extend([1, 2], [0.5, 0.25])
    looking = iter(recent)
    recent.extend(range(3, 3 + SHOWN), [1.0] * SHOWN)
    assert list(looking) == [(1, 0.5), (2, 0.25)]
