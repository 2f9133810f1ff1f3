"""What the simulated person pays and says, against sums done by hand: K 0.28, M 1.35, a look 1.0, a thumbnail 0.4."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from agcd.data.arrays import from_arrays
from agcd.data.texts import from_texts
from agcd.lab.person.costs import MOST_WORDS, WORDS_PER_MINUTE, Costs, reading_costs
from agcd.lab.person.run_person import Study
from agcd.lab.person.simulated import Person

NAMES = ("tulip", "rose", "iris", "lily")
TRUTH = (0, 0, 0, 1, 1, 2, 3, 3)


def a_person(known: Sequence[int] = (0, 1), errors: float = 0.0, **costs: int) -> Person:
    rng = np.random.default_rng(0)
    return Person(TRUTH.__getitem__, NAMES, known, Costs(**costs), errors=errors, rng=rng)


def spent(person: Person) -> tuple[int, float]:
    return person.keys, person.seconds


@pytest.mark.parametrize(
    ("row", "suggested", "keys", "seconds"),
    [
        (0, {0, 1}, 1, 1.0 + 1.35 + 0.28),  # the digit of a suggestion
        (0, {1}, 5, 1.0 + 1.35 + 5 * 0.28),  # "/", t, u, l, Enter
        (5, {0, 1}, 6, 1.0 + 1.35 + 6 * 0.28),  # "n", i, r, i, s, Enter
    ],
)
def test_a_name_on_the_card_costs_a_look_a_thought_and_its_keys(
    row: int, suggested: set[int], keys: int, seconds: float
) -> None:
    person = a_person()
    assert person.name_on_card(row, suggested) == TRUTH[row]
    assert spent(person) == pytest.approx((keys, seconds))


@pytest.mark.parametrize(
    ("row", "hotkeys", "keys"),
    [
        (0, 36, 1),  # a key of its own
        (0, 1, 4),  # t, u, l, Enter: two names are known and one has a key
        (5, 36, 5),  # i, r, i, s, Enter
    ],
)
def test_a_name_in_a_plain_tool_costs_one_key_while_there_are_keys(row: int, hotkeys: int, keys: int) -> None:
    person = a_person(hotkeys=hotkeys)
    assert person.name_in_tool(row) == TRUTH[row]
    assert spent(person) == pytest.approx((keys, 1.0 + 1.35 + keys * 0.28))


def test_a_name_is_new_only_once() -> None:
    person = a_person()
    keys = []
    for _ in range(2):
        before = person.keys
        person.name_in_tool(5)
        keys.append(person.keys - before)
    assert keys == [5, 1]


def test_ticks_cost_a_key_each_and_enter() -> None:
    person = a_person()
    assert person.tick([1, 2, 3, 4], 0) == [1, 2]
    assert spent(person) == pytest.approx((3, 4 * 0.4 + 1.35 + 3 * 0.28))
    assert person.shown == {1, 2, 3, 4}


def test_a_sheet_gets_the_name_of_most() -> None:
    person = a_person()
    assert person.name_sheet([0, 3, 4]) == 1
    assert spent(person) == pytest.approx((1, 3 * 0.4 + 1.35 + 0.28))


def test_a_page_of_one_class_is_named_and_a_mixed_one_is_left_at_the_first_stranger() -> None:
    person = a_person()
    assert person.name_page([0, 1, 2]) == 0
    assert spent(person) == pytest.approx((1, 3 * 0.4 + 1.35 + 0.28))
    mixed = a_person()
    assert mixed.name_page([0, 3, 1, 2]) is None
    assert spent(mixed) == pytest.approx((1, 2 * 0.4 + 1.35 + 0.28))
    assert mixed.shown == {0, 3}


def test_clicks_and_waiting_are_time_and_preparation_is_not() -> None:
    person = a_person()
    person.click()
    person.press(1)
    person.wait(10.0)
    person.prepare(100.0)
    assert person.seconds == pytest.approx(1.35 + 1.1 + 0.2 + 1.35 + 0.28 + 10.0)
    assert (person.keys, person.waited, person.prepared) == (2, 10.0, 100.0)


def test_waiting_is_measured_by_the_clock() -> None:
    ticks = iter([5.0, 7.5])
    person = Person(
        TRUTH.__getitem__, NAMES, [0], Costs(), errors=0, rng=np.random.default_rng(0), clock=ticks.__next__
    )
    with person.waiting():
        pass
    assert (person.seconds, person.waited) == (2.5, 2.5)


def test_a_wrong_answer_is_another_class_that_the_person_knows() -> None:
    said = {a_person(known=(0, 1, 3), errors=1.0).name_on_card(0, set()) for _ in range(20)}
    assert said <= {1, 3}
    assert a_person(known=(), errors=1.0).name_on_card(0, set()) == 0  # there is no other name to say


def test_every_kind_of_decision_goes_wrong() -> None:
    assert a_person(errors=1.0).tick([1, 2, 3, 4], 0) == [3, 4]
    assert a_person(errors=1.0).name_page([0, 1, 2]) is None
    assert a_person(errors=1.0).name_page([0, 3]) == 1  # approved by mistake, and called otherwise by another
    assert a_person(errors=1.0).name_sheet([0, 1, 2]) == 1
    assert a_person(errors=1.0).name_in_tool(0) == 1


def test_errors_come_at_their_rate() -> None:
    person = a_person(errors=0.05)
    wrong = [person.name_in_tool(0) != 0 for _ in range(4000)]
    assert np.mean(wrong) == pytest.approx(0.05, abs=0.015)
    assert person.decisions == 4000


def test_a_text_takes_as_long_as_its_words_and_a_long_one_is_not_read_to_its_end() -> None:
    found = reading_costs(Costs(), ["two words", "word " * 1000])
    assert found.recognise == pytest.approx(60 * (2 + MOST_WORDS) / 2 / WORDS_PER_MINUTE)
    assert found.scan == pytest.approx(found.recognise / 2)
    assert found.key == Costs().key


def test_who_says_how_long_a_look_takes_is_believed_for_texts_too() -> None:
    texts = from_texts(["what is my balance", "where is my card"], ["a", "b"])
    assert Study(("x",)).costs_of(texts) == reading_costs(Costs(), texts.texts or ())
    assert Study(("x",), looks={"scan": 0.1}).costs_of(texts).scan == 0.1
    assert Study(("x",)).costs_of(from_arrays(np.eye(3), [0, 1, 2])) == Costs()
