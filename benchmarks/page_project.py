"""A synthetic project of many rows: real records, real pictures or texts, and a round of Gaussian clusters."""

from __future__ import annotations

import io
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.lib.format import open_memmap
from PIL import Image

from agcd.app.create import to_toml
from agcd.app.labels import LabelView
from agcd.app.live_rows import find_live_rows
from agcd.app.round_files import write_round_view
from agcd.app.rounds import START, RoundView, top_of
from agcd.app.store.events import LabelEvent, new_uid
from agcd.app.store.queries import Question, add_query
from agcd.app.store.store import Store
from agcd.data.text_items import text_keys
from agcd.io import digest_bytes, write_json
from agcd.types import BoolArray, FloatArray, IntArray

WIDTH, N_SLOTS, N_OLD = 384, 200, 100
N_SEEDS, N_ANSWERS, N_ACCEPTED, N_QUESTIONS = 20_000, 4000, 2000, 200
N_WORDS, MOST_WORDS = 5000, 25
N_PICTURES = 1000
"""Different pictures; as many folders are links to the one that holds them, so that every row has a path of its own."""
_BLOCK = 50_000
Say = Callable[[str], None]


def fresh_project(kept: Path, n_rows: int, say: Say, *, texts: bool = False) -> Path:
    """A project with the same records at every run; the costly part is made once."""
    folder = kept / f"{'texts' if texts else 'page'}-{n_rows}"
    if not (folder / "made.db").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make_project(folder, n_rows, say, texts=texts)
        (folder / "project.db").rename(folder / "made.db")
    for name in ("project.db-wal", "project.db-shm"):
        (folder / name).unlink(missing_ok=True)
    shutil.copyfile(folder / "made.db", folder / "project.db")
    shutil.rmtree(folder / "cache" / "thumbs", ignore_errors=True)
    return folder


def make_project(folder: Path, n_rows: int, say: Say, *, texts: bool = False) -> None:
    """The project at ``folder``, as it is after base training, some answers and half a query."""
    rng = np.random.default_rng(0)
    started = time.perf_counter()
    contents = sentences(n_rows, rng) if texts else []
    keys, paths = _rows_of(contents) if texts else _pictures(folder / "images", n_rows, rng)
    is_test = np.arange(n_rows) % 20 == 19
    source = {"source": {"kind": "text"}} if texts else {}
    (folder / "agcd.toml").write_text(to_toml({"images": "images", "n_slots": N_SLOTS, **source}))
    class_ids = [new_uid() for _ in range(N_OLD)]
    say(f"rows and pictures: {time.perf_counter() - started:.0f} s")
    seen = _round(folder, class_ids, is_test, rng, say)
    _run(folder / "runs" / "000", seen)
    started = time.perf_counter()
    with Store(folder / "making.db", create=True) as store, store.transaction():
        store.add_rows(keys, paths, is_test, contents)
        _records(store, seen, class_ids, rng)
    (folder / "making.db").rename(folder / "project.db")
    say(f"records: {time.perf_counter() - started:.0f} s")


def sentences(n: int, rng: np.random.Generator) -> list[str]:
    """Made-up sentences of 4 to 24 words, with the word frequencies of a language (Zipf)."""
    letters = np.array(list("etaoinshrdlucmfwyp"))
    words = ["".join(rng.choice(letters, rng.integers(2, 10))) for _ in range(N_WORDS)]
    places = np.minimum(rng.zipf(1.3, (n, MOST_WORDS)), N_WORDS) - 1
    return [
        " ".join(words[place] for place in row[:length]) + f" {number}"
        for number, (row, length) in enumerate(
            zip(places.tolist(), rng.integers(4, MOST_WORDS, n).tolist(), strict=True)
        )
    ]


def _rows_of(contents: list[str]) -> tuple[list[str], list[str]]:
    return list(text_keys(contents)), [f"made.csv:{row}" for row in range(len(contents))]


def _pictures(root: Path, n_rows: int, rng: np.random.Generator) -> tuple[list[str], list[str]]:
    """The content key and the path of every row."""
    shared = root / "shared"
    shared.mkdir(parents=True)
    known = []
    for number in range(N_PICTURES):
        buffer = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (6, 8, 3), np.uint8)).resize((320, 240)).save(buffer, "JPEG")
        (shared / f"{number:03d}.jpg").write_bytes(buffer.getvalue())
        known.append(digest_bytes(buffer.getvalue()))
    for number in range(-(-n_rows // N_PICTURES)):
        (root / f"{number:05d}").symlink_to("shared", target_is_directory=True)
    keys = [known[row % N_PICTURES] for row in range(n_rows)]
    return keys, [f"{row // N_PICTURES:05d}/{row % N_PICTURES:03d}.jpg" for row in range(n_rows)]


def _round(folder: Path, class_ids: list[str], is_test: BoolArray, rng: np.random.Generator, say: Say) -> RoundView:
    started, n_rows = time.perf_counter(), len(is_test)
    aside = folder / "features-aside.npy"
    features = open_memmap(aside, "w+", np.float16, (n_rows, WIDTH))
    slots, probs = np.empty((n_rows, 5), np.int32), np.empty((n_rows, 5), np.float16)
    centres = rng.standard_normal((N_SLOTS, WIDTH), np.float32)
    for first, block in _clusters(centres, n_rows, rng):
        inside = slice(first, first + len(block))
        features[inside] = block
        logits = block @ centres.T / 1.5
        shares = np.exp(logits - logits.max(1, keepdims=True))
        slots[inside], probs[inside] = top_of(shares / shares.sum(1, keepdims=True))
    say(f"features: {time.perf_counter() - started:.0f} s")
    started = time.perf_counter()
    owners = [*class_ids, *[None] * (N_SLOTS - N_OLD)]
    facts = {"model_id": "synthetic", "n_old": N_OLD, "n_slots": N_SLOTS, "class_ids": owners}
    everything, labels = np.arange(n_rows), LabelView.empty(is_test)
    live = find_live_rows(features, everything[~is_test], everything)
    say(f"live rows: {time.perf_counter() - started:.0f} s")
    clusters = live.cluster[live.stand_in].astype(np.int32)[:, None]
    plain = {"model_id": "start", "n_old": 0, "n_slots": live.n_clusters, "class_ids": [None] * live.n_clusters}
    write_round_view(folder, START, clusters, np.zeros(clusters.shape, np.float16), features, labels, plain, live)
    seen = write_round_view(folder, 0, slots, probs, features, labels, facts)
    say(f"round, with the map: {time.perf_counter() - started:.0f} s")
    aside.unlink()
    return seen


def _clusters(centres: FloatArray, n_rows: int, rng: np.random.Generator) -> Iterator[tuple[int, FloatArray]]:
    """Unit-length features, block by block; clusters differ in size, and each row leans a little towards another."""
    share = rng.dirichlet(np.full(len(centres), 3.0))
    for first in range(0, n_rows, _BLOCK):
        n = min(_BLOCK, n_rows - first)
        block = rng.standard_normal((n, WIDTH), np.float32)
        block += centres[rng.choice(len(centres), n, p=share)]
        block += centres[rng.choice(len(centres), n)] * rng.uniform(0, 0.9, (n, 1)).astype(np.float32)
        yield first, block / np.linalg.norm(block, axis=1, keepdims=True)


def _run(folder: Path, seen: RoundView) -> None:
    """What a finished round leaves that the page reads."""
    rows = np.arange(len(seen.top_slots))
    metrics = {"n_labels": N_SEEDS, "n_queried": 0, "n_classes": N_OLD, "n_slots": N_SLOTS, "seconds": 1.0}
    write_json(folder / "metrics.json", metrics | {"agreement": None})
    write_json(folder / "mapping.json", {"last": {"slot_of_class": list(range(N_OLD))}})
    columns = (rows, seen.top_slots[:, 0], seen.top_probs[:, 0].astype(np.float32), seen.margin(rows))
    table = pa.table(dict(zip(("row", "slot", "probability", "margin"), columns, strict=True)))
    pq.write_table(table, folder / "predictions.parquet")
    write_json(folder / "done.json", {})


def _records(store: Store, seen: RoundView, class_ids: list[str], rng: np.random.Generator) -> None:
    """Seeds, base training, a query of which half is answered, answers beside it, and rows accepted by page."""
    order = rng.permutation(seen.order)
    order = order[seen.top_slots[order, 0] < N_OLD]
    scale = min(1.0, len(order) / (2 * (N_SEEDS + N_ANSWERS + N_ACCEPTED)))
    ends = np.cumsum([int(scale * n) for n in (N_SEEDS, N_ANSWERS, N_ACCEPTED)])
    seeds, answered, accepted, others = np.split(order, ends)
    made = [
        LabelEvent("create", "", "seed", class_id=class_id, payload={"name": f"class {c:03d}", "old": True})
        for c, class_id in enumerate(class_ids)
    ]
    store.append(made + [_said(class_ids, seen, row, "") for row in seeds.tolist()])
    last = store.begin_run(0)
    assert last == len(made) + len(seeds)
    unsure = others[np.argsort(seen.margin(others), kind="stable")[: N_QUESTIONS // 2]]
    _ask(store, seen, np.concatenate([answered[: N_QUESTIONS // 2], unsure]))
    store.append(_answers(class_ids, seen, answered, rng))
    store.append([_said(class_ids, seen, row, "ann", kind="accept") for row in accepted.tolist()])


def _ask(store: Store, seen: RoundView, rows: IntArray) -> None:
    asked = zip(rows.tolist(), seen.margin(rows).tolist(), seen.top_slots[rows, 0].tolist(), strict=True)
    questions = [Question(row, rank, "margin", gap, slot) for rank, (row, gap, slot) in enumerate(asked)]
    add_query(store, 1, "margin", "synthetic", questions)


def _answers(class_ids: list[str], seen: RoundView, rows: IntArray, rng: np.random.Generator) -> list[LabelEvent]:
    said = []
    for row, chance in zip(rows.tolist(), rng.random(len(rows)).tolist(), strict=True):
        if chance < 0.1:
            kind = ("skip", "unsure", "junk")[row % 3]
            said.append(LabelEvent(kind, "ann", "human", row=row, round=1))  # type: ignore[arg-type]
        else:
            said.append(_said(class_ids, seen, row, "bob" if row % 2 else "ann", shift=int(chance < 0.2)))
    return said


def _said(class_ids: list[str], seen: RoundView, row: int, who: str, kind: str = "label", shift: int = 0) -> LabelEvent:
    """A label as the model would give it, or, to contradict it, that of the next class."""
    class_id = class_ids[(int(seen.top_slots[row, 0]) + shift) % len(class_ids)]
    source = "human" if who else "seed"
    return LabelEvent(kind, who, source, row=row, class_id=class_id, round=int(who != ""))  # type: ignore[arg-type]
