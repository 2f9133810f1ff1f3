"""What mkdocs does beside its own work: pages from elsewhere in the repository, and pages made from the code."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from site_pages import commands, names, python_api, rest, settings
from site_pages.links import INCLUDED, as_on_site
from site_pages.lists import four_columns

ROOT = Path(__file__).parents[1]
GENERATED = {
    "settings": settings.page,
    "commands": commands.page,
    "rest": rest.page,
    "names": names.page,
    "python": python_api.page,
}
"""What takes the place of the line ``<!-- generated: … -->`` of a page."""
RUNS = re.compile(r"^[ ]*<!-- runs: .*? -->\n", re.MULTILINE)
"""What a block of code says to its test (``tests/docs/test_blocks.py``)."""
_log = logging.getLogger("mkdocs.hooks.agcd")


def on_files(files: Files, config: Any) -> Files:
    """Take in the pages that lie beside the folder docs."""
    for source, uri in INCLUDED.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links into the source tree lead somewhere, and marked lines become pages of reference."""
    markdown = RUNS.sub("", markdown)
    for name, made in GENERATED.items():
        mark = f"<!-- generated: {name} -->"
        if mark in markdown:
            markdown = markdown.replace(mark, made())
    place = {uri: source for source, uri in INCLUDED.items()}.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    text, unknown = as_on_site(markdown, place, ROOT)
    for target in unknown:
        _log.warning("%s links to %s, which is not in the repository", place, target)
    return four_columns(text)
