"""The paper's numbers: copied right, in agreement with themselves, and marked where they are not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from agcd.lab.paper.printed import PaperEstimate, paper_estimate, paper_numbers
from agcd.strategies import list_strategies

PRINTED: dict[str, Any] = json.loads(files("agcd.lab.paper").joinpath("numbers.json").read_text(encoding="utf-8"))
Place = tuple[str, str, str, str]
"""Table, data set, line, column."""
ACCURACIES = {"acc_all", "acc_old", "acc_new"}
NOVELTY = {"nov_coverage", "nov_ratio", "nov_uniformity", "nov_information"}
HALF_DIGIT = 0.005
"""Of a number printed with two decimals."""
OLD_SHARES = {
    "cifar10": (0.2, 0.0),
    "cifar100": (0.5, 0.0),
    "imagenet100": (0.5, 0.0),
    "cub": (0.498, 0.0005),
    "stanford_cars": (0.491, 0.0005),
    "fgvc_aircraft": (0.5, 0.0005),
    "herbarium19": (0.514, 0.0005),
}
"""Share of the test images that are of old classes, and how far it may be off: half its last digit."""
MEASURES = {
    "main": ACCURACIES,
    "novelty": NOVELTY,
    "factors": ACCURACIES,
    "metrics": ACCURACIES,
    "ratio": {"acc_all"},
    "budget": {"acc_all"},
    "unknown-k": ACCURACIES,
    "trainers": ACCURACIES,
    "open-set": ACCURACIES,
    "long-tail": ACCURACIES,
    "transfer-round": {"transfer_round"},
}


def rows() -> Iterator[tuple[Place, dict[str, float]]]:
    for table, datasets in PRINTED["tables"].items():
        for dataset, lines in datasets.items():
            for line, columns in lines.items():
                for column, values in columns.items():
                    yield (table, dataset, line, column), values


def errata() -> set[Place]:
    return {(e["table"], e["dataset"], e["line"], e["column"]) for e in PRINTED["errata"]}


def all_is_the_mean_of_old_and_new(place: Place, values: dict[str, float]) -> bool:
    """All is rounded, Old and New are, and the share may be off."""
    share, slack = OLD_SHARES[place[1]]
    mean = share * values["acc_old"] + (1 - share) * values["acc_new"]
    allowed = 2 * HALF_DIGIT + slack * abs(values["acc_old"] - values["acc_new"]) + 1e-9
    return abs(values["acc_all"] - mean) <= allowed


def test_all_is_the_mean_of_old_and_new_except_in_the_errata() -> None:
    full = [(place, values) for place, values in rows() if values.keys() >= ACCURACIES]
    impossible = {place for place, values in full if not all_is_the_mean_of_old_and_new(place, values)}
    assert impossible == errata()
    assert len(errata()) == len(PRINTED["errata"]) == 5


def test_novelty_information_is_ratio_times_uniformity() -> None:
    for place, values in rows():
        if values.keys() >= NOVELTY:
            product = values["nov_ratio"] * values["nov_uniformity"]
            # Both factors are rounded too, which moves a product of numbers up to one by at most their sum.
            slack = HALF_DIGIT * (1 + values["nov_ratio"] + values["nov_uniformity"])
            assert abs(values["nov_information"] - product) <= slack, place


@pytest.mark.parametrize(
    ("table", "n_rows"),
    [
        ("main", 6 * 9),
        ("novelty", 6 * 6),
        ("factors", 2 * 4),
        ("metrics", 2 * 3),
        ("ratio", 4 * 6),
        ("budget", 3 * 5),
        ("unknown-k", 4 * 3),
        ("trainers", 4 * 2),
        ("open-set", 2 * 5),
        ("long-tail", 4),
        ("transfer-round", 5),
    ],
)
def test_every_table_is_whole(table: str, n_rows: int) -> None:
    found = [values for place, values in rows() if place[0] == table]
    assert len(found) == n_rows
    assert all(values.keys() == MEASURES[table] for values in found)
    assert set(MEASURES) == set(PRINTED["tables"])


def test_data_sets_and_strategies_have_the_names_used_here() -> None:
    lines = {line for (table, _, line, _), _ in rows() if table not in ("factors", "metrics")}
    assert lines <= {"none", *list_strategies()}
    assert {place[1] for place, _ in rows()} == set(OLD_SHARES)


def test_accuracies_are_per_cent_and_novelty_is_a_share() -> None:
    for place, values in rows():
        for measure, value in values.items():
            low, high = {"a": (1, 100), "n": (0.3, 1), "t": (2, 4)}[measure[0]]
            assert low <= value <= high, place


@pytest.mark.parametrize(
    ("place", "twin"),
    [
        (("factors", "cifar100", "a", ""), ("main", "cifar100", "random", "")),
        (("factors", "cub", "a", ""), ("main", "cub", "random", "")),
        (("factors", "cifar100", "d", ""), ("main", "cifar100", "adaptive_novel", "")),
        (("factors", "cub", "d", ""), ("main", "cub", "adaptive_novel", "")),
        (("metrics", "cifar100", "margin", ""), ("main", "cifar100", "adaptive_novel", "")),
        (("metrics", "cub", "margin", ""), ("main", "cub", "adaptive_novel", "")),
        (("open-set", "cub", "adaptive_novel", ""), ("main", "cub", "adaptive_novel", "")),
        (("open-set", "stanford_cars", "adaptive_novel", ""), ("main", "stanford_cars", "adaptive_novel", "")),
        (("unknown-k", "cifar100", "random", "estimated"), ("main", "cifar100", "random", "")),
        (("unknown-k", "cifar100", "entropy", "estimated"), ("main", "cifar100", "entropy", "")),
        (("unknown-k", "cifar100", "adaptive_novel", "estimated"), ("main", "cifar100", "adaptive_novel", "")),
    ],
)
def test_a_setting_printed_in_two_tables_has_the_same_numbers(place: Place, twin: Place) -> None:
    one, other = paper_numbers(*place), paper_numbers(*twin)
    assert one is not None
    assert other is not None
    assert one.values == other.values


@pytest.mark.parametrize("line", ["none", "random", "entropy", "adaptive_novel"])
def test_the_label_ratio_of_the_main_table_has_its_accuracy(line: str) -> None:
    ratio, main = paper_numbers("ratio", "cub", line, "0.2"), paper_numbers("main", "cub", line)
    assert ratio is not None
    assert main is not None
    assert ratio.value("acc_all") == main.value("acc_all")


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (("main", "cifar10", "none", ""), (74.22, 90.80, 70.07)),
        (("main", "cifar100", "kmeans", ""), (66.70, 72.66, 60.74)),
        (("main", "imagenet100", "badge", ""), (81.48, 92.68, 70.28)),
        (("main", "cub", "entropy", ""), (62.82, 69.52, 56.19)),
        (("main", "stanford_cars", "least_confidence", ""), (45.82, 55.32, 36.65)),
        (("main", "fgvc_aircraft", "adaptive_novel", ""), (53.74, 51.50, 55.98)),
        (("novelty", "cifar10", "badge", ""), (0.88, 0.77, 0.87, 0.67)),
        (("novelty", "imagenet100", "margin", ""), (0.98, 0.78, 0.95, 0.74)),
        (("novelty", "cub", "coreset", ""), (0.93, 0.71, 0.95, 0.67)),
        (("novelty", "fgvc_aircraft", "adaptive_novel", ""), (1.00, 0.76, 0.99, 0.75)),
        (("factors", "cifar100", "b", ""), (69.33, 72.76, 65.90)),
        (("factors", "cub", "c", ""), (64.28, 65.33, 63.23)),
        (("metrics", "cub", "msp", ""), (63.70, 67.37, 60.07)),
        (("ratio", "cub", "entropy", "0.3"), (60.55,)),
        (("ratio", "cub", "none", "0"), (14.15,)),
        (("budget", "cub", "random", "30"), (52.92,)),
        (("budget", "cub", "adaptive_novel", "500"), (73.56,)),
        (("unknown-k", "stanford_cars", "adaptive_novel", "estimated"), (43.92, 58.05, 30.30)),
        (("trainers", "cub", "adaptive_novel", "mugcd"), (63.00, 65.88, 60.14)),
        (("trainers", "cub", "badge", "pim"), (62.32, 68.94, 55.77)),
        (("open-set", "cub", "lfosa", ""), (59.39, 62.34, 56.46)),
        (("open-set", "stanford_cars", "alfa_mix", ""), (46.81, 54.67, 39.22)),
        (("long-tail", "herbarium19", "entropy", ""), (52.44, 65.36, 38.79)),
        (("transfer-round", "cub", "adaptive_novel", ""), (4,)),
    ],
)
def test_numbers_read_from_the_paper_a_second_time_are_the_same(place: Place, expected: tuple[float, ...]) -> None:
    found = paper_numbers(*place)
    assert found is not None
    assert tuple(found.values.values()) == expected


def test_a_line_that_cannot_be_right_says_why() -> None:
    found = paper_numbers("open-set", "stanford_cars", "mq_net")
    assert found is not None
    assert found.value("acc_new") == 36.65, "as printed, not as it should be"
    assert found.note is not None
    assert "New 35.65 would fit" in found.note
    sound = paper_numbers("open-set", "cub", "mq_net")
    assert sound is not None
    assert sound.note is None


def test_what_would_fit_does_fit() -> None:
    for place, better in [
        (("main", "cub", "none", ""), {"acc_new": 41.48}),
        (("unknown-k", "imagenet100", "entropy", "estimated"), {"acc_old": 91.52}),
        (("open-set", "stanford_cars", "mq_net", ""), {"acc_new": 35.65}),
    ]:
        found = paper_numbers(*place)
        assert found is not None
        assert all_is_the_mean_of_old_and_new(place, {**found.values, **better})


def test_what_the_paper_does_not_print_is_none() -> None:
    assert paper_numbers("main", "groceries14", "random") is None
    assert paper_numbers("main", "cub", "typiclust") is None
    assert paper_numbers("ratio", "cub", "random", "0.4") is None
    ratio = paper_numbers("ratio", "cub", "random", "0.1")
    assert ratio is not None
    assert ratio.value("acc_new") is None
    assert paper_estimate("cifar10") is None


def test_estimates_are_those_of_the_paper() -> None:
    pairs = {"cifar100": (100, 100), "imagenet100": (100, 109), "cub": (200, 231), "stanford_cars": (196, 230)}
    assert {name: paper_estimate(name) for name in pairs} == {n: PaperEstimate(*pair) for n, pair in pairs.items()}
    assert set(PRINTED["estimates"]) == set(pairs)
