"""The facts agree with each other and with the paper; specs, published old classes, and the check of a copy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import agcd.lab.published.check as check_module
from agcd.errors import DataError
from agcd.lab.datasets import load_data
from agcd.lab.published import PUBLISHED, check_published, parse_spec, published_old_classes
from agcd.lab.published.class_folders import imagenet100_ids
from agcd.lab.published.facts import class_splits
from agcd.lab.published.load import READERS
from support.datasets import toy_rows
from support.published import make_cub, make_herbarium, make_imagenet, picture, rows_of

TABLE_1 = {  # old, all classes, labelled, unlabelled, test
    "cifar10": (2, 10, 2000, 48_000, 10_000),
    "cifar100": (50, 100, 5000, 45_000, 10_000),
    "imagenet100": (50, 100, 12_744, 114_371, 5000),
    "cub": (100, 200, 599, 5395, 5794),
    "stanford_cars": (98, 196, 800, 7344, 8041),
    "fgvc_aircraft": (50, 100, 666, 6001, 3333),
    "herbarium19": (341, 683, None, None, None),
}


# --- facts


def test_sizes_are_those_of_the_paper_and_every_set_has_a_reader() -> None:
    found = {name: (p.n_old, p.n_classes, p.n_labelled, p.n_unlabelled, p.n_test) for name, p in PUBLISHED.items()}
    assert found == TABLE_1
    assert set(READERS) == set(PUBLISHED)
    assert all(name == published.name for name, published in PUBLISHED.items())


def test_settings_are_those_of_the_paper() -> None:
    weights = {name: p.entropy_weight for name, p in PUBLISHED.items()}
    assert {name for name, weight in weights.items() if weight == 1} == {
        "cifar10",
        "stanford_cars",
        "fgvc_aircraft",
        "herbarium19",
    }
    assert (weights["cub"], weights["imagenet100"], weights["cifar100"]) == (2, 2, 4)
    assert {name: p.rounds for name, p in PUBLISHED.items() if p.rounds != 5} == {"cifar10": 1}
    assert {(p.budget, p.label_ratio) for p in PUBLISHED.values()} == {(100, 0.2)}


def test_class_splits_have_the_published_counts_are_disjoint_and_complete() -> None:
    counts = {name: tuple(len(ids) for ids in split.values()) for name, split in class_splits().items()}
    assert counts == {
        "cub": (100, 34, 34, 32),
        "stanford_cars": (98, 7, 15, 76),
        "fgvc_aircraft": (50, 13, 17, 20),
        "herbarium19": (341, 342),
    }
    for name, split in class_splits().items():
        ids = [i for part in split.values() for i in part]
        assert sorted(ids) == list(range(PUBLISHED[name].n_classes))  # so all of them count from 0, the cars too
        assert len(split["old"]) == PUBLISHED[name].n_old


# --- old classes


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_old_classes_are_named_in_published_order(name: str) -> None:
    dataset = toy_rows([1] * PUBLISHED[name].n_classes)
    ids = class_splits()[name]["old"] if name in class_splits() else range(PUBLISHED[name].n_old)
    assert published_old_classes(name, dataset) == tuple(f"c{i}" for i in ids)


def test_old_classes_of_an_incomplete_set_or_an_unknown_one_are_refused() -> None:
    with pytest.raises(DataError, match="3 classes were found; the published split of CUB-200-2011 needs all 200"):
        published_old_classes("cub", toy_rows([1] * 3))
    with pytest.raises(DataError, match=r"Unknown published data set 'cup'\. Did you mean 'cub'"):
        published_old_classes("cup", toy_rows([1] * 3))


# --- specs


def test_a_spec_is_a_name_and_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert parse_spec("cub=/data/birds") == (PUBLISHED["cub"], Path("/data/birds"))
    assert parse_spec("cub=~/a=b") == (PUBLISHED["cub"], Path("/home/me/a=b"))
    assert parse_spec("toy") is None
    assert parse_spec("/data/cub=2") is None


@pytest.mark.parametrize("spec", ["cub", "cub=", "cub=  "])
def test_a_name_without_a_path_says_how_to_write_it(spec: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cub needs the path of your copy: write cub=PATH, where PATH is CUB_200_2011"):
        load_data(spec, tmp_path)


def test_the_home_of_nobody_is_one_sentence() -> None:
    with pytest.raises(DataError, match="home folder of an unknown user"):
        parse_spec("cub=~no-such-user/x")


def test_load_data_reads_a_published_set_and_guesses_a_mistyped_name(tmp_path: Path) -> None:
    root = make_cub(tmp_path)
    assert len(rows_of(load_data(f"cub={root}", tmp_path / "cache"))) == 6
    with pytest.raises(DataError, match=r"Unknown published data set 'cubs'\. Did you mean 'cub'"):
        load_data(f"cubs={root}", tmp_path)
    with pytest.raises(DataError, match=r"Unknown data set 'toyy'\. Did you mean 'toy'.*cub=PATH"):
        load_data("toyy", tmp_path)
    picture(tmp_path / "x=y" / "a" / "1.png")
    assert load_data(str(tmp_path / "x=y"), tmp_path).n_rows == 1


# --- check


def test_a_complete_copy_is_ok_by_the_published_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_imagenet(tmp_path, ids=imagenet100_ids(), n_train=3)
    small = replace(PUBLISHED["imagenet100"], n_labelled=30, n_unlabelled=270, n_test=100)
    monkeypatch.setattr(check_module, "find_published", lambda name: small)
    checked = check_published("imagenet100", tmp_path, tmp_path / "cache")
    assert checked.ok
    assert checked.lines == (
        f"ImageNet-100 at {tmp_path}: 400 images of 100 classes",
        "classes: 100, ok",
        "labelled: 30, ok",
        "unlabelled: 270, ok",
        "test: 100, ok",
        "all listed images are there",
    )


def test_sizes_that_differ_from_the_paper_are_told(tmp_path: Path) -> None:
    checked = check_published("cub", make_cub(tmp_path), tmp_path / "cache")
    assert not checked.ok
    assert checked.lines[1:] == (
        "classes: differs: found 3, the paper has 200",
        "labelled: not known without all classes; the paper has 599",
        "unlabelled: not known without all classes; the paper has 5395",
        "test: differs: found 3, the paper has 5794",
        "all listed images are there",
    )


def test_a_set_without_published_sizes_is_not_blamed_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(683):
        for part in ("small-train", "small-validation"):
            (tmp_path / part / str(i)).mkdir(parents=True)
    for i in range(3):
        picture(tmp_path / "small-train" / "0" / f"{i}.jpg", i)
    checked = check_published("herbarium19", tmp_path, tmp_path / "cache")
    assert checked.ok
    assert "unlabelled: 3 (the paper gives no number)" in checked.lines


def test_every_missing_piece_is_a_line_and_not_an_error(tmp_path: Path) -> None:
    root = make_cub(tmp_path)
    (root / "classes.txt").unlink()
    (root / "images.txt").unlink()
    checked = check_published("cub", tmp_path, tmp_path / "cache")
    assert not checked.ok
    assert checked.lines[:2] == (f"missing: {root / 'images.txt'}", f"missing: {root / 'classes.txt'}")
    assert checked.lines[2].startswith("expected: CUB_200_2011")
    nothing = check_published("cub", tmp_path / "nowhere", tmp_path / "cache")
    assert (nothing.ok, nothing.lines[0][:16]) == (False, "There is nothing")
    damaged = check_published("cub", picture(tmp_path / "a.tgz"), tmp_path / "cache")
    assert (damaged.ok, "is not a readable archive" in damaged.lines[0]) == (False, True)


def test_a_hundred_missing_folders_are_cut_short(tmp_path: Path) -> None:
    make_imagenet(tmp_path, ids=(1,))
    checked = check_published("imagenet100", tmp_path, tmp_path / "cache")
    assert len(checked.lines) == 22
    assert checked.lines[-2] == "missing: 79 more"


def test_absent_and_unusable_images_are_told(tmp_path: Path) -> None:
    root = make_herbarium(tmp_path)
    (root / "small-train" / "0" / "0.jpg").write_bytes(b"")
    (root / "small-train" / "0" / "1.jpg").write_text("no image")
    (root / "small-train" / "2" / "1.jpg").unlink()
    (root / "small-train" / "2" / "1.jpg").symlink_to("nowhere")
    checked = check_published("herbarium19", root, tmp_path / "cache")
    assert checked.lines[-2:] == (
        f"absent: 1 of 9 images, the first is {root}/small-train/2/1.jpg",
        f"unusable: 2 of 9 images, the first is {root}/small-train/0/0.jpg: empty file",
    )


def test_a_header_longer_than_the_first_bytes_is_still_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_module, "_HEAD", 4)
    checked = check_published("herbarium19", make_herbarium(tmp_path), tmp_path / "cache")
    assert checked.lines[-1] == "all listed images are there"


def test_an_unknown_name_is_an_error_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Unknown published data set 'cifar'"):
        check_published("cifar", tmp_path, tmp_path)
