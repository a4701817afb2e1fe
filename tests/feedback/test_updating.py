"""Learning on: new rows become normal, old ones stay normal, faults never do."""

from __future__ import annotations

import numpy as np
import pytest

from feedback.maintenance import TIME, TRAIN, frame, near, plant, service
from vace_ad import VACE, load


def fitted(rows: np.ndarray) -> VACE:
    return VACE(patch_length=24, encoders=1).fit(frame(rows))


@pytest.fixture(scope="module")
def half() -> VACE:
    return fitted(plant()[: TRAIN // 2])


def copy(detector: VACE, folder) -> VACE:
    detector.save(folder / "pump.vace")
    return load(folder / "pump.vace")


def test_two_halves_are_nearly_the_whole(half: VACE, tmp_path) -> None:
    values = plant()
    values[2000:2040, 1] += 8 * values[:TRAIN, 1].std()
    whole = fitted(values[:TRAIN])
    updated = copy(half, tmp_path).update(frame(values[:TRAIN], TRAIN // 2))
    one, two = (each.score(frame(values[:2500], TRAIN)) for each in (whole, updated))
    assert np.corrcoef(one, two)[0, 1] > 0.999
    assert updated.facts_["rows"] == whole.facts_["rows"]
    assert updated.facts_["updates"] == 1
    assert len(updated.calibration_scores_) == len(whole.calibration_scores_)


def shifted(values: np.ndarray) -> np.ndarray:
    """Another regime: heat twelve of its deviations higher."""
    return values + np.array([0, 0, 0, 12 * values[:TRAIN, 3].std()])


def test_a_new_regime_is_learned_and_the_old_one_is_not_forgotten(half: VACE, tmp_path) -> None:
    old, new = frame(plant(1)[:2000]), frame(shifted(plant(2))[:2000])
    mixed = frame(np.concatenate([plant(1)[:1000], shifted(plant(2))[1000:2000]]))
    assert half.detect(mixed).anomalies  # the change of regime
    updated = copy(half, tmp_path).update(frame(shifted(plant(3))[:1500]))
    level = {name: det.signals(mixed)["level"] for name, det in (("half", half), ("new", updated))}
    assert level["half"][1100:].max() > 1
    assert level["new"][1100:].max() < 0.2
    assert not updated.detect(old).anomalies
    assert len(updated.detect(new).anomalies) <= 1


def test_an_update_survives_its_file(half: VACE, tmp_path) -> None:
    updated = copy(half, tmp_path).update(frame(plant()[:TRAIN], TRAIN // 2))
    updated.save(tmp_path / "new.vace")
    table = frame(plant(), TRAIN)
    np.testing.assert_array_equal(updated.score(table), load(tmp_path / "new.vace").score(table))


def with_service(size: float = 1.0) -> np.ndarray:
    values = plant(4)
    service(values, 1200, size=size)
    return values


def test_accepted_rows_become_normal_however_short_and_faults_never_do(half, tmp_path) -> None:
    rows = frame(with_service()[:2000])
    spoilt = with_service()
    later = frame(np.roll(spoilt, 1000, axis=0), TRAIN)  # the same at row 2200
    when = str(TIME[1200]), str(TIME[1240])
    for verdict, alarms in (("normal", False), ("fault", True)):
        detector = copy(half, tmp_path)
        line = detector.accept(when, rows, verdict=verdict)
        detector.update(rows)
        detector.undo(line.id)  # what was learned stays, what was said goes
        assert near(detector.detect(later).events, 2200) == alarms
