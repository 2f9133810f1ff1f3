"""Training that starts by itself: first what the first question needs, then whenever enough has been answered."""

from __future__ import annotations

from importlib.util import find_spec

from agcd.app.jobs import Kind
from agcd.app.snapshot import Snapshot
from agcd.app.web.repeating import Repeating
from agcd.app.web.server_state import ServerState
from agcd.errors import not_installed

FEWEST_NEW = 20
"""New labels and accepted pictures from which training is worth its time; and at least a quarter of the labels it
knows, so that it becomes rarer as the project grows."""


_GIVE_WAY: tuple[Kind, ...] = ("start", "train")
"""Work that stops for pictures that were added: it takes minutes, and those a few seconds."""


class SelfTraining(Repeating):
    """A thread that looks at the project once a second. One kind of work that failed is not tried again before people
    have said something new, or pictures came."""

    def __init__(self, server: ServerState) -> None:
        super().__init__("training by itself")
        self.server = server
        self._lacks = None if find_spec("torch") else not_installed("Training", "torch")
        server.trains_itself = self._lacks is None
        self._tried: tuple[Kind, int] | None = None

    def look(self) -> None:
        """Start what is due, if nothing runs."""
        state = self.server.jobs.state()
        if state.state == "running" and state.kind not in _GIVE_WAY:
            return
        with self.server.moment() as snapshot:
            kind = due(snapshot)
            waits = bool(snapshot.round and snapshot.round.n_unseen)
        if kind is None or self._tried == (kind, snapshot.labels.last_event):
            return
        if self._lacks:
            raise self._lacks  # said once; questions go on as far as they can
        if state.state == "running":
            if not waits:
                return
            self.server.jobs.cancel()  # it goes on where it was once the new pictures are looked at
        self._tried = (kind, snapshot.labels.last_event)
        self.server.jobs.start(kind)


def due(snapshot: Snapshot) -> Kind | None:
    """The work that a moment calls for."""
    if snapshot.n_finished == 0:
        return "start"
    if snapshot.round is None or snapshot.round.live is None:
        return "train"
    if snapshot.round.n_unseen:
        return "grow"
    learned = snapshot.learned.n_labels if snapshot.learned else 0
    n_new = snapshot.n_new_labels + snapshot.n_new_accepted
    return "train" if snapshot.is_due and n_new >= max(FEWEST_NEW, learned // 4) else None
