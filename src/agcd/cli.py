"""The command line: parse, call one function, print. Heavy imports wait until a command needs them."""

from __future__ import annotations

import logging
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from agcd import __version__
from agcd.errors import AgcdError, ConfigError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

CacheOption = Annotated[Path, typer.Option("--cache", help="Folder for features and unpacked data; may be deleted.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="A setting, as train.base_epochs=50; may be repeated.")
]


@app.callback()
def show_what_is_going_on() -> None:
    """Find the classes nobody has named yet, with a few hundred answers."""
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("agcd").setLevel(logging.INFO)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for runs, figures and report.html.")] = Path("agcd-demo"),
    seed: Annotated[int, typer.Option(help="Drives the split, the training and the questions.")] = 0,
) -> None:
    """Discover the hidden classes of the embedded photographs with a simulated annotator, and write a report."""
    from agcd.bench.demo import run_demo

    run_demo(out, seed)


@app.command()
def bench(
    data: Annotated[list[str], typer.Option(help="A named data set, folder, manifest or .npz; may be repeated.")],
    strategies: Annotated[str, typer.Option(help="Comma-separated; 'none' is base training alone.")],
    out: Annotated[Path, typer.Option(help="Folder for runs and results; running again continues.")],
    seeds: Annotated[int, typer.Option(help="Number of seeds, counted from 0.", min=1)] = 3,
    rounds: Annotated[int, typer.Option(help="Active rounds.", min=1)] = 5,
    budget: Annotated[int | None, typer.Option(help="Questions per round; default one per novel class.")] = None,
    protocol: Annotated[str, typer.Option(help="quick, paper or official.")] = "quick",
    n_old: Annotated[int | None, typer.Option(help="Old classes; default half of them.")] = None,
    label_ratio: Annotated[float, typer.Option(help="Share of the old classes' train rows that start labelled.")] = 0.2,
    long_tail: Annotated[float | None, typer.Option(help="Ratio of the largest to the smallest class.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Parallel processes; default one per core.", min=1)] = None,
    settings: Annotated[Path | None, typer.Option(help="A TOML file of settings.")] = None,
    set_: SetOption = None,
    cache: CacheOption = Path("cache"),
) -> None:
    """Compare strategies over data sets and seeds with a simulated oracle; resumable."""
    from agcd.bench.grid import make_cells, report_bench

    values = {**_read_settings(settings), "protocol": protocol}
    values = _with_overrides(values, [*(set_ or []), f"query.rounds={rounds}"])
    if budget is not None:
        values = _with_overrides(values, [f"query.budget={budget}"])
    split = {"n_old": n_old, "label_ratio": label_ratio, "long_tail": long_tail}
    cells = make_cells(data, [s.strip() for s in strategies.split(",")], seeds, values, split)
    print(report_bench(cells, out, cache, jobs=jobs))


@app.command()
def strategies() -> None:
    """List the query strategies, each with the first line of its documentation."""
    from agcd.strategies import list_strategies

    listed = list_strategies()
    width = max(map(len, listed))
    for name, line in listed.items():
        print(f"{name:<{width}}  {line}")


@app.command()
def data() -> None:
    """List the named data sets."""
    from agcd.data.named import NAMED

    for name, loader in NAMED.items():
        print(f"{name:<12}  {(loader.__doc__ or '').splitlines()[0]}")


@app.command()
def version() -> None:
    """Print the version."""
    print(__version__)


def _read_settings(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as settings: {error}.") from None


def _with_overrides(values: dict[str, Any], overrides: list[str]) -> dict[str, Any]:
    """``values`` with each ``section.key=value`` put in; the value is read as TOML, else taken as a string."""
    for text in overrides:
        where, equals, raw = text.partition("=")
        *sections, key = where.strip().split(".")
        if not equals or not key:
            raise ConfigError(f"--set {text!r} is not of the form section.key=value.")
        try:
            value = tomllib.loads(f"value = {raw}")["value"]
        except tomllib.TOMLDecodeError:
            value = raw
        inner = values
        for section in sections:
            inner[section] = dict(inner.get(section, {}))
            inner = inner[section]
        inner[key] = value
    return values


def main() -> None:
    """Run a command; a user's mistake is one sentence and exit code 2, our mistake is a traceback."""
    try:
        app()
    except AgcdError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("stopped; run the same command again to continue", file=sys.stderr)
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
