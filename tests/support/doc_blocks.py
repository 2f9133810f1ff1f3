"""The blocks of code in the documentation, and what a comment above each says about running it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

REPOSITORY = Path(__file__).parents[2]
RUN = frozenset({"sh", "console", "python"})
CHECKED = frozenset({"toml", "json"})
SHOWN = frozenset({"text"})
"""What a program printed, a tree of files, a formula: nothing that could run."""
_MARK = re.compile(r"^<!-- runs: (?P<words>.+?) -->\s*$", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of a page: its language, its text, where it begins, and its mark.

    ``how`` is "fast" where nothing is said. Else a comment directly above the block says ``<!-- runs: slow -->``,
    ``<!-- runs: no, REASON -->``, ``<!-- runs: in tests/….py -->`` (a test runs this very block) or
    ``<!-- runs: as FILE -->`` (it is written to that file, for the blocks below it).
    """

    page: str
    line: int
    language: str
    text: str
    how: str = "fast"
    words: str = ""

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def script(self) -> str:
        """What a shell is to run: of a terminal's picture the lines that somebody typed."""
        if self.language != "console":
            return self.text
        lines, goes_on = [], False
        for line in self.text.splitlines():
            if goes_on or line.startswith("$ "):
                lines.append(line if goes_on else line[2:])
                goes_on = line.endswith("\\")
        return "\n".join(lines) + "\n"

    def commands(self) -> Iterator[list[str]]:
        """Every command of a shell block, as words, without what it reads from, writes to and is told by the shell."""
        for line in self.script.replace("\\\n", "").splitlines():
            lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
            lexer.whitespace_split = True
            words: list[str] = []
            for word in [*lexer, ";"]:
                if word and set(word) <= set("|&;"):
                    while words and re.match(r"\w+=", words[0]):
                        del words[0]
                    if words:
                        yield words
                    words = []
                else:
                    words.append(word)


def pages() -> list[str]:
    """Every page that has blocks to look at: those of the site, and those beside ``docs``."""
    docs = sorted(path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "docs").rglob("*.md"))
    return ["README.md", "CONTRIBUTING.md", *docs]


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page, in their order."""
    tokens = MarkdownIt("commonmark").parse((REPOSITORY / page).read_text(encoding="utf-8"))
    return [
        _block(page, token, before)
        for before, token in zip([None, *tokens], tokens, strict=False)
        if token.type in ("fence", "code_block")
    ]


def _block(page: str, token: Token, before: Token | None) -> Block:
    line = (token.map or [0])[0] + 1
    language = token.info.split()[0] if token.info.split() else ""
    mark = _MARK.match(before.content) if before is not None and before.type == "html_block" else None
    if mark is None:
        return Block(page, line, language, token.content)
    how, _, words = mark["words"].partition(" ")
    return Block(page, line, language, token.content, how.rstrip(","), " ".join(words.split()))
