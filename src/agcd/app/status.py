"""Where a project stands, in numbers and in words: one count of everything, for the page and the command line."""

from __future__ import annotations

from dataclasses import dataclass

from agcd.app.labels import Agreement, How
from agcd.app.project import Project
from agcd.app.snapshot import Snapshot
from agcd.app.store.classes import Status as ClassStatus
from agcd.types import NumberOfClasses
from agcd.words import count, noun_in_sources


@dataclass(frozen=True)
class ClassCount:
    """A class in use, and how many labels of it training learns."""

    name: str
    status: ClassStatus
    n_labels: int


@dataclass(frozen=True)
class Status:
    """What is known, asked and trained. Rows are counted once: given, answered, held, accepted, passed or junk."""

    name: str
    n_images: int
    n_test: int
    n_set_aside: int
    n_seeds: int
    """Rows whose label was known from the start."""
    n_labelled: int
    """Rows that people labelled since."""
    n_answers: int
    """Labels that people gave: what the budget counts; two people may label one row."""
    n_accepted: int
    n_audit: int
    """Rows of a blind audit: neither learned nor asked about."""
    n_passed: int
    n_junk: int
    n_removed: int
    """Rows that are held out for good; no other count has them."""
    n_unseen: int
    """Rows that were added and not looked at yet."""
    n_questions: int
    n_open: int
    """Questions of the present query, and how many of them wait for an answer."""
    n_audit_open: int
    classes: tuple[ClassCount, ...]
    n_slots: int | None
    """Classes looked for; None: neither given nor estimated yet."""
    estimate: NumberOfClasses | None
    n_finished: int
    in_training: bool
    is_due: bool
    lacks_view: bool
    """Whether cache/ has lost what the page shows of the last round."""
    n_new_answers: int
    """Labels that no round has learned from yet."""
    n_slots_fixed: bool
    """Training has begun: the number of classes only grows by naming them."""
    agreement: Agreement
    last_event: int
    noun: str = "picture"

    @property
    def things(self) -> str:
        """What rows are called in the list: files of pictures are images."""
        return "images" if self.noun == "picture" else f"{self.noun}s"

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def n_novel(self) -> int:
        return sum(found.status == "novel" for found in self.classes)

    def lines(self) -> list[str]:
        """The same in words."""
        if self.in_training:
            state = f"round {self.n_finished} was begun and is not finished"
        elif self.lacks_view:
            state = "what the page shows of the last one is lost: training makes it again"
        else:
            state = "labels have changed since: train the next one" if self.is_due else "nothing new to learn"
        looked_for = f"{self.n_slots} looked for" if self.n_slots else "how many there are is not estimated yet"
        others = [(self.n_accepted, "accepted by page"), (self.n_audit, "held for an audit")]
        came_and_went = [(self.n_removed, "removed"), (self.n_unseen, "new and not looked at yet")]
        lines = [
            f"{self.things:<8} {self.n_images}, {self.n_test} of them test; "
            f"{count(self.n_set_aside, noun_in_sources(self.noun))} set aside"
            + "".join(f"; {n} {words}" for n, words in came_and_went if n),
            f"labels   {self.n_seeds} from the start, {self.n_answers} answered; "
            f"{self.n_passed} passed, {self.n_junk} junk" + "".join(f", {n} {words}" for n, words in others if n),
            f"classes  {self.n_classes} named, {looked_for}",
            *(f"  {found.name} ({found.status}): {found.n_labels}" for found in self.classes),
            f"rounds   {self.n_finished} finished; {state}",
            f"open     {count(self.n_open, 'question')}",
        ]
        if self.agreement.share is not None:
            share = f"{100 * self.agreement.share:.0f} %"
            lines.append(
                f"people   agree on {share} of {count(self.agreement.n_rows, self.noun)} that several labelled"
            )
        return lines


def status_of(project: Project, snapshot: Snapshot | None = None) -> Status:
    """Where ``project`` stands at ``snapshot``, or now."""
    snapshot = snapshot or project.snapshot()
    labels, query = snapshot.labels, snapshot.asked.query
    n_labels = labels.n_labels_of_class
    return Status(
        name=project.name,
        n_images=len(labels.present_rows),
        n_test=len(labels.present_rows) - len(labels.train_rows),
        n_set_aside=project.n_set_aside,
        n_seeds=labels.n(How.GIVEN),
        n_labelled=labels.n(How.ANSWERED),
        n_answers=labels.n_answers,
        n_accepted=labels.n(How.ACCEPTED),
        n_audit=labels.n(How.HELD),
        n_passed=labels.n(How.SKIPPED, How.UNSURE),
        n_junk=labels.n(How.JUNK),
        n_removed=labels.n(How.REMOVED),
        n_unseen=snapshot.round.n_unseen if snapshot.round else 0,
        n_questions=len(query.questions) if query else 0,
        n_open=snapshot.n_open,
        n_audit_open=snapshot.n_audit_open,
        classes=tuple(
            ClassCount(info.name, info.status, int(n_labels[labels.registry.place_of[info.id]]))
            for info in labels.classes_in_use
        ),
        n_slots=project.n_slots_known,
        estimate=project.estimated_classes(),
        n_finished=snapshot.n_finished,
        in_training=snapshot.in_training,
        is_due=snapshot.is_due,
        lacks_view=snapshot.lacks_view,
        n_new_answers=snapshot.n_new_labels,
        n_slots_fixed=0 in snapshot.runs,
        agreement=labels.agreement,
        last_event=labels.last_event,
        noun=project.kind.noun,
    )
