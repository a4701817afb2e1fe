"""MkDocs hooks: reference pages from the code itself, and equations as MathML.

Browsers draw MathML by themselves, so the site needs no script from elsewhere.
"""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
from pages import PAGES  # beside this file

_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.S)
_BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.S)
# Pictures that belong to the benchmarks and are shown on a page.
_PICTURES = {"results/speed.png": "benchmarks/results/speed.png"}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made from the code, and pictures from elsewhere."""
    root = Path(config.config_file_path).parent
    for name, make in PAGES.items():
        files.append(File.generated(config, name, content=make()))
    for name, place in _PICTURES.items():
        files.append(File.generated(config, name, abs_src_path=str(root / place)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead links to pictures that lie outside of the folder to their place in the site."""
    for name, place in _PICTURES.items():
        markdown = markdown.replace(f"](../{place})", f"]({name})")
    return markdown


def on_page_content(content: str, page: Any, config: Any, files: Files) -> str:
    """Turn equations into MathML."""
    content = _BLOCK.sub(lambda found: _mathml(found[1], "block"), content)
    return _INLINE.sub(lambda found: _mathml(found[1], "inline"), content)


def _mathml(latex: str, display: str) -> str:
    return str(convert(html.unescape(latex).strip(), display=display))
