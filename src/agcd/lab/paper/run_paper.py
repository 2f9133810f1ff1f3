"""``agcd paper``: runs what the wanted tables and figures need, once each, and writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agcd.engine import Engine
from agcd.errors import ConfigError, did_you_mean
from agcd.io import atomic_write
from agcd.lab.bench import Progress, check_cells, print_now, run_bench
from agcd.lab.cells import Cell
from agcd.lab.finished import FinishedCells
from agcd.lab.paper.comparable import network_words
from agcd.lab.paper.figure_plans import FIGURES, Figure
from agcd.lab.paper.study import Study, Wanted, with_estimates
from agcd.lab.paper.table_plans import TABLES, Table
from agcd.lab.paper.table_text import markdown, raw_csv
from agcd.plotting import headed, png_bytes
from agcd.tracking import Tracking


def find_wanted(what: str, name: str) -> list[Table | Figure]:
    """The table or figure of that name, or all of them."""
    if what == "all":
        if name:
            raise ConfigError(f"'all' makes everything; leave out {name!r}.")
        return [*TABLES.values(), *FIGURES.values()]
    known: Mapping[str, Table | Figure] = TABLES if what == "table" else FIGURES
    if name not in known:
        raise ConfigError(f"Unknown {what} {name!r}.{did_you_mean(name, known)}")
    return [known[name]]


def run_paper(
    studies: Sequence[Study],
    wanted: Sequence[Table | Figure],
    n_other_seeds: int,
    out: Path,
    cache_dir: Path,
    *,
    engine: Engine | None = None,
    progress: Progress = print_now,
    track: Tracking | None = None,
) -> str:
    """Write ``tables/NAME.md``, ``tables/NAME.csv``, ``figures/NAME.png`` and a page of all; returns the tables.

    Everything that tables and figures share is run once; what is finished is not run again. ``n_other_seeds`` is the
    number of seeds of everything that is not ``core``.
    """
    plan = [(one, seeded(studies, one, n_other_seeds)) for one in wanted]
    plan = [
        (one, [with_estimates(study, out, cache_dir, progress) if one.estimates else study for study in own])
        for one, own in plan
    ]
    cells = needed_cells(plan)
    check_cells(cells)
    run_bench(cells, out, cache_dir, engine=engine, progress=progress, track=track)
    finished, texts = FinishedCells(out, cache_dir), []
    for one, own in plan:
        progress(f"writing {one.name}")
        if isinstance(one, Table):
            texts.append(_write_table(one, own, finished))
        else:
            with atomic_write(out / "figures" / f"{one.name}.png") as aside:
                aside.write_bytes(png_bytes(headed(one.draw(own, finished), headline(own))))
    _write_index(out)
    return "\n".join(texts)


def headline(studies: Sequence[Study]) -> str:
    """What the studies of a figure were made with: once where it is the same for all of them, else by name."""
    made_with = {study.title: f"{network_words(study)}, protocol {study.protocol}" for study in studies}
    if len(set(made_with.values())) == 1:
        return made_with[studies[0].title]
    return "\n".join(f"{title}: {words}" for title, words in made_with.items())


def seeded(studies: Sequence[Study], wanted: Wanted, n_other_seeds: int) -> list[Study]:
    """The studies with as many seeds as a table or figure deserves."""
    return [study if wanted.core else replace(study, n_seeds=min(n_other_seeds, study.n_seeds)) for study in studies]


def needed_cells(plan: Sequence[tuple[Wanted, Sequence[Study]]]) -> list[Cell]:
    """The cells of everything wanted, each once, in the order in which they are first wanted."""
    entries = [entry for wanted, studies in plan for study in studies for entry in wanted.entries(study)]
    return list({repr(cell): cell for entry in entries for cell in entry.cells}.values())


def _write_table(table: Table, studies: Sequence[Study], finished: FinishedCells) -> str:
    blocks = [markdown(table, study, finished) for study in studies]
    text = f"### {table.title}\n\n" + "\n".join(blocks)
    for name, content in ((f"{table.name}.md", text), (f"{table.name}.csv", raw_csv(table, studies, finished))):
        with atomic_write(finished.out / "tables" / name) as aside:
            aside.write_text(content, encoding="utf-8")
    return text


def _write_index(out: Path) -> None:
    """``README.md``: every table and figure made so far, to be read in one go."""
    tables = [out / "tables" / f"{name}.md" for name in TABLES]
    figures = {f"figures/{figure.name}.png": figure.title for figure in FIGURES.values()}
    parts = [path.read_text(encoding="utf-8") for path in tables if path.exists()]
    parts += [f"### {title}\n\n![{title}]({place})\n" for place, title in figures.items() if (out / place).exists()]
    with atomic_write(out / "README.md") as aside:
        aside.write_text("# Tables and figures\n\n" + "\n".join(parts), encoding="utf-8")
