"""What reaches the terminal: file names, class names and reasons come from strangers, and a terminal obeys some.

Everything printed or logged goes through one place, which writes control characters as escapes.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TextIO, cast

from agcd.words import printable


class PrintableStream:
    """A text stream that writes control characters as escapes; ``rich`` finds the stream below, for its own colours."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"text is expected, not {type(text).__name__}")  # as io does; click asks in this way
        start = text[:1] if text[:1] == "\r" else ""  # progress bars begin their line again; names stand further on
        self.rich_proxied_file.write(start + printable(text[len(start) :], keep="\n\t"))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def isatty(self) -> bool:
        """Never, so that nobody colours what would be escaped."""
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextmanager
def printable_output() -> Iterator[None]:
    """Meanwhile nothing that is printed can steer the terminal, nor can the traceback that may follow."""
    before = sys.stdout, sys.stderr
    for stream in before:
        _take_every_letter(stream)
    sys.excepthook = _print_traceback
    sys.stdout, sys.stderr = (cast(TextIO, PrintableStream(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _take_every_letter(stream: TextIO) -> None:
    """No letter of a name is a reason to fail: Windows writes files in the code page of the country, and UTF-8 is what
    other programs read. A terminal gets what it can show."""
    if not isinstance(stream, io.TextIOWrapper) or stream.encoding.lower().replace("-", "") == "utf8":
        return
    if stream.isatty() or "PYTHONIOENCODING" in os.environ:
        stream.reconfigure(errors="backslashreplace")
    else:
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _print_traceback(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    PrintableStream(sys.stderr).writelines(traceback.format_exception(kind, error, where))


def data_output() -> TextIO:
    """Where a table goes that another program may read: as it is, unless a terminal is there to obey it."""
    below: TextIO = getattr(sys.stdout, "rich_proxied_file", sys.stdout)
    return sys.stdout if below.isatty() else below
