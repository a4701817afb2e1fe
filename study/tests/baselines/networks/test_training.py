"""The training loop and its early stopping, on losses that are known beforehand."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from vace_study.baselines.networks.batches import Windows  # noqa: E402
from vace_study.baselines.networks.training import (  # noqa: E402
    EarlyStopping,
    Loop,
    Parts,
    descent,
    score_windows,
    train,
)


def windows(n=10, length=3):
    table = np.arange(2.0 * (n + length - 1)).reshape(-1, 2)
    return Windows(table, np.arange(n), length, "cpu")


def run(losses, keep, patience=3, validation=True, rate=lambda epoch: 0.1):
    """Train with these watched losses; the module's weight counts the epochs."""
    module = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(module.weight)
    optimiser = torch.optim.SGD(module.parameters(), lr=1.0)
    rates = []

    def step(batch, at):
        if at.batch == 0:
            module.weight.data += 1
            rates.append(optimiser.param_groups[0]["lr"])
        return torch.tensor(losses[at.epoch - 1])

    parts = Parts(windows(), windows() if validation else None)
    stopping = EarlyStopping(patience, 1e-4, keep)
    history = train(module, parts, step, lambda batch, at: torch.tensor(losses[at.epoch - 1]),
                    [optimiser], Loop(len(losses), 4, rate), stopping)  # fmt: skip
    return int(module.weight), history, rates, module


@pytest.mark.parametrize("validation", [True, False])
@pytest.mark.parametrize(("keep", "kept"), [("last", 5), ("best", 2)])
def test_it_stops_when_three_epochs_were_not_better(keep, kept, validation):
    losses = [1.0, 0.5, 0.6, 0.49995, 0.7, 0.1, 0.1]  # 0.49995 is lower, but by less than 1e-4
    weight, history, _, module = run(losses, keep, validation=validation)
    assert len(history) == 5
    assert weight == kept
    assert not module.training


def test_a_better_epoch_starts_the_count_anew():
    weight, history, _, _ = run([1.0, 2.0, 2.0, 0.9, 2.0, 2.0, 2.0, 0.1], "last")
    assert len(history) == 7
    assert weight == 7


def test_the_end_comes_with_the_last_epoch_too():
    assert run([3.0, 2.0, 1.0], "best")[0] == 3


def test_of_several_losses_none_may_rise():
    stopping = EarlyStopping(2, 0.0)
    module = torch.nn.Linear(1, 1)
    assert not stopping.stops(torch.tensor([1.0, 1.0]), module)
    assert not stopping.stops(torch.tensor([1.0, 0.5]), module)  # equal is not worse
    assert stopping.waited == 0
    assert not stopping.stops(torch.tensor([0.1, 0.6]), module)
    assert stopping.stops(torch.tensor([1.1, 0.1]), module)


def test_the_rate_of_each_epoch():
    _, _, rates, _ = run([3.0, 2.0, 1.0], "last", rate=lambda epoch: 0.5**epoch)
    assert rates == [0.5, 0.25, 0.125]


def test_nan_counts_as_not_better():
    assert len(run([1.0, *[float("nan")] * 5], "last")[1]) == 4


def test_a_step_goes_down_the_sum_of_the_losses():
    weight = torch.nn.Parameter(torch.tensor(1.0))
    step = descent(
        torch.optim.SGD([weight], lr=1.0), lambda batch, at: torch.stack([2 * weight, 3 * weight])
    )
    assert step(torch.zeros(1), None).tolist() == [2.0, 3.0]
    assert weight.tolist() == 1 - 5


def test_batches_hold_every_window_once():
    cut = windows(n=10)
    whole = torch.cat(list(cut.batches(4)))
    assert whole.shape == (10, 3, 2)
    assert whole[7].tolist() == [[14, 15], [16, 17], [18, 19]]
    shuffled = torch.cat(list(cut.batches(4, shuffle=True)))
    assert sorted(shuffled[:, 0, 0].tolist()) == whole[:, 0, 0].tolist()
    assert [len(batch) for batch in cut.batches(4, drop_last=True)] == [4, 4]
    assert [len(batch) for batch in cut.batches(64, drop_last=True)] == [10]  # else nothing trains


def test_scores_come_in_the_order_of_windows():
    module = torch.nn.Linear(1, 1)
    found = score_windows(module, windows(10), lambda batch, at: batch[:, 0, 0] + 100 * at.batch, 4)
    assert found.tolist() == [0, 2, 4, 6, 108, 110, 112, 114, 216, 218]
