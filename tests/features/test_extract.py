"""Extraction: only what is missing, the same numbers every way, and nothing lost when it is killed."""

from __future__ import annotations

import errno
import logging
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from agcd.config import BackboneConfig
from agcd.data.items import Item, image_dataset
from agcd.errors import DataError, StorageError
from agcd.features import decoding, extract, open_features
from agcd.features.backbones import load_backbone
from agcd.features.extract import to_half
from agcd.features.rows import EmbeddingRows, RowFeatures
from agcd.features.views import Bad, ViewJob, ViewSpec
from agcd.types import Dataset
from support import TESTS
from support.datasets import toy_images
from support.dying_decoder import die_on_bad_names

TOY = BackboneConfig(name="toy", image_size=32, views=3)


def dataset_of(folder: Path, n: int = 6) -> Dataset:
    """``n`` rows in two classes, the last two for testing."""
    toy_images(folder, n_classes=2, n_per_class=(n + 1) // 2)
    paths = sorted(folder.rglob("*.png"))[:n]
    items = [Item(p, p.name, p.parent.name, i >= n - 2) for i, p in enumerate(paths)]
    return image_dataset("toy", items, otherwise="no images")


def everything(features: RowFeatures, dataset: Dataset) -> np.ndarray[Any, np.dtype[np.float16]]:
    """All views of the train rows, then view 0 of the test rows."""
    train, test = np.flatnonzero(~dataset.is_test), np.flatnonzero(dataset.is_test)
    rows = np.concatenate([np.repeat(train, features.n_views), test])
    views = np.concatenate([np.tile(np.arange(features.n_views), len(train)), np.zeros(len(test), np.int64)])
    return features.read(rows, views).half().numpy()


def opened(dataset: Dataset, cache: Path, config: BackboneConfig = TOY, **options: Any) -> RowFeatures:
    return open_features(dataset, config, cache, **{"workers": 0, **options})


class Counter:
    """A progress function that remembers what it was told."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []

    def __call__(self, done: int, total: int) -> None:
        self.calls.append((done, total))


def test_stored_features_are_those_computed_at_every_read(tmp_path: Path) -> None:
    dataset = dataset_of(tmp_path / "images")
    stored = opened(dataset, tmp_path / "cache")
    online = opened(dataset, tmp_path / "unused", TOY.model_copy(update={"cache": "off"}))
    rows, views = np.array([0, 3, 1, 5]), np.array([1, 2, 0, 0])
    read = stored.read(rows, views)
    assert read.dtype == torch.float16
    assert torch.allclose(read.float(), online.read(rows, views), atol=2e-3)
    assert online.n_views == 2**31 - 1
    assert online.read(rows[:1], np.array([10**9])).shape == (1, 18, 32)
    assert not (tmp_path / "unused").exists(), "cache = off writes nothing"
    assert stored.fingerprint != online.fingerprint


@pytest.mark.parametrize("cache", ["store", "off"])
def test_what_is_read_trains_the_tail(cache: str, tmp_path: Path) -> None:
    dataset = dataset_of(tmp_path / "images")
    features = opened(dataset, tmp_path / "cache", TOY.model_copy(update={"cache": cache}))
    tail = features.new_tail()
    out = tail(features.read(np.array([0, 1]), np.array([0, 1])))
    assert out.shape == (2, features.dim)
    out.square().sum().backward()
    assert all(p.grad is not None for p in tail.parameters() if p.requires_grad)


def test_opening_again_computes_nothing(tmp_path: Path) -> None:
    dataset, first, second = dataset_of(tmp_path / "images"), Counter(), Counter()
    one = opened(dataset, tmp_path / "cache", progress=first)
    two = opened(dataset, tmp_path / "cache", progress=second)
    assert first.calls == [(i, 6) for i in range(1, 7)]
    assert second.calls == []
    assert one.fingerprint == two.fingerprint
    assert np.array_equal(everything(one, dataset), everything(two, dataset))


def test_more_views_compute_only_the_new_ones(tmp_path: Path) -> None:
    dataset = dataset_of(tmp_path / "images")
    three = opened(dataset, tmp_path / "cache")
    counter = Counter()
    five = opened(dataset, tmp_path / "cache", TOY.model_copy(update={"views": 5}), progress=counter)
    assert len(counter.calls) == 4, "the two test rows lack nothing"
    assert np.array_equal(three.read(np.arange(4), np.full(4, 2)), five.read(np.arange(4), np.full(4, 2)))


def test_equal_content_is_computed_once(tmp_path: Path) -> None:
    dataset, counter = dataset_of(tmp_path / "images"), Counter()
    paths = dataset.paths or ()
    doubled = replace(dataset, keys=(*dataset.keys[:5], dataset.keys[0]), paths=(*paths[:5], paths[0]))
    features = opened(doubled, tmp_path / "cache", progress=counter)
    assert len(counter.calls) == 5
    zero = np.zeros(1, np.int64)
    assert torch.equal(features.read(np.array([5]), zero), features.read(np.array([0]), zero))


def test_test_rows_hold_the_test_view_only(tmp_path: Path) -> None:
    features = opened(dataset_of(tmp_path / "images"), tmp_path / "cache")
    with pytest.raises(IndexError, match="view 0 only"):
        features.read(np.array([5]), np.array([1]))


def test_numbers_do_not_depend_on_workers_threads_or_order(tmp_path: Path) -> None:
    dataset = dataset_of(tmp_path / "images", n=9)
    expected = everything(opened(dataset, tmp_path / "0"), dataset)
    assert np.array_equal(everything(opened(dataset, tmp_path / "2", workers=2), dataset), expected)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    assert np.array_equal(everything(opened(dataset, tmp_path / "1"), dataset), expected)
    torch.set_num_threads(before)
    back = np.arange(9)[::-1]
    paths = dataset.paths or ()
    turned = replace(
        dataset,
        keys=tuple(dataset.keys[i] for i in back),
        paths=tuple(paths[i] for i in back),
        is_test=dataset.is_test[back],
    )
    features = opened(turned, tmp_path / "turned")
    assert np.array_equal(features.read(back[:7].copy(), np.full(7, 2)), expected.reshape(-1, 18, 32)[2:21:3])


def test_onnxruntime_fills_a_store_with_the_same_bits_on_any_number_of_threads(tmp_path: Path) -> None:
    for name in ("onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(name)
    backbone = load_backbone(TOY.model_copy(update={"runner": "onnx"}))
    images = np.random.default_rng(0).integers(0, 256, (5, 3, 32, 32, 3)).astype(np.uint8)
    before, found = torch.get_num_threads(), []
    for n_threads in (1, 3):
        torch.set_num_threads(n_threads)
        found.append(np.array([values for _, values in extract.computed(backbone, jobs_of(images))], np.float16))
    torch.set_num_threads(before)
    assert np.array_equal(found[0], found[1])
    assert np.allclose(found[0], backbone.prefix(images.reshape(-1, 32, 32, 3)).view(5, 3, 18, 32), atol=2e-3)


def jobs_of(images: np.ndarray[Any, np.dtype[np.uint8]]) -> Iterator[tuple[ViewJob, decoding.Decoded]]:
    return ((ViewJob("", str(i), tuple(range(len(crops)))), crops) for i, crops in enumerate(images))


@pytest.mark.parametrize("name", ["toy", "toy_conv"])
def test_images_that_share_a_pass_keep_their_order_and_every_bit(name: str) -> None:
    backbone = load_backbone(BackboneConfig(name=name, image_size=32))
    images = np.random.default_rng(0).integers(0, 256, (25, 3, 32, 32, 3)).astype(np.uint8)
    pairs = list(jobs_of(images))
    pairs[2] = (pairs[2][0], Bad("damaged", lasting=True))
    found = list(extract.computed(backbone, iter(pairs)))
    assert [job for job, _ in found] == [job for job, _ in pairs]
    assert found[2][1] == pairs[2][1]
    for pair, (_, together) in zip(pairs, found, strict=True):
        ((_, alone),) = extract.computed(backbone, iter([pair]))
        assert isinstance(alone, Bad) or np.array_equal(alone, together)


@pytest.mark.parametrize(("n_crops", "groups"), [(1, [1] * 5), (6, [2, 2, 1]), (8, [2, 2, 1]), (100, [5])])
def test_neighbours_are_grouped_up_to_a_number_of_crops(n_crops: int, groups: list[int]) -> None:
    pairs = list(jobs_of(np.zeros((5, 3, 1, 1, 3), np.uint8)))
    found = list(extract._grouped(pairs, n_crops))
    assert [len(group) for group in found] == groups
    assert [job for group in found for job, _ in group] == [job for job, _ in pairs]


def test_a_gpu_is_fed_by_more_decoders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agcd.features.extract.os.sched_getaffinity", lambda pid: set(range(16)), raising=False)
    assert extract._default_workers(torch.device("cpu")) == 8
    assert extract._default_workers(torch.device("cuda")) == 15


def test_threads_are_given_back_after_extraction(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    opened(dataset_of(tmp_path / "images"), tmp_path / "cache")
    assert torch.get_num_threads() == before


def test_an_undecodable_file_is_a_bad_row_with_its_reason_and_stops_nothing(tmp_path: Path) -> None:
    dataset = dataset_of(tmp_path / "images")
    path = (dataset.paths or ())[2]
    path.write_bytes(path.read_bytes()[:60])
    items = [Item(p, p.name, None, False) for p in dataset.paths or ()]
    damaged = image_dataset("toy", items, otherwise="no images")
    for workers in (0, 1):
        features = opened(damaged, tmp_path / f"{workers}", workers=workers)
        assert list(features.bad_rows) == [2]
        assert "damaged" in features.bad_rows[2]
        assert (features.read(np.array([2]), np.array([1])) == 0).all()
        again = Counter()
        assert opened(damaged, tmp_path / f"{workers}", progress=again).bad_rows == features.bad_rows
        assert again.calls == [], "content known to be bad is not tried again"
    online = opened(damaged, tmp_path, TOY.model_copy(update={"cache": "off"}))
    assert (online.read(np.array([2, 3]), np.array([0, 0]))[0] == 0).all()
    assert list(online.bad_rows) == [2]


def test_a_file_that_comes_back_is_tried_again(tmp_path: Path) -> None:
    dataset = dataset_of(tmp_path / "images")
    path = (dataset.paths or ())[1]
    content = path.read_bytes()
    path.unlink()
    assert list(opened(dataset, tmp_path / "cache").bad_rows) == [1]
    path.write_bytes(content)
    assert opened(dataset, tmp_path / "cache").bad_rows == {}


def test_too_little_space_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage(NamedTuple):
        free: int = 1000

    monkeypatch.setattr("agcd.features.extract.shutil.disk_usage", lambda path: Usage())
    counter = Counter()
    with pytest.raises(StorageError, match=r"Features need 0\.0 MB but .* has 0\.0 MB free.*backbone\.views"):
        opened(dataset_of(tmp_path / "images"), tmp_path / "cache", progress=counter)
    assert counter.calls == []


def test_need_and_free_space_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="agcd"):
        opened(dataset_of(tmp_path / "images"), tmp_path / "cache")
    assert "features need 0.0 MB" in caplog.text
    assert "images/s" in caplog.text
    assert "crops/s" in caplog.text


def test_a_disk_that_fills_up_midway_is_one_sentence_and_keeps_what_was_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = dataset_of(tmp_path / "images")
    monkeypatch.setattr(extract.fill, "__kwdefaults__", {**(extract.fill.__kwdefaults__ or {}), "shard_bytes": 1})
    save, calls = np.save, iter([False, False, True])

    def fails_third(*args: Any, **options: Any) -> None:
        if next(calls):
            raise OSError(errno.ENOSPC, "No space left on device")
        save(*args, **options)

    monkeypatch.setattr("agcd.features.store.np.save", fails_third)
    with pytest.raises(StorageError, match="disk is full"):
        opened(dataset, tmp_path / "cache")
    monkeypatch.undo()
    counter = Counter()
    opened(dataset, tmp_path / "cache", progress=counter)
    assert len(counter.calls) == 4


def test_half_precision_clips_what_is_too_large_and_refuses_nan(caplog: pytest.LogCaptureFixture) -> None:
    large = to_half(np.array([[1e6, -1e6, 0.5]], np.float32))
    assert not isinstance(large, Bad)
    assert large.tolist() == [[65504.0, -65504.0, 0.5]]
    assert "clipped" in caplog.text
    assert to_half(np.array([[np.nan]], np.float32)) == Bad("its features are not finite numbers", lasting=True)


FILL = """
import sys
from pathlib import Path
sys.path[:0] = {paths!r}
import test_extract
from agcd.features import extract
extract.fill.__kwdefaults__["shard_bytes"] = 1

def progress(done, total):
    print(done, flush=True)
    if done == {pause}:
        import time
        time.sleep(600)

dataset = test_extract.dataset_of(Path({images!r}), n={n})
test_extract.opened(dataset, Path({cache!r}), progress=progress, workers={workers})
"""


def filler(tmp_path: Path, *, pause: int = -1, workers: int = 0, n: int = 8) -> subprocess.Popen[str]:
    """Another process that fills the store; a script without a ``__main__`` guard, as users write them."""
    script = tmp_path / f"fill_{pause}.py"
    paths, images, cache = [str(Path(__file__).parent), str(TESTS)], str(tmp_path / "images"), str(tmp_path / "cache")
    script.write_text(FILL.format(paths=paths, images=images, cache=cache, pause=pause, workers=workers, n=n))
    return subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_killed_extraction_continues_where_it_stopped(tmp_path: Path) -> None:
    dataset = dataset_of(tmp_path / "images", n=8)
    process = filler(tmp_path, pause=5, workers=1)
    assert process.stdout is not None
    seen = [process.stdout.readline().strip() for _ in range(5)]
    children = children_of(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert seen == ["1", "2", "3", "4", "5"]
    counter = Counter()
    features = opened(dataset, tmp_path / "cache", progress=counter)
    assert 0 < len(counter.calls) <= 4, "four images were stored before the kill"
    assert np.array_equal(everything(features, dataset), everything(opened(dataset, tmp_path / "unbroken"), dataset))
    assert within(20, lambda: not any(is_alive(pid) for pid in children)), "workers end with their parent"


def test_two_processes_may_fill_one_store(tmp_path: Path) -> None:
    dataset = dataset_of(tmp_path / "images", n=8)
    both = [filler(tmp_path, pause=-1), filler(tmp_path, pause=-2)]
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    counter = Counter()
    features = opened(dataset, tmp_path / "cache", progress=counter)
    assert counter.calls == []
    assert np.array_equal(everything(features, dataset), everything(opened(dataset, tmp_path / "alone"), dataset))


def children_of(pid: int) -> list[int]:
    listing = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listing.read_text().split()] if listing.exists() else []


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def test_a_file_that_kills_its_decoder_is_given_up_and_the_rest_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "load_views", die_on_bad_names)
    jobs = [ViewJob("bad" if i == 2 else "good", str(i), (0,)) for i in range(7)]
    found = {job.key: crops for job, crops in decoding.decoded(jobs, ViewSpec(32), workers=1)}
    assert list(found) == [job.key for job in jobs]
    assert found.pop("2") == Bad("its decoder died twice", lasting=False)
    assert all(not isinstance(crops, Bad) and (crops == int(key)).all() for key, crops in found.items())


def test_decoders_that_all_die_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "load_views", die_on_bad_names)
    with pytest.raises(DataError, match="keep dying, the last one on bad2"):
        list(decoding.decoded([ViewJob(f"bad{i}", "1", (0,)) for i in range(9)], ViewSpec(32), workers=1))


def test_decoding_workers_do_not_load_torch() -> None:
    code = "import sys, agcd.features.decoding; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_embeddings_need_no_store_and_start_as_they_are(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(6, 5))
    x[4, 2] = np.nan
    blank = Dataset("e", (), np.full(6, -1, np.int64), np.zeros(6, bool), tuple("abcdef"), x=x)
    features = open_features(blank, TOY, tmp_path / "unused")
    rows = np.array([3, 0])
    assert torch.allclose(features.new_tail().eval()(features.read(rows, rows * 0)), torch.tensor(x[rows]).float())
    assert (features.n_rows, features.n_views, features.dim) == (6, 1, 5)
    assert list(features.bad_rows) == [4]
    assert (features.read(np.array([4]), np.array([0])) == 0).all()
    assert not (tmp_path / "unused").exists()
    assert features.fingerprint == EmbeddingRows(x, TOY.dropout).fingerprint
    assert features.fingerprint != EmbeddingRows(x + 1, TOY.dropout).fingerprint


def test_a_data_set_without_content_is_refused(tmp_path: Path) -> None:
    blank = Dataset("nothing", (), np.zeros(0, np.int64), np.zeros(0, bool), ())
    with pytest.raises(DataError, match="neither images, texts nor embeddings"):
        open_features(blank, TOY, tmp_path)
