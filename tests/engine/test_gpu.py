"""The arithmetic of a GPU that is not here: what is counted, what is assumed, and how it is said."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agcd.cli import main
from agcd.config import Config, make_config
from agcd.engine import gpu
from agcd.engine.costs import Line, Machine, Size, estimate
from agcd.engine.gpu import GPUS, REACHED, Work, count_work, machine_with
from agcd.errors import ConfigError

SIZE = Size(5000, 1000, 100, 500)


def config_of(backbone: dict[str, Any] | None = None, **train: Any) -> Config:
    return make_config({"backbone": {"name": "toy", "image_size": 32, **(backbone or {})}, "train": train})


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured on this machine is known: other tests have those measurements."""
    for name, value in (("measure_disk", 1e9), ("measure_kmeans", 1e-10), ("measure_selection", 1e-9)):
        monkeypatch.setattr(gpu, name, lambda *_, value=value: value)
    monkeypatch.setattr(gpu, "decode_seconds", lambda *_: 0.02)
    monkeypatch.setattr(gpu, "machine_memory", lambda: 64 * 10**9)


def test_the_work_of_a_transformer_is_that_of_its_formula() -> None:
    """Twelve blocks of width 192 over 17 tokens, of which the last one is the exact class-token tail."""
    config = config_of({"name": "vit_tiny_patch16_224", "image_size": 64}, projector_width=32, projector_dim=16)
    work, d, n_tokens, heads = count_work(config), 192, 17, 3
    block = 2 * (12 * d**2 * n_tokens + 2 * n_tokens**2 * d)
    assert work.prefix == pytest.approx(11 * block + 2 * 3 * 16**2 * d * 16, rel=0.02)
    projector = 3 * 2 * (d * 32 + 32 * 32 + 32 * 16)
    assert work.step == pytest.approx(2 * (3 * 12 * d**2 + 4 * heads * n_tokens * d) + projector, rel=0.1)
    assert work.step_per_slot == pytest.approx(3 * 2 * d, rel=0.05)
    assert (work.dim, work.item_bytes) == (192, 2 * (n_tokens + 1) * d), "the class token stands there twice"
    n_weights = 12 * d**2 + d * 32 + 32 * 32 + 32 * 16
    assert work.model_bytes.fixed == pytest.approx(2 * 4 * n_weights, rel=0.02)
    assert work.model_bytes.per_slot == 2 * 4 * d


def with_work(monkeypatch: pytest.MonkeyPatch, config: Config, size: Size = SIZE, **changes: Any) -> Machine:
    """The machine for a network whose work is known: large enough that arithmetic is what it takes."""
    known = Work(4e10, 1e9, 1e12, 1e9, 300_000, 768, Line(1e8, 0.0))
    monkeypatch.setattr(gpu, "count_work", lambda _: replace(known, **changes))
    return machine_with("a100", config, size)


def test_a_share_of_the_peak_decides_and_half_precision_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    a100 = GPUS["a100"]
    single, half = (with_work(monkeypatch, config_of(precision=name)) for name in ("float32", "bfloat16"))
    assert single.tail.step.fixed == pytest.approx(256 * 1e12 / (REACHED * a100.single))
    assert half.tail.step.fixed == pytest.approx(256 * 1e12 / (REACHED * a100.half))
    assert single.tail.queried_step.fixed == pytest.approx(16 * 1e12 / (REACHED * a100.single))
    assert single.extraction is not None
    assert half.extraction is not None
    assert single.extraction.crop_s == half.extraction.crop_s == 4e10 / (REACHED * a100.half)
    small = with_work(monkeypatch, config_of(), step=1.0, step_per_slot=0.0)
    assert small.tail.step.fixed == small.tail.queried_step.fixed == gpu.LAUNCHES_S


def test_crops_that_do_not_fit_into_its_memory_are_sent_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (with_work(monkeypatch, config_of({"views": views}), step=1.0) for views in (4, 64))
    bus = GPUS["a100"].bus_bytes_per_s
    assert few.tail.step.fixed == gpu.LAUNCHES_S
    assert many.tail.step.fixed == pytest.approx(gpu.LAUNCHES_S + 256 * 300_000 / bus)
    online = with_work(monkeypatch, config_of({"views": 64, "cache": "off"}), step=1.0)
    assert online.tail.step.fixed == gpu.LAUNCHES_S
    assert online.extraction is not None
    assert online.extraction.decode_s == 0.02 / 4, "four threads decode where nothing is stored"
    costs = [estimate(SIZE, config_of({"cache": cache}), online) for cache in ("store", "off")]
    assert costs[1].base_s > costs[0].base_s


def test_an_unknown_gpu_is_named_with_a_guess() -> None:
    with pytest.raises(ConfigError, match=r"Unknown GPU 'a10'\. Did you mean 'a100'"):
        machine_with("a10", config_of(), SIZE)


def agcd_estimate(monkeypatch: pytest.MonkeyPatch, capsys: Any, *arguments: object) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["agcd", "estimate", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0), *capsys.readouterr()


def test_the_command_says_that_nothing_was_measured_on_it(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    toy = ["--images", 5000, "--gpu", "a100", "--set", "backbone.name=toy", "--set", "backbone.image_size=32"]
    code, out, err = agcd_estimate(monkeypatch, capsys, *toy)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].startswith("computed, not measured: a100 at 40% of its peak")
    code, out, _ = agcd_estimate(monkeypatch, capsys, *toy, "--set", "train.precision=bfloat16", "--json")
    facts = json.loads(out)
    assert "training in bfloat16, 312)" in facts["assumptions"]
    assert facts["base_s"] > 0


def test_embeddings_and_texts_have_no_network_to_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    np.savez(tmp_path / "x.npz", x=np.ones((20, 4)), y=np.arange(20) % 4)
    for what in ([tmp_path / "x.npz"], ["--texts", 100]):
        code, _, err = agcd_estimate(monkeypatch, capsys, *what, "--gpu", "a100")
        assert (code, err) == (
            2,
            "error: --gpu counts the work of a network of images: leave it out for texts and embeddings.\n",
        )
