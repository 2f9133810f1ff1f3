"""``agcd serve``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from agcd.cli.options import ProjectArgument


def serve(
    folder: ProjectArgument,
    port: Annotated[int, typer.Option(help="0 takes any free one.", min=0, max=65535)] = 8765,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    allow_remote: Annotated[
        bool,
        typer.Option("--allow-remote", help="Let other machines in; needs people, or a password in AGCD_PASSWORD."),
    ] = False,
    name: Annotated[
        list[str] | None, typer.Option(help="A name under which others reach this machine; may be repeated.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="Serve by https: the certificate, a PEM file.")] = None,
    key: Annotated[Path | None, typer.Option(help="The private key of the certificate, a PEM file.")] = None,
    behind_proxy: Annotated[
        str | None, typer.Option(help="The address of a reverse proxy in front, as https://label.example.org.")
    ] = None,
    proxy_address: Annotated[
        str, typer.Option(help="Where the proxy's requests come from: it is believed about whose they are.")
    ] = "127.0.0.1,::1",
    by_hand: Annotated[
        bool, typer.Option("--by-hand", help="Start no work by itself: scripts that train in explicit rounds do it.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Add pictures that appear in the project's folder of images meanwhile.")
    ] = False,
) -> None:
    """Open the labelling page: label, name classes, train and download in the browser."""
    from agcd.app.web.addresses import Address
    from agcd.app.web.serve import serve as serve_project

    address = Address(host, port, allow_remote, tuple(name or ()), certificate, key, behind_proxy, proxy=proxy_address)
    password = os.environ.get("AGCD_PASSWORD") or None
    serve_project(folder, address, password=password, trains_itself=not by_hand, watches=watch)
