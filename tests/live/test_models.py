import pytest

from live.fakes import FakeCore
from live.feeds import config, feed, model, write
from vace_ad.errors import ModelFileError
from vace_ad.live.models import EntityModels
from vace_ad.live.runner import Watch


def test_a_shared_file_that_is_wrong_stops_the_start(tmp_path):
    made = config(tmp_path)
    (tmp_path / "model.json").unlink()
    with pytest.raises(ModelFileError):
        EntityModels(made, FakeCore())


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", ".hidden", "a/b", "a b", ".."])
def test_a_hostile_name_chooses_no_file(tmp_path, name):
    model().save(tmp_path / "secret.json")
    (tmp_path / "models").mkdir()
    made = config(tmp_path, model={"file": str(tmp_path / "models" / "{entity}.json")})
    assert EntityModels(made, FakeCore()).of(name) is None


def test_a_file_each(tmp_path):
    (tmp_path / "models").mkdir()
    model().save(tmp_path / "models" / "p1.json")
    write(tmp_path, feed(n_rows=20))
    made = config(
        tmp_path,
        model={"file": str(tmp_path / "models" / "{entity}.json")},
        source={"follow": False},
    )
    watch = Watch(made, FakeCore())
    watch.run()
    assert set(watch.known) == {"p1"}
    assert watch.status.counts["no_model"] == 20
