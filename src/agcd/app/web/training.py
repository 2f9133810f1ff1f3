"""Training that starts by itself: first what the first question needs, then whenever enough has been answered."""

from __future__ import annotations

from agcd.app.jobs import Kind
from agcd.app.snapshot import Snapshot
from agcd.app.web.repeating import Repeating
from agcd.app.web.server_state import ServerState

FEWEST_NEW = 20
"""New labels and accepted pictures from which training is worth its time; and at least a quarter of the labels it
knows, so that it becomes rarer as the project grows."""


class SelfTraining(Repeating):
    """A thread that looks at the project once a second. One kind of work that failed is not tried again before people
    have said something new."""

    def __init__(self, server: ServerState) -> None:
        super().__init__("training by itself")
        self.server = server
        server.trains_itself = True
        self._tried: tuple[Kind, int] | None = None

    def look(self) -> None:
        """Start what is due, if nothing runs."""
        if self.server.jobs.state().state == "running":
            return
        with self.server.moment() as snapshot:
            kind = due(snapshot)
        if kind and self._tried != (kind, snapshot.labels.last_event):
            self._tried = (kind, snapshot.labels.last_event)
            self.server.jobs.start(kind)


def due(snapshot: Snapshot) -> Kind | None:
    """The work that a moment calls for."""
    if snapshot.n_finished == 0:
        return "start"
    if snapshot.round is None or snapshot.round.live is None:
        return "train"
    learned = snapshot.learned.n_labels if snapshot.learned else 0
    n_new = snapshot.n_new_labels + snapshot.n_new_accepted
    return "train" if snapshot.is_due and n_new >= max(FEWEST_NEW, learned // 4) else None
