"""Whether a command of the documentation exists with these options, without running it."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from typing import Any

import typer

from agcd.cli import app
from support.doc_blocks import REPOSITORY


def why_not(words: list[str]) -> str | None:
    """What is wrong with a command, or None; of what is not ours nothing is known."""
    words = [
        word.strip("[]") if word.startswith("[-") else word.removesuffix("]") if "[" not in word else word
        for word in words
        if word != "…"
    ]
    name, *rest = words
    if name == "agcd" or words[:3] == ["python", "-m", "agcd"]:
        return _agcd(rest)
    if name == "make":
        known = re.findall(r"^([\w-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        return next((f"make {one}" for one in rest if "=" not in one and one not in known), None)
    if name == "pip":
        return next((f"extra {extra}" for extra in _extras(" ".join(rest)) if extra not in _known_extras()), None)
    if name == "python" and rest and rest[0].endswith(".py"):
        return _script(rest[0], rest[1:])
    return None


def _agcd(words: list[str]) -> str | None:
    if {"--help", "--version", "--install-completion"} & set(words):
        return None
    command: Any = typer.main.get_command(app)
    title, context = "agcd", None
    while True:
        try:
            context = command.make_context(title, list(words), parent=context)
        except Exception as error:
            missing = type(error).__name__ == "MissingParameter"  # what stands for it is left out, as in "…"
            return None if missing else f"{title}: {getattr(error, 'format_message', error.__str__)()}"
        words = [*getattr(context, "_protected_args", ()), *context.args]
        if not words or not hasattr(command, "commands"):
            return None
        if words[0] not in command.commands:
            return f"{title}: no command {words[0]!r}"
        command, title, words = command.commands[words[0]], f"{title} {words[0]}", words[1:]


def _extras(words: str) -> list[str]:
    return [extra.strip() for inside in re.findall(r"\[([\w, …]+)\]", words) for extra in inside.split(",")]


@cache
def _known_extras() -> frozenset[str]:
    found = set()
    for place in (REPOSITORY, REPOSITORY / "packaging" / "serve"):
        project = tomllib.loads((place / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        found |= set(project.get("optional-dependencies", ()))
    return frozenset(found | {"…"})


def _script(path: str, words: list[str]) -> str | None:
    if not (REPOSITORY / path).is_file():
        return f"no script {path}"
    known = {
        argument.value
        for call in ast.walk(ast.parse((REPOSITORY / path).read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"
        for argument in call.args
        if isinstance(argument, ast.Constant)
    }
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    return next((f"{path} has no {option}" for option in options if option not in known), None)
