"""``run_experiment``: data sets × trainers × strategies × seeds in one call, as a table with a line per round.

It is ``agcd bench run`` underneath: the same cells in the same store.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import ArrayLike

from agcd.config import merged
from agcd.data.arrays import from_arrays
from agcd.engine import open_engine
from agcd.engine.here import HereEngine
from agcd.errors import ConfigError, EngineError, InstallError
from agcd.io import default_cache
from agcd.lab.bench import Progress, check_cells, print_now, run_bench, trainer_title, write_report
from agcd.lab.cells import NO_QUERY, Cell
from agcd.lab.given import keep_dataset
from agcd.lab.measured import check_metrics
from agcd.lab.published import with_preset
from agcd.lab.results import Record, blocks_of, rounds_heads, rounds_lines, summary_heads, summary_lines
from agcd.lab.starts import split_settings
from agcd.metrics import METRICS, Metric
from agcd.overrides import with_overrides
from agcd.plugins import Registry, is_importable, place_of
from agcd.strategies import STRATEGIES, Strategy
from agcd.tracking import TRACKERS, Tracker, open_tracking
from agcd.training import REGISTRY, Trainer
from agcd.types import Dataset

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T", bound=Callable[..., Any])
OneData = str | os.PathLike[str] | Dataset | tuple[ArrayLike, ...]
"""A name, path or spec as ``agcd bench run --data`` takes it, a data set, ``(X, y)``, or ``(X, y, X_test, y_test)``."""
OneTrainer = str | Callable[..., Trainer] | Mapping[str, Any]
"""A trainer by its name, its class, or settings of ``train`` with it: ``{"trainer": "pim", "pim": {"steps": 500}}``."""
_FIRST = ("data", "trainer", "strategy", "seed", "round", "n_queried", "acc_all", "acc_old", "acc_new")
"""The columns that one looks at first."""


def run_experiment(
    data: OneData | Sequence[OneData] | Mapping[str, OneData],
    strategies: str | Strategy | Sequence[str | Strategy] | Mapping[str, str | Strategy] | None = None,
    trainers: OneTrainer | Sequence[OneTrainer] | Mapping[str, OneTrainer] | None = None,
    seeds: int | Iterable[int] = 3,
    budget: int | None = None,
    rounds: int | None = None,
    *,
    protocol: str = "quick",
    settings: Mapping[str, Any] | Sequence[str] | str | None = None,
    split: str | None = None,
    n_old: int | None = None,
    label_ratio: float = 0.2,
    long_tail: float | None = None,
    validation: float | None = None,
    metrics: Sequence[str | Metric] = (),
    device: str | None = None,
    jobs: int | None = None,
    out: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    track: str | Callable[[Path], Tracker] | None = None,
    progress: bool | Progress = True,
) -> DataFrame:
    """Compare strategies and trainers with a simulated oracle, and return a line per round of every combination.

    Strategies, trainers, metrics and trackers are named as on the command line, or given as they are. What no other
    process could import (a lambda, a closure, whatever a script or notebook defines) runs in this one.

    Parameters
    ----------
    data : one data set or several, or a mapping from what they are to be called. One is a name, a path or
        ``cub=PATH``, as ``agcd bench run --data`` takes them, arrays ``(X, y)`` or ``(X, y, X_test, y_test)``, or a
        ``Dataset``. Every class needs rows with labels: they are hidden, and told when they are asked for.
    strategies : names or functions ``(view, budget, rng, **options) -> rows``; "none" is base training alone, None
        what the protocol asks by.
    trainers : names, classes, or settings of ``train`` such as ``{"trainer": "pim", "base_epochs": 5}``; None: what
        the settings say, else "simgcd".
    seeds : how many, counted from 0, or which.
    budget, rounds : questions per round (None: one per novel class) and active rounds (None: 5).
    settings : nested values, ``{"train": {"base_epochs": 5}}``, or pairs, ``"train.base_epochs=5"``.
    split, n_old, label_ratio, long_tail, validation : as of ``agcd bench run``.
    metrics : more columns: "nmi", "ari", or functions ``(prediction, y_class, n_old) -> {column: number}``.
    device : where features and training are computed; None: as the settings say, else cuda where there is one.
    jobs : parallel processes; None: one per core, 1: none beside this one.
    out : the folder for runs and results, as of ``agcd bench run``: with it a call goes on where it was broken off, and
        what is finished is not run again. None: a temporary folder.
    cache : the folder for features; None: as everywhere in agcd.
    track : "tensorboard", "mlflow", "wandb" or a class of your own hears of every run; its files go to ``out``, or to
        the current folder.
    progress : True prints how far it has come, a function is given the lines.

    Returns
    -------
    pandas.DataFrame with the columns of ``results.parquet``: ``data``, ``trainer``, ``strategy``, ``seed``, ``round``
    (0 is the base model), ``n_queried``, ``acc_all``, ``acc_old``, ``acc_new`` and more. ``agcd.summarise`` makes the
    usual tables of it.

    Examples
    --------
    >>> import agcd
    >>> def unsure(view, budget, rng):
    ...     return view.rows[view.probs.max(axis=1).argsort(kind="stable")[:budget]]
    >>> fast = {"train": {"base_epochs": 2, "round_epochs": 1, "projector_width": 16}}
    >>> results = agcd.run_experiment(
    ...     "toy", ["random", unsure], seeds=2, budget=5, rounds=1, settings=fast, jobs=1, progress=False
    ... )
    >>> results.groupby(["strategy", "round"]).size().to_dict()
    {('random', 0): 2, ('random', 1): 2, ('unsure', 0): 2, ('unsure', 1): 2}
    """
    _check_surroundings(jobs)
    place = Path(cache) if cache else default_cache()
    values = _settings(settings, protocol, {"query.rounds": rounds, "query.budget": budget, "device": device})
    how = split_settings(split, n_old, label_ratio, long_tail, validation)
    with ExitStack() as stack:
        named = _named(stack, STRATEGIES, _listed(strategies, callable))
        measured = list(_named(stack, METRICS, _listed(metrics, callable)).values())
        followed = _named(stack, TRACKERS, _listed(track, callable))
        labels = list(_labelled_cells(_data(data, place), _trainers(stack, trainers), named, seeds, values, how))
        check_cells([cell for _, cell in labels])
        folder = Path(out) if out else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        is_here = jobs == 1 or any(map(TRACKERS.is_lent, followed.values()))
        with _explained():
            records = run_bench(
                [cell for _, cell in labels],
                folder,
                place,
                engine=HereEngine() if is_here else open_engine(processes=jobs),
                progress=progress if callable(progress) else print_now if progress else _say_nothing,
                track=open_tracking(next(iter(followed.values()), None), folder if out else Path.cwd()),
                metrics=measured,
            )
        records = list(_relabelled(records, labels))
        if out:
            write_report(records, folder, check_metrics(measured))
        return _frame(records)


def summarise(results: DataFrame, *, by_round: bool = False, metrics: Sequence[str] = ()) -> DataFrame:
    """Mean ± standard deviation over seeds of what ``run_experiment`` returned, as ``results.md`` has it.

    Parameters
    ----------
    by_round : All accuracy after every round; else the usual figures after the last one.
    metrics : more columns of ``results`` to summarise; those of metrics you added, for example.
    """
    _check_pandas()
    import pandas as pd

    tables = []
    records = results.astype(object).where(results.notna(), None).to_dict("records")
    for (data, trainer), block in blocks_of(records).items():
        heads = rounds_heads(block) if by_round else summary_heads(metrics)
        lines = rounds_lines(block) if by_round else summary_lines(block, metrics)
        tables.append(pd.DataFrame(lines, columns=heads).assign(data=data, trainer=trainer))
    return pd.concat(tables).set_index(["data", "trainer", "strategy"])


def _frame(records: Sequence[Record]) -> DataFrame:
    import pandas as pd

    frame = pd.DataFrame.from_records(records)
    return frame[[*_FIRST, *(column for column in frame if column not in _FIRST)]]


def _check_pandas() -> None:
    if find_spec("pandas") is None:
        raise InstallError(
            "Experiments come back as a DataFrame of pandas, which is not here: pip install 'agcd[lab]'."
        )


def _check_surroundings(jobs: int | None) -> None:
    """Refuse what could not work, before anything is computed."""
    _check_pandas()
    if parent_process() is not None and jobs != 1:
        raise ConfigError(
            "run_experiment was called by a worker that loads your script: put the call under "
            "if __name__ == '__main__':, or give jobs=1."
        )


@contextmanager
def _explained() -> Iterator[None]:
    """Say what to do where workers cannot start."""
    try:
        yield
    except BrokenProcessPool:
        raise EngineError(
            "A worker ended before its work did: in a script, call run_experiment under if __name__ == '__main__':, or "
            "give jobs=1; and look at the lines above."
        ) from None


def _say_nothing(line: str) -> None:
    """In place of progress."""


# ---------------------------------------------------------------------------------------------- what was given


def _settings(
    settings: Mapping[str, Any] | Sequence[str] | str | None, protocol: str, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Plain settings as they overrule each other, in the form in which ``agcd bench run`` has them."""
    if isinstance(settings, Mapping):
        values, pairs = merged(settings), []
    else:
        values, pairs = {}, [settings] if isinstance(settings, str) else list(settings or ())
    pairs += [f"{name}={value}" for name, value in given.items() if value is not None]
    return with_overrides({"protocol": protocol, **values}, pairs)


def _listed(given: Any, is_one: Callable[[Any], bool]) -> list[tuple[str | None, Any]]:
    """What was given one by one, with the name that it is to have if somebody said one."""
    if isinstance(given, Mapping) and not is_one(given):
        return list(given.items())
    if isinstance(given, str | os.PathLike) or is_one(given):
        return [(None, given)]
    return [(None, one) for one in given or ()]


def _named(stack: ExitStack, registry: Registry[T], given: Iterable[tuple[str | None, str | T]]) -> dict[str, str]:
    """What the table calls each, and what a cell does; objects that only this process has are lent to the registry."""
    found: dict[str, str] = {}
    for name, one in given:
        own = name or _name_of(one)
        _refuse_twice(own, found)
        found[own] = one if isinstance(one, str) else str(place_of(one)) if is_importable(one) else own
        if not isinstance(one, str) and not is_importable(one):
            stack.enter_context(registry.lent({own: one}))
    return found


def _refuse_twice(name: str, found: Collection[str]) -> None:
    if name in found:
        raise ConfigError(f"Two are called {name!r}: name each, as {{'one': …, 'other': …}} in place of the list.")


def _name_of(one: Any) -> str:
    """What something is called that nobody has named: as in ``agcd bench run`` where that could find it."""
    if isinstance(one, str):
        return one
    if is_importable(one):
        return str(place_of(one))
    return str(getattr(one, "__name__", type(one).__name__)).strip("<>")


def _trainers(stack: ExitStack, trainers: Any) -> list[tuple[str | None, dict[str, Any]]]:
    """Settings of ``train``, each with what the table calls it; None: as the trainer is called."""
    given = _listed(trainers, lambda one: callable(one) or (isinstance(one, Mapping) and "trainer" in one))
    found: list[tuple[str | None, dict[str, Any]]] = []
    for name, one in given:
        train = dict(one) if isinstance(one, Mapping) else {"trainer": one}
        if "trainer" not in train:
            raise ConfigError(f"The trainer {name!r} is given as settings of train without 'trainer': say which it is.")
        if callable(train["trainer"]):
            (train["trainer"],) = _named(stack, REGISTRY, [(name, train["trainer"])]).values()
        found.append((name, train))
    return found or [(None, {})]


def _data(data: Any, cache_dir: Path) -> dict[str, str]:
    """What the table calls each data set, and what a cell does; those that were given as they are get kept first."""
    found: dict[str, str] = {}
    for name, one in _listed(data, _is_one):
        own, spec = _spec(name, one, cache_dir)
        _refuse_twice(own, found)
        found[own] = spec
    return found


def _is_one(data: Any) -> bool:
    return isinstance(data, Dataset) or (isinstance(data, tuple) and not all(isinstance(x, str | Path) for x in data))


def _spec(name: str | None, one: Any, cache_dir: Path) -> tuple[str, str]:
    if isinstance(one, str | os.PathLike):
        return name or os.fspath(one), os.fspath(one)
    if isinstance(one, tuple) and len(one) in (2, 4):
        x, y, *test = one
        one = from_arrays(x, y, x_test=test[0] if test else None, y_test=test[1] if test else None)
    if not isinstance(one, Dataset):
        raise ConfigError(
            f"The data is given as a {type(one).__name__}: a name or path, (X, y), (X, y, X_test, y_test) or a Dataset "
            "is expected."
        )
    return name or one.name, keep_dataset(one, name or one.name, cache_dir)


# ---------------------------------------------------------------------------------------------- cells and labels


@dataclass(frozen=True)
class _Label:
    """What the table calls the three parts of a cell that may have other names there."""

    data: str
    trainer: str
    strategy: str


def _labelled_cells(
    data: Mapping[str, str],
    trainers: Sequence[tuple[str | None, dict[str, Any]]],
    strategies: Mapping[str, str],
    seeds: int | Iterable[int],
    settings: dict[str, Any],
    split: dict[str, Any],
) -> Iterator[tuple[_Label, Cell]]:
    for own_data, spec in data.items():
        told: set[str] = set()
        for own_trainer, train in trainers:
            values = with_preset(spec, merged(settings, {"train": train} if train else {}))
            trainer = own_trainer or trainer_title(Cell(spec, NO_QUERY, 0, values))
            _refuse_twice(trainer, told)
            told.add(trainer)
            asked = strategies or {(name := Cell(spec, NO_QUERY, 0, values).config.query.strategy): name}
            for own_strategy, strategy in asked.items():
                for seed in _seeds(seeds):
                    yield _Label(own_data, trainer, own_strategy), Cell(spec, strategy, seed, values, split)


def _seeds(seeds: int | Iterable[int]) -> list[int]:
    found = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not found or len(set(found)) < len(found):
        raise ConfigError(f"seeds is {seeds!r}: a number from 1, or different seeds, are expected.")
    return found


def _relabelled(records: Sequence[Record], labels: Sequence[tuple[_Label, Cell]]) -> Iterator[Record]:
    """The records with what the table calls their parts; those of a cell follow each other and begin with round 0."""
    label, rest = None, iter(labels)
    for record in records:
        if record["round"] == 0:
            label, _ = next(rest)
        assert label is not None
        yield record | vars(label)
