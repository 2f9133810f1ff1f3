"""Where the project stands, for the strip at the top of every page: asked for after every answer, so it is cheap."""

from __future__ import annotations

from agcd.app.estimate import read_estimate
from agcd.app.store.queries import latest_query, n_unanswered
from agcd.app.store.store import Store
from agcd.app.web.history import n_audit_open
from agcd.app.web.schemas import Agreed, Estimate, State
from agcd.app.web.server_state import Desk
from agcd.app.web.snapshot import Look


def state_of(desk: Desk, store: Store) -> State:
    """Counts only; nothing here grows with the number of pictures."""
    look, query, runs = desk.look(store), latest_query(store), store.runs()
    standing, n_finished = look.standing, desk.n_finished(store)
    estimate = read_estimate(desk.folder)
    learned = runs[n_finished - 1] if n_finished else 0
    n_new = standing.n_labels_after(learned)
    return State(
        name=desk.name,
        n_images=desk.n_rows,
        n_test=desk.n_test,
        n_set_aside=desk.n_set_aside,
        n_seeds=standing.n_seeds,
        n_answers=standing.counts["confirmed"],
        n_accepted=len(standing.accepted),
        n_audit=standing.counts["audit"],
        n_passed=standing.n_passed,
        n_junk=standing.n_junk,
        n_questions=len(query.questions) if query else 0,
        n_open=n_unanswered(store, query.id) if query else 0,
        n_audit_open=n_audit_open(store),
        n_classes=len(standing.classes_in_use),
        n_novel=sum(not info.is_old for info in standing.classes_in_use),
        n_slots=desk.project.n_slots_known,
        n_finished=n_finished,
        is_due=_is_due(look, n_finished, n_finished in runs, n_new, learned),
        estimate=Estimate(n=estimate.n, low=estimate.low, high=estimate.high, curve=list(estimate.curve))
        if estimate
        else None,
        n_slots_fixed=0 in runs,
        health=desk.health,
        agreement=Agreed(n_rows=standing.agreement.n_rows, share=standing.agreement.share),
        n_new_answers=n_new if n_finished else 0,
        last_event=standing.last_event,
    )


def _is_due(look: Look, n_finished: int, in_training: bool, n_new: int, learned: int) -> bool:
    """Whether a round has something to do: new labels, labels taken back or joined, or a map that was deleted."""
    if n_finished == 0 or in_training or look.atlas is None or look.atlas.number < n_finished - 1:
        return True
    return n_new > 0 or look.standing.last_change > learned
