"""What a class or a person may be called."""

from __future__ import annotations

import pytest

from agcd.app.store.classes import clean_class_name, clean_text
from agcd.errors import DataError


@pytest.mark.parametrize("name", ["\u200b", "cat\u200b", "c\u00adat", "\ufeffcat", "cat\u2060", "a\U000e0041b"])
def test_what_nobody_can_see_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="nobody can see"):
        clean_text(name)


@pytest.mark.parametrize("name", ["\u200d", " \u200c ", "\u00a0", "\u200f"])
def test_nothing_but_joiners_and_space_is_empty(name: str) -> None:
    with pytest.raises(DataError, match="empty"):
        clean_text(name)


@pytest.mark.parametrize("name", ["👩\u200d🔬", "می\u200cخواهم", "क\u200dष", "日本", "Ñandú", "مرحبا\u200e C++"])
def test_joiners_between_characters_stay(name: str) -> None:
    assert clean_class_name(f" {name} ") == name


@pytest.mark.parametrize("name", ["unnamed #4", "Unnamed #17", " unnamed #0"])
def test_the_words_for_a_group_without_a_name_are_refused(name: str) -> None:
    with pytest.raises(DataError, match="nobody has named"):
        clean_class_name(name)


def test_names_that_only_look_alike_are_fine() -> None:
    assert clean_class_name("unnamed") == "unnamed"
    assert clean_class_name("unnamed #4b") == "unnamed #4b"
