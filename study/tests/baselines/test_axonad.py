"""AxonAD: what the network may see, what training counts, and how a score is made, by hand."""

import numpy as np
import pytest

from baselines.planted import contrast, planted

torch = pytest.importorskip("torch")

from vace_study.baselines import resolve  # noqa: E402
from vace_study.baselines.axonad import AxonAD  # noqa: E402
from vace_study.baselines.modules.axonad import AxonADModule, mismatch  # noqa: E402
from vace_study.baselines.networks.training import At  # noqa: E402

SMALL = {"window": 20, "width": 16, "heads": 2, "epochs": 2}


@pytest.fixture
def module():
    torch.manual_seed(0)
    return AxonADModule(channels=3, width=16, heads=2, rows=20, ahead=1).eval()


def test_settings_are_those_of_the_authors_benchmark():
    told = resolve("axonad").settings
    expected = {
        "window": 100, "width": 128, "heads": 8, "tail": 10, "ahead": 1, "learning_rate": 5e-4,
        "epochs": 50, "patience": 3, "batch_size": 128, "windows": "current",
    }  # fmt: skip
    assert {name: told[name] for name in expected} == expected


def test_a_query_is_foretold_by_rows_before_it_alone(module):
    x = torch.rand(1, 20, 3)
    other = x.clone()
    other[:, 12] += 5
    with torch.no_grad():
        one, two = module(x), module(other)
    same = (one.foretold == two.foretold).all(dim=(0, 1, 3))
    assert same[:13].all()  # row 12 itself is not seen by its own forecast
    assert not same[13:].any()
    assert not (one.values == two.values).all()


def test_attention_and_layers_by_hand(module):
    x = torch.rand(2, 20, 3)
    entry = module.entry
    with torch.no_grad():
        embedded = x @ entry.embedding.weight.T + entry.embedding.bias + entry.positions
        centred = embedded - embedded.mean(dim=2, keepdim=True)
        normal = centred / torch.sqrt(centred.square().mean(dim=2, keepdim=True) + 1e-5)
        context = torch.zeros(2, 20, 16)
        for head in (slice(0, 8), slice(8, 16)):
            query, key, value = (
                (normal @ layer.weight.T)[:, :, head]
                for layer in (entry.query, module.key, module.value)
            )
            weights = torch.softmax(query @ key.transpose(1, 2) / np.sqrt(8), dim=2)
            context[:, :, head] = weights @ value
        hidden = embedded + module.out(context)
        hidden = hidden + module.second(torch.relu(module.first(module.norm(hidden))))
        found = module(x)
        np.testing.assert_allclose(found.values, module.head(hidden), atol=1e-5)
        queries = normal @ entry.query.weight.T
        np.testing.assert_allclose(found.queries[:, 1], queries[:, :, 8:], atol=1e-5)


def test_the_slow_copy_begins_as_the_trained_one_and_follows_it(module):
    first = module.entry.query.weight.detach().clone()
    assert torch.equal(module.slow.query.weight, first)
    assert not any(each.requires_grad for each in module.slow.parameters())
    with torch.no_grad():
        module.entry.query.weight += 1
    module.follow(0.9)
    np.testing.assert_allclose(module.slow.query.weight, first + 0.1, rtol=1e-5, atol=1e-6)


def test_half_of_the_tail_counts_in_training():
    detector = AxonAD()
    torch.manual_seed(0)
    counted = detector._counted(torch.zeros(4000, 100, 3))
    assert (counted.sum(dim=1) == 24).all()
    assert (counted.diff(dim=1).abs().sum(dim=1) <= 2).all()  # one run
    firsts = counted.argmax(dim=1)
    assert (firsts.min(), firsts.max()) == (51, 76)
    assert np.bincount(firsts)[51:].min() > 100  # every place as likely


def test_the_loss_by_hand():
    detector = AxonAD(**SMALL)
    torch.manual_seed(0)
    module, batch = detector._module(3).eval(), torch.rand(5, 20, 3)
    with torch.no_grad():
        module.scales += torch.tensor([0.3, -0.2])
        torch.manual_seed(1)
        found = detector._losses(module, batch, At(1, 0)).item()
        torch.manual_seed(1)
        counted, output = detector._counted(batch), module(batch)
        told = output.foretold / output.foretold.norm(dim=3, keepdim=True)
        true = output.queries / output.queries.norm(dim=3, keepdim=True)
        distance = 1 - (told * true).sum(dim=3)  # (5, 2, 20)
        np.testing.assert_allclose(mismatch(output), distance, atol=1e-6)
        of_queries = np.mean([
            distance[b, h, t] for b in range(5) for h in range(2) for t in range(20)
            if counted[b, t]
        ])  # fmt: skip
        error = (output.values - batch).square().mean().item()
    expected = np.exp(-0.3) * error + 0.3 + np.exp(0.2) * of_queries - 0.2
    assert found == pytest.approx(expected, rel=1e-5)


def test_a_score_by_hand():
    train, table = planted()
    detector = AxonAD(**SMALL, tail=3).fit(train)

    def evidence(rows):
        scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)  # by the rows themselves
        starts = range(len(rows) - 19)
        x = torch.from_numpy(np.stack([scaled[i : i + 20] for i in starts]).astype(np.float32))
        with torch.no_grad():
            output = detector.module_(x)
            error = ((output.values - x) ** 2).sum(dim=2).mean(dim=1)
            return np.stack([error, mismatch(output)[:, :, -3:].mean(dim=(1, 2))], axis=1)

    learned, found = evidence(train[:480]), evidence(table)
    low, middle, high = np.percentile(learned.astype(float), [25, 50, 75], axis=0)
    expected = ((found - middle) / (high - low)).sum(axis=1)
    np.testing.assert_allclose(detector.score(table)[10:-9], expected, rtol=2e-3, atol=2e-3)


def test_early_stopping_watches_the_values_alone_and_not_where_no_row_validates():
    train, _ = planted()
    detector = AxonAD(**{**SMALL, "epochs": 3}).fit(train)
    module = detector.module_
    rows = train[480:]
    windows = detector._cut(rows, detector._validation_starts(len(rows)))
    with torch.no_grad():
        errors = [(module(x).values - x).square().mean().item() for x in windows.batches(128)]
    assert detector.history_[-1] == pytest.approx([np.mean(errors)], rel=1e-5)
    settings = {**SMALL, "epochs": 6, "patience": 1, "learning_rate": 0.0}  # nothing gets better
    assert len(AxonAD(**settings).fit(train).history_) == 2
    assert len(AxonAD(**settings).fit(train[:24]).history_) == 6  # all 24 rows train


def test_a_planted_anomaly_is_found():
    train, table = planted()
    scores = AxonAD(window=20, width=32, heads=4, epochs=10).fit(train).score(table)
    assert contrast(scores - scores.min()) > 2


def test_five_hundred_channels():
    train, table = planted(channels=500)
    scores = AxonAD(window=20, epochs=1, max_train_windows=64).fit(train).score(table)
    assert np.isfinite(scores).all()
