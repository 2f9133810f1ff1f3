"""Data sets that are given as they are, kept where every process finds them: ``NAME@DIGEST``, a name as any other."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from agcd.data.splits import dataset_digest
from agcd.io import atomic_folder, digest, digest_bytes, read_json, write_json
from agcd.types import Dataset, Quarantined

_SPEC = re.compile(r"(?P<name>[\w.-]+)@(?P<digest>[0-9a-f]{16})")
_UNUSUAL = re.compile(r"[^\w.-]+")
_FACTS, _ARRAYS = "facts.json", "arrays.npz"
_IN_ARRAYS = ("y_class", "is_test", "x")


def keep_dataset(dataset: Dataset, name: str, cache_dir: Path) -> str:
    """Keep a data set under ``cache_dir``, and say by which name ``load_data`` finds it; equal ones have one place."""
    paths = [str(path.absolute()) for path in dataset.paths or ()]
    x = None if dataset.x is None else digest_bytes(np.ascontiguousarray(dataset.x).tobytes())
    short = digest([dataset_digest(dataset), paths, x]).rpartition("-")[-1][:16]
    folder = _folder(short, cache_dir)
    if not folder.exists():
        facts = {key: value for key, value in vars(dataset).items() if key not in (*_IN_ARRAYS, "looks")}
        facts |= {"paths": paths or None, "quarantine": [asdict(one) for one in dataset.quarantine]}
        with atomic_folder(folder) as aside:
            write_json(aside / _FACTS, facts)
            arrays = {key: getattr(dataset, key) for key in _IN_ARRAYS if getattr(dataset, key) is not None}
            np.savez(aside / _ARRAYS, **arrays)
    return f"{_UNUSUAL.sub('_', name) or 'data'}@{short}"


def kept_dataset(spec: str, cache_dir: Path) -> Dataset | None:
    """The data set that ``keep_dataset`` called so; None where ``spec`` is no such name, or nothing is there."""
    found = _SPEC.fullmatch(spec)
    folder = _folder(found["digest"], cache_dir) if found else None
    if folder is None or found is None or not folder.exists():
        return None
    facts: dict[str, Any] = read_json(folder / _FACTS)
    with np.load(folder / _ARRAYS, allow_pickle=False) as arrays:
        held: dict[str, Any] = {key: arrays[key] for key in arrays.files}
    held |= {key: value if value is None else tuple(value) for key, value in facts.items()}
    held["quarantine"] = tuple(Quarantined(**one) for one in facts["quarantine"])
    held["paths"] = None if facts["paths"] is None else tuple(map(Path, facts["paths"]))
    return Dataset(**held | {"name": found["name"]})


def name_without_digest(spec: str) -> str:
    """What the person called the data set; ``spec`` itself where it is no name of ``keep_dataset``."""
    found = _SPEC.fullmatch(spec)
    return found["name"] if found else spec


def _folder(short: str, cache_dir: Path) -> Path:
    return cache_dir / "given" / short
