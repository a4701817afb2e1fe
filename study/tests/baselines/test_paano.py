import numpy as np
import pytest
import torch

from vace_ad.errors import NotFittedError, TooShortError
from vace_study.baselines import paano
from vace_study.baselines.paano import PaAno, guess_loss, triplet_loss


@pytest.fixture
def plant(rng):
    """Two rhythms; in the second half of the test one of them changes its shape for a while."""
    rows = np.arange(900)
    values = np.stack([np.sin(rows / 8), np.cos(rows / 11)], axis=1)
    values += 0.05 * rng.normal(size=values.shape)
    values[700:760, 0] = np.sign(np.sin(rows[700:760] / 3))
    return values


def quick(monkeypatch, batch=32, iterations=4):
    monkeypatch.setattr(paano, "_BATCH", batch)
    monkeypatch.setattr(paano, "_PRETEXT_ITERATIONS", iterations)
    monkeypatch.setattr(paano, "_ITERATIONS", {"february": 200, "may": iterations})


def test_the_encoder_is_the_papers_whatever_our_default(monkeypatch, plant):
    quick(monkeypatch, iterations=1)
    trained = []
    kept = paano._train
    monkeypatch.setattr(paano, "_train", lambda *args: trained.append(args[0]) or kept(*args))
    PaAno().fit(plant[:300])
    shapes = [stage.kernel.shape for stage in trained[0]]
    assert shapes == [(128, 2, 7), (256, 128, 5), (128, 256, 3), (64, 128, 3)]


@pytest.mark.parametrize("release", ["february", "may"])
def test_a_changed_shape_scores_highest(monkeypatch, plant, release):
    quick(monkeypatch)
    scores = PaAno(release).fit(plant[:400]).score(plant)
    assert scores.shape == (900,)
    assert 650 < scores.argmax() < 800


def test_the_releases_differ(monkeypatch, plant):
    quick(monkeypatch)
    february, may = (PaAno(r).fit(plant[:400]).score(plant) for r in ("february", "may"))
    assert not np.allclose(february, may)


def test_february_stops_when_its_loss_has_become_zero(monkeypatch, plant):
    quick(monkeypatch, iterations=3)
    weights = []
    kept = paano._loss
    monkeypatch.setattr(
        paano, "_loss", lambda z, heads, weight, rng: weights.append(weight) or kept(
            z, heads, weight, rng
        )
    )  # fmt: skip
    PaAno("february").fit(plant[:300])
    assert weights == pytest.approx([1, 2 / 3, 1 / 3, 0])


def test_both_losses_equal_loops(rng):
    n = 12
    z = rng.normal(size=(2, n, 64))
    guess, first, second = (
        0.2 * rng.normal(size=shape) for shape in ((1, 129), (256, 65), (256, 257))
    )
    others = rng.integers(n, size=(n, 5))
    terms = []
    for i in range(n):
        for other, true in [(z[1, i], True), *((z[0, k], False) for k in others[i])]:
            logit = guess[0] @ [*z[0, i], *other, 1.0]
            terms.append(np.log1p(np.exp(-logit if true else logit)))
    found = guess_loss(torch.tensor(z), torch.tensor(guess), others)
    assert float(found) == pytest.approx(np.mean(terms))

    def projected(vector):
        hidden = np.maximum(first @ [*vector, 1.0], 0)
        out = second @ [*hidden, 1.0]
        return out / np.linalg.norm(out)

    anchors, near = ([projected(vector) for vector in group] for group in z)
    terms = [
        max(0.0, (1 - a @ b) - max(1 - a @ c for c in anchors) + 0.1)
        for a, b in zip(anchors, near, strict=True)
    ]
    assert np.mean(terms) > 0
    found = triplet_loss(*map(torch.tensor, (z, first, second)))
    assert float(found) == pytest.approx(np.mean(terms))


def test_training_rows_for_one_patch_only_leave_the_encoder_untrained(rng):
    table = rng.normal(size=(120, 2))
    assert np.isfinite(PaAno().fit(table).score(table)).all()


def test_what_cannot_be_scored(rng):
    with pytest.raises(NotFittedError):
        PaAno().score(rng.normal(size=(200, 2)))
    with pytest.raises(TooShortError, match="95 rows"):
        PaAno().fit(rng.normal(size=(95, 2)))
