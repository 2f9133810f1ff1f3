"""Weights by name: what is added fits, what is used is what was added, and only ``get`` asks the network."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
from typer.testing import CliRunner, Result

from agcd import fetch_weights
from agcd.app.create import read_settings
from agcd.app.project import Project
from agcd.cli import app
from agcd.config import make_config
from agcd.errors import AgcdError, ConfigError, StorageError, WeightsError
from agcd.features.backbones import load_backbone
from agcd.features.torchvision_compat import import_timm
from agcd.io import file_sha256
from agcd.known_weights import known_weights
from agcd.training import settings_record
from support.datasets import toy_images

MODEL = "test_vit.r160_in1k"
"""The smallest transformer of timm: half a megabyte."""


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    safetensors.torch.save_file(import_timm().create_model(MODEL, num_classes=0).state_dict(), path)
    return path.read_bytes()


@pytest.fixture
def file(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A weights file, and a list of names that is empty."""
    monkeypatch.setenv("AGCD_WEIGHTS", str(tmp_path / "list"))
    (tmp_path / "tiny.safetensors").write_bytes(content)
    return tmp_path / "tiny.safetensors"


def agcd(*words: str | Path) -> Result:
    """A command of ``agcd weights``; what a user is told of a mistake is the exception."""
    done = CliRunner().invoke(app, ["weights", *map(str, words)])
    if isinstance(done.exception, AgcdError):
        raise done.exception
    return done


def add(file: Path, *more: str) -> Result:
    return agcd("add", "tiny", file, "--backbone", MODEL, *more)


def test_a_name_stands_for_file_digest_and_network(file: Path) -> None:
    assert "next: --set backbone.weights=tiny" in add(file, "--licence", "MIT").stdout
    backbone = make_config({"backbone": {"weights": "tiny", "image_size": 64}}).backbone
    assert (backbone.name, backbone.weights, backbone.weights_sha256) == (MODEL, file, file_sha256(file))
    by_path = make_config({"backbone": {"name": MODEL, "weights": str(file), "image_size": 64}}).backbone
    assert load_backbone(backbone, "cpu").fingerprint == load_backbone(by_path, "cpu").fingerprint
    entry = known_weights()["tiny"]
    assert (entry.image_size, entry.patch_size, entry.licence, entry.bytes) == (160, 16, "MIT", file.stat().st_size)
    listed = agcd("list").stdout
    assert f"{MODEL}, 1 MB, MIT" in listed
    assert "agcd weights get dino-vitb16" in listed


def test_a_setting_without_a_name_of_weights_is_recorded_as_before(file: Path) -> None:
    assert "weights_sha256" not in settings_record(make_config({}))["backbone"]
    add(file)
    assert "weights_sha256" in settings_record(make_config({"backbone": {"weights": "tiny"}}))["backbone"]


def test_a_project_keeps_what_the_name_stood_for(file: Path, tmp_path: Path) -> None:
    add(file)
    images = toy_images(tmp_path / "images", n_classes=2, n_per_class=3)
    Project.create(tmp_path / "p", images, None, 3, {"backbone": {"weights": "tiny", "image_size": 64}}, print).close()
    agcd("remove", "tiny")
    kept = read_settings(tmp_path / "p" / "agcd.toml")[0].backbone
    assert (kept.name, kept.weights, kept.weights_sha256) == (MODEL, file, file_sha256(file))


def test_a_file_that_has_changed_is_refused_and_found(file: Path) -> None:
    add(file)
    assert agcd("check").stdout == "tiny            as it was added\n"
    backbone = make_config({"backbone": {"weights": "tiny", "image_size": 64}}).backbone
    file.write_bytes(file.read_bytes()[:-4] + b"\0\0\0\1")
    with pytest.raises(WeightsError, match=r"tiny.safetensors has changed: its SHA-256 is .* put the file back"):
        load_backbone(backbone, "cpu")
    changed = agcd("check")
    assert "is not the file that was added as 'tiny'" in changed.stdout
    file.unlink()
    assert "is not there" in agcd("check").stdout
    assert changed.exit_code == 1


def test_a_copy_stays_when_the_file_goes(file: Path, tmp_path: Path) -> None:
    add(file, "--copy")
    file.unlink()
    assert known_weights()["tiny"].file == str(tmp_path / "list" / "tiny.safetensors")
    assert agcd("check").exit_code == 0


def test_removing_a_name_leaves_the_file(file: Path) -> None:
    add(file)
    agcd("remove", "tiny")
    assert file.exists()
    assert known_weights() == {}


MISTAKES: dict[str, tuple[list[str], type[AgcdError], str]] = {
    "a name like a file": (["add", "tiny.pth", "{file}", "--backbone", MODEL], ConfigError, "cannot be the name"),
    "a name like a path": (["add", "../tiny", "{file}", "--backbone", MODEL], ConfigError, "cannot be the name"),
    "another network": (["add", "t", "{file}", "--backbone", "test_vit2.r160_in1k"], WeightsError, "does not fit"),
    "no such network": (["add", "t", "{file}", "--backbone", "test_vitt"], ConfigError, "Did you mean 'test_vit'"),
    "no file": (["add", "t", "{file}.gone", "--backbone", MODEL], WeightsError, "There is no weights file"),
    "no such name": (["remove", "tiney"], WeightsError, "Did you mean 'tiny'"),
    "nothing published": (["get", "dino-vitb32"], ConfigError, "Allowed: dino-vitb16"),
    "no digest": (["get", "t", "--url", "https://a/b.pth"], ConfigError, "belong together"),
    "a wrong digest": (
        ["get", "t", "--url", "https://a/b.pth", "--sha256", "12", "--backbone", MODEL],
        ConfigError,
        "64 hexadecimal digits",
    ),
    "no https": (
        ["get", "t", "--url", "http://a/b.pth", "--sha256", "0" * 64, "--backbone", MODEL],
        ConfigError,
        "not an https address",
    ),
    "a file of the disk": (
        ["get", "t", "--url", "file:///b.pth", "--sha256", "0" * 64, "--backbone", MODEL],
        ConfigError,
        "not an https address",
    ),
    "a name that is taken": (
        ["get", "tiny", "--url", "https://a/b.pth", "--sha256", "0" * 64, "--backbone", MODEL],
        ConfigError,
        "is the name of other weights",
    ),
}


@pytest.mark.parametrize(("words", "error", "piece"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_sentence_and_changes_nothing(
    words: list[str], error: type[AgcdError], piece: str, file: Path
) -> None:
    add(file)
    before = known_weights()
    with pytest.raises(error) as caught:
        agcd(*(word.format(file=file) for word in words))
    assert piece in str(caught.value)
    assert "\n" not in str(caught.value)
    assert known_weights() == before


def test_a_network_that_contradicts_the_name_is_refused(file: Path) -> None:
    add(file)
    with pytest.raises(ConfigError, match=r"belong to 'test_vit.r160_in1k': leave the name out"):
        make_config({"backbone": {"weights": "tiny", "name": "resnet18"}})
    assert make_config({"backbone": {"weights": "tin", "name": "resnet18"}}).backbone.weights == Path("tin")


def test_a_damaged_list_is_one_sentence(file: Path, tmp_path: Path) -> None:
    add(file)
    stored = tmp_path / "list" / "weights.json"
    values = json.loads(stored.read_text())
    values["weights"]["tiny"]["sha256"] = "0" * 64
    stored.write_text(json.dumps(values))
    with pytest.raises(StorageError, match=r"weights.json is damaged: move it away"):
        known_weights()


Answer = Callable[[BaseHTTPRequestHandler], None]


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, answers: dict[str, Answer], *rest: Any) -> None:
        self.answers = answers
        super().__init__(*rest)

    def do_GET(self) -> None:
        self.answers[self.path](self)

    def log_message(self, *_: Any) -> None:
        """Nothing: the tests look at what the client says."""


def whole(content: bytes, handler: BaseHTTPRequestHandler, length: int | None = None) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content) if length is None else length))
    handler.end_headers()
    handler.wfile.write(content)


def moved(place: str, handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(302)
    handler.send_header("Location", place)
    handler.end_headers()


@pytest.fixture
def hub(content: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of this machine; addresses without encryption are allowed meanwhile."""
    monkeypatch.setattr(fetch_weights, "SCHEMES", {"http"})
    monkeypatch.setattr(fetch_weights, "MAX_BYTES", 10_000_000)
    answers: dict[str, Answer] = {
        "/tiny.safetensors": partial(whole, content),
        "/other.safetensors": partial(whole, b"something else"),
        "/short.safetensors": partial(whole, content[:1000], length=len(content)),
        "/huge.safetensors": partial(whole, b"", length=10_000_001),
        "/moved.safetensors": partial(moved, "/tiny.safetensors"),
        "/away.safetensors": partial(moved, "ftp://elsewhere/tiny.safetensors"),
        "/gone.safetensors": lambda handler: handler.send_error(404),
    }
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, answers)) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def get(hub: str, page: str, content: bytes) -> Result:
    digest = hashlib.sha256(content).hexdigest()
    return agcd("get", "tiny", "--url", f"{hub}/{page}.safetensors", "--sha256", digest, "--backbone", MODEL)


@pytest.mark.parametrize("page", ["tiny", "moved"])
@pytest.mark.usefixtures("file")
def test_what_was_fetched_can_be_used_by_name(page: str, hub: str, content: bytes, tmp_path: Path) -> None:
    assert get(hub, page, content).exit_code == 0
    entry = known_weights()["tiny"]
    assert Path(entry.file) == tmp_path / "list" / "tiny.safetensors"
    assert Path(entry.file).read_bytes() == content
    assert entry.source == f"{hub}/{page}.safetensors"
    assert get(hub, "gone", content).exit_code == 0, "what is here is not fetched again"


@pytest.mark.parametrize(
    ("page", "error", "piece"),
    [
        ("other", WeightsError, "nothing was kept"),
        ("short", WeightsError, "broke off after 1,000 of"),
        ("huge", WeightsError, "is larger than"),
        ("away", ConfigError, "not an https address"),
        ("gone", WeightsError, "cannot be fetched: Not Found"),
    ],
)
@pytest.mark.usefixtures("file")
def test_what_is_not_what_was_asked_for_is_not_kept(
    page: str, error: type[AgcdError], piece: str, hub: str, content: bytes, tmp_path: Path
) -> None:
    with pytest.raises(error) as caught:
        get(hub, page, content)
    assert piece in str(caught.value)
    assert not list(tmp_path.glob("list/*safetensors*"))
    assert known_weights() == {}


def test_published_weights_are_pinned_to_a_revision_and_a_digest() -> None:
    timm = import_timm()
    for published in fetch_weights.PUBLISHED.values():
        revision = published.url.split("/")[-2]
        assert published.url.startswith("https://")
        assert (len(revision), len(published.sha256)) == (40, 64)
        assert int(revision, 16)
        assert int(published.sha256, 16)
        assert timm.get_pretrained_cfg(published.backbone).hf_hub_id
