"""``agcd serve``."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from agcd.cli.options import ProjectArgument


def serve(
    folder: ProjectArgument,
    port: Annotated[int, typer.Option(help="0 takes any free one.", min=0, max=65535)] = 8765,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let other machines in; needs a password in AGCD_PASSWORD.")
    ] = False,
    name: Annotated[
        list[str] | None, typer.Option(help="A name under which others reach this machine; may be repeated.")
    ] = None,
    by_hand: Annotated[
        bool, typer.Option("--by-hand", help="Start no work by itself: scripts that train in explicit rounds do it.")
    ] = False,
) -> None:
    """Open the labelling page: label, name classes, train and download in the browser."""
    from agcd.app.web.serve import serve as serve_project

    password = os.environ.get("AGCD_PASSWORD")
    serve_project(
        folder,
        host=host,
        port=port,
        allow_remote=allow_remote,
        names=name or [],
        password=password,
        trains_itself=not by_hand,
    )
