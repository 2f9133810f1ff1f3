"""Where a project stands, in numbers and in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agcd.app.store.events import live_events, n_confirmed
from agcd.app.store.fold import Agreement, agreement
from agcd.app.store.queries import latest_query

if TYPE_CHECKING:
    from agcd.app.project import Project


@dataclass(frozen=True)
class Status:
    """What is known, asked and trained."""

    n_images: int
    n_test: int
    n_set_aside: int
    n_seeds: int
    n_answers: int
    """Confirmed answers: what the budget counts."""
    n_passed: int
    n_junk: int
    n_open: int
    """Questions of the last query that wait for an answer."""
    n_slots: int | None
    """None: neither given nor estimated yet."""
    n_finished: int
    in_training: bool
    is_due: bool
    classes: tuple[tuple[str, str, int], ...]
    """Name, old or novel, number of labels."""
    agreement: Agreement

    def lines(self) -> list[str]:
        """The same in words."""
        if self.in_training:
            state = f"round {self.n_finished} was begun and is not finished"
        else:
            state = "labels have changed since: train the next one" if self.is_due else "nothing new to learn"
        looked_for = f"{self.n_slots} looked for" if self.n_slots else "how many there are is not estimated yet"
        lines = [
            f"images   {self.n_images}, {self.n_test} of them test; {self.n_set_aside} file(s) set aside",
            f"labels   {self.n_seeds} from the start, {self.n_answers} answered; "
            f"{self.n_passed} passed, {self.n_junk} junk",
            f"classes  {len(self.classes)} named, {looked_for}",
            *(f"  {name} ({kind}): {count}" for name, kind, count in self.classes),
            f"rounds   {self.n_finished} finished; {state}",
            f"open     {self.n_open} question(s)",
        ]
        if self.agreement.share is not None:
            share = f"{100 * self.agreement.share:.0f} %"
            lines.append(f"people   agree on {share} of {self.agreement.n_rows} image(s) that several labelled")
        return lines


def status_of(project: Project) -> Status:
    """Read everything once; torch is not needed."""
    live = live_events(project.store.events())
    labels, class_ids = project.labels()
    registry = project.store.registry()
    count = Counter(labels.y_class[labels.labelled_rows].tolist())
    query = latest_query(project.store)
    pool = set(labels.pool_rows.tolist())
    return Status(
        n_images=len(project.keys),
        n_test=int(project.is_test.sum()),
        n_set_aside=len(project.store.quarantine()),
        n_seeds=len(labels.seed_rows),
        n_answers=n_confirmed(live),
        n_passed=int(labels.passed.sum()),
        n_junk=int((labels.held_out & ~project.is_test).sum()),
        n_open=sum(question.row in pool for question in query.questions) if query else 0,
        n_slots=project.n_slots_known,
        n_finished=project.n_finished,
        in_training=project.in_training,
        is_due=project.is_due,
        classes=tuple(
            (labels.classes[c], registry.classes[class_id].status, count[c]) for c, class_id in enumerate(class_ids)
        ),
        agreement=agreement(live, registry),
    )
