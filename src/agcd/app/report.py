"""The story that the report tells of a project: without ground truth, from what people said and each round left."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL.Image import Image

from agcd.app.audit import audit_of, mapping_changes
from agcd.app.groups import Groups, groups_of, novel_slots
from agcd.app.rounds import NO_SLOT, Atlas, open_atlas
from agcd.app.store.events import ANSWERS, LabelEvent, live_events
from agcd.app.store.queries import strategy_of_round
from agcd.app.store.standing import Follower, Standing
from agcd.data.images import ImageError, decode, read_file
from agcd.errors import ConfigError
from agcd.io import digest_bytes, read_json
from agcd.report import write_report
from agcd.report.story import ClassStrip, Confidence, Estimate, FeatureMap, RoundFacts, Story, Thumbnail
from agcd.report.words import count, percent, shown
from agcd.types import IntArray

if TYPE_CHECKING:
    from agcd.app.project import Project

_THUMBNAILS = 8
_THUMBNAIL_SIDE = 256
_MAP_POINTS = 2000
_SHOWN_PEOPLE = 6
_REPRODUCE = (
    "agcd.toml, project.db and the images hold all that is needed: without the folder runs/, agcd train makes the "
    "rounds again, one each time it is run, from what was known then. Run these where the project's folder is."
)


@dataclass(frozen=True)
class _Past:
    """A project's finished rounds, with what stands now."""

    project: Project
    standing: Standing
    atlases: tuple[Atlas | None, ...]
    """By round; only the last one is sure to be there."""
    groups: Groups

    @property
    def last(self) -> Atlas:
        atlas = self.atlases[-1]
        assert atlas is not None
        return atlas

    @property
    def moments(self) -> list[Atlas]:
        """The first round that can still be shown, and the last."""
        first = next(atlas for atlas in self.atlases if atlas is not None)
        return [first] if first is self.last else [first, self.last]


def write_project_report(project: Project, out: Path) -> Path:
    """Write ``out/report.html`` and ``out/figures/*.png``; returns the page's path."""
    return write_report(project_story(project), out)


def project_story(project: Project) -> Story:
    """Everything the report shows about a project; torch is not needed."""
    past = _look_back(project)
    n_new = sum(group.is_new for group in past.groups.groups if group.class_id)
    return Story(
        title=f"Category discovery in {_name(project)}",
        subtitle=f"{count(past.last.n_old, 'class')} known at the start, {n_new:,} named since",
        facts=tuple(_facts(past)),
        rounds=tuple(_round_facts(past, number) for number in range(len(past.atlases))),
        confidence=tuple(_confidence(past, atlas) for atlas in past.moments),
        maps=_maps(past),
        classes=tuple(_class_strip(past, number) for number in range(len(past.groups.groups))),
        thumbnail=_thumbnail(project),
        commands=_commands(project),
        commands_note=_REPRODUCE,
    )


def _look_back(project: Project) -> _Past:
    n_finished = project.n_finished
    if n_finished == 0:
        raise ConfigError(f"Nothing is trained yet: run agcd train {project.folder} first.")
    atlases = tuple(open_atlas(project.folder, number) for number in range(n_finished))
    last = atlases[-1]
    if last is None:
        raise ConfigError(
            f"What round {n_finished - 1} says of the images is no longer in cache/: "
            f"run agcd train {project.folder} to have it made again."
        )
    standing = Follower().standing(project.store)
    return _Past(project, standing, atlases, groups_of(standing, last))


def _name(project: Project) -> str:
    return project.folder.resolve().name


def _facts(past: _Past) -> list[tuple[str, str]]:
    """What the project is, for the head of the report."""
    project, standing = past.project, past.standing
    labels, _ = project.labels()
    live = live_events(project.store.events())
    n_test, n_refused = int(project.is_test.sum()), len(project.store.quarantine())
    named = [group for group in past.groups.groups if group.class_id]
    backbone, train = project.config.backbone, project.config.train
    asked = ", ".join(dict.fromkeys(strategy_of_round(project.store).values()))
    facts = [
        ("Images", _listed(f"{len(project.keys):,}", (n_test, "for testing"), (n_refused, "set aside as unusable"))),
        ("Labels at the start", f"{len(labels.seed_rows):,} in {count(labels.n_old, 'class')}"),
        ("Answers", _answers(past, len(labels.queried_rows))),
        ("People", _people(live, standing)),
        (
            "Classes",
            f"{len(named):,} named, {sum(g.is_new for g in named):,} of them new; {past.last.n_slots:,} groups",
        ),
        ("Rounds", _rounds(past)),
        ("Strategy", asked or f"{project.config.query.strategy} (nothing was asked yet)"),
        ("Features", f"{backbone.name}, {backbone.views} views of {backbone.image_size} pixels"),
        ("Training", f"{train.base_epochs} base epochs, {train.round_epochs} a round"),
        ("Seed", str(project.config.seed)),
        ("Last entry", _moment(live[-1].at) if live else ""),
    ]
    return [(key, value) for key, value in facts if value]


def _listed(first: str, *others: tuple[int, str]) -> str:
    """What is there, then whatever else occurs."""
    return ", ".join([first, *(f"{n:,} {words}" for n, words in others if n)])


def _answers(past: _Past, n_labels: int) -> str:
    standing = past.standing
    return _listed(
        count(n_labels, "label"),
        (standing.n_passed, "skipped or unsure"),
        (standing.n_junk, "junk"),
        (len(standing.accepted), "accepted by page"),
        (standing.counts["audit"], "in a blind audit"),
    )


def _people(live: Iterable[LabelEvent], standing: Standing) -> str:
    """Who answered how much, the busiest first, and how often they agree."""
    by_whom = Counter(event.who for event in live if event.kind in ANSWERS and event.source != "seed").most_common()
    told = [f"{shown(who, 30)} ({n:,})" for who, n in by_whom[:_SHOWN_PEOPLE]]
    if len(by_whom) > _SHOWN_PEOPLE:
        told.append(f"{len(by_whom) - _SHOWN_PEOPLE} more")
    agreed = standing.agreement
    if agreed.share is None:
        return ", ".join(told)
    images = count(agreed.n_rows, "image")
    return f"{', '.join(told)}; they agree on {percent(agreed.share)} of {images} that several labelled"


def _rounds(past: _Past) -> str:
    n_active = len(past.atlases) - 1
    learned = past.project.store.runs()[n_active]
    n_waiting = sum(
        event.kind == "label" and event.id > learned and not event.is_audit for event in past.standing.answers.values()
    )
    waiting = f"; {count(n_waiting, 'label')} came in later" if n_waiting else ""
    return ("base training" if n_active == 0 else f"base training and {count(n_active, 'round')}") + waiting


def _moment(at: str) -> str:
    return f"{datetime.fromisoformat(at):%Y-%m-%d %H:%M} UTC"


def _round_facts(past: _Past, number: int) -> RoundFacts:
    metrics = read_json(past.project.run_folder(number) / "metrics.json")
    facts = RoundFacts(
        number,
        metrics["n_queried"],
        agreement=metrics["agreement"],
        n_taught=metrics["n_labels"],
        n_classes=metrics["n_classes"],
    )
    atlas, before = past.atlases[number], past.atlases[number - 1] if number else None
    return facts if atlas is None else _with_atlas(facts, past.standing, atlas, before)


def _with_atlas(facts: RoundFacts, standing: Standing, atlas: Atlas, before: Atlas | None) -> RoundFacts:
    owned = [slot for slot, class_id in enumerate(atlas.facts["class_ids"]) if class_id]
    audit = audit_of(standing, atlas)
    return replace(
        facts,
        named=float(atlas.sizes[owned].sum() / max(1, len(atlas.order))),
        regrouped=atlas.facts["moved_share"],
        audit=Estimate(audit.n, audit.share, audit.low, audit.high) if audit else None,
        mapping_changes=tuple(mapping_changes(standing.registry, before, atlas)) if before else (),
    )


def _class_strip(past: _Past, number: int) -> ClassStrip:
    """A group as the last model sees it, with what people say of its members."""
    group, members = past.groups.groups[number], past.groups.members(number, past.last)
    said = past.groups.by_people[members]
    said = said[said >= 0]
    is_checked = group.class_id is not None and len(said) > 0
    return ClassStrip(
        group.name,
        group.is_new,
        len(members),
        members[:_THUMBNAILS],
        _answered_rows(past, number),
        purity=float((said == number).mean()) if is_checked else None,
        n_checked=len(said) if is_checked else None,
        is_named=group.class_id is not None,
    )


def _answered_rows(past: _Past, number: int) -> IntArray:
    """The rows that people gave to a group after the start, the latest answer first."""
    answers = past.standing.answers
    rows = [row for row in np.flatnonzero(past.groups.by_people == number).tolist() if answers[row].source != "seed"]
    return np.array(sorted(rows, key=lambda row: -answers[row].id), np.int64)


def _maps(past: _Past) -> tuple[FeatureMap, ...]:
    """The same rows in the same colours at each moment; of many rows a sample, and all answered ones."""
    groups = past.groups
    answered = groups.by_people >= 0
    answered[[row for row, event in past.standing.answers.items() if event.source == "seed"]] = False
    order = np.sort(past.last.order)
    rows = np.union1d(order[:: 1 + len(order) // _MAP_POINTS], order[answered[order]])
    rows = rows[groups.now[rows] >= 0]
    is_new = np.array([group.is_new for group in groups.groups], np.bool_)[groups.now[rows]]
    return tuple(
        FeatureMap(_title(atlas), np.asarray(atlas.xy[rows]), groups.now[rows], is_new, answered[rows], groups.names)
        for atlas in past.moments
    )


def _title(atlas: Atlas) -> str:
    return f"After round {atlas.number}" if atlas.number else "After base training"


def _confidence(past: _Past, atlas: Atlas) -> Confidence:
    """The highest probabilities of the rows that the last round had no label of, at an earlier or the last round."""
    project = past.project
    pool = project.labels(project.store.runs()[past.last.number])[0].pool_rows
    pool = pool[atlas.top_slots[pool, 0] != NO_SLOT]
    top = atlas.top_probs[pool, 0].astype(np.float64)
    is_new = novel_slots(past.standing.registry, atlas)[atlas.top_slots[pool, 0]]
    return Confidence(_title(atlas), top[~is_new], top[is_new])


def _thumbnail(project: Project) -> Thumbnail | None:
    """A small copy of a row's image, as long as the file is what was scanned: nothing else leaves with the report."""
    if not project.images.is_dir():
        return None

    def thumbnail(row: int) -> Image:
        content = read_file(project.images / project.paths[row])
        if digest_bytes(content) != project.keys[row]:
            raise ImageError("the file has changed since it was scanned")
        image = decode(content, draft_size=_THUMBNAIL_SIDE)
        image.thumbnail((_THUMBNAIL_SIDE, _THUMBNAIL_SIDE))
        return image

    return thumbnail


def _commands(project: Project) -> tuple[str, ...]:
    """By the project's name alone: a report is passed on, and where it was made is nobody's business."""
    name = _name(project)
    name = f"./{name}" if name.startswith("-") else name
    folder, report, results = (shlex.quote(name + ending) for ending in ("", "-report", "-results"))
    return (
        f"agcd serve {folder}",
        f"agcd train {folder}",
        f"agcd report {folder} --out {report}",
        f"agcd export {folder} --out {results}",
    )
