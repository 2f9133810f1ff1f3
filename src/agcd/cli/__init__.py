"""The command line, a module per group of commands: each parses, calls one function and prints.

Heavy imports wait until a command needs them, so that ``agcd --help`` answers at once.
"""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from agcd.cli import (
    about,
    bench,
    data,
    demo,
    doctor,
    estimate,
    growth,
    join,
    labelling,
    paper,
    people,
    project,
    serve,
    upkeep,
    weights,
)
from agcd.cli.options import tell
from agcd.cli.terminal import printable_output
from agcd.errors import AgcdError, ConfigError, not_installed
from agcd.io import fault_of_disk

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
_COMMANDS = (
    demo.demo,
    project.init,
    serve.serve,
    growth.add,
    growth.remove,
    project.train,
    join.join,
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
    about.plugins,
    doctor.doctor,
    about.version,
)
for command in _COMMANDS:
    app.command()(command)
app.add_typer(bench.app, name="bench")
app.add_typer(data.app, name="data")
app.add_typer(people.app, name="people")
app.add_typer(weights.app, name="weights")


@app.callback()
def show_progress(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=about.print_version)
    ] = False,
) -> None:
    """Find the classes nobody has named yet, with a few hundred answers."""
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("agcd").setLevel(logging.INFO)


def main() -> None:
    """Run a command; a user's mistake is one sentence and exit code 2, our mistake is a traceback and exit code 1.

    With ``--json`` both are one object on the output as well, so that it can be parsed whatever happens.
    """
    with printable_output():
        try:
            _run()
        except AgcdError as error:
            raise _told(error) from None
        except ModuleNotFoundError as error:
            fault = not_installed(" ".join(["agcd", *sys.argv[1:2]]), error.name)
            if fault is None:
                _tell_program(f"our mistake ({error!r})")
                raise
            raise _told(fault) from None
        except OSError as error:
            disk = fault_of_disk(error)
            if disk is None:
                _tell_program(f"our mistake ({error!r})")
                raise
            raise _told(disk) from None
        except KeyboardInterrupt:
            words = "stopped; run the same command again to continue"
            print(words, file=sys.stderr)
            _tell_program(words)
            raise SystemExit(130) from None
        except Exception as error:
            _tell_program(f"our mistake ({error!r})")
            raise


def _run() -> None:
    """The command itself. typer makes an exit code of an interrupt, and prints wrong options for people only."""
    if not _for_a_program():
        try:
            app()
        except SystemExit as stopped:
            if stopped.code == 130:
                raise KeyboardInterrupt from None
            raise
        return
    try:
        code = app(standalone_mode=False)
    except Exception as error:
        if not hasattr(error, "format_message"):  # what typer's own errors have in common
            raise
        raise ConfigError(error.format_message()) from None
    if code == 130:
        raise KeyboardInterrupt
    raise SystemExit(code)


def _for_a_program() -> bool:
    return "--json" in sys.argv[1:]


def _tell_program(words: str) -> None:
    if _for_a_program():
        tell(True, {"error": words}, [])


def _told(error: AgcdError) -> SystemExit:
    print(f"error: {error}", file=sys.stderr)
    _tell_program(str(error))
    return SystemExit(2)
