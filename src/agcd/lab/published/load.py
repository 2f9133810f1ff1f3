"""A published data set at a path the user gave, as a ``Dataset`` with its classes in the order of their ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from agcd.data.items import Item, image_dataset
from agcd.errors import DataError
from agcd.lab.published.archives import unpacked
from agcd.lab.published.cifar import read_cifar10, read_cifar100
from agcd.lab.published.class_folders import read_herbarium19, read_imagenet100
from agcd.lab.published.facts import Published
from agcd.lab.published.fine_grained import read_aircraft, read_cars, read_cub
from agcd.lab.published.listing import Listing, MissingPieces
from agcd.types import Dataset

READERS: Mapping[str, Callable[[Path, Path], Listing]] = MappingProxyType(
    {
        "cifar10": read_cifar10,
        "cifar100": read_cifar100,
        "imagenet100": read_imagenet100,
        "cub": read_cub,
        "stanford_cars": read_cars,
        "fgvc_aircraft": read_aircraft,
        "herbarium19": read_herbarium19,
    }
)
"""Name → reader, called with the folder and with the cache."""
_SHOWN = 4
"""Missing pieces named in one sentence."""


def load_published(published: Published, path: Path, cache_dir: Path) -> Dataset:
    """The data set at ``path``; images that cannot be used are set aside, images that are not there are an error."""
    try:
        listing = list_published(published, path, cache_dir)
    except MissingPieces as error:
        more = ", …" if len(error.pieces) > _SHOWN else ""
        raise DataError(
            f"{error.place} lacks {', '.join(error.pieces[:_SHOWN])}{more}: for {published.name}, {published.layout} "
            "is expected."
        ) from None
    absent = absent_items(listing)
    if absent:
        raise DataError(f"{path} lacks {len(absent)} of {len(listing.items)} images, the first is {absent[0].path}.")
    otherwise = f"{path} holds no usable image of {published.title}"
    return image_dataset(published.name, listing.items, otherwise=otherwise, classes=listing.classes)


def list_published(published: Published, path: Path, cache_dir: Path) -> Listing:
    """The images and classes at ``path``, an archive being unpacked first; no image is opened."""
    if not path.exists():
        raise DataError(f"There is nothing at {path}: {published.layout} is expected.")
    if not path.is_dir():
        if not (published.one_archive and path.is_file()):
            raise DataError(f"{path} is not a folder: {published.layout} is expected.")
        path = unpacked(path, cache_dir)
    listing = READERS[published.name](path, cache_dir)
    if len(set(listing.classes)) < len(listing.classes):
        twin = next(name for name in listing.classes if listing.classes.count(name) > 1)
        raise DataError(f"{path} names the class {twin!r} twice.")
    return listing


def absent_items(listing: Listing) -> list[Item]:
    """The listed images that are not on the disk."""
    return [item for item in listing.items if not item.path.exists()]
