"""The scripts behind the site: the import graph, and docstrings as Markdown."""

from graphlib import CycleError
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "docs" / "scripts"


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)


def package(folder, **modules):
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def test_imports_inside_functions_count_and_those_for_annotations_do_not(tmp_path):
    from imports import drawing, graph

    late = "def f():\n    from vace_ad.b import x\n"
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from vace_ad.a import y\n"
    edges = graph(package(tmp_path, a=late, b=typed))
    assert edges == {"a": {"b"}, "b": set()}
    assert drawing(edges) == "b\na  <- b"


def test_public_names_lead_to_their_homes(tmp_path):
    from imports import graph

    edges = graph(package(tmp_path, a="from vace_ad import VACE, errors\n"))
    assert edges == {"a": {"detector", "errors"}}


def test_a_cycle_is_refused(tmp_path):
    from imports import drawing, graph

    with pytest.raises(CycleError):
        drawing(graph(package(tmp_path, a="import vace_ad.b\n", b="import vace_ad.a\n")))


def test_doctests_and_roles_become_markdown():
    pytest.importorskip("griffe", reason="pip install 'vace-ad[docs]'")
    from docstrings import markdown

    text = "See :class:`Stream`.\n\n>>> 1 + 1\n2\n\nAfter."
    assert markdown(text) == "See `Stream`.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nAfter."


def test_defaults_of_settings_are_shown_as_values():
    griffe = pytest.importorskip("griffe", reason="pip install 'vace-ad[docs]'")
    from docstrings import Docstrings

    source = {"m.py": "def f(a: int = default((1, 2)), b=None, c=1): ..."}
    with griffe.temporary_visited_package(
        "m", source, extensions=griffe.load_extensions(Docstrings)
    ) as module:
        assert [str(one.default) for one in module["m.f"].parameters] == ["(1, 2)", "None", "1"]


def test_descriptions_of_parameters_go_on_over_lines():
    from pages import parameters

    text = "Head.\n\nParameters\n----------\nx\n    First,\n    and on.\ny\n    Other."
    assert parameters(text) == {"x": "First, and on.", "y": "Other."}


def test_the_page_of_the_study_shows_what_there_is(tmp_path, monkeypatch):
    import study_page as study

    monkeypatch.setattr(study, "RESULTS", tmp_path)
    monkeypatch.setattr(study, "FIGURES", tmp_path)
    assert "## " not in study.study()
    (tmp_path / "ablation-test-only.md").write_text("**Ablation**\n")
    (tmp_path / "cost-tsb-ad.png").touch()
    names = "method,family,series,of,ours,published_same_series,gap,low,high,capped\n"
    (tmp_path / "published-families.csv").write_text(
        f"{names}usad,MSL,2,14,0.3,0.2,+0.1,,,3 of 9 epochs | batches of 8\n"
    )
    page = study.study()
    assert "## Ablation" in page
    assert "**Ablation**" in page
    assert "](../figures/cost-tsb-ad.png)" in page
    assert "## Sensitivity" not in page
    (tmp_path / "main-tsb-ad.md").write_text("**Main**\n\n| a |\n\n- std: so\n- usad: capped\n")
    columns = "method,VUS-PR,PATE,DQE,source,series,seeds,std,difference,low,high,seconds"
    (tmp_path / "main-tsb-ad.csv").write_text(
        f"{columns},memory_mb\n"
        "usad,0.25,0.5,,ours,4,2,0.01,-0.5,-0.75,-0.25,12.345,99\n"
        'USAD,0.375,,,"published, same series",4,,,,,,,\n'
    )
    page = study.study()
    assert (
        "| usad | 0.250 | 0.500 |  | 0.375 | 0.30 | 4 | 2: 0.010 | -0.500 [-0.750, -0.250] | 12.3 "
        "| 99 |"
    ) in page.replace("\N{NO-BREAK SPACE}", " ")
    assert "- usad: capped" in page
    assert "- std" not in page
    row = "| usad | MSL | 2 of 14 | 0.3 | 0.2 | +0.1 |  | 3 of 9 epochs · batches of 8 |"
    assert row in page
