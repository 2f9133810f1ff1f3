"""Training in half precision and compiled: nearly the same model, kills included, and weights of full precision."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agcd import metrics
from agcd.config import make_config
from agcd.session import run_key
from agcd.training import fit
from agcd.training.job import Outcome
from agcd.training.loop import CHECKPOINT, load_tensors
from support.blobs import Blobs, fast_config, make_blobs
from support.training_jobs import Killed, job, killer, same, told, weights

HALF = pytest.mark.parametrize("precision", ["bfloat16", "float16"])


def base_and_round(blobs: Blobs, folder: Path, **train: Any) -> Outcome:
    config = fast_config(base_epochs=12, **train).train  # the first steps in float16 only find the scale
    base = fit(config, job(blobs, folder / "base"))
    return fit(config, job(blobs, folder / "round", labels=told(blobs), round=1, start=base.fitted, previous=base.last))


def accuracy(blobs: Blobs, done: Outcome) -> float:
    y_slot = done.fitted.predict(blobs.features, np.arange(len(blobs.truth))).y_slot
    return metrics.accuracy(blobs.truth, y_slot, 3)["acc_all"]


@HALF
@pytest.mark.parametrize("trainer", ["simgcd", "simgcd_nn", "mugcd", "gcd"])
def test_half_precision_learns_what_full_precision_learns(trainer: str, precision: str, tmp_path: Path) -> None:
    blobs = make_blobs()
    done = {
        kind: base_and_round(blobs, tmp_path / kind, trainer=trainer, precision=kind) for kind in ("float32", precision)
    }
    assert not same(weights(done["float32"].fitted), weights(done[precision].fitted)), "else nothing was rounded"
    assert {tensor.dtype for tensor in weights(done[precision].fitted).values()} == {torch.float32}
    assert accuracy(blobs, done[precision]) > accuracy(blobs, done["float32"]) - 0.05


@HALF
def test_a_killed_run_in_half_precision_goes_on_bit_by_bit(precision: str, tmp_path: Path) -> None:
    blobs, config = make_blobs(), fast_config(precision=precision).train
    unbroken = fit(config, job(blobs, tmp_path / "unbroken"))
    for killed_at in (0, 1):
        with pytest.raises(Killed):
            fit(config, job(blobs, tmp_path / str(killed_at), echo=killer(killed_at)))
        resumed = fit(config, job(blobs, tmp_path / str(killed_at)))
        assert same(weights(unbroken.fitted), weights(resumed.fitted))
    _, facts = load_tensors(tmp_path / "unbroken" / CHECKPOINT)
    assert ("scaler" in facts) == (precision == "float16"), "gradients of half precision are scaled on their way back"


def test_a_step_whose_scaled_gradient_overflows_is_left_out_and_the_scale_falls(tmp_path: Path) -> None:
    """65,536, where the scale starts, is beyond the largest number of float16, so that the first steps overflow."""
    blobs, scales = make_blobs(), list[float]()
    config = fast_config(precision="float16", base_epochs=2, sup_weight=0.0).train

    def note(line: dict[str, Any]) -> None:
        _, facts = load_tensors(tmp_path / CHECKPOINT)
        scales.append(facts["scaler"]["scale"])

    # The echo of an epoch comes before its checkpoint, so the second sees the first's.
    fit(config, job(blobs, tmp_path, echo=lambda line: note(line) if line["epoch"] else None))
    assert scales[0] < 65536
    assert all(torch.isfinite(tensor).all() for tensor in load_tensors(tmp_path / CHECKPOINT)[0].values())


def test_a_compiled_student_learns_what_it_learns_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))  # needs no compiler of C++
    blobs = make_blobs(per_class=10)
    plain, compiled = (
        fit(fast_config(base_epochs=1, compile=on).train, job(blobs, tmp_path / str(on))) for on in (False, True)
    )
    assert weights(plain.fitted).keys() == weights(compiled.fitted).keys()
    for name, tensor in weights(plain.fitted).items():
        torch.testing.assert_close(weights(compiled.fitted)[name], tensor, rtol=1e-3, atol=1e-4)


def test_keys_know_precision_and_kind_of_device_where_they_change_the_result() -> None:
    blobs = make_blobs()

    def key(**values: Any) -> str:
        return run_key(blobs.features, blobs.labels, make_config(values), 6, None)

    plain = key()
    assert key(device="cpu") == plain
    assert key(train={"deterministic": False}) == plain, "a CPU knows no other way"
    assert len({plain, key(train={"precision": "bfloat16"}), key(train={"compile": True})}) == 3
