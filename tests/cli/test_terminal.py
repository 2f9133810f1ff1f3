"""Names and reasons of strangers never steer the terminal: what it would obey is printed as an escape."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agcd.cli.options import tell_table
from agcd.cli.terminal import PrintableStream, printable_output
from agcd.words import printable
from support.hostile import with_two_classes

TITLE = "\x1b]0;owned\x07"
"""Sets the title of a terminal's window."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (TITLE, r"\x1b]0;owned\x07"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x9b31m\x7f", r"\x9b31m\x7f"),
        ("ev\u202egpj.exe\u2066", r"ev\u202egpj.exe\u2066"),
        ("\udcff.jpg", r"\xff.jpg"),
        ("line\u2028line", r"line\u2028line"),
        ("Grünspecht 啄木鸟 👩\u200d🔬 C:\\new", "Grünspecht 啄木鸟 👩\u200d🔬 C:\\new"),
    ],
)
def test_control_characters_are_shown_and_letters_stay(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_no_text_at_all_reaches_the_stream_with_a_control_character(text: str) -> None:
    below = io.StringIO()
    assert PrintableStream(below).write(text) == len(text)
    written = below.getvalue()
    assert not {c for c in written[1:] if ord(c) < 32 or 127 <= ord(c) < 160} - {"\n", "\t"}
    written.encode("utf-8")


def hostile_names(root: Path) -> Path:
    folder = with_two_classes(root)
    cat = Image.open(folder / "cat" / "0.png")
    cat.rotate(90).save(folder / "cat" / f"{TITLE}.png")
    cat.rotate(180).save(folder / "cat" / "two\nlines.png")
    (folder / "cat" / f"broken{TITLE}\r\n9 images: fine.png").write_bytes(b"")
    with open(os.fsencode(folder / "cat") + b"/\xff\x1b.png", "wb") as file:
        file.write(b"not UTF-8")
    return folder


def output_of(*commands: tuple[str | Path, ...]) -> str:
    """What commands print, one after the other, in a process of their own."""
    code = (
        "import ast, sys, agcd.cli\n"
        "for words in ast.literal_eval(sys.argv[1]):\n"
        "    sys.argv = ['agcd', *words]\n"
        "    try: agcd.cli.main()\n"
        "    except SystemExit: pass\n"
    )
    told = repr([[str(word) for word in words] for words in commands])
    done = subprocess.run(
        [sys.executable, "-c", code, told], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return done.stdout.decode("utf-8", "surrogateescape")


def seen_on_a_terminal(*words: str | Path) -> str:
    """What a command writes where both its streams are a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "agcd.cli", *map(str, words)]
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env={**os.environ, "COLUMNS": "100"})
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 4096):
            seen += chunk
    except OSError:  # how Linux says that the other end is closed
        pass
    process.wait()
    os.close(ours)
    return seen.decode("utf-8", "surrogateescape")


def test_commands_print_no_name_as_it_is(tmp_path: Path) -> None:
    folder, project = hostile_names(tmp_path / "images"), tmp_path / "project"
    quick = ("backbone.name=toy", "backbone.image_size=32", "backbone.views=2", "train.base_epochs=1")
    settings = [word for setting in quick for word in ("--set", setting)]
    said = output_of(
        ("init", project, "--images", folder, "--classes", "3", *settings),
        ("status", project),
        ("train", project),
        ("export", project, "--out", tmp_path / f"out{TITLE}"),
        ("label", project, "--from", tmp_path / f"{TITLE}.csv"),
    )
    assert r"broken\x1b]0;owned\x07\r\n9 images: fine.png" in said
    assert r"\x1b]0;owned\x07.csv" in said
    assert r"out\x1b]0;owned\x07/labels.csv" in said
    assert "is trained on" in said
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "9 images: fine" not in [line[:14] for line in said.splitlines()]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("below", "shown"), [(Terminal(), r"\x1b]0;owned\x07"), (io.StringIO(), TITLE)])
def test_a_table_is_escaped_on_a_terminal_and_exact_in_a_pipe(
    below: io.StringIO, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", below)
    with printable_output():
        tell_table(False, "images", {"path": [TITLE]}, None)
    assert below.getvalue() == f"path\n{shown}\n"


def test_help_keeps_its_colours_on_a_terminal() -> None:
    assert "\x1b[" in seen_on_a_terminal("--help")
    assert "\\x1b" not in seen_on_a_terminal("--help")


def test_a_traceback_of_our_own_mistake_is_printable_too() -> None:
    code = (
        "import agcd.cli as cli\ndef broken(): raise RuntimeError('\\x1b]0;owned\\x07')\ncli.app = broken\ncli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert r"RuntimeError: \x1b]0;owned\x07" in done.stderr
    assert "\x1b" not in done.stderr
