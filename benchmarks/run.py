"""Runs the benchmarks one after another and writes what they print into docs/performance.md.

    python benchmarks/run.py [NAME …] [--quick]

Without names all are run. A section that is not run keeps its text, so the page may be renewed part by part.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
PLOTS = HERE.parent / "docs" / "images" / "performance"


@dataclass(frozen=True)
class Section:
    """One benchmark on the page. ``arguments`` follow the script's name; ``picture`` is what ``--plots`` draws."""

    name: str
    title: str
    arguments: tuple[str, ...] = ()
    picture: str | None = None
    has_quick: bool = True

    @property
    def command(self) -> str:
        return " ".join(["python", f"benchmarks/{self.name}.py", *self.arguments])


SECTIONS = (
    Section("tail", "A training step over cached tokens"),
    Section("epoch", "A whole epoch"),
    Section("adapter", "An adapter on embeddings"),
    Section("growth", "How training and features grow", picture="growth.png"),
    Section("extraction", "Features from images"),
    Section("texts", "Features from texts"),
    Section("low_precision", "Transformers in int8 and bfloat16"),
    Section("selection", "Questions over large pools", picture="selection-growth.png"),
    Section("query", "What a question costs"),
    Section("one_answer", "What one answer costs"),
    Section("mapping", "Mapping and accuracy for many classes"),
    Section("engines", "Two processes against two threads"),
    Section("costs", "What `agcd estimate` says, and what it took"),
    Section("large_project", "A project of 50,000 images", ("bench-runs/cifar10/package",)),
    Section("page", "The labelling page with a million rows", has_quick=False),
    Section("http_loop", "Labelling over HTTP equals the benchmark", has_quick=False),
)
INTRODUCTION = """# Performance

Written by `make bench` (`benchmarks/run.py`); every section names its own command. Figures are ratios measured in one
run wherever there is a plain way to compare with: this machine is shared and its times move, ratios move less.
What the default number of views is worth is in [results](results/README.md#how-many-views); how to use more than one
machine, and what limits what, in [scaling](scaling.md).
"""


def run_section(section: Section, quick: bool) -> str:
    """The text of a section, measured now."""
    extra = ["--quick"] if quick and section.has_quick else []
    if section.picture:
        extra += ["--plots", str(PLOTS)]
    command = [sys.executable, str(HERE / f"{section.name}.py"), *section.arguments, *extra]
    print(f"{section.command} …", file=sys.stderr, flush=True)
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=HERE.parent)
    minutes = (time.perf_counter() - start) / 60
    picture = f"\n![{section.title}](images/performance/{section.picture})\n" if section.picture else ""
    # tables that a script heads with # or ## must not outrank the section
    body = re.sub(r"^#+ ", "### ", done.stdout.strip(), flags=re.MULTILINE)
    return f"`{section.command}`, {minutes:.0f} min, {machine()}\n\n{body}\n{picture}"


def machine() -> str:
    """What it was measured on."""
    model = platform.processor() or platform.machine()
    cpu_info = Path("/proc/cpuinfo")
    if cpu_info.exists() and (found := re.search(r"model name\s*: (.+)", cpu_info.read_text())):
        model = found[1]
    return f"{model}, {os.cpu_count()} cores"


def stored_sections() -> dict[str, str]:
    """The text below each heading of the page as it is."""
    if not PAGE.exists():
        return {}
    parts = re.split(r"^## (.+)\n\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def write_page(texts: dict[str, str]) -> None:
    body = [f"## {section.title}\n\n{texts[section.title].strip()}\n" for section in SECTIONS if section.title in texts]
    PAGE.write_text("\n".join([INTRODUCTION, *body]), encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *(section.name for section in SECTIONS)], metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="small versions, to see that everything runs")
    options = parser.parse_args(argv)
    PLOTS.mkdir(parents=True, exist_ok=True)
    texts = stored_sections()
    for section in SECTIONS:
        if not options.names or section.name in options.names:
            texts[section.title] = run_section(section, options.quick)
            write_page(texts)


if __name__ == "__main__":
    main()
