"""The tables as Markdown. Lines are compared seed by seed: both sides of a difference start from the same base model.

Accuracies are those of the last epoch; an interval is Student's, at 95 %, over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from agcd.lab.beyond.plan import (
    ALONE,
    OURS,
    OURS_IN_BATCHES,
    RANDOM,
    REFERENCE,
    WITHOUT,
    Contender,
    Plan,
    budget_entries,
    contender_entries,
)
from agcd.lab.cells import NO_QUERY
from agcd.lab.finished import FinishedCells
from agcd.lab.paper.comparable import flat
from agcd.lab.paper.study import Entry, Study
from agcd.lab.results import markdown_table, mean_std
from agcd.types import FloatArray, IntArray
from agcd.words import MISSING

PICTURE = "beyond.png"
CONFIDENCE = 0.95
ACCURACIES = {"acc_all": "All", "acc_old": "Old", "acc_new": "New"}
_NOVELTY = {"nov_coverage": "Nov-C", "nov_ratio": "Nov-R"}
_COMPARED = ("acc_all", "acc_new")


def half_width(values: FloatArray) -> float:
    """Half the Student t interval of the mean of ``values`` (n_seeds,); NaN where there are fewer than two."""
    n = len(values)
    if n < 2:
        return float("nan")
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))


def answers_needed(n_answers: IntArray, reached: FloatArray, target: float) -> float:
    """Answers after which ``reached`` (n_rounds + 1,) is first at ``target``, linear between rounds; NaN for never."""
    there = np.flatnonzero(reached >= target)
    if len(there) == 0:
        return float("nan")
    i = int(there[0])
    return float(np.interp(target, reached[i - 1 : i + 1], n_answers[i - 1 : i + 1]) if i else n_answers[0])


def all_tables(plan: Plan, finished: FinishedCells) -> str:
    """Everything, under headings that say what was run."""
    blocks = ["# Beyond the paper", f"![All by number of answers]({PICTURE})"]
    blocks.append("## One question per novel class and round")
    for study in plan.studies:
        blocks += _lines_block(study, plan.main_entries(study), finished)
        blocks += ["All after each round:", curves_table(plan.main_entries(study), finished)]
    blocks += _overall_blocks(plan, finished)
    if plan.ablated:
        blocks += _other_blocks(plan, finished)
    return "\n\n".join(blocks) + "\n"


def _overall_blocks(plan: Plan, finished: FinishedCells) -> list[str]:
    """What holds over all data sets: every rival, the worst seed, round by round, and what becomes of old classes."""
    blocks = ["## Over all data sets", "After the last round, and in the mean over rounds:"]
    blocks += [overall_table(plan, finished)]
    blocks += ["The smallest difference over seeds:", smallest_table(plan, finished)]
    for rival in _rivals(plan, (REFERENCE, OURS_IN_BATCHES)):
        blocks += [f"ours − {rival} after each round:", rounds_table(plan, finished, rival)]
    return [*blocks, "Old of ours after each round − Old before the first answer:", old_table(plan, finished)]


def _other_blocks(plan: Plan, finished: FinishedCells) -> list[str]:
    """Budgets and ablation."""
    blocks = ["## Half and double the questions"]
    for study, budget in plan.budgeted:
        blocks += _lines_block(study, budget_entries(study, budget), finished)
    blocks += ["## What each piece gains alone", *_piece_blocks(plan.ablated, ALONE, finished)]
    return [*blocks, "## What is lost without each piece", *_piece_blocks(plan.ablated, WITHOUT, finished)]


def _piece_blocks(studies: Sequence[Study], contenders: Sequence[Contender], finished: FinishedCells) -> list[str]:
    blocks, groups = [], [contender_entries(study, contenders) for study in studies]
    for study, entries in zip(studies, groups, strict=True):
        blocks += [heading(study, entries, finished), ablation_table([entries], finished)]
    return [*blocks, "**mean over these data sets**", ablation_table(groups, finished)]


def _lines_block(study: Study, entries: Sequence[Entry], finished: FinishedCells) -> list[str]:
    return [heading(study, entries, finished), lines_table(entries, finished)]


def heading(study: Study, entries: Sequence[Entry], finished: FinishedCells) -> str:
    """What was run and where it was measured, in a line; settings that differ from the protocol's are named."""
    changed = flat({name: value for name, value in study.settings.items() if name != "protocol"})
    parts = [
        f"{study.n_old} old and {study.n_novel} novel classes",
        f"protocol {study.protocol}",
        *(f"{name}={value}" for name, value in changed.items() if name != "query.rounds"),
        _counted(study.n_seeds, "seed"),
        _counted(entries[0].cells[0].config.query.rounds, "round"),
        f"{_counted(int(entries[0].column), 'question')} a round",
        f"measured on {_measured_on(entries[0], finished)}",
    ]
    return f"**{study.title}**: " + ", ".join(parts)


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def _measured_on(entry: Entry, finished: FinishedCells) -> str:
    cell = entry.cells[0]
    if (share := cell.split.get("validation")) is not None:
        return f"a validation part ({share:g} of the train rows)"
    return "the test rows" if finished.records(cell)[-1]["on_test"] else "the unlabelled train rows"


def lines_table(entries: Sequence[Entry], finished: FinishedCells) -> str:
    """Every line of one data set and budget, with its distance to ours and its way to Adaptive-Novel's accuracy."""
    by_name = {entry.line: entry for entry in entries}
    titles = ["", "answers", *ACCURACIES.values(), *_NOVELTY.values()]
    titles += [f"ours − line, {ACCURACIES[measure]} [95 %]" for measure in _COMPARED]
    titles.append(f"answers needed for {REFERENCE}'s final All")
    lines = [
        [
            entry.line,
            f"{after([entry], 'n_queried', finished).mean():g}",
            *(_mean([entry], name, finished) for name in (*ACCURACIES, *_NOVELTY)),
            *(_gain([by_name[OURS]], [entry], measure, finished) for measure in _COMPARED),
            _way(entry, by_name[REFERENCE], finished),
        ]
        for entry in entries
    ]
    return markdown_table(titles, lines)


def curves_table(entries: Sequence[Entry], finished: FinishedCells) -> str:
    """All of every line that asks after each round, and its mean over rounds beside ours."""
    asking = [entry for entry in entries if entry.line != NO_QUERY]
    ours, rounds = [entry for entry in asking if entry.line == OURS], _rounds(asking)
    lines = [
        [
            entry.line,
            *(_mean([entry], "acc_all", finished, number) for number in rounds),
            mean_std(mean_of_rounds([entry], finished).tolist(), percent=True),
            _difference(ours, [entry], mean_of_rounds(ours, finished) - mean_of_rounds([entry], finished)),
        ]
        for entry in asking
    ]
    return markdown_table(["", *(f"round {n}" for n in rounds), "mean of rounds", "ours − line [95 %]"], lines)


def overall_table(plan: Plan, finished: FinishedCells) -> str:
    """Ours minus its rivals: first the mean over data sets within each seed, then mean and interval over seeds."""
    ours, lines = _over(plan, OURS), []
    for name in _rivals(plan):
        rival = _over(plan, name)
        over_rounds = mean_of_rounds(ours, finished) - mean_of_rounds(rival, finished)
        gains = [_gain(ours, rival, measure, finished) for measure in ACCURACIES]
        lines.append([f"ours − {name}", *gains, _difference(ours, rival, over_rounds)])
    titles = [*(f"{title} [95 %]" for title in ACCURACIES.values()), "All, mean of rounds [95 %]"]
    return markdown_table(["", *titles], lines)


def smallest_table(plan: Plan, finished: FinishedCells) -> str:
    """For each data set the worst seed of ours minus its rivals."""
    rivals = _rivals(plan, (REFERENCE, RANDOM))
    titles = [f"ours − {rival}, {title}" for rival in rivals for title in ACCURACIES.values()]
    lines = []
    for i, study in enumerate(plan.studies):
        gains = [
            after([_over(plan, OURS)[i]], name, finished) - after([_over(plan, rival)[i]], name, finished)
            for rival in rivals
            for name in ACCURACIES
        ]
        lines.append([study.title, *(_signed(float(gain.min())) for gain in gains)])
    return markdown_table(["", *titles], lines)


def rounds_table(plan: Plan, finished: FinishedCells, rival: str) -> str:
    """Ours minus a rival after each round, averaged as in ``overall_table``."""
    ours, others = _over(plan, OURS), _over(plan, rival)
    rounds = _rounds(ours)
    lines = [
        [title, *(_gain(ours, others, name, finished, number) for number in rounds)]
        for name, title in ACCURACIES.items()
    ]
    return markdown_table(["", *(f"round {number} [95 %]" for number in rounds)], lines)


def old_table(plan: Plan, finished: FinishedCells) -> str:
    """Whether known classes decay: Old after each round minus Old of the base model, mean over seeds (worst seed)."""
    lines, rounds = [], _rounds(_over(plan, OURS))
    for study, ours in zip(plan.studies, _over(plan, OURS), strict=True):
        gains = [after([ours], "acc_old", finished, n) - after([ours], "acc_old", finished, 0) for n in rounds]
        lines.append([study.title, *(f"{_signed(float(g.mean()))} ({_signed(float(g.min()))})" for g in gains)])
    return markdown_table(["", *(f"round {number}" for number in rounds)], lines)


def _rounds(entries: Sequence[Entry]) -> range:
    return range(1, entries[0].cells[0].config.query.rounds + 1)


def _over(plan: Plan, name: str) -> list[Entry]:
    """A line of the main table, from each data set."""
    return [entry for study in plan.studies for entry in plan.main_entries(study) if entry.line == name]


def _rivals(plan: Plan, among: Sequence[str] | None = None) -> list[str]:
    """The lines that ask, other than ours; of ``among`` alone if given."""
    asking = [line.name for line in plan.lines if line.name not in (NO_QUERY, OURS)]
    return [name for name in among or asking if name in asking]


def ablation_table(groups: Sequence[Sequence[Entry]], finished: FinishedCells) -> str:
    """Each line with its difference from the first one, as means over the data sets, whose entries are ``groups``."""
    reference = [entries[0] for entries in groups]
    titles = [ACCURACIES[name] for name in _COMPARED]
    titles += [f"line − {reference[0].line}, {title} [95 %]" for title in titles]
    lines = []
    for own in zip(*groups, strict=True):
        means = [_mean(own, name, finished) for name in _COMPARED]
        lines.append([own[0].line, *means, *(_gain(own, reference, name, finished) for name in _COMPARED)])
    return markdown_table(["", *titles], lines)


def after(entries: Sequence[Entry], measure: str, finished: FinishedCells, number: int = -1) -> FloatArray:
    """A measure after a round, by default the last, of each seed (n_seeds,), mean over the data sets; NaN where it
    does not exist."""
    values = [[finished.records(cell)[number][measure] for cell in entry.cells] for entry in entries]
    return np.asarray(np.asarray(values, float).mean(0))


def mean_of_rounds(entries: Sequence[Entry], finished: FinishedCells) -> FloatArray:
    """All of each seed (n_seeds,), averaged over the rounds after the base model and over the data sets."""
    return np.asarray(np.mean([after(entries, "acc_all", finished, number) for number in _rounds(entries)], axis=0))


def _mean(entries: Sequence[Entry], measure: str, finished: FinishedCells, number: int = -1) -> str:
    values = after(entries, measure, finished, number)
    return mean_std(values[np.isfinite(values)].tolist(), percent=measure in ACCURACIES)


def _gain(
    entries: Sequence[Entry], others: Sequence[Entry], measure: str, finished: FinishedCells, number: int = -1
) -> str:
    """The mean difference in points after a round, with its interval; nothing for a line against itself."""
    return _difference(
        entries, others, after(entries, measure, finished, number) - after(others, measure, finished, number)
    )


def _difference(entries: Sequence[Entry], others: Sequence[Entry], gains: FloatArray) -> str:
    """The mean of differences (n_seeds,) in points, with its interval; nothing for a line against itself."""
    if [entry.line for entry in entries] == [other.line for other in others]:
        return MISSING
    mean, half = float(gains.mean()), half_width(gains)
    interval = f" [{_signed(mean - half)}, {_signed(mean + half)}]" if np.isfinite(half) else f" [{MISSING}]"
    return _signed(mean) + interval if np.isfinite(mean) else MISSING


def _signed(share: float) -> str:
    """Points with their sign; what rounds to nothing is +0.0."""
    return f"{round(100 * share, 1) + 0.0:+.1f}".replace("-", "−") if np.isfinite(share) else MISSING


def _way(entry: Entry, reference: Entry, finished: FinishedCells) -> str:
    """Mean number of answers until the line has what Adaptive-Novel has in the end, and their share of all answers."""
    needed, budgets = [], []
    for cell, other in zip(entry.cells, reference.cells, strict=True):
        records, goal = finished.records(cell), finished.records(other)[-1]
        n_answers, reached = np.asarray([(r["n_queried"], r["acc_all"]) for r in records], float).T
        needed.append(answers_needed(n_answers.astype(np.int64), reached, goal["acc_all"]))
        budgets.append(goal["n_queried"])
    there = np.isfinite(needed)
    if not there.any():
        return "never reached"
    n_needed, n_budget = np.asarray(needed)[there], np.asarray(budgets)[there]
    some = "" if there.all() else f"{there.sum()} of {len(there)} seeds: "
    return f"{some}{n_needed.mean():.0f} ({100 * n_needed.sum() / n_budget.sum():.0f} %)"
