"""The feature store: whole shards or none, found by content, safe to share."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agcd.errors import StorageError
from agcd.features.store import FeatureStore, Half, Item
from agcd.io import read_json, write_json

SHAPE = (3, 4)


def values(items: list[Item]) -> Half:
    """Numbers that say which item they belong to."""
    filled = np.zeros((len(items), *SHAPE), dtype=np.float16)
    for value, (key, view) in zip(filled, items, strict=True):
        value[:] = int(key) * 10 + view
    return filled


def items_of(*keys: int, views: int = 2) -> list[Item]:
    return [(str(key), view) for key in keys for view in range(views)]


def filled(root: Path, *groups: list[Item]) -> FeatureStore:
    store = FeatureStore(root, "spec", SHAPE)
    for group in groups:
        store.add(group, values(group))
    return store


def test_stored_items_are_read_back_in_any_order(tmp_path: Path) -> None:
    filled(tmp_path, items_of(1, 2), items_of(3))
    store = FeatureStore(tmp_path, "spec", SHAPE)
    asked = [("3", 1), ("1", 0), ("2", 1), ("1", 0)]
    assert np.array_equal(store.gather(store.locate(asked)), values(asked))


def test_missing_lists_each_absent_item_once_in_order(tmp_path: Path) -> None:
    store = filled(tmp_path, items_of(1))
    assert store.missing([("2", 1), ("1", 1), ("2", 0), ("2", 1), ("1", 2)]) == [("2", 1), ("2", 0), ("1", 2)]


def test_a_negative_place_reads_as_zeros(tmp_path: Path) -> None:
    store = filled(tmp_path, items_of(5))
    places = np.array([[-1, -1], store.locate([("5", 1)])[0]])
    read = store.gather(places)
    assert (read[0] == 0).all()
    assert (read[1] == 51).all()


def test_another_spec_or_shape_shares_nothing(tmp_path: Path) -> None:
    filled(tmp_path, items_of(1))
    assert len(FeatureStore(tmp_path, "other", SHAPE)) == 0
    assert len(FeatureStore(tmp_path, "spec", (12,))) == 0


def test_shards_of_another_process_appear_after_refresh(tmp_path: Path) -> None:
    store = filled(tmp_path, items_of(1))
    filled(tmp_path, items_of(2), items_of(1))
    assert store.missing(items_of(1, 2)) == items_of(2)
    store.refresh()
    assert store.missing(items_of(1, 2)) == []
    assert np.array_equal(store.gather(store.locate(items_of(1, 2))), values(items_of(1, 2)))


def test_a_shard_whose_header_cannot_be_parsed_is_noticed(tmp_path: Path) -> None:
    filled(tmp_path, items_of(1))
    path = next(FeatureStore(tmp_path, "spec", SHAPE).folder.glob("*.npy"))
    content = bytearray(path.read_bytes())
    end = content.find(b"\n")
    content[end - 1 : end] = b"("
    path.write_bytes(content)
    assert FeatureStore(tmp_path, "spec", SHAPE).missing(items_of(1)) == items_of(1)


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_a_truncated_shard_is_noticed_and_its_items_are_missing_again(
    tmp_path: Path, keep: int, caplog: pytest.LogCaptureFixture
) -> None:
    filled(tmp_path, items_of(1), items_of(2))
    store = FeatureStore(tmp_path, "spec", SHAPE)
    path = sorted(store.folder.glob("*.npy"))[0]
    path.write_bytes(path.read_bytes()[:keep])
    with caplog.at_level(logging.WARNING, logger="agcd"):
        again = FeatureStore(tmp_path, "spec", SHAPE)
    assert "damaged" in caplog.text
    lost = again.missing(items_of(1, 2))
    assert len(lost) == 2
    again.add(lost, values(lost))
    whole = FeatureStore(tmp_path, "spec", SHAPE)
    assert np.array_equal(whole.gather(whole.locate(items_of(1, 2))), values(items_of(1, 2)))


def test_a_list_without_its_data_counts_for_nothing(tmp_path: Path) -> None:
    store = filled(tmp_path, items_of(1))
    next(store.folder.glob("*.npy")).unlink()
    assert FeatureStore(tmp_path, "spec", SHAPE).missing(items_of(1)) == items_of(1)


def test_a_pickled_shard_is_never_loaded(tmp_path: Path) -> None:
    store = filled(tmp_path, items_of(1))
    path = next(store.folder.glob("*.npy"))
    np.save(path, np.array([{"a": 1}, {"b": 2}], dtype=object), allow_pickle=True)
    assert FeatureStore(tmp_path, "spec", SHAPE).missing(items_of(1)) == items_of(1)


def test_bad_content_is_remembered_with_its_reason(tmp_path: Path) -> None:
    filled(tmp_path).mark_bad("k/../1", "empty file")
    store = FeatureStore(tmp_path, "spec", SHAPE)
    assert store.bad(["k/../1", "k2"]) == {"k/../1": "empty file"}
    assert FeatureStore(tmp_path, "other", SHAPE).bad(["k/../1"]) == {}


def test_a_failed_write_is_one_sentence_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(tmp_path)

    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("agcd.features.store.np.save", full)
    with pytest.raises(StorageError, match="disk is full"):
        store.add(items_of(1), values(items_of(1)))
    assert not list(store.folder.glob("*.npy"))
    assert not list(store.folder.glob(".*tmp"))
    assert FeatureStore(tmp_path, "spec", SHAPE).missing(items_of(1)) == items_of(1)


def test_values_of_the_wrong_shape_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected"):
        filled(tmp_path).add(items_of(1), np.zeros((1, *SHAPE), dtype=np.float16))


@given(groups=st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4, unique=True), max_size=4), data=st.data())
def test_any_filling_reads_back_what_was_added(
    groups: list[list[int]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = filled(tmp_path_factory.mktemp("store"), *(items_of(*group) for group in groups))
    known = sorted({item for group in groups for item in items_of(*group)})
    asked = data.draw(st.lists(st.sampled_from(known), max_size=8)) if known else []
    assert store.missing(known) == []
    assert np.array_equal(store.gather(store.locate(asked)), values(asked))


def test_announcing_and_threads_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FeatureStore(tmp_path, "spec", (300, 7))
    values = np.random.default_rng(0).standard_normal((6, 300, 7)).astype(np.float16)
    items = [(f"key-{i}", 0) for i in range(6)]
    store.add(items[:4], values[:4])
    store.add(items[4:], values[4:])
    places = np.concatenate([store.locate(items[::-1]), [[-1, -1]]])
    store.announce(places)
    monkeypatch.setattr("agcd.features.store._WORTH_THREADS", 0)
    for n_threads in (1, 2, 3):
        found = store.gather(places, n_threads=n_threads)
        np.testing.assert_array_equal(found, [*values[::-1], np.zeros((300, 7))])


def flip(path: Path, place: int) -> None:
    """Change one bit of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 0x80
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("place", [-1, -7, -40])
def test_a_shard_with_another_bit_is_noticed_and_its_items_are_missing_again(
    tmp_path: Path, place: int, caplog: pytest.LogCaptureFixture
) -> None:
    store = filled(tmp_path, items_of(1), items_of(2))
    damaged = next(path for path in store.folder.glob("*.npy") if (np.load(path) // 10 == 1).all())
    flip(damaged, place)
    with caplog.at_level(logging.WARNING, logger="agcd"):
        again = FeatureStore(tmp_path, "spec", SHAPE)
    assert again.missing([*items_of(1), *items_of(2)]) == items_of(1)
    assert "not those that were stored" in caplog.text
    again.add(items_of(1), values(items_of(1)))
    assert len(FeatureStore(tmp_path, "spec", SHAPE)) == 4


def test_a_shard_whose_list_was_edited_is_noticed(tmp_path: Path) -> None:
    store = filled(tmp_path, items_of(1))
    [listed] = (path for path in store.folder.glob("*.json") if path.name != "spec.json")
    listed.write_text(listed.read_text().replace('"1"', '"7"'))
    assert len(FeatureStore(tmp_path, "spec", SHAPE)) == 0


def test_shards_of_versions_without_digests_are_read(tmp_path: Path) -> None:
    store = filled(tmp_path, items_of(1))
    [listed] = (path for path in store.folder.glob("*.json") if path.name != "spec.json")
    facts = read_json(listed)
    write_json(listed, {"items": facts["items"]})
    assert len(FeatureStore(tmp_path, "spec", SHAPE)) == 2
