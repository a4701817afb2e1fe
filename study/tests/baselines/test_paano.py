import numpy as np
import pytest

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


def test_both_losses_against_automatic_gradients(rng):
    torch = pytest.importorskip("torch")
    n = 12
    z = rng.normal(size=(2, n, 64))
    guess, first, second = (
        0.2 * rng.normal(size=shape) for shape in ((1, 129), (256, 65), (256, 257))
    )
    others = rng.integers(n, size=(n, 5))

    def tensors(*arrays):
        return [torch.tensor(array, requires_grad=True) for array in arrays]

    z_t, guess_t = tensors(z, guess)
    pairs = torch.cat([z_t, torch.ones(2, n, 1)], dim=2)
    true = torch.cat([z_t[0], pairs[1]], dim=1)
    false = torch.cat([z_t[0].repeat_interleave(5, 0), pairs[0][others.ravel()]], dim=1)
    logits = torch.cat([true, false]) @ guess_t[0]
    truth = torch.cat([torch.ones(n), torch.zeros(5 * n)]).double()
    loss_t = torch.nn.functional.binary_cross_entropy_with_logits(logits, truth)
    loss_t.backward()
    loss, slopes, to_guess = guess_loss(z, guess, others)
    assert loss == pytest.approx(float(loss_t.detach()))
    np.testing.assert_allclose(slopes, z_t.grad.numpy(), atol=1e-12)
    np.testing.assert_allclose(to_guess, guess_t.grad.numpy(), atol=1e-12)

    z_t, first_t, second_t = tensors(z, first, second)
    hidden = (z_t @ first_t[:, :-1].T + first_t[:, -1]).relu()
    unit = torch.nn.functional.normalize(hidden @ second_t[:, :-1].T + second_t[:, -1], dim=2)
    to_near = 1 - (unit[0] * unit[1]).sum(dim=1)
    to_far = (1 - unit[0] @ unit[0].T).max(dim=1).values
    loss_t = (to_near - to_far + 0.1).clamp_min(0).mean()
    loss_t.backward()
    loss, slopes, (to_first, to_second) = triplet_loss(z, first, second)
    assert loss == pytest.approx(float(loss_t.detach()))
    assert loss > 0
    np.testing.assert_allclose(slopes, z_t.grad.numpy(), atol=1e-12)
    np.testing.assert_allclose(to_first, first_t.grad.numpy(), atol=1e-12)
    np.testing.assert_allclose(to_second, second_t.grad.numpy(), atol=1e-12)


def test_training_rows_for_one_patch_only_leave_the_encoder_untrained(rng):
    table = rng.normal(size=(120, 2))
    assert np.isfinite(PaAno().fit(table).score(table)).all()


def test_what_cannot_be_scored(rng):
    with pytest.raises(NotFittedError):
        PaAno().score(rng.normal(size=(200, 2)))
    with pytest.raises(TooShortError, match="95 rows"):
        PaAno().fit(rng.normal(size=(95, 2)))
