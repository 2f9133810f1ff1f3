"""The story that the report tells of a project: without ground truth, from what people said and each round left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np
from PIL.Image import Image

from agcd.app.figures import figures_of
from agcd.app.kinds import IMAGE
from agcd.app.labels import How, LabelView
from agcd.app.project import Project
from agcd.app.rounds import NO_SLOT, RoundView, audit_of, mapping_changes
from agcd.app.second_look import SecondLook
from agcd.app.snapshot import NO_GROUP, Group, Snapshot
from agcd.app.status import Status, status_of
from agcd.app.store.queries import strategy_of_round
from agcd.config import BackboneConfig
from agcd.data.decoding import Decoder
from agcd.data.images import scanned_thumbnail
from agcd.errors import ConfigError
from agcd.report import write_report
from agcd.report.story import ClassStrip, Confidence, Estimate, Excerpt, FeatureMap, RoundFacts, Story, Thumbnail
from agcd.words import count, percent, shown, typed

_THUMBNAILS = 8
_THUMBNAIL_SIDE = 256
_MAP_POINTS = 2000
_SHOWN_PEOPLE = 6
_REPRODUCE = (
    "agcd.toml, project.db and the items hold all that is needed: without the folder runs/, agcd train makes the "
    "rounds again, one each time it is run, from what was known then."
)
_COMMANDS_NOTE = "Run these where the project's folder is; the first opens the page on which you label."


@dataclass(frozen=True)
class _Past:
    """A project's finished rounds, with what holds now."""

    project: Project
    snapshot: Snapshot
    status: Status
    rounds: tuple[RoundView | None, ...]
    """By number; only the last one is sure to be there."""

    @property
    def last(self) -> RoundView:
        assert self.snapshot.round is not None
        return self.snapshot.round

    @property
    def moments(self) -> list[RoundView]:
        """The first round that can still be shown, and the last."""
        first = next(found for found in self.rounds if found is not None)
        return [first] if first.number == self.last.number else [first, self.last]


def write_project_report(project: Project, out: Path, accuracy: Estimate | None = None) -> Path:
    """Write ``out/report.html`` and ``out/figures/*.png``; returns the page's path.

    ``accuracy`` is the share of names that are right; by default what the answers say of it, where they do.
    """
    return write_report(project_story(project, accuracy or _accuracy(project)), out)


def _accuracy(project: Project) -> Estimate | None:
    figures = figures_of(project.snapshot())
    found = figures.accuracy if figures else None
    return Estimate(figures.n_checks, found.mean, found.low, found.high, 0.9) if figures and found else None


def project_story(project: Project, accuracy: Estimate | None = None) -> Story:
    """Everything the report shows about a project; torch is not needed."""
    past = _look_back(project)
    n_new = sum(found.status == "novel" for found in past.status.classes)
    again = SecondLook(past.snapshot)
    return Story(
        title=f"Category discovery in {project.name}",
        subtitle=f"{count(past.last.n_old, 'class')} known at the start, {n_new:,} found since",
        facts=tuple(_facts(past)),
        settings=tuple(_settings(past)),
        accuracy=accuracy,
        rounds=tuple(_round_facts(past, number) for number in range(len(past.rounds))),
        confidence=tuple(_confidence(past, seen) for seen in past.moments),
        maps=_maps(past),
        classes=tuple(_class_strip(past.snapshot, group) for group in past.snapshot.shown_groups()),
        confusions=again.confusions(),
        doubts=again.doubts(),
        thumbnail=_thumbnail(project),
        excerpt=_excerpt(project),
        noun=project.kind.noun,
        paths=project.paths,
        commands=_commands(project),
        commands_note=_COMMANDS_NOTE,
    )


def _look_back(project: Project) -> _Past:
    snapshot, number = project.snapshot(), project.last_round
    if snapshot.round is None or snapshot.round.number < number:
        raise ConfigError(
            f"What round {number} says of the {project.kind.nouns} is no longer in cache/: "
            f"run agcd train {project.folder} to have it made again."
        )
    earlier = [project.round_view(before) for before in range(number)]
    return _Past(project, snapshot, status_of(project, snapshot), (*earlier, snapshot.round))


def _facts(past: _Past) -> list[tuple[str, str]]:
    """What the project is, for the head of the report."""
    status, labels, project = past.status, past.snapshot.labels, past.project
    events = labels.events()
    facts = [
        (
            project.kind.nouns.capitalize(),
            _listed(
                f"{status.n_images:,}",
                (status.n_test, "for testing"),
                (status.n_set_aside, "set aside as unusable"),
            ),
        ),
        ("Labels at the start", f"{status.n_seeds:,} in {count(past.last.n_old, 'class')}"),
        ("Answers", _answers(status)),
        ("People", _people(labels, project.kind.noun)),
        ("Classes", f"{status.n_classes:,} named, {status.n_novel:,} of them found by you"),
        ("Rounds", _rounds(past)),
        ("Last entry", _moment(events[-1].at) if events else ""),
    ]
    return [(key, value) for key, value in facts if value]


def _settings(past: _Past) -> list[tuple[str, str]]:
    """How it was done, for experts."""
    project = past.project
    train = project.config.train
    asked = ", ".join(dict.fromkeys(strategy_of_round(project.store).values()))
    return [
        ("Strategy", asked or f"{project.config.query.strategy} (nothing was asked yet)"),
        ("Slots", f"{past.last.n_slots:,}, {past.last.n_old:,} of them for classes known at the start"),
        ("Features", _features(project)),
        ("Training", f"{count(train.base_epochs, 'base epoch')}, {train.round_epochs} a round"),
        ("Seed", str(project.config.seed)),
        ("Made again", _REPRODUCE),
    ]


def _features(project: Project) -> str:
    """What the model sees of an item."""
    backbone = project.config.backbone
    if project.has_given_embeddings:
        return "embeddings that were given"
    if project.kind.name == IMAGE:
        return f"{backbone.name}, {count(backbone.views, 'view')} of {backbone.image_size} pixels"
    return "the default encoder" if backbone.name == BackboneConfig().name else backbone.name


def _listed(first: str, *others: tuple[int, str]) -> str:
    """What is there, then whatever else occurs."""
    return ", ".join([first, *(f"{n:,} {words}" for n, words in others if n)])


def _answers(status: Status) -> str:
    return _listed(
        count(status.n_labelled, "label"),
        (status.n_passed, "skipped or unsure"),
        (status.n_junk, "junk"),
        (status.n_accepted, "accepted by page"),
        (status.n_audit, "in a blind audit"),
    )


def _people(labels: LabelView, noun: str) -> str:
    """Who answered how much, the busiest first, and how often they agree."""
    by_whom = labels.people.most_common()
    told = [f"{shown(who, 30)} ({n:,})" for who, n in by_whom[:_SHOWN_PEOPLE]]
    if len(by_whom) > _SHOWN_PEOPLE:
        told.append(f"{len(by_whom) - _SHOWN_PEOPLE} more")
    agreed = labels.agreement
    if agreed.share is None:
        return ", ".join(told)
    shared = count(agreed.n_rows, noun)
    return f"{', '.join(told)}; they agree on {percent(agreed.share)} of {shared} that several labelled"


def _rounds(past: _Past) -> str:
    n_active, n_waiting = past.last.number, past.snapshot.n_new_labels
    waiting = f"; {count(n_waiting, 'label')} came in later" if n_waiting else ""
    return ("base training" if n_active == 0 else f"base training and {count(n_active, 'round')}") + waiting


def _moment(at: str) -> str:
    return f"{datetime.fromisoformat(at):%Y-%m-%d %H:%M} UTC"


def _round_facts(past: _Past, number: int) -> RoundFacts:
    metrics = past.project.metrics(number)
    facts = RoundFacts(
        number,
        metrics["n_queried"],
        agreement=metrics["agreement"],
        n_taught=metrics["n_labels"],
        n_classes=metrics["n_classes"],
    )
    seen, before = past.rounds[number], past.rounds[number - 1] if number else None
    return facts if seen is None else _with_view(facts, past.snapshot.labels, seen, before)


def _with_view(facts: RoundFacts, labels: LabelView, seen: RoundView, before: RoundView | None) -> RoundFacts:
    audit = audit_of(labels, seen)
    return replace(
        facts,
        named=seen.named_share,
        regrouped=seen.facts["moved_share"],
        audit=Estimate(audit.n, audit.share, audit.low, audit.high) if audit else None,
        mapping_changes=tuple(mapping_changes(labels.registry, before, seen)) if before else (),
    )


def _class_strip(snapshot: Snapshot, group: Group) -> ClassStrip:
    """A group as the last model sees it, with what people say of its members."""
    inside = snapshot.labels_inside(group)
    n_checked = sum(inside.values())
    is_checked = group.info is not None and n_checked > 0
    labelled = snapshot.labelled(group)
    return ClassStrip(
        group.name,
        group.is_new,
        snapshot.size(group),
        snapshot.members(group, _THUMBNAILS),
        labelled[snapshot.labels.how(labelled) != How.GIVEN],
        purity=inside.get(snapshot.number(group), 0) / n_checked if is_checked else None,
        n_checked=n_checked if is_checked else None,
        is_named=group.info is not None,
    )


def _maps(past: _Past) -> tuple[FeatureMap, ...]:
    """The same rows in the same colours at each moment; of many rows a sample, and all answered ones."""
    snapshot, order = past.snapshot, past.last.train_rows
    answered = np.zeros(past.project.n_rows, np.bool_)
    answered[snapshot.labels.rows((How.ANSWERED, How.HELD))] = True
    rows = np.union1d(order[:: 1 + len(order) // _MAP_POINTS], order[answered[order]])
    group = snapshot.says(rows).group
    rows, group = rows[group != NO_GROUP], group[group != NO_GROUP]
    is_new = np.array(snapshot.is_new, np.bool_)[group]
    return tuple(
        FeatureMap(_title(seen), np.asarray(seen.xy[rows]), group, is_new, answered[rows], tuple(snapshot.names))
        for seen in past.moments
    )


def _title(seen: RoundView) -> str:
    return f"After round {seen.number}" if seen.number else "After base training"


def _confidence(past: _Past, seen: RoundView) -> Confidence:
    """The highest probabilities of the rows that the last round had no label of, at an earlier or the last round."""
    learned = past.snapshot.learned
    assert learned is not None
    pool = seen.train_rows
    pool = pool[(learned.how(pool) == How.NOTHING) & (seen.top_slots[pool, 0] != NO_SLOT)]
    top = seen.top_probs[pool, 0].astype(np.float64)
    is_new = np.array([is_new for _, is_new in past.snapshot.slot_names], np.bool_)[seen.top_slots[pool, 0]]
    return Confidence(_title(seen), top[~is_new], top[is_new])


def _thumbnail(project: Project) -> Thumbnail | None:
    """A small copy of a row's image, as long as the file is what was scanned: nothing else leaves with the report."""
    if project.kind.name != IMAGE or not project.images.is_dir():
        return None

    decoder = Decoder(processes=1)

    def thumbnail(row: int) -> Image:
        path = project.picture_path(row)
        made: Image = decoder(path, _THUMBNAIL_SIDE, scanned_thumbnail, path, project.keys[row], _THUMBNAIL_SIDE)
        return made

    return thumbnail


def _excerpt(project: Project) -> Excerpt | None:
    """A row on one line, where rows are no files."""
    if project.kind.name == IMAGE:
        return None
    contents, kind = project.contents(), project.kind
    return lambda row: kind.excerpt(contents[row])


def _commands(project: Project) -> tuple[str, ...]:
    """By the project's name alone: a report is passed on, and where it was made is nobody's business."""
    name = project.name
    name = f"./{name}" if name.startswith("-") else name
    folder, report, results, pictures = (typed(name + ending) for ending in ("", "-report", "-results", "-sorted"))
    return (
        f"agcd serve {folder}",
        f"agcd train {folder}",
        f"agcd report {folder} --out {report}",
        f"agcd export {folder} --out {results}",
        f"agcd sort {folder} {pictures} --how copy",
    )
