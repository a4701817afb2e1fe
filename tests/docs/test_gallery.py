"""The gallery's sentences and page, without fits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from vace_ad.alarms.budget import Threshold
from vace_ad.alarms.events import Event
from vace_ad.detection import Detection

SCRIPTS = Path(__file__).parents[2] / "docs" / "scripts"
N = 1000


@pytest.fixture
def gallery(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.syspath_prepend(SCRIPTS)
    import gallery

    monkeypatch.setattr(gallery, "OUT", tmp_path)
    monkeypatch.setattr(gallery, "DATA", tmp_path / "data")
    return gallery


def detection(*spans: tuple[int, int]) -> Detection:
    events = tuple(Event(a, b, a, severity=50.0, shares=(("b", 0.8), ("a", 0.2))) for a, b in spans)
    silence = Event(3, 3, 3, "no data")
    line = np.zeros(N)
    return Detection(line, {}, line, line, Threshold(1.0, ""), (silence, *events), (), ())


def labels(*spans: tuple[int, int]) -> np.ndarray:
    rows = np.zeros(N, dtype=bool)
    for a, b in spans:
        rows[a:b] = True
    return rows


@pytest.mark.parametrize(
    ("events", "faults", "said"),
    [
        ([(10, 20)], [(15, 30)],
         "The one labelled fault was found, and no event lies elsewhere; events cover 1.0% of the "
         "rows."),
        ([(20, 30)], [(10, 20)],
         "The one labelled fault was not found, and one event lies elsewhere; events cover 1.0% of "
         "the rows."),
        ([(10, 20), (500, 520), (600, 610)], [(0, 11), (400, 450)],
         "1 of 2 labelled faults were found, and 2 events lie elsewhere; events cover 4.0% of the "
         "rows."),
        ([], [(0, 1), (5, 6)],
         "0 of 2 labelled faults were found, and no event lies elsewhere; events cover none of the "
         "rows."),
    ],
)  # fmt: skip
def test_what_was_found_is_one_sentence(
    gallery: Any, events: list[Any], faults: list[Any], said: str
) -> None:
    assert gallery.outcome(detection(*events), labels(*faults)) == said


def test_a_series_is_read_up_to_its_limit_with_the_training_that_its_name_tells(
    gallery: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece = gallery.Piece("x", "X", "TSB-AD-M/*_X_id_1_*", "About.")
    assert gallery.rows(piece) is None
    folder = tmp_path / "data" / "TSB-AD-M"
    folder.mkdir(parents=True)
    frame = pl.DataFrame({"a": np.arange(90), "b": np.ones(90), "Label": [0] * 80 + [1] * 10})
    frame.write_parquet(folder / "001_X_id_1_Facility_tr_50_1st_80.parquet")
    monkeypatch.setattr(gallery, "MOST_ROWS", 35)
    table, truth, train = gallery.rows(piece)
    assert (table.values.shape, table.names, train) == ((85, 2), ("a", "b"), 50)
    assert truth.nonzero()[0].tolist() == [80, 81, 82, 83, 84]


def test_the_page_shows_the_pieces_that_are_there(gallery: Any, tmp_path: Path) -> None:
    (tmp_path / "ecg.txt").write_text("Something was found.\n")
    page = gallery.page()
    assert page.count("\n## ") == 1
    assert "## A heart\n" in page
    assert "(SVDB), 128 rows a second. Something was found." in page
    assert "](ecg.png)" in page


def test_a_picture_is_drawn_with_the_channels_blamed_most(gallery: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pip install 'vace-ad[plot]'")
    from vace_ad.frames.table import Table

    table = Table(np.random.default_rng(0).normal(size=(N, 2)), ("a", "b"), None)
    gallery.draw(gallery.PIECES[0], table, detection((10, 20)), labels((12, 30)))
    assert (tmp_path / "plant.png").read_bytes().startswith(b"\x89PNG")


def test_a_piece_that_is_not_known_is_refused(
    gallery: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gallery.py", "plannt"])
    with pytest.raises(SystemExit):
        gallery.main()
    assert "there is no plannt; choose of plant, " in capsys.readouterr().err


def test_every_piece_is_on_the_committed_page() -> None:
    sys.path.insert(0, str(SCRIPTS))
    try:
        import gallery
    finally:
        sys.path.remove(str(SCRIPTS))
    assert (gallery.OUT / "index.md").read_text() == gallery.page()
    assert all((gallery.OUT / f"{piece.key}.png").exists() for piece in gallery.PIECES)
