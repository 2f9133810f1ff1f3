"""The paper's data sets, read from their original layouts: facts, readers, published class splits, a check."""

from agcd.lab.published.check import Checked, check_published
from agcd.lab.published.facts import (
    PUBLISHED,
    Published,
    expanded,
    find_published,
    parse_spec,
    published_old_classes,
    with_preset,
)
from agcd.lab.published.load import load_published

__all__ = [
    "PUBLISHED",
    "Checked",
    "Published",
    "check_published",
    "expanded",
    "find_published",
    "load_published",
    "parse_spec",
    "published_old_classes",
    "with_preset",
]
