"""Changes of classes: renamed, merged, retired. Each is one event, and can be undone like an answer."""

from __future__ import annotations

from agcd.app.store.classes import ClassInfo, clean_class_name, clean_text
from agcd.app.store.events import Kind, LabelEvent, new_uid
from agcd.app.store.store import Store
from agcd.errors import DataError


def rename_class(store: Store, class_id: str, name: str, who: str, uid: str | None = None) -> bool:
    """Call a class otherwise; its old name stays an alias. Whether this was done now, not by an earlier request."""
    return _change(store, "rename", class_id, {"name": clean_class_name(name)}, who, uid)


def merge_classes(store: Store, class_id: str, into: str, who: str, uid: str | None = None) -> bool:
    """Everything said of ``class_id`` counts for ``into`` from now on."""
    with store.transaction():
        registry = store.registry()
        if into not in registry.classes:
            raise DataError(f"There is no class with id {into!r}.")
        return _change(store, "merge", class_id, {"into": registry.resolve(into).id}, who, uid)


def retire_class(store: Store, class_id: str, who: str, uid: str | None = None) -> bool:
    """The class keeps its labels and takes no more."""
    return _change(store, "retire", class_id, {}, who, uid)


def find_class(store: Store, name: str) -> ClassInfo:
    """The class that is called ``name`` now, or was once."""
    found = store.registry().find(name)
    if found is None:
        raise DataError(f"There is no class called {name!r}.")
    return found


def _change(store: Store, kind: Kind, class_id: str, payload: dict[str, str], who: str, uid: str | None) -> bool:
    who = clean_text(who, "name of a person")
    with store.transaction():
        if uid is not None and store.knows(uid):
            return False
        info = store.registry().classes.get(class_id)
        if info is None:
            raise DataError(f"There is no class with id {class_id!r}.")
        if info.merged_into is not None:
            raise DataError(f"Class {info.name!r} was merged into another one: change that one.")
        store.append([LabelEvent(kind, who, "human", class_id=class_id, payload=payload, uid=uid or new_uid())])
        return True
