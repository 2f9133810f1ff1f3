"""What looks alike: pairs of classes that may be one, and the names that a picture is likely to have."""

from __future__ import annotations

import numpy as np

from agcd.app.rounds import RoundView
from agcd.app.snapshot import Group, Snapshot
from agcd.app.web.board import board_cards, names
from agcd.app.web.board_schemas import Alike
from agcd.app.web.schemas import ClassName
from agcd.app.web.server_state import ServerState
from agcd.types import BoolArray, FloatArray, IntArray

MOST_PAIRS = 12
_N_ROWS = 30
_LEAST_ROWS = 3
_AT_HOME = 25
"""Percentile: a picture is at home in a group if it is as near to its middle as three quarters of its own are."""
_LEAST_SHARE = 0.3
_N_LIKELY = 5


def alike_pairs(server: ServerState, snapshot: Snapshot, seen: RoundView | None) -> list[Alike]:
    """Pairs of classes or groups whose pictures would be at home in one another, the strongest first."""
    if seen is None or seen.features is None:
        return []
    shown = [group for group in snapshot.shown_groups() if not (group.info and group.info.retired)]
    rows = [_representatives(snapshot, group) for group in shown]
    groups = [(group, own) for group, own in zip(shown, rows, strict=True) if len(own)]
    if len(groups) < 2:
        return []
    number = np.repeat(np.arange(len(groups)), [len(own) for _, own in groups])
    share = shares_at_home(seen.vectors(np.concatenate([own for _, own in groups])), number)
    is_named = np.array([group.info is not None for group, _ in groups])
    return [_alike(server, snapshot, groups[a][0], groups[b][0]) for a, b in strongest_pairs(share, is_named)]


def shares_at_home(x: FloatArray, number: IntArray) -> FloatArray:
    """(G, G) the share of each group's rows of ``x`` (n, d) that would be at home in each other group.

    ``number`` (n,) is the group of each row. A row can be at home in one other group only, the nearest. Where a group
    has too few rows to say what its own look like, nothing is at home in it.
    """
    n = np.bincount(number)
    sums = np.zeros((len(n), x.shape[1]), np.float64)
    np.add.at(sums, number, x)
    # Against the middle of the others: a row lies near any mean that it is part of.
    own = (x * _unit(sums[number] - x)).sum(1)
    is_known = n >= _LEAST_ROWS
    usual = np.array([np.percentile(own[number == group], _AT_HOME) for group in range(len(n))])
    near = np.where(is_known, x @ _unit(sums).T, -np.inf)
    near[np.arange(len(x)), number] = -np.inf
    nearest = near.argmax(1)
    at_home = near[np.arange(len(x)), nearest] >= usual[nearest]
    share = np.zeros((len(n), len(n)))
    np.add.at(share, (number[at_home], nearest[at_home]), 1)
    return np.asarray(share / n[:, None])


def strongest_pairs(share: FloatArray, is_named: BoolArray) -> list[tuple[int, int]]:
    """Pairs (from, into) by falling share at home, in either direction the larger; two unnamed groups are no pair:
    there is no name yet that could be too many."""
    both = np.maximum(share, share.T)
    pairs = [(a, b) for a, b in np.argwhere(np.triu(both, 1) >= _LEAST_SHARE).tolist() if is_named[a] or is_named[b]]
    pairs.sort(key=lambda pair: -float(both[pair]))
    return [(a, b) if share[a, b] >= share[b, a] else (b, a) for a, b in pairs[:MOST_PAIRS]]


def _unit(x: FloatArray) -> FloatArray:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9))


def _representatives(snapshot: Snapshot, group: Group) -> IntArray:
    """What people labelled, the newest first, and the surest members where that is little."""
    labelled = snapshot.labelled(group)[:_N_ROWS]
    members = snapshot.members(group, _N_ROWS)
    return np.concatenate([labelled, members[~np.isin(members, labelled)]])[:_N_ROWS]


def _alike(server: ServerState, snapshot: Snapshot, one: Group, into: Group) -> Alike:
    """A name stays, and of two names the one with more labels."""
    if into.info is None or (one.info and len(snapshot.labelled(one)) > len(snapshot.labelled(into))):
        one, into = into, one
    cards = board_cards(server, snapshot, (one, into), as_lines=True)
    return Alike(one=cards[0], into=cards[1])


def likely_names(server: ServerState, snapshot: Snapshot, seen: RoundView | None, row: int) -> list[ClassName]:
    """What a picture may be called: first what it counts as now, then the classes of the labelled pictures most like
    it."""
    place_now = int(snapshot.says(np.array([row])).group[0])
    places = [place_now] if 0 <= place_now < len(snapshot.labels.registry.infos) else []
    if seen is not None and seen.features is not None:
        labelled = snapshot.labels.labels["row"]
        labelled = labelled[labelled != row]
        near = seen.most_similar(seen.vectors(np.array([row]))[0], labelled, len(labelled))[0]
        places += snapshot.labels.classes_of(near).tolist()
    infos = [snapshot.labels.registry.infos[place] for place in dict.fromkeys(places)]
    wanted = [info.id for info in infos if not info.retired][:_N_LIKELY]
    found = {name.class_id: name for name in names(server, snapshot)}
    return [found[class_id] for class_id in wanted]
