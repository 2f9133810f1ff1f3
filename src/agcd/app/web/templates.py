"""HTML from the templates of this package: every value is escaped, a missing one is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(template: str, **values: Any) -> str:
    """The page that ``template`` (a file name such as ``login.html.j2``) makes of ``values``."""
    return ENVIRONMENT.get_template(template).render(values)
