"""Parts of every kind from outside: as CONTRIBUTING.md shows them, by entry point, and as no other process has them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agcd.config import BackboneConfig
from agcd.errors import ConfigError, DataError
from agcd.features.backbones import BACKBONES, load_backbone
from agcd.lab.bench import make_cells, run_bench
from agcd.lab.cells import cell_dir
from agcd.lab.datasets import SOURCES, load_data
from agcd.metrics import METRICS
from agcd.plugins import Registry
from agcd.provenance import value_digest
from agcd.strategies import STRATEGIES
from agcd.tracking import TRACKERS, open_tracking
from agcd.training import REGISTRY
from support.benches import SMALL, toy_folder
from support.blobs import FAST
from support.outside import contributing_example, make_package, new_process, write

QUICK: dict[str, Any] = {"train": {**FAST, "base_epochs": 2, "round_epochs": 1}, "query": {"rounds": 1, "budget": 4}}
EXAMPLES = {
    "vectors": '"""vectors.py:',
    "edges": '"""edges.py:',
    "purity": '"""purity.py:',
    "lines": '"""lines.py:',
    "mine": "import numpy as np\n\nfrom agcd.types import IntArray, PoolView\n\n\ndef most_novel",
    "plain": "from pydantic import Field",
}
POINTS = {
    "agcd.strategies": {"most_novel": "parts.mine:most_novel"},
    "agcd.trainers": {"plain": "parts.plain:Plain"},
    "agcd.backbones": {"edges": "parts.edges:Edges"},
    "agcd.sources": {"vectors": "parts.vectors:read"},
    "agcd.metrics": {"purity": "parts.purity:purity"},
    "agcd.tracking": {"lines": "parts.lines:Lines"},
}


def run(
    folder: Path, data: str, strategy: str, settings: dict[str, Any] = QUICK, **more: Any
) -> tuple[list[dict[str, Any]], str]:
    """Records of one cell, and the name of its folder."""
    (cell,) = make_cells([data], [strategy], 1, settings, {})
    records = run_bench([cell], folder / "out", folder / "cache", progress=lambda line: None, **more)
    return records, cell_dir(cell, folder / "out").name


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    lines = [
        {"vector": (rng.normal(size=4) * 0.3 + 3 * np.eye(4)[n % 4]).tolist(), "label": "abcd"[n % 4]}
        for n in range(120)
    ]
    (tmp_path / "pets.json").write_text(json.dumps(lines))
    return tmp_path / "pets.json"


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("is_installed", [False, True])
def test_the_examples_of_contributing_work_together(is_installed: bool, vectors: Path, tmp_path: Path) -> None:
    sources = {name: contributing_example(words) for name, words in EXAMPLES.items()}
    place = tmp_path / "installed"
    announced = {value.removeprefix("parts."): name for named in POINTS.values() for name, value in named.items()}
    names = {value.partition(":")[0]: name if is_installed else value for value, name in announced.items()}
    if is_installed:
        make_package(place, "parts", sources, POINTS)
    else:
        write(place, sources)
    with new_process(place):
        settings = {**QUICK, "train": {**QUICK["train"], "trainer": names["plain"], "options": {"entropy_scale": 2.0}}}
        track = open_tracking(names["lines"], tmp_path / "out")
        records, _ = run(
            tmp_path, f"{names['vectors']}={vectors}", names["mine"], settings, track=track, metrics=[names["purity"]]
        )
        features = load_backbone(BackboneConfig(name=names["edges"], image_size=64), "cpu")
    assert [record["n_queried"] for record in records] == [0, 4]
    assert {record["trainer"] for record in records} == {f"{names['plain']} (entropy_scale=2.0)"}
    assert all(0 < record["purity"] <= 1 for record in records)
    assert sorted(file.suffix for file in (tmp_path / "out" / "lines").iterdir()) == [".csv"] * 3
    assert features.dim == 24
    assert (features.mean, features.path) == ((0.5, 0.5, 0.5), "a network from outside, residual adapter")


@pytest.mark.usefixtures("in_this_process")
def test_a_bench_of_pictures_takes_a_backbone_from_outside_and_knows_an_edited_one(tmp_path: Path) -> None:
    data = str(toy_folder(tmp_path / "pictures"))
    settings = {**SMALL, "backbone": {"name": "edges:Edges", "image_size": 32, "views": 2}}
    source = contributing_example(EXAMPLES["edges"])
    found = []
    for edited in (source, source, source.replace("stride=4", "stride=2")):
        write(tmp_path / "code", {"edges": edited})
        with new_process(tmp_path / "code"):
            records, name = run(tmp_path, data, "random", settings)
            fingerprint = load_backbone(BackboneConfig(name="edges:Edges", image_size=32), "cpu").fingerprint
            found.append((name, fingerprint))
            assert 0 <= records[-1]["acc_all"] <= 1
    assert found[0] == found[1]
    assert not set(found[0]) & set(found[2])


def test_weights_of_a_backbone_from_outside_are_part_of_its_fingerprint(tmp_path: Path) -> None:
    write(tmp_path / "code", {"edges": contributing_example(EXAMPLES["edges"])})
    prints = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        torch.save({f"conv.{k}": v for k, v in torch.nn.Conv2d(3, 24, 5).state_dict().items()}, tmp_path / "w.pth")
        with new_process(tmp_path / "code"):
            config = BackboneConfig(name="edges:Edges", weights=tmp_path / "w.pth", image_size=32)
            prints.append(load_backbone(config, "cpu").fingerprint)
    assert len(set(prints)) == 2


def test_a_backbone_that_is_cut_already_or_built_like_timms_is_taken_as_it_is(tmp_path: Path) -> None:
    code = """
import torch
from agcd.features.cuts import Cut
from agcd.features.backbones import _toy


def cut_here(config):
    return Cut(torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Flatten()), torch.nn.Linear(48, 7), "by hand")


def like_timm(config):
    return _toy(config.model_copy(update={"name": "toy"}))


def flat(config):
    return torch.nn.Identity()


def nothing(config):
    return None
"""
    write(tmp_path, {"nets": code})
    with new_process(tmp_path):
        cut = load_backbone(BackboneConfig(name="nets:cut_here", image_size=32), "cpu")
        timm = load_backbone(BackboneConfig(name="nets:like_timm", image_size=32), "cpu")
        assert (cut.dim, cut.path, cut.token_shape) == (7, "by hand", (48,))
        assert timm.path == "one trainable block, exact class-token tail"
        with pytest.raises(ConfigError, match=r"features of shape \(1, 3, 32, 32\) for one image; \(1, d\)"):
            load_backbone(BackboneConfig(name="nets:flat", image_size=32), "cpu")
        with pytest.raises(ConfigError, match=re.escape("made a NoneType; a torch.nn.Module is expected")):
            load_backbone(BackboneConfig(name="nets:nothing", image_size=32), "cpu")


def test_an_edited_source_gives_a_cell_of_its_own(vectors: Path, tmp_path: Path) -> None:
    def name() -> str:
        with new_process(tmp_path / "code"):
            (cell,) = make_cells([f"vectors:read={vectors}"], ["random"], 1, QUICK, {})
            return cell_dir(cell, tmp_path).name

    write(tmp_path / "code", {"vectors": contributing_example(EXAMPLES["vectors"])})
    first = name()
    assert name() == first
    write(tmp_path / "code", {"vectors": contributing_example(EXAMPLES["vectors"]) + "# edited\n"})
    assert name() != first


@pytest.mark.parametrize(
    ("registry", "own", "wrong"),
    [
        (STRATEGIES, "margin", "margn"),
        (REGISTRY, "simgcd", "simgdc"),
        (BACKBONES, "toy_conv", "toy_con"),
        (SOURCES, "digits", "digitz"),
        (METRICS, "nmi", "nmy"),
        (TRACKERS, "wandb", "wanb"),
    ],
)
def test_agcds_own_names_cannot_be_taken_and_wrong_ones_are_one_sentence(
    registry: Registry[Any], own: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = [EntryPoint(own, "json:loads", registry.group), EntryPoint("theirs", "json:dumps", registry.group)]
    monkeypatch.setattr("agcd.plugins.entry_points", lambda group: points)
    assert registry.get(own) is registry.built_in[own]
    assert registry.code(own) is None
    assert registry.get("theirs") is json.dumps
    assert [found.words for found in registry.describe_installed()] == [
        "not reachable: agcd has its own of this name" if found.name == own else "ok"
        for found in registry.describe_installed()
    ]
    with pytest.raises(ConfigError, match=f"'{wrong}'. Did you mean '{own}'") as caught:
        registry.get(wrong)
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match=f"'{own}' already"), registry.lent({own: json.dumps}):
        pass


def test_timms_names_stay_timms(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("resnet18", "json:loads", "agcd.backbones"), EntryPoint("edges", "x:y", "agcd.backbones")]
    monkeypatch.setattr("agcd.plugins.entry_points", lambda group: points)
    with pytest.raises(Exception, match="Backbone 'resnet18' needs a local file"):
        load_backbone(BackboneConfig(name="resnet18"), "cpu")
    with pytest.raises(ConfigError, match=re.escape("no backbone 'edgs'. Did you mean 'edges'")):
        load_backbone(BackboneConfig(name="edgs"), "cpu")


@pytest.mark.parametrize(
    ("spec", "error", "sentence"),
    [
        ("json:loads=[1]", ConfigError, "gave a list; a Dataset is expected"),
        ("no_such_package:read=x", ConfigError, "could not be loaded"),
        ("vectrs=pets", DataError, "Did you mean 'vectors'"),
        ("vectrs", DataError, "Did you mean 'vectors'"),
    ],
)
def test_a_wrong_source_is_one_sentence(
    spec: str, error: type[Exception], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agcd.plugins.entry_points", lambda group: [EntryPoint("vectors", "x:y", "agcd.sources")])
    monkeypatch.setattr(json, "loads", lambda place, cache_dir: [1])
    with pytest.raises(error, match=re.escape(sentence)):
        load_data(spec, tmp_path)


def test_the_command_lists_what_is_installed_and_what_is_wrong_with_it(tmp_path: Path) -> None:
    values = {"vectors": "parts.vectors:read", "digits": "parts.vectors:read", "gone": "parts.gone:read"}
    make_package(tmp_path, "parts", {"vectors": "def read(place, cache_dir): ...\n"}, {"agcd.sources": values})
    found = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-m", "agcd.cli", "plugins"]
    told, as_json = (
        subprocess.run(words, env=found, capture_output=True, text=True, check=True).stdout
        for words in (command, [*command, "--json"])
    )
    groups = {group["name"]: group for group in json.loads(as_json)["groups"]}
    lines = {one["name"]: (one["package"], one["words"]) for one in groups["agcd.sources"]["installed"]}
    assert lines["vectors"] == ("parts 1.0", "ok")
    assert lines["digits"] == ("parts 1.0", "not reachable: agcd has its own of this name")
    assert "could not be loaded" in lines["gone"][1]
    assert "  vectors = parts.vectors:read (parts 1.0): ok\n" in told
    kinds = ("strategies", "trainers", "backbones", "sources", "metrics", "tracking", "encoders", "kinds")
    assert list(groups) == [f"agcd.{kind}" for kind in kinds]


# ------------------------------------------------------------------------------------ functions that have no module


def compiled(source: str, **given: Any) -> Any:
    """The ``f`` that a notebook's cell with this source defines."""
    names: dict[str, Any] = {"__name__": "__main__", **given}
    exec(source, names)
    return names["f"]


SAME = """
import numpy as np
def f(x, *, a=1):
    return np.sum([g(x) for _ in range(k)])
def g(x):
    return x
k = 2
"""
A_CLASS = """
class Above:
    def go(self):
        return 1
class f(Above):
    x = 2
    def come(self):
        return 3
"""


def test_a_function_is_known_by_what_it_does_and_by_what_it_reads() -> None:
    first = value_digest(compiled(SAME))
    assert value_digest(compiled("# moved\n\n" + SAME + "unread = object()\n")) == first
    for old, new in (("a=1", "a=2"), ("return x\n", "return -x\n"), ("k = 2", "k = 3"), ("np.sum", "np.prod")):
        assert value_digest(compiled(SAME.replace(old, new))) != first, f"{old} became {new}"


def test_what_a_function_encloses_belongs_to_it_and_it_may_call_itself() -> None:
    def around(value: Any) -> Any:
        def f(n: int) -> Any:
            return f(n - 1) if n else value

        return f

    values: list[Any] = [1, 2, "1", (1, 2), {"a": 1}, {1, 2}, np.arange(3), np.arange(4), np.float32(1), json.dumps]
    digests = [value_digest(around(value)) for value in values]
    assert digests == [value_digest(around(value)) for value in values]
    assert len(set(digests)) == len(values)
    assert value_digest(partial(around, 1)) == value_digest(partial(around, 1)) != value_digest(partial(around, 2))


def test_what_cannot_be_told_never_comes_again() -> None:
    function = compiled("def f():\n    return thing\n", thing=object())
    assert value_digest(function) != value_digest(function)


def test_a_class_is_known_by_its_methods_and_by_those_above_it() -> None:
    first = value_digest(compiled(A_CLASS))
    assert value_digest(compiled(A_CLASS)) == first
    for number in "123":
        assert value_digest(compiled(A_CLASS.replace(number, "9"))) != first


def test_a_name_is_lent_with_one_digest_and_taken_back() -> None:
    function = compiled("def f(view, budget, rng):\n    return thing\n", thing=object())
    with STRATEGIES.lent({"mine": function}):
        assert STRATEGIES.get("mine") is function
        assert STRATEGIES.is_lent("mine")
        assert STRATEGIES.code("mine") == STRATEGIES.code("mine") is not None
    with pytest.raises(ConfigError, match="Unknown strategy 'mine'"):
        STRATEGIES.get("mine")
