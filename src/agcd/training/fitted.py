"""A trained model on disk and in memory: student, EMA copy and the facts they need to be used again."""

from __future__ import annotations

import copy
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from agcd.arrays import unit
from agcd.errors import StorageError, WeightsError
from agcd.features.devices import CPU, OutOfMemory, in_memory, in_smaller_passes
from agcd.features.reading import read_in_turn
from agcd.features.rows import RowFeatures
from agcd.io import digest_bytes
from agcd.run_files import damaged
from agcd.training.heads import DiscoveryModel
from agcd.training.loop import load_tensors, save_tensors
from agcd.types import FloatArray, IntArray, Prediction

T = TypeVar("T")
Which = Literal["student", "ema"]
_BLOCK_NUMBERS = 32_000_000
"""Numbers per block of inference: bounds memory whatever the backbone."""
_IN_MEMORY_BYTES = 2 * 2**30
"""Larger predictions are mapped from a file: a million rows of 500 slots need two gigabytes."""


@dataclass
class Fitted:
    """What a training run leaves behind."""

    student: DiscoveryModel
    ema: DiscoveryModel
    n_old: int
    student_temp: float
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def n_slots(self) -> int:
        return self.ema.n_slots

    @property
    def model_id(self) -> str:
        return str(self.facts.get("model_id", ""))

    def predict(
        self, features: RowFeatures, rows: IntArray, which: Which = "ema", *, scratch: Path | None = None
    ) -> Prediction:
        """Slot probabilities (n, K) and unit-length features (n, d) of ``rows``, from the test view.

        Arrays too large for memory are files in the folder ``scratch``, gone when nobody holds them any more.
        """
        model = self.ema if which == "ema" else self.student
        model.eval()
        probs = roomy_array((len(rows), model.n_slots), scratch)
        vectors = roomy_array((len(rows), features.dim), scratch)

        def answer(inputs: Tensor) -> tuple[Tensor, Tensor]:
            hidden = nn.functional.normalize(model.embed(inputs), dim=1)
            return (model.classify(hidden) / self.student_temp).softmax(1), hidden

        for block, (found, hidden) in answers_by_block(answer, features, rows, model.device):
            probs[block], vectors[block] = in_memory(found), in_memory(hidden)
        return Prediction(rows, probs, vectors, self.model_id)

    def embed(self, features: RowFeatures, rows: IntArray) -> Tensor:
        """The student's standardised features (n, d) of ``rows``, not normalised, from the test view."""
        self.student.eval()
        return embed_rows(self.student.embed, features, rows, self.device)

    @property
    def device(self) -> torch.device:
        return self.ema.device

    def to(self, device: torch.device) -> Fitted:
        """Both models moved to the device."""
        self.student.to(device)
        self.ema.to(device)
        return self

    def copy(self) -> Fitted:
        """A copy whose training leaves this one alone."""
        return Fitted(
            copy.deepcopy(self.student), copy.deepcopy(self.ema), self.n_old, self.student_temp, dict(self.facts)
        )

    def identify(self) -> None:
        """Give the models their id, the digest of their weights, once these no longer change."""
        tensors = model_tensors(self.student, self.ema)
        content = b"".join(in_memory(tensors[name]).tobytes() for name in sorted(tensors))
        self.facts["model_id"] = digest_bytes(content)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The tensors of both models, identified, and the facts that ``restored`` needs beside them."""
        self.identify()
        projector = self.student.projector
        return model_tensors(self.student, self.ema), self.facts | {
            "n_old": self.n_old,
            "n_slots": self.n_slots,
            "student_temp": self.student_temp,
            "head": self.student.kind,
            "projector": [projector[0].out_features, projector[-1].out_features],
        }

    def save(self, path: Path) -> None:
        """Identify both models and store them with their facts."""
        save_tensors(path, *self.state())

    @staticmethod
    def load(path: Path, features: RowFeatures, device: torch.device = CPU) -> Fitted:
        """What ``save`` stored, on features of the same backbone; files that name no head have a cosine one."""
        try:
            tensors, facts = load_tensors(path)
        except StorageError:
            raise damaged(path, "is damaged") from None
        if not all(tensor.isfinite().all() for tensor in tensors.values()):  # up to version 0.2 such a round could end
            raise damaged(path, "holds numbers that are not finite")
        return Fitted.restored(tensors, facts, features).to(device)

    @staticmethod
    def restored(tensors: dict[str, Tensor], facts: dict[str, Any], features: RowFeatures) -> Fitted:
        """What ``state`` gave, on features of the same backbone."""
        n_slots, (width, out), kind = facts["n_slots"], facts["projector"], facts.get("head", "cosine")
        models = [DiscoveryModel(features.new_tail(), features.dim, n_slots, (width, out), 0, kind) for _ in range(2)]
        restore_models(models[0], models[1], tensors)
        return Fitted(models[0], models[1], facts["n_old"], facts["student_temp"], facts)


def roomy_array(shape: tuple[int, int], scratch: Path | None) -> FloatArray:
    """An empty float32 array, in memory or, if it is large and there is a place for it, mapped from a nameless file."""
    if scratch is None or 4 * math.prod(shape) <= _IN_MEMORY_BYTES:
        return np.empty(shape, np.float32)
    with tempfile.TemporaryFile(dir=scratch) as file:
        return np.memmap(file, np.float32, "w+", shape=shape)


def model_tensors(student: nn.Module, ema: nn.Module) -> dict[str, Tensor]:
    """Both models' states under one set of names."""
    return {
        f"{prefix}.{name}": tensor
        for prefix, model in (("student", student), ("ema", ema))
        for name, tensor in model.state_dict().items()
    }


def restore_models(student: nn.Module, ema: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Load what ``model_tensors`` listed; weights that do not fit are one sentence."""
    for prefix, model in (("student", student), ("ema", ema)):
        start = f"{prefix}."
        own = {name.removeprefix(start): t for name, t in tensors.items() if name.startswith(start)}
        try:
            model.load_state_dict(own)
        except RuntimeError as error:
            first = str(error).splitlines()[-1].strip()
            raise WeightsError(f"The stored model does not fit the backbone: {first}") from None


def embed_rows(
    embed: Callable[[Tensor], Tensor], features: RowFeatures, rows: IntArray, device: torch.device = CPU
) -> Tensor:
    """``embed`` of the test view of ``rows``, (n, d) on the device, block by block and without gradients."""
    parts = [found for _, found in answers_by_block(embed, features, rows, device)]
    return torch.cat(parts).clone()


def frozen_features(features: RowFeatures, rows: IntArray, device: torch.device = CPU) -> FloatArray:
    """What the pretrained network makes of the test view of ``rows``, centred, at unit length: (n, d)."""
    x = in_memory(embed_rows(features.new_tail().eval().to(device), features, rows, device))
    return unit(x - x.mean(0))


def answers_by_block(
    answer: Callable[[Tensor], T], features: RowFeatures, rows: IntArray, device: torch.device
) -> Iterator[tuple[slice, T]]:
    """Slices of ``rows`` with what ``answer`` makes of their test views, in inference mode; blocks that are too large
    for the memory of the device are taken in smaller ones."""
    start, size = 0, _rows_per_block(features, rows)
    while start < len(rows):
        try:
            for block, inputs in _blocks_of_test_views(features, rows, start, size, device):
                with torch.inference_mode():
                    found = answer(inputs)
                yield block, found
                start = block.stop
        except OutOfMemory:
            size = in_smaller_passes(device, "prediction", min(size, len(rows) - start))


def _rows_per_block(features: RowFeatures, rows: IntArray) -> int:
    """So many that inputs and what becomes of them stay within the memory bound."""
    if len(rows) == 0:
        return 1
    one = read_test_view(features, rows[:1])
    n_tokens = one.shape[1] if one.dim() > 2 else 1
    return max(1, _BLOCK_NUMBERS // max(one.numel(), n_tokens * features.dim))


def _blocks_of_test_views(
    features: RowFeatures, rows: IntArray, start: int, size: int, device: torch.device
) -> Iterator[tuple[slice, Tensor]]:
    """Slices of ``rows`` from ``start`` on, with their inputs; the next ones are read meanwhile."""
    blocks = [slice(i, min(i + size, len(rows))) for i in range(start, len(rows), size)]
    requests = ((rows[block], np.zeros(block.stop - block.start, np.int64)) for block in blocks)
    yield from zip(blocks, read_in_turn(features, requests, device), strict=True)


def read_test_view(features: RowFeatures, rows: IntArray) -> Tensor:
    return features.read(rows, np.zeros(len(rows), np.int64))
