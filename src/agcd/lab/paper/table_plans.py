"""The tables of the paper: which runs each compares, and what it shows of them.

The order of lines and columns is the paper's. What the paper does not have (line (e) of the factors, a wrong number of
classes on purpose) is said where it is added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agcd.lab.cells import NO_QUERY
from agcd.lab.paper.study import Entry, Study, Wanted
from agcd.lab.published import parse_spec

OURS = "adaptive_novel"
MAIN = (NO_QUERY, "random", "entropy", "least_confidence", "margin", "kmeans", "coreset", "badge", OURS)
RATIOS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3)
BUDGET_SHARES = (0.3, 0.5, 1.0, 3.0, 5.0)
"""Of the standard budget: the paper varies CUB's 100 questions from 30 to 500."""
BUDGET_ROUNDS = 3
TRAINERS = ("simgcd", "mugcd", "pim", "gcd")
LONG_TAIL = 10.0
"""Largest to smallest class, for data that has no long tail of its own."""
LONG_TAIL_ENTROPY = 1.0
"""λ_e under a long tail: half of the default; the paper says only "a small value"."""
ACCURACIES = ("acc_all", "acc_old", "acc_new")
NOVELTY = ("nov_coverage", "nov_ratio", "nov_uniformity", "nov_information")


@dataclass(frozen=True)
class Table(Wanted):
    """A table, with the measures it shows of each entry."""

    measures: tuple[str, ...]


def _main(study: Study) -> list[Entry]:
    return [study.entry(name, name) for name in MAIN]


def _novelty(study: Study) -> list[Entry]:
    return [study.entry(name, name) for name in ("random", "entropy", "margin", "coreset", "badge", OURS)]


def _factors(study: Study) -> list[Entry]:
    """(e) is not in the paper: (d) without its confident start, which tells diversity from adaptivity."""
    lines = {"a": "random", "b": "novel_random", "c": "novel_informative", "d": OURS, "e": "informative_novel"}
    return [study.entry(line, strategy) for line, strategy in lines.items()]


def _metrics(study: Study) -> list[Entry]:
    entries = []
    for metric in ("entropy", "msp", "margin"):
        # Margin is the strategy's default: said by leaving it out, so that the runs of the main table serve here.
        options = {} if metric == "margin" else {"query": {"options": {"metric": metric}}}
        entries.append(study.entry(metric, OURS, settings=options))
    return entries


def _ratio(study: Study) -> list[Entry]:
    ratios = (0.0, 0.2) if study.quick else RATIOS
    lines = (NO_QUERY, "random", "entropy", OURS)
    return [study.entry(n, n, f"{r:g}", split={"label_ratio": r}) for n in lines for r in ratios]


def _budget(study: Study) -> list[Entry]:
    shares = BUDGET_SHARES[::2] if study.quick else BUDGET_SHARES
    budgets = dict.fromkeys(max(1, round(share * study.budget)) for share in shares)
    rounds = 1 if study.quick else BUDGET_ROUNDS
    return [
        study.entry(name, name, str(budget), settings={"query": {"budget": budget, "rounds": rounds}})
        for name in ("random", "entropy", OURS)
        for budget in budgets
    ]


def _unknown_k(study: Study) -> list[Entry]:
    """The estimate may lie on either side of the truth: a fifth less and a quarter more are run as well."""
    estimated = [estimate.n for estimate in study.estimates]
    below, above = max(study.n_old + 1, round(0.8 * study.n_classes)), round(1.25 * study.n_classes)
    columns = {"known": [], "estimated": estimated, "below": [below], "above": [above]}
    return [
        study.entry(name, name, column, n_slots=slots * study.n_seeds if len(slots) == 1 else slots)
        for name in ("random", "entropy", OURS)
        for column, slots in columns.items()
    ]


def _trainers(study: Study) -> list[Entry]:
    lines = (NO_QUERY, "random", "entropy", "badge", OURS)
    return [
        # SimGCD is the default: left out, so that the runs of the main table serve here.
        study.entry(name, name, trainer, settings={} if trainer == "simgcd" else {"train": {"trainer": trainer}})
        for name in lines
        for trainer in TRAINERS
    ]


def _open_set(study: Study) -> list[Entry]:
    lines = ("random", "lfosa", "conal", "mq_net", "alfa_mix", "typiclust", "probcover", OURS)
    return [study.entry(name, name) for name in lines]


def _long_tail(study: Study) -> list[Entry]:
    lines = (NO_QUERY, "random", "entropy", "badge", OURS)
    known = parse_spec(study.data)
    if known and known[0].name == "herbarium19":
        return [study.entry(name, name) for name in lines]
    weight = {"train": {"entropy_weight": LONG_TAIL_ENTROPY}}
    return [study.entry(name, name, settings=weight, split={"long_tail": LONG_TAIL}) for name in lines]


def _transfer(study: Study) -> list[Entry]:
    """Where the mapping decides, the switch by either reading of its change: they share what they ask alike."""
    query, ours = study.config.query, study.entry(OURS, OURS)
    if query.switch_round is not None:
        return [ours]
    other = "literal" if query.stability == "mapping" else "mapping"
    return [ours, study.entry(other, OURS, settings={"query": {"stability": other}})]


def _table(
    name: str,
    title: str,
    measures: tuple[str, ...],
    entries: Callable[[Study], list[Entry]],
    *,
    core: bool = False,
    estimates: bool = False,
) -> Table:
    return Table(name, title, entries, core, estimates, measures)


_ALL = (
    _table("main", "Accuracy after all rounds", (*ACCURACIES, "mapped_all", "best_on_test"), _main, core=True),
    _table("novelty", "Novelty of everything asked", NOVELTY, _novelty, core=True),
    _table("factors", "Novelty, informativeness and diversity", (*ACCURACIES, "nov_information"), _factors, core=True),
    _table("metrics", "Adaptive-Novel by uncertainty metric", (*ACCURACIES, "nov_ratio"), _metrics, core=True),
    _table("ratio", "All by share of the old classes' rows labelled at the start", ("acc_all",), _ratio),
    _table("budget", "All by questions per round, after three rounds", ("acc_all",), _budget),
    _table("unknown-k", "Number of classes known, estimated and wrong", ACCURACIES, _unknown_k, estimates=True),
    _table("trainers", "Accuracy with other ways to train", ACCURACIES, _trainers),
    _table("open-set", "Open-set and recent strategies", (*ACCURACIES, "nov_ratio"), _open_set),
    _table("long-tail", "Accuracy on long-tailed data", (*ACCURACIES, "bal_all"), _long_tail),
    _table(
        "transfer-round",
        "First round with informative questions",
        ("transfer_round", "first_diff", "first_literal_diff"),
        _transfer,
        core=True,
    ),
)
TABLES: dict[str, Table] = {table.name: table for table in _ALL}
