"""What a copy of a published data set has and lacks, compared with the paper's Table 1."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from agcd.data.images import probe
from agcd.errors import DataError
from agcd.lab.published.facts import Published, find_published, old_class_names
from agcd.lab.published.listing import Listing, MissingPieces
from agcd.lab.published.load import absent_items, list_published

_HEAD = 2**16
"""Bytes: as long as the metadata before a photograph's header can be; mostly they are far shorter."""
_SHOWN = 20
"""Missing pieces that are listed one by one."""


@dataclass(frozen=True)
class Checked:
    """Findings, one line each, and whether the copy is the paper's data set."""

    lines: tuple[str, ...]
    ok: bool


def check_published(name: str, path: Path, cache_dir: Path) -> Checked:
    """Compare the copy at ``path`` with what is published; anything wrong with it is a line, not an error.

    Images are judged by their headers; damage further inside shows when they are loaded.
    """
    published = find_published(name)
    try:
        listing = list_published(published, path, cache_dir)
    except MissingPieces as error:
        missing = [f"missing: {error.place / piece}" for piece in error.pieces[:_SHOWN]]
        more = [f"missing: {len(error.pieces) - _SHOWN} more"] if len(error.pieces) > _SHOWN else []
        return Checked((*missing, *more, f"expected: {published.layout}"), ok=False)
    except DataError as error:
        return Checked((str(error), f"expected: {published.layout}"), ok=False)
    found = f"{published.title} at {path}: {len(listing.items)} images of {len(listing.classes)} classes"
    sizes, files = _sizes(published, listing), _files(listing)
    return Checked((found, *sizes.lines, *files.lines), ok=sizes.ok and files.ok)


def _sizes(published: Published, listing: Listing) -> Checked:
    """The sizes of the three parts, drawn by the published rule."""
    expected = {"labelled": published.n_labelled, "unlabelled": published.n_unlabelled, "test": published.n_test}
    found: dict[str, int] = {"classes": len(listing.classes), "test": sum(item.is_test for item in listing.items)}
    if len(listing.classes) == published.n_classes:
        train = Counter(item.label for item in listing.items if not item.is_test)
        n_old_rows = sum(train[name] for name in old_class_names(published, listing.classes))
        found["labelled"] = int(published.label_ratio * n_old_rows)
        found["unlabelled"] = train.total() - found["labelled"]
    compared = [_compare(part, found.get(part), n) for part, n in {"classes": published.n_classes, **expected}.items()]
    return Checked(tuple(line for line, _ in compared), all(same for _, same in compared))


def _compare(part: str, found: int | None, expected: int | None) -> tuple[str, bool]:
    if found is None:
        return f"{part}: not known without all classes; the paper has {expected}", False
    if expected is None:
        return f"{part}: {found} (the paper gives no number)", True
    if found == expected:
        return f"{part}: {found}, ok", True
    return f"{part}: differs: found {found}, the paper has {expected}", False


def _files(listing: Listing) -> Checked:
    """Images that are listed but absent, and those whose header says that they cannot be used."""
    absent = absent_items(listing)
    gone = set(absent)
    reasons = ((item, _reason_unusable(item.path)) for item in listing.items if item not in gone)
    found = {
        "absent": [str(item.path) for item in absent],
        "unusable": [f"{item.path}: {reason}" for item, reason in reasons if reason is not None],
    }
    lines = [
        f"{what}: {len(names)} of {len(listing.items)} images, the first is {names[0]}"
        for what, names in found.items()
        if names
    ]
    return Checked(tuple(lines) or ("all listed images are there",), ok=not lines)


def _reason_unusable(path: Path) -> str | None:
    """Why the header says no; mostly its first bytes suffice, so that 100,000 photographs need not be read whole."""
    try:
        if path.is_file():
            with path.open("rb") as file:
                if probe(file.read(_HEAD)) is None:
                    return None
    except OSError:
        pass  # the whole look below has the words for it
    return probe(path)
