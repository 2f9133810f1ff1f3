"""A self-contained ``report.html`` about a finished discovery, and the same figures as PNG files."""

from agcd.report.page import write_report
from agcd.report.story import (
    ClassStrip,
    Confidence,
    Confusion,
    Disputed,
    Doubt,
    Estimate,
    FeatureMap,
    RoundFacts,
    Story,
)

__all__ = [
    "ClassStrip",
    "Confidence",
    "Confusion",
    "Disputed",
    "Doubt",
    "Estimate",
    "FeatureMap",
    "RoundFacts",
    "Story",
    "write_report",
]
