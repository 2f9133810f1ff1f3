"""The rows of docs/inputs.md, by group."""

from __future__ import annotations

from agcd.data.sources import SourceOptions
from support.input_files import ARCHIVES, LISTS, PICTURES
from support.inputs import (
    Input,
    linked,
    looped,
    tree,
)

CATS, BOTH = {"cat": 2, "dog": 1}, {"cat": 1, "dog": 1}
_FOLLOW = SourceOptions(follow_links=True)
_ALL_LINKS = SourceOptions(follow_links=True, allow_outside=True)

FOLDERS = [
    Input("class folders", tree("cat/1 cat/2 dog/1"), CATS),
    Input("class folders and `unlabelled/`", tree("cat/1 dog/1 unlabelled/1"), BOTH, 1),
    Input(
        "class folders and pictures beside them",
        tree("cat/1 dog/1 1 2"),
        BOTH,
        2,
    ),
    Input("pictures in one folder, no class folders", tree("1 2 3"), {}, 3, tree="no folder names"),
    Input(
        "one wrapper, `images/<class>`",
        tree("images/cat/1 images/cat/2 images/dog/1"),
        CATS,
        tree="lie 2 deep",
    ),
    Input(
        "two wrappers, `data/images/<class>`",
        tree("data/images/cat/1 data/images/cat/2 data/images/dog/1"),
        CATS,
    ),
    Input(
        "a wrapper with any name, `animals/<class>`",
        tree("animals/cat/1 animals/cat/2 animals/dog/1"),
        CATS,
    ),
    Input("a wrapper around pictures, `images/1.png`", tree("images/1 images/2"), {}, 2),
    Input(
        "a wrapper, and `unlabelled/` inside it",
        tree("images/cat/1 images/dog/1 images/unlabelled/1"),
        BOTH,
        1,
    ),
    Input(
        "`labelled/<class>` beside `unlabelled/`",
        tree("labelled/cat/1 labelled/dog/1 unlabelled/1"),
        BOTH,
        1,
    ),
    Input(
        "`train/` and `test/`",
        tree("train/cat/1 train/dog/1 test/cat/1"),
        BOTH,
        0,
        1,
        tree="read test/ and train/ as splits",
    ),
    Input(
        "`train/` and `valid/`",
        tree("train/cat/1 train/dog/1 valid/cat/2"),
        CATS,
        tree="read train/ and valid/ as splits",
    ),
    Input(
        "`training/`, `validation/` and `testing/`",
        tree("training/cat/1 validation/dog/1 testing/cat/2"),
        BOTH,
        0,
        1,
    ),
    Input("`dev/` and `test/`", tree("dev/cat/1 dev/dog/1 test/cat/2"), BOTH, 0, 1),
    Input(
        "`training_set/` and `test_set/`",
        tree("training_set/cat/1 training_set/dog/1 test_set/cat/2"),
        BOTH,
        0,
        1,
    ),
    Input("`train2017/` and `val2017/` without classes", tree("train2017/1 val2017/2"), {}, 2),
    Input(
        "a wrapper around splits",
        tree("data/train/cat/1 data/train/dog/1 data/test/cat/2"),
        BOTH,
        0,
        1,
    ),
    Input(
        "a wrapper inside splits",
        tree("train/images/cat/1 train/images/dog/1 test/images/cat/2"),
        BOTH,
        0,
        1,
    ),
    Input(
        "splits twice, `seg_train/seg_train/<class>`",
        tree("seg_train/seg_train/cat/1 seg_train/seg_train/dog/1 seg_test/seg_test/cat/2"),
        BOTH,
        0,
        1,
    ),
    Input(
        "splits inside classes",
        tree("cat/train/1 cat/test/2 dog/train/1"),
        BOTH,
        0,
        1,
    ),
    Input("splits without classes", tree("train/1 train/2 test/1"), {}, 2, 1),
    Input(
        "`unlabelled/` beside and inside splits",
        tree("train/cat/1 train/dog/1 train/unlabelled/1 unlabelled/2"),
        BOTH,
        2,
    ),
    Input("a class called `train` beside others", tree("train/1 bus/1"), {"bus": 1, "train": 1}),
    Input(
        "`train/` and `test/` beside a class",
        tree("train/cat/1 test/cat/1 dog/1"),
        error="train and test folders beside 'dog'",
    ),
    Input("years above classes", tree("2023/cat/1 2024/cat/1 2024/dog/1"), CATS, tree="lie 2 deep"),
    Input(
        "months above classes",
        tree("2023/05/cat/1 2023/06/cat/1 2024/01/dog/1"),
        CATS,
        tree="lie 3 deep",
    ),
    Input("batches above classes", tree("batch_1/cat/1 batch_2/cat/1 batch_2/dog/1"), CATS),
    Input(
        "years and `unlabelled/`",
        tree("2023/cat/1 2024/dog/1 2024/unlabelled/1"),
        BOTH,
        1,
    ),
    Input("folders of an online album", tree("Photos_from_2022/1 Photos_from_2023/1"), {}, 2, doubt="would be odd"),
    Input("dates without classes", tree("2023-05-01/1 2023-05-02/1"), {}, 2, doubt="would be odd as classes"),
    Input("years inside classes", tree("cat/2023/1 cat/2024/1 dog/2024/1"), CATS),
    Input(
        "sites above classes",
        tree("harbour/cat/1 meadow/cat/1 meadow/dog/1"),
        CATS,
        doubt="harbour/ and meadow/ hold no pictures, only folders",
    ),
    Input(
        "classes in groups",
        tree("animals/cat/1 animals/dog/1 plants/rose/1"),
        {"cat": 1, "dog": 1, "rose": 1},
        doubt="--class-level 1",
    ),
    Input(
        "classes in groups, `--class-level 1`",
        tree("animals/cat/1 animals/dog/1 plants/rose/1"),
        {"animals": 2, "plants": 1},
        options=SourceOptions(class_level=1),
    ),
    Input(
        "groups beside classes",
        tree("animals/cat/1 animals/dog/1 car/1"),
        {"animals": 2, "car": 1},
        doubt="animals/ holds only folders, while others hold pictures",
    ),
    Input("folders inside a class that has pictures", tree("cat/1 cat/kittens/2 dog/1"), CATS),
    Input(
        "one class folder alone",
        tree("cat/1 cat/2"),
        {"cat": 2},
        doubt="all pictures lie in one folder, cat/",
    ),
    Input("one class folder and `unlabelled/`", tree("cat/1 cat/2 unlabelled/1"), {"cat": 2}, 1),
    Input(
        "`images/` and `masks/`",
        tree("images/1 masks/2"),
        {},
        2,
        doubt="images/ and masks/ would be odd as classes",
    ),
    Input(
        "`masks/` beside classes",
        tree("cat/1 dog/1 masks/2"),
        {"cat": 1, "dog": 1, "masks": 1},
        doubt="masks/ would be a class",
    ),
    Input(
        "folders that mean nothing, `--class-level 0`",
        tree("cat/1 dog/1"),
        {},
        2,
        options=SourceOptions(class_level=0),
    ),
    Input(
        "`--class-level 4` where nothing is so deep",
        tree("cat/1"),
        error="at most 1 folder deep",
        options=SourceOptions(class_level=4),
    ),
    Input("`Cat/` and `cat/`", tree("Cat/1 cat/1"), error="the same name up to case"),
    Input("an empty folder", lambda root: None, error="holds no usable image"),
    Input("a folder that is not there", lambda root: root / "gone", error="There is nothing at"),
]
LINKS = [
    Input(
        "a link to a folder",
        linked(outside=False, folder=True),
        {"bird": 1, "cat": 1},
        aside={"dog": "--follow-links follows it"},
    ),
    Input(
        "a link to a folder, `--follow-links`",
        linked(outside=False, folder=True),
        {"bird": 1, "cat": 1, "dog": 2},
        options=_FOLLOW,
    ),
    Input(
        "a link to a folder elsewhere, `--follow-links`",
        linked(outside=True, folder=True),
        {"bird": 1, "cat": 1},
        aside={"dog": "--allow-outside follows it"},
        options=_FOLLOW,
    ),
    Input(
        "the same, `--follow-links --allow-outside`",
        linked(outside=True, folder=True),
        {"bird": 1, "cat": 1, "dog": 2},
        options=_ALL_LINKS,
    ),
    Input(
        "a link to a picture elsewhere",
        linked(outside=True, folder=False),
        {"bird": 1, "cat": 1},
        aside={"cat/2.png": "--allow-outside"},
    ),
    Input(
        "links in a circle, `--follow-links`",
        looped,
        {"cat": 1, "dog": 2},
        aside={"cat/back": "leads back", "dog/cats/back": "leads back"},
        options=_FOLLOW,
    ),
]
GROUPS = {
    "Folders": FOLDERS,
    "Links": LINKS,
    "Lists of images": LISTS,
    "Archives": ARCHIVES,
    "Pictures": PICTURES,
}
