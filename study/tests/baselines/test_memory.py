import numpy as np

from vace_study.baselines.memory import MemoryBank


def by_loops(kept, embeddings):
    """Mean over the three smallest of 1 − cosine, a pair at a time."""
    found = []
    for z in embeddings:
        distances = [
            1 - sum(a * b for a, b in zip(z, k, strict=True)) / np.sqrt(sum(z**2)) for k in kept
        ]
        found.append(sum(sorted(distances)[:3]) / 3)
    return found


def test_distances_equal_those_by_loops(rng):
    train, scored = rng.normal(size=(700, 5)), rng.normal(size=(20, 5))
    bank = MemoryBank.fit(train, 0)
    np.testing.assert_allclose(bank.score(scored), by_loops(bank.kept, scored), atol=1e-12)


def test_what_is_kept_are_real_embeddings_one_in_ten_at_least_500(rng):
    train = rng.normal(size=(8000, 4))
    units = train / np.linalg.norm(train, axis=1, keepdims=True)
    bank = MemoryBank.fit(train, 0)
    assert 400 < len(bank.kept) <= 800  # two centres may share their nearest
    assert {row.tobytes() for row in bank.kept} <= {row.tobytes() for row in units}
    assert len(MemoryBank.fit(train[:300], 0).kept) == 300


def test_equal_embeddings_are_kept_once_and_lie_at_distance_zero(rng):
    train = np.tile(rng.normal(size=(2, 4)), (600, 1))
    bank = MemoryBank.fit(train, 0)
    assert len(bank.kept) == 2
    assert bank.score(train[:1])[0] < 2
    assert MemoryBank(bank.kept[:1]).score(bank.kept[:1])[0] < 1e-12
