"""``agcd weights``: weights files by name, so that settings need neither a path nor the name of a network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agcd.cli.options import JsonOption, every_second, tell

if TYPE_CHECKING:
    from agcd.known_weights import KnownWeights

app = typer.Typer(
    no_args_is_help=True, help="Pretrained weights by name: add your files, check them, fetch published ones."
)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="What settings call them, as dino-vitb16.")]
BackboneOption = Annotated[str, typer.Option(help="The timm model that they fill, as vit_base_patch16_224.dino.")]
LicenceOption = Annotated[str | None, typer.Option(help="Their licence, to be remembered.")]
ReplaceOption = Annotated[bool, typer.Option("--replace", help="Take the name from other weights.")]


@app.command(name="list")
def list_(as_json: JsonOption = False) -> None:
    """List the weights that have a name, and the published ones that can be fetched."""
    from agcd.fetch_weights import PUBLISHED
    from agcd.known_weights import known_weights

    known = known_weights()
    others = {name: published for name, published in PUBLISHED.items() if name not in known}
    lines = []
    for one in known.values():
        lines.append(f"{one.name:<14}  {one.backbone}, {one.bytes / 1e6:,.0f} MB, {one.licence or 'licence unknown'}")
        lines.append(f"{'':<14}  {one.file}")
    if not known:
        lines.append("no weights have a name here: agcd weights add NAME FILE --backbone MODEL gives them one")
    lines += [
        f"{name:<14}  {one.backbone}, {one.licence}; not here: agcd weights get {name}" for name, one in others.items()
    ]
    tell(as_json, {"weights": list(known.values()), "published": others}, lines)


@app.command()
def add(
    name: NameArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .safetensors, .pth, .pt or .bin file.")],
    backbone: BackboneOption,
    licence: LicenceOption = None,
    copy: Annotated[bool, typer.Option("--copy", help="Copy the file; else it must stay where it is.")] = False,
    replace: ReplaceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Give a weights file a name, if it fits the network; nothing that is in it is run."""
    from agcd.features.named_weights import add_weights

    _tell_named(add_weights(name, file, backbone, licence=licence, copy=copy, replace=replace), as_json)


def _tell_named(entry: KnownWeights, as_json: bool) -> None:
    lines = [f"{entry.name}: {entry.file} fills {entry.backbone}, SHA-256 {entry.sha256}"]
    tell(as_json, vars(entry), [*lines, f"next: --set backbone.weights={entry.name}"])


@app.command()
def check(as_json: JsonOption = False) -> None:
    """Read every file that has a name, and say whether it is still what was added; exit code 1 if one is not."""
    from agcd.known_weights import known_weights

    known = known_weights()
    problems = {name: entry.problem() for name, entry in known.items()}
    lines = [f"{name:<14}  {problem or 'as it was added'}" for name, problem in problems.items()]
    tell(as_json, {"problems": problems}, lines or ["no weights have a name here"])
    if any(problems.values()):
        raise typer.Exit(1)


@app.command()
def remove(name: NameArgument, as_json: JsonOption = False) -> None:
    """Take a name off the list; its file stays where it is."""
    from agcd.known_weights import forget

    file = forget(name).file
    tell(as_json, {"name": name, "file": file}, [f"{name} is forgotten; {file} is still there"])


@app.command()
def get(
    name: NameArgument,
    url: Annotated[str | None, typer.Option(help="Fetch it from here, and not what is published as NAME.")] = None,
    sha256: Annotated[str | None, typer.Option(help="The SHA-256 that the file must have; with --url.")] = None,
    backbone: Annotated[str | None, typer.Option(help="The timm model that it fills; with --url.")] = None,
    licence: LicenceOption = None,
    replace: ReplaceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fetch published weights from the network, by name or by address and digest; the only command that connects."""
    from agcd.features.named_weights import get_weights

    print(f"fetching {name}", file=sys.stderr)
    say = every_second("bytes")
    _tell_named(get_weights(name, url, sha256, backbone, licence=licence, replace=replace, say=say), as_json)
