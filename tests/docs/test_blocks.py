"""Every block of code in the documentation runs, or says above it why it does not and is checked all the same."""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from agcd.config import make_config
from support.doc_blocks import CHECKED, REPOSITORY, RUN, SHOWN, Block, blocks_of, pages
from support.doc_commands import why_not
from support.doc_scenes import BEFORE, PRELUDES, make_scene
from support.doc_zygote import Python, Zygote

BLOCKS = {page: blocks for page in pages() if (blocks := blocks_of(page))}
ALL = [block for blocks in BLOCKS.values() for block in blocks]
SLOW = [page for page, blocks in BLOCKS.items() if any(block.how == "slow" for block in blocks)]


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    if os.name != "posix":
        pytest.skip("the blocks are run by bash and by forks")
    running = Zygote(tmp_path_factory.mktemp("z"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scene")
    make_scene(folder)
    return folder


def id_of(block: Block) -> str:
    return block.place


@pytest.mark.parametrize("block", ALL, ids=id_of)
def test_a_block_has_a_language_and_what_is_not_run_says_why(block: Block) -> None:
    assert block.language, f"{block.place}: say the language of the block (text, where nothing can run)"
    assert block.how in ("fast", "slow", "no", "in", "as"), f"{block.place}: {block.how!r} is no way to run a block"
    if block.how == "no":
        assert len(block.words) > 4, f"{block.place}: say why it cannot run"
    elif block.how == "in":
        text = (REPOSITORY / block.words).read_text(encoding="utf-8")
        assert Path(block.page).name in text or "contributing_example" in text, f"{block.place} is not run there"
    elif block.how == "as":
        assert re.fullmatch(r"[\w.-]+", block.words), f"{block.place}: {block.words!r} is no name of a file"
    else:
        assert block.language in RUN | CHECKED | SHOWN, f"{block.place}: nothing runs {block.language}"


@pytest.mark.parametrize("block", [one for one in ALL if one.language in ("sh", "console")], ids=id_of)
def test_the_commands_of_a_block_exist_with_their_options(block: Block) -> None:
    faults = [fault for words in block.commands() if (fault := why_not(words)) is not None]
    assert not faults, f"{block.place}: {faults}"


@pytest.mark.parametrize("block", [one for one in ALL if one.language in CHECKED], ids=id_of)
def test_files_that_are_shown_can_be_read(block: Block) -> None:
    if block.language == "json":
        json.loads(block.text)
        return
    values = tomllib.loads(block.text)
    if "project" not in values:  # of a package; all others are of settings, or of a project
        make_config({name: value for name, value in values.items() if name not in ("images", "source")})


@pytest.mark.parametrize("block", [one for one in ALL if one.language == "python"], ids=id_of)
def test_python_that_is_shown_is_python(block: Block) -> None:
    compile(block.text, block.place, "exec")


@pytest.mark.parametrize("page", BLOCKS)
def test_the_blocks_of_a_page_run_in_their_order(page: str, zygote: Zygote, scene: Path, tmp_path: Path) -> None:
    run_page([block for block in BLOCKS[page] if block.how != "slow"], zygote, scene, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW)
def test_all_blocks_of_a_page_run_in_their_order(page: str, zygote: Zygote, scene: Path, tmp_path: Path) -> None:
    run_page(BLOCKS[page], zygote, scene, tmp_path)


def run_page(blocks: list[Block], zygote: Zygote, scene: Path, folder: Path) -> None:
    """What runs of a page, in one folder and one namespace."""
    runs = [block for block in blocks if block.how == "as" or (block.how in ("fast", "slow") and block.language in RUN)]
    if not runs:
        return
    shutil.copytree(scene, folder, dirs_exist_ok=True)
    run_shell(BEFORE.get(runs[0].page, ""), "what is done before", zygote, folder)
    with zygote.python(folder) as python:
        if prelude := PRELUDES.get(runs[0].page):
            assert (told := python.run(prelude, "prelude")) is None, told
        for block in runs:
            run(block, zygote, python, folder)


def run(block: Block, zygote: Zygote, python: Python, folder: Path) -> None:
    if block.how == "as":
        (folder / block.words).write_text(block.text, encoding="utf-8")
    elif block.language == "python":
        assert (told := python.run(block.text, block.place)) is None, told
    else:
        run_shell(block.script, block.place, zygote, folder)


def run_shell(script: str, place: str, zygote: Zygote, folder: Path) -> None:
    done = zygote.shell(script, folder)
    assert done.returncode == 0, f"{place} ends with {done.returncode}\n{done.stdout}\n{done.stderr}"
