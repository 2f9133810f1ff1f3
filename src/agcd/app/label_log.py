"""``LabelLog``: the events of one project, read, folded once and followed from then on."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence

from agcd.app.labels import LabelView
from agcd.app.store.events import LabelEvent
from agcd.app.store.store import Store
from agcd.types import BoolArray

_N_EARLIER = 4
"""Earlier views that are kept: of base training, the last rounds and one in training. Each may hold a million rows."""


class LabelLog:
    """Follows the events of one project: they are read and folded once. Several threads may ask it."""

    def __init__(self, is_test: BoolArray) -> None:
        self._view, self._is_test = LabelView.empty(is_test), is_test
        self.n_first = len(is_test)
        """Rows that the project was made with; known once the events were read."""
        self._earlier: OrderedDict[int, LabelView] = OrderedDict()
        """Views at the events that somebody asked for last, by event."""
        self._lock = threading.Lock()

    def view(self, store: Store) -> LabelView:
        """What holds after the last event in ``store``."""
        with self._lock:
            fresh = store.events(after=self._view.last_event)
            if not fresh:
                return self._view
            if not self._view.last_event:
                self._view = LabelView.empty(self._is_test, fresh)
                self.n_first = self._view.n_rows
            view = self._view if self._view.last_event else self._stopping_at(store.runs().values(), fresh)
            view = view.after(fresh)
            if not store.connection.in_transaction:  # what is not committed may never have been said
                self._view = view
            return view

    def _stopping_at(self, events: Iterable[int], fresh: Sequence[LabelEvent]) -> LabelView:
        """The view after the last of ``events``; those after the others are kept, so that all takes one fold."""
        view = self._view
        for stop in sorted(set(events)):
            view = self._earlier[stop] = view.after(event for event in fresh if view.last_event < event.id <= stop)
        return view

    def at(self, now: LabelView, events: Collection[int]) -> dict[int, LabelView]:
        """The views after each of ``events``, numbers of events that ``now`` knows."""
        with self._lock:
            missing = [event for event in sorted(events) if event not in self._earlier and event < now.last_event]
            if missing:
                self._look_back(now, missing)
            found = {event: self._earlier.get(event, now) for event in events}
            for event in self._earlier.keys() & found.keys():
                self._earlier.move_to_end(event)
            while len(self._earlier) > _N_EARLIER:
                self._earlier.popitem(last=False)
            return found

    def _look_back(self, now: LabelView, missing: Sequence[int]) -> None:
        everything = now.events()
        for event in missing:
            known = [seen for seen in self._earlier if seen <= event]
            start = self._earlier[max(known)] if known else LabelView.empty(now.is_test, everything)
            self._earlier[event] = start.after(e for e in everything if start.last_event < e.id <= event)

    def append(self, store: Store, events: Sequence[LabelEvent]) -> list[LabelEvent]:
        """Store ``events``, all or none, if they make sense after what is stored already."""
        with store.transaction():
            self.view(store).check(events)
            return store.append(events)
