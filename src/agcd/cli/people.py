"""``agcd people``: who may log in to the page of a project, and what they may do there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from agcd.cli.options import JsonAnywhere, JsonOption, ProjectArgument, tell
from agcd.words import typed


class _PeopleCommands(JsonAnywhere):
    n_arguments = 1


app = typer.Typer(cls=_PeopleCommands, help="Who may log in to the page, with which role.")
NameArgument = Annotated[str, typer.Argument(help="The name under which the person logs in and answers.")]
RoleOption = Annotated[str, typer.Option(help="view: look; label: answer too; manage: train and change classes too.")]
RoleArgument = Annotated[str, typer.Argument(help="view, label or manage.")]


@app.callback(invoke_without_command=True)
def people(context: typer.Context, folder: ProjectArgument, as_json: JsonOption = False) -> None:
    """List the people of a project; add, remove, role and reset change them, also while it is served."""
    context.obj = folder
    if context.invoked_subcommand is not None:
        return
    from agcd.app.web.people import people_of

    listed = people_of(folder)
    lines = [f"{person.role.value:<6}  {person.name}" for person in listed]
    nobody = [f"nobody yet; agcd people {typed(folder)} add NAME lets somebody in"]
    facts = [{"name": person.name, "role": person.role.value} for person in listed]
    tell(as_json, {"people": facts}, lines or nobody)


@app.command()
def add(context: typer.Context, name: NameArgument, role: RoleOption = "label", as_json: JsonOption = False) -> None:
    """Let somebody in, with a random password or the one in AGCD_PASSWORD."""
    from agcd.app.web.people import add_person, role_named

    chosen = _chosen()
    password = add_person(_folder(context), name, role_named(role), chosen)
    facts = {"name": name, "role": role, "password": None if chosen else password}
    tell(as_json, facts, [f"{name} may log in with the role {role}", _password_line(password, chosen)])


@app.command()
def remove(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Let somebody in no longer: they are logged out at once, and their answers stay."""
    from agcd.app.web.people import remove_person

    remove_person(_folder(context), name)
    tell(as_json, {"name": name}, [f"{name} may no longer log in; the answers stay"])


@app.command()
def role(context: typer.Context, name: NameArgument, role: RoleArgument, as_json: JsonOption = False) -> None:
    """Give a person another role, from the next click on."""
    from agcd.app.web.people import change_role, role_named

    change_role(_folder(context), name, role_named(role))
    tell(as_json, {"name": name, "role": role}, [f"{name} now has the role {role}"])


@app.command()
def reset(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Give a person a new password, random or the one in AGCD_PASSWORD, and log them out everywhere."""
    from agcd.app.web.people import reset_password

    chosen = _chosen()
    password = reset_password(_folder(context), name, chosen)
    facts = {"name": name, "password": None if chosen else password}
    tell(as_json, facts, [f"{name} has a new password", _password_line(password, chosen)])


def _folder(context: typer.Context) -> Path:
    folder = context.obj
    assert isinstance(folder, Path)
    return folder


def _chosen() -> str | None:
    return os.environ.get("AGCD_PASSWORD") or None


def _password_line(password: str, chosen: str | None) -> str:
    return "password: the one in AGCD_PASSWORD" if chosen else f"password, shown only now: {password}"
