"""Query strategies: which rows to ask about. The registry, and the one checked door through which they are called.

A strategy is a function ``(view, budget, rng, **options) -> rows``: rows of the view, most wanted first, exactly
``min(budget, len(pool))`` of them. It is found by name here, by the entry point group ``agcd.strategies``, or by
``package.module:function``.

A strategy that reads ``PoolView.labelled_probs``, which costs a pass of every earlier model, says so beside its name:
``@needs("labelled_probs")`` (``agcd.types``) or an attribute ``needs = {"labelled_probs"}``. For all others it is None.
How its work grows it says by ``@grows_with("slots")``, or ``features``, ``picks``, ``pairs``.

Probabilities (n, K) and features (n, d) may be memory maps in float16, float32 or float64. All built-in strategies
read them in blocks, so that beyond the inputs they hold at most 150 bytes per row and a few blocks of a megabyte per
thread (as long as the rows of the view ascend; else the pool is copied once). CoreSet and BADGE are exact at any size
and take ``max_candidates`` to be faster; the strategies that cluster (``kmeans``, ``typiclust``, ``alfa_mix``) or
compare pairs (``probcover``, ``widest_reach``, both kinds of herding) work on at most ``max_candidates`` rows, drawn at
random from a larger pool, of which they hold two copies of the features; what is held per pair of them is at most
400 MB. The number of threads changes no answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, get_args

import numpy as np

from agcd.arrays import each_block, floats
from agcd.errors import AgcdError, ConfigError, DataError, did_you_mean
from agcd.plugins import Registry, place_of
from agcd.strategies import alfa_mix, badge, coverage, diversity, herding, novelty, open_set, reach, uncertainty
from agcd.types import FloatArray, Growth, IntArray, OneByOne, PoolView

Strategy = Callable[..., IntArray]
Chosen = str | Strategy
"""A strategy by its name, or itself."""

_BUILT_IN: Mapping[str, Strategy] = MappingProxyType(
    {
        "random": uncertainty.random,
        "entropy": uncertainty.entropy,
        "least_confidence": uncertainty.least_confidence,
        "margin": uncertainty.margin,
        "kmeans": diversity.kmeans,
        "coreset": diversity.coreset,
        "badge": badge.badge,
        "typiclust": coverage.typiclust,
        "tcm": coverage.tcm,
        "probcover": coverage.probcover,
        "max_herding": herding.max_herding,
        "uncertainty_herding": herding.uncertainty_herding,
        "alfa_mix": alfa_mix.alfa_mix,
        "lfosa": open_set.lfosa,
        "conal": open_set.conal,
        "mq_net": open_set.mq_net,
        "novel_random": novelty.novel_random,
        "novel_margin": novelty.novel_margin,
        "novel_entropy": novelty.novel_entropy,
        "novel_msp": novelty.novel_msp,
        "novel_informative": novelty.novel_informative,
        "confident_novel": novelty.confident_novel,
        "informative_novel": novelty.informative_novel,
        "adaptive_novel": novelty.adaptive_novel,
        "propagation_herding": reach.propagation_herding,
        "widest_reach": reach.widest_reach,
    }
)


STRATEGIES: Registry[Strategy] = Registry("Strategy", "agcd.strategies", _BUILT_IN)
"""Every strategy that can be named."""


def get_strategy(name: Chosen) -> Strategy:
    """The strategy of this name: built in, from an installed package, or ``package.module:function``."""
    return STRATEGIES.get(name)


def strategy_title(chosen: Chosen) -> str:
    """What the strategy is called in errors and records."""
    if isinstance(chosen, str):
        return chosen
    return place_of(chosen) or f"{getattr(chosen, '__qualname__', type(chosen).__qualname__)} (given)"


def check_strategy(chosen: Chosen, options: Mapping[str, Any]) -> None:
    """Refuse what ``select`` would refuse of a strategy and its options, before there is anything to select from."""
    strategy = get_strategy(chosen)
    try:
        inspect.signature(strategy).bind(None, 1, None)
    except TypeError:
        raise ConfigError(
            f"Strategy {strategy_title(chosen)!r} cannot be called as (view, budget, rng, **options) -> rows."
        ) from None
    except ValueError:  # what C has defined may not say what it takes
        return
    _check_options(chosen, strategy, options)


def strategy_code(name: Chosen) -> str | None:
    """A digest of the source of a strategy from outside, for keys of what it chose; None for a built-in one."""
    return STRATEGIES.code(name)


def has_phases(name: Chosen) -> bool:
    """Whether the strategy may ask for other rows in another phase; of one that is not built in nobody knows."""
    return not isinstance(name, str) or name == "adaptive_novel" or name not in _BUILT_IN


def needed_fields(name: Chosen) -> frozenset[str]:
    """The fields of ``PoolView`` that are filled only because the strategy declares that it reads them."""
    return frozenset(getattr(get_strategy(name), "needs", ()))


def growth_of(name: str) -> Growth:
    """What the strategy's work grows with; taken to be its picks where it does not say.

    That is the dearest a strategy can afford on a pool of any size: one that compares all pairs has to say so.
    """
    growth: Growth = getattr(get_strategy(name), "growth", "picks")
    if growth not in get_args(Growth):
        raise ConfigError(f"Strategy {name!r} grows with {growth!r}; it must be one of {', '.join(get_args(Growth))}.")
    return growth


def list_strategies() -> dict[str, str]:
    """Name → what it picks, in one line; the built-in ones first."""
    lines = {}
    for name in STRATEGIES.names():
        try:
            lines[name] = _first_line(STRATEGIES.get(name))
        except ConfigError as error:  # one broken package must not hide the others
            lines[name] = str(error)
    return lines


def strategy_options(strategy: Strategy) -> dict[str, Any]:
    """The options a strategy takes and their defaults."""
    parameters = list(inspect.signature(strategy).parameters.values())[3:]
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {p.name: p.default for p in parameters if p.kind in named}


def select(
    view: PoolView,
    strategy_name: Chosen,
    budget: int,
    rng: np.random.Generator,
    options: Mapping[str, Any] | None = None,
) -> IntArray:
    """The rows to ask about, most wanted first: ``min(budget, len(pool))`` of the view's rows, without repeats.

    The view is sorted by row first, so that neither ties nor random draws depend on the order it came in.
    """
    strategy, options = get_strategy(strategy_name), dict(options or {})
    _check_options(strategy_name, strategy, options)
    if budget <= 0:
        raise ConfigError(f"The budget is {budget}; it must be at least 1.")
    _check_view(view)
    count = min(budget, len(view.rows))
    if count == 0:
        return np.empty(0, dtype=np.int64)
    rows = np.asarray(strategy(_sorted_by_row(view), count, rng, **options))
    _check_rows(strategy_title(strategy_name), rows, view, count)
    return rows.astype(np.int64)


def open_one_by_one(
    view: PoolView,
    strategy_name: Chosen,
    budget: int,
    rng: np.random.Generator,
    options: Mapping[str, Any] | None = None,
) -> OneByOne:
    """The strategy one question at a time, ``budget`` of them at most: each is decided after all answers so far.

    A strategy that declares no way of its own (``one_by_one``) is asked for one row after every answer.
    """
    strategy, options = get_strategy(strategy_name), dict(options or {})
    _check_options(strategy_name, strategy, options)
    _check_view(view)
    own: Callable[..., OneByOne] | None = getattr(strategy, "one_by_one", None)
    if own is not None:
        return own(_sorted_by_row(view), budget, rng, **options)
    return _AskedAgain(view, strategy_name, rng, options)


class _AskedAgain:
    """A strategy for batches, asked for a batch of one after every answer."""

    def __init__(self, view: PoolView, strategy_name: Chosen, rng: np.random.Generator, options: dict[str, Any]):
        self._view, self._name, self._rng, self._options = view, strategy_name, rng, options

    def next(self) -> int:
        return int(select(self._view, self._name, 1, self._rng, self._options)[0])

    def tell(self, row: int, y_slot: int) -> None:
        """The row is labelled from now on; the model that sees the others does not change."""
        view, stays = self._view, self._view.rows != row
        place = np.flatnonzero(~stays)
        missing = max(0, y_slot + 1 - view.probs.shape[1])
        wider = np.pad(view.probs, ((0, 0), (0, missing))) if missing else view.probs
        rounds, probs = view.labelled_rounds, view.labelled_probs
        if probs is not None:
            probs = np.concatenate([np.pad(probs, ((0, 0), (0, missing))), wider[place]])
        self._view = replace(
            view,
            rows=view.rows[stays],
            probs=wider[stays],
            features=view.features[stays],
            labelled_features=np.concatenate([view.labelled_features, view.features[place]]),
            labelled_slots=np.append(view.labelled_slots, y_slot),
            labelled_rounds=None if rounds is None else np.append(rounds, view.round),
            labelled_probs=probs,
            slot_weights=None if missing else view.slot_weights,
            slot_biases=None if missing else view.slot_biases,
        )


def _first_line(strategy: Strategy) -> str:
    return (inspect.getdoc(strategy) or "No description.").splitlines()[0]


def _check_options(chosen: Chosen, strategy: Strategy, options: Mapping[str, Any]) -> None:
    kinds = [p.kind for p in inspect.signature(strategy).parameters.values()]
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return
    allowed = strategy_options(strategy)
    for option in options:
        if option not in allowed:
            tail = did_you_mean(option, allowed) if allowed else " It takes none."
            raise ConfigError(f"Strategy {strategy_title(chosen)!r} has no option {option!r}.{tail}")


def _check_view(view: PoolView) -> None:
    n, known = len(view.rows), view.labelled_features
    if view.probs.ndim != 2 or view.features.ndim != 2 or not n == len(view.probs) == len(view.features):
        raise DataError(
            f"A pool of {n} rows needs one line of probabilities and of features each, "
            f"got {view.probs.shape} and {view.features.shape}."
        )
    if not (np.diff(view.rows) > 0).all() and len(np.unique(view.rows)) != n:
        raise DataError("The pool holds the same row more than once.")
    if len(known) != len(view.labelled_slots) or (len(known) and known.shape[1:] != view.features.shape[1:]):
        raise DataError(
            f"Labelled features {known.shape} and slots {view.labelled_slots.shape} do not fit "
            f"each other or the pool's features {view.features.shape}."
        )
    if view.probs.shape[1] < 1 or not 0 <= view.n_old <= view.probs.shape[1]:
        raise DataError(f"n_old is {view.n_old}; it must lie between 0 and the {view.probs.shape[1]} slots.")
    if not _all(view.probs, lambda p: p.min(initial=0) >= 0 and p.max(initial=0) < np.inf):
        raise DataError("The probabilities hold a negative number, a NaN or an infinity; train again.")
    if not all(_all(x, _finite) for x in (view.features, known) if len(x)):
        raise DataError("The features hold a NaN or an infinity; compute them again.")
    _check_optional_shapes(view)


def _check_optional_shapes(view: PoolView) -> None:
    m, n_slots, d = len(view.labelled_slots), view.probs.shape[1], view.features.shape[1]
    due = {
        "labelled_rounds": (m,),
        "labelled_probs": (m, n_slots),
        "slot_weights": (n_slots, d),
        "slot_biases": (n_slots,),
    }
    for name, shape in due.items():
        given = getattr(view, name)
        if given is not None and given.shape != shape:
            raise DataError(f"{name} has the shape {given.shape}; {shape} fits the pool and its labels.")


def _finite(x: FloatArray) -> bool:
    return bool(x.min(initial=0) > -np.inf and x.max(initial=0) < np.inf)  # both are NaN where one number is


def _all(array: FloatArray, holds: Callable[[FloatArray], Any]) -> bool:
    faults: list[int] = []

    def work(part: slice) -> None:
        if not faults and not holds(floats(array[part])):
            faults.append(part.start)

    each_block(len(array), array.shape[1], work)
    return not faults


def _sorted_by_row(view: PoolView) -> PoolView:
    if (np.diff(view.rows) > 0).all():  # a large memory-mapped pool is not copied
        return view
    order = np.argsort(view.rows, kind="stable")
    return replace(view, rows=view.rows[order], probs=view.probs[order], features=view.features[order])


def _check_rows(name: str, rows: IntArray, view: PoolView, count: int) -> None:
    if rows.shape != (count,) or not np.issubdtype(rows.dtype, np.integer):
        raise AgcdError(f"Strategy {name!r} returned {rows.dtype} of shape {rows.shape}; {count} rows were due.")
    if len(np.unique(rows)) != count:
        raise AgcdError(f"Strategy {name!r} returned the same row more than once.")
    if not np.isin(rows, view.rows).all():
        raise AgcdError(f"Strategy {name!r} returned rows that are not in the pool; did it return positions?")
