"""The command line, a module per group of commands: each parses, calls one function and prints.

Heavy imports wait until a command needs them, so that ``agcd --help`` answers at once.
"""

from __future__ import annotations

import logging
import sys

import typer

from agcd.cli import about, bench, data, demo, estimate, labelling, paper, people, project, serve, upkeep
from agcd.cli.terminal import printable_output
from agcd.errors import AgcdError
from agcd.io import fault_of_disk

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
_COMMANDS = (
    demo.demo,
    project.init,
    serve.serve,
    project.train,
    project.query,
    labelling.label,
    labelling.undo,
    labelling.rename,
    labelling.merge,
    labelling.retire,
    project.status,
    project.predict,
    project.report,
    project.export,
    project.sort,
    upkeep.check,
    upkeep.backup,
    upkeep.restore,
    estimate.estimate,
    paper.paper,
    about.strategies,
    about.version,
)
for command in _COMMANDS:
    app.command()(command)
app.add_typer(bench.app, name="bench")
app.add_typer(data.app, name="data")
app.add_typer(people.app, name="people")


@app.callback()
def show_progress() -> None:
    """Find the classes nobody has named yet, with a few hundred answers."""
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("agcd").setLevel(logging.INFO)


def main() -> None:
    """Run a command; a user's mistake is one sentence and exit code 2, our mistake is a traceback."""
    with printable_output():
        try:
            app()
        except AgcdError as error:
            raise _told(error) from None
        except OSError as error:
            fault = fault_of_disk(error)
            if fault is None:
                raise
            raise _told(fault) from None
        except KeyboardInterrupt:
            print("stopped; run the same command again to continue", file=sys.stderr)
            raise SystemExit(130) from None


def _told(error: AgcdError) -> SystemExit:
    print(f"error: {error}", file=sys.stderr)
    return SystemExit(2)
