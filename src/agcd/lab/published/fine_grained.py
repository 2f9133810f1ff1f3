"""Data sets that name their images in lists: CUB-200-2011, FGVC-Aircraft and Stanford Cars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from agcd.data.items import Item, clean_name
from agcd.errors import DataError
from agcd.lab.published.listing import (
    Listing,
    MissingPieces,
    find_root,
    folder_items,
    folder_names,
    listed_path,
    look_up,
    read_lines,
    read_pairs,
)

_CUB = ("images.txt", "image_class_labels.txt", "train_test_split.txt", "classes.txt", "images")
_AIRCRAFT = ("variants.txt", "images_variant_trainval.txt", "images_variant_test.txt", "images")
_CARS_LISTS = ("cars_train_annos.mat", "cars_test_annos_withlabels.mat", "cars_meta.mat")


def read_cub(path: Path, cache_dir: Path) -> Listing:
    """CUB-200-2011 in the order of images.txt; class 1 of its lists is class 0 of the published ids."""
    root = find_root(path, _CUB, ("CUB_200_2011",))
    images, labels, is_train, named = (read_pairs(root / name) for name in _CUB[:4])
    numbers = sorted(named, key=_whole)
    name_of = {number: _bird(named[number]) for number in numbers}
    items = []
    for image, relative in images.items():
        file = listed_path(root / "images", relative, root / "images.txt")
        label = look_up(name_of, look_up(labels, image, root / "image_class_labels.txt"), root / "classes.txt")
        is_test = look_up(is_train, image, root / "train_test_split.txt") == "0"
        items.append(Item(file, f"images/{relative}", label, is_test))
    return Listing(tuple(name_of.values()), tuple(items))


def _whole(number: str) -> int:
    if not (number.isascii() and number.isdigit()):
        raise DataError(f"classes.txt has the id {number!r}; a whole number is expected.")
    return int(number)


def _bird(name: str) -> str:
    """``001.Black_footed_Albatross`` as a person would write it."""
    return clean_name(name.partition(".")[2] or name).replace("_", " ")


def read_aircraft(path: Path, cache_dir: Path) -> Listing:
    """FGVC-Aircraft by variant, trainval before test.

    Classes are sorted by name, because the published ids count the sorted variants that occur in trainval.
    """
    root = find_root(path, _AIRCRAFT, ("data", "fgvc-aircraft-2013b/data"))
    variants = sorted(clean_name(line) for _, line in read_lines(root / "variants.txt"))
    items = []
    for name in _AIRCRAFT[1:3]:
        for image, variant in read_pairs(root / name).items():
            if clean_name(variant) not in variants:
                raise DataError(f"{root / name} names the variant {variant!r}, which variants.txt does not have.")
            file = listed_path(root / "images", f"{image}.jpg", root / name)
            items.append(Item(file, f"images/{image}.jpg", clean_name(variant), name == _AIRCRAFT[2]))
    return Listing(tuple(variants), tuple(items))


def read_cars(path: Path, cache_dir: Path) -> Listing:
    """Stanford Cars, from the original lists, or from the class folders in which it is passed on."""
    for place in (path, path / "car_data", path / "car_data" / "car_data"):
        if (place / "train").is_dir() and (place / "test").is_dir():
            return _cars_in_folders(path, place)
    return _cars_in_lists(path)


def _cars_in_lists(path: Path) -> Listing:
    """In the order of the annotation files; their class 1 is class 0 of the published ids, which run from 0 to 195."""
    root = find_root(path, ("cars_train", "cars_test"), ("stanford_cars",))
    lists = {name: place for name in _CARS_LISTS for place in (root / "devkit", root) if (place / name).is_file()}
    if missing := [name for name in _CARS_LISTS if name not in lists]:
        raise MissingPieces(root, missing)
    classes = _car_names(lists["cars_meta.mat"] / "cars_meta.mat")
    items = []
    for part, name in (("cars_train", _CARS_LISTS[0]), ("cars_test", _CARS_LISTS[1])):
        source = lists[name] / name
        for file, number in _annotations(source):
            if not 1 <= number <= len(classes):
                raise DataError(f"{source} gives {file!r} the class {number}; 1 to {len(classes)} are expected.")
            place = listed_path(root / part, file, source)
            items.append(Item(place, f"{part}/{file}", classes[number - 1], part == "cars_test"))
    return Listing(classes, tuple(items))


def _annotations(source: Path) -> list[tuple[str, int]]:
    """File name and class, counted from 1, of every annotated image."""
    table = _mat(source, "annotations")
    try:
        return [(str(row["fname"]), int(row["class"])) for row in table]
    except (IndexError, ValueError, TypeError) as error:
        raise DataError(f"{source} has no usable fields 'fname' and 'class' ({error}).") from None


def _car_names(source: Path) -> tuple[str, ...]:
    return tuple(clean_name(str(name)) for name in _mat(source, "class_names"))


def _mat(source: Path, variable: str) -> Any:
    """One variable of a MATLAB file as an array of one dimension."""
    from scipy.io import loadmat

    try:
        return np.atleast_1d(loadmat(source, squeeze_me=True, variable_names=[variable])[variable])
    except KeyError:
        raise DataError(f"{source} has no variable {variable!r}.") from None
    except Exception as error:  # the parser raises a dozen types on damaged files
        raise DataError(f"{source} is not a readable MATLAB file ({type(error).__name__}: {error}).") from None


def _cars_in_folders(path: Path, root: Path) -> Listing:
    """Folders are named by class, the files keep their original numbers, so sorting by file gives the original order.

    The order of the ids is not alphabetical (Acura RL, TL, TSX, Integra …), so a list of names must be there too.
    """
    classes = _names_beside(path, root)
    label_of = {name.replace("/", "-"): name for name in classes}  # "Ram C/V" cannot be a folder
    items: list[Item] = []
    for part in ("train", "test"):
        of_part: list[Item] = []
        for folder in folder_names(root / part):
            label = label_of.get(clean_name(folder))
            if label is None:
                raise DataError(f"{root / part} has a folder {folder!r}, which is none of the {len(classes)} classes.")
            of_part += folder_items(root, part, folder, label, is_test=part == "test")
        items += sorted(of_part, key=lambda item: (item.path.name, item.shown))
    return Listing(classes, tuple(items))


def _names_beside(path: Path, root: Path) -> tuple[str, ...]:
    """The class names in the order of their ids: cars_meta.mat of the devkit, or names.csv of a common copy."""
    for place in dict.fromkeys((path, path / "devkit", root, root / "devkit", root.parent)):
        if (place / "cars_meta.mat").is_file():
            return _car_names(place / "cars_meta.mat")
        if (place / "names.csv").is_file():
            return tuple(clean_name(line.strip('"')) for _, line in read_lines(place / "names.csv"))
    raise MissingPieces(path, ["cars_meta.mat"])
