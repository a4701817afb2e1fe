"""The drawings of the method show what it computes."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra plot)")
SCRIPTS = Path(__file__).parents[2] / "docs" / "scripts"


@pytest.fixture(scope="module")
def drawings():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPTS)
        import drawings

        yield drawings


@pytest.fixture(scope="module")
def found(drawings, data_folder):
    return drawings.compute()


def test_the_fault_is_where_the_score_is_highest(drawings, found):
    start, end = drawings.FAULT
    assert found.score.shape == (drawings.ROWS,)
    assert start <= found.score.argmax() < end
    assert start - drawings.P < found.position.argmax() < end


def test_the_stages_are_those_of_the_papers_encoder(drawings, found):
    texts = [each.get_text() for each in drawings.draw_encoder(found).axes[0].texts]
    assert [text.split("\n")[-1] for text in texts if " × " in text] == [
        "2 × 96", "16 × 96", "128 × 96", "256 × 96", "128 × 96", "64 × 96",
    ]  # fmt: skip


def test_patches_are_drawn_where_their_embeddings_lie(drawings, found):
    path = drawings.draw_trajectory(found).axes[2]
    points = [tuple(each.get_offsets()[0]) for each in path.collections]
    np.testing.assert_allclose(points, found.plane[list(drawings.SHOWN)])
    assert len(drawings.draw_pipeline(found).axes) == 6
