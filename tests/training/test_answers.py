"""What rounds make of answers beyond their own rows: votes, repaired slots, propagated classes, and all of it off."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import Tensor

from agcd.config import OUR_ANSWERS, SECTIONS, AnswersConfig, Config, make_config
from agcd.errors import ConfigError
from agcd.io import digest
from agcd.propagation import Propagation
from agcd.session import labels_digest, run_key
from agcd.training import TRAINERS, answers, get_trainer, losses, runs, settings_record, simgcd
from agcd.training.answers import PropagatedLabels, drop_explained, propagate_answers, repair
from agcd.training.fitted import Fitted, Which
from agcd.training.heads import Output
from agcd.training.job import Outcome, TrainingJob
from agcd.training.sampler import Batch, read_batches
from agcd.types import IntArray, LabelMapping
from support.blobs import Blobs, fast_config, make_blobs, make_session
from support.training_jobs import assert_kills_change_nothing, job, same, told, weights

ASKED = np.array([60, 61, 62, 80, 81, 82])
"""Of the novel classes 3 and 4; nobody has named class 5 (rows 100 to 119)."""
two_phase_trainer = pytest.mark.parametrize("name", ["simgcd", "simgcd_nn", "mugcd"])
OFF: dict[str, Any] = AnswersConfig().model_dump()
SWITCHES: list[dict[str, Any]] = [
    {"mapping": "evidence"},
    {"repair": True},
    {"restart": True},
    {"spread_weight": 2.0},
    {"unnamed": "drop"},
    {"page_weight": 0.25},
]


def config_of(name: str = "simgcd", our: dict[str, Any] = OUR_ANSWERS, **train: Any) -> Config:
    return fast_config(trainer=name, answers={**OFF, **our}, **train)


def base_of(name: str, blobs: Blobs, folder: Path) -> Outcome:
    return get_trainer(name)(config_of(name).train).fit(job(blobs, folder / "base"))


def round_of(base: Outcome, blobs: Blobs, folder: Path, **changes: Any) -> TrainingJob:
    given = {"labels": told(blobs, ASKED), "round": 1, "start": base.fitted, "previous": base.last, **changes}
    return job(blobs, folder, **given)


def mapping_of(slots: list[int]) -> LabelMapping:
    return LabelMapping(np.array(slots), np.ones(len(slots), bool), 1.0)


# --- what labels say about every row -----------------------------------------------------------------------------


def test_labelled_rows_keep_their_class_and_full_certainty_and_evidence_names_the_others(tmp_path: Path) -> None:
    blobs = make_blobs()
    held_out = np.arange(120) % 7 == 6
    labels = replace(told(blobs, ASKED), held_out=held_out)
    task = round_of(base_of("simgcd", blobs, tmp_path), blobs, tmp_path, labels=labels)
    known = propagate_answers(task)
    assert known.rows.tolist() == np.flatnonzero(~held_out).tolist()
    said = labels.y_class[known.rows]
    assert known.labelled.tolist() == (said >= 0).tolist()
    assert (known.y_class[known.labelled] == said[known.labelled]).all()
    assert (known.certainty[known.labelled] == 1).all()
    named = ~known.labelled & (blobs.truth[known.rows] < 5)
    assert (known.y_class == blobs.truth[known.rows])[named].mean() > 0.9
    unnamed = blobs.truth[known.rows] == 5
    assert known.certainty[unnamed].max() < known.certainty[named].mean()
    y_class, certainty = known.by_row(120)
    assert (y_class[held_out] == -1).all()
    assert (certainty[held_out] == 0).all()
    np.testing.assert_array_equal(y_class[known.rows], known.y_class)
    np.testing.assert_array_equal(certainty[known.rows], known.certainty)


def test_an_answer_stands_against_all_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = make_blobs()
    task = round_of(base_of("simgcd", blobs, tmp_path), blobs, tmp_path)
    evidence = Propagation(np.full(120, 2), np.full(120, 0.25, np.float32), np.full(120, 2, np.float32))
    monkeypatch.setattr(answers, "propagate_labels", lambda *_: evidence)
    known, said = propagate_answers(task), task.labels.y_class
    assert known.y_class.tolist() == np.where(said >= 0, said, 2).tolist()
    assert known.certainty.tolist() == np.where(said >= 0, 1, 0.25).tolist()


def test_rows_accepted_by_page_count_as_what_they_were_accepted_as_and_labels_stand(tmp_path: Path) -> None:
    blobs = make_blobs()
    accepted = np.where(np.arange(120) % 5 == 0, 3, -1)
    labels = replace(told(blobs, ASKED), accepted=accepted)
    task = round_of(base_of("simgcd", blobs, tmp_path), blobs, tmp_path, labels=labels)
    known, without = propagate_answers(task, 0.5), propagate_answers(task)
    by_page = (accepted >= 0) & (labels.y_class < 0)
    assert (known.y_class[by_page] == 3).all()
    assert (known.certainty[by_page] == 0.5).all()
    np.testing.assert_array_equal(known.y_class[~by_page], without.y_class[~by_page])
    np.testing.assert_array_equal(known.certainty[~by_page], without.certainty[~by_page])


@two_phase_trainer
def test_accepted_pages_teach_with_a_weight_of_their_own_and_without_them_keys_are_those_of_old(
    name: str, tmp_path: Path
) -> None:
    blobs = make_blobs()
    base, labels = base_of(name, blobs, tmp_path), told(blobs, ASKED)
    pages = replace(labels, accepted=np.where(labels.y_class < 0, 4, -1))
    done = [
        get_trainer(name)(config_of(name, OUR_ANSWERS | {"page_weight": weight}).train).fit(
            round_of(base, blobs, tmp_path / str(i), labels=said)
        )
        for i, (said, weight) in enumerate([(labels, 1.0), (pages, 0.0), (pages, 0.5), (pages, 1.0)])
    ]
    plain, unheard, half, whole = (weights(outcome.fitted) for outcome in done)
    assert same(plain, unheard)
    assert not same(half, plain)
    assert not same(half, whole)
    assert labels_digest(pages) != labels_digest(labels)

    def n_in_class_4(outcome: Outcome) -> int:
        slots = outcome.fitted.predict(blobs.features, np.arange(120), "ema").y_slot
        return int((slots == outcome.last.slot_of_class[4]).sum())

    assert n_in_class_4(done[3]) > n_in_class_4(done[0])


def slow_voters(known: PropagatedLabels) -> list[int]:
    """Class by class: all labelled rows and the first of the others, most certain first."""
    chosen = set(np.flatnonzero(known.labelled).tolist())
    for c in set(known.y_class.tolist()) - {-1}:
        others = [i for i in range(len(known.rows)) if known.y_class[i] == c and not known.labelled[i]]
        ranked = sorted((i for i in others if known.certainty[i] > 0), key=lambda i: (-known.certainty[i], i))
        chosen |= set(ranked[:20])
    return sorted(chosen)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [0, 1, 30, 300])
def test_voters_are_all_labelled_rows_and_the_twenty_most_certain_others_of_each_class(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labelled = rng.random(n) < 0.2
    y_class = np.where(labelled, rng.integers(0, 4, n), rng.integers(-1, 4, n))
    certainty = np.where(labelled, 1, np.where(y_class < 0, 0, rng.integers(0, 5, n) / 5)).astype(np.float32)
    known = PropagatedLabels(np.arange(n) * 3, y_class, certainty, certainty, labelled, csr_array((n, n)))
    assert known.voters().tolist() == slow_voters(known)


def test_with_evidence_the_votes_of_certain_rows_decide_against_a_single_label(tmp_path: Path) -> None:
    blobs = make_blobs()
    base = base_of("simgcd", blobs, tmp_path)
    labels = replace(told(blobs, np.array([60])), held_out=blobs.truth == 1)
    task = round_of(base, blobs, tmp_path, labels=labels)
    config = config_of(our={"mapping": "evidence"}).train
    run = simgcd._Run.of(task, config)
    y_slot = base.fitted.predict(blobs.features, np.arange(60, 80)).y_slot
    usual = int(np.bincount(y_slot).argmax())
    unlike = int(np.flatnonzero(np.arange(6) != usual)[-1])
    with torch.no_grad():  # the one labelled row is predicted as something else than the rows around it
        run.fitted.ema.prototypes[unlike] = torch.from_numpy(
            run.fitted.predict(blobs.features, np.array([60])).features
        )
    assert run.fitted.predict(blobs.features, np.array([60])).y_slot.tolist() == [unlike]
    by_evidence = run.current_mapping().slot_of_class[3]
    run.config = config_of(our=OFF).train
    by_label = run.current_mapping().slot_of_class[3]
    assert (by_evidence, by_label) == (usual, unlike)


# --- repair ------------------------------------------------------------------------------------------------------


@pytest.fixture
def broken(tmp_path: Path) -> tuple[Blobs, TrainingJob, PropagatedLabels]:
    """A round whose model has a prototype on each class in turn, and an EMA model unlike the student."""
    blobs = make_blobs()
    base = base_of("simgcd", blobs, tmp_path)
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in base.fitted.ema.tail.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=noise))
    stand_on_classes(base.fitted, blobs)
    task = round_of(base, blobs, tmp_path, labels=replace(told(blobs, ASKED), held_out=np.arange(120) % 20 > 15))
    return blobs, task, propagate_answers(task)


def place(fitted: Fitted, blobs: Blobs, slot: int, rows: IntArray, sign: int = 1) -> None:
    for which, model in (("student", fitted.student), ("ema", fitted.ema)):
        mean = fitted.predict(blobs.features, rows, which).features.mean(0)  # type: ignore[arg-type]
        model.place_prototypes([slot], torch.from_numpy(sign * mean[None]))


def stand_on_classes(fitted: Fitted, blobs: Blobs) -> None:
    for c in range(6):
        place(fitted, blobs, c, np.flatnonzero(blobs.truth == c))


def repeat_class_3(fitted: Fitted, blobs: Blobs) -> None:
    """Something to repair: slots 3 and 5 share a class, and no slot is left for class 5."""
    stand_on_classes(fitted, blobs)
    place(fitted, blobs, 5, np.flatnonzero(blobs.truth == 3))


def moved_slots(before: dict[str, Tensor], after: dict[str, Tensor]) -> set[int]:
    """Slots whose prototype differs, in student and EMA alike; nothing else may differ."""
    moved = {}
    for name in before:
        if name.endswith("prototypes"):
            moved[name] = set(torch.nonzero((before[name] != after[name]).any(1))[:, 0].tolist())
        else:
            assert torch.equal(before[name], after[name]), name
    assert moved["student.prototypes"] == moved["ema.prototypes"]
    return moved["ema.prototypes"]


def repaired(task: TrainingJob, known: PropagatedLabels, slots: list[int]) -> tuple[Fitted, set[int]]:
    assert task.start is not None
    fitted = task.start.copy()
    repair(fitted, task, known, mapping_of(slots))
    return fitted, moved_slots(weights(task.start), weights(fitted))


def test_repair_leaves_a_model_alone_whose_slots_hold_their_classes(
    broken: tuple[Blobs, TrainingJob, PropagatedLabels],
) -> None:
    _, task, known = broken
    assert repaired(task, known, [0, 1, 2, 3, 4])[1] == set()


def test_repair_moves_the_prototype_of_a_class_that_its_slot_misses(
    broken: tuple[Blobs, TrainingJob, PropagatedLabels],
) -> None:
    blobs, task, known = broken
    assert task.start is not None
    place(task.start, blobs, 4, np.flatnonzero(blobs.truth == 4), sign=-1)
    fitted, moved = repaired(task, known, [0, 1, 2, 3, 4])
    assert moved == {4}
    members = [
        int(r) for r, c, t in zip(known.rows, known.y_class, known.certainty, strict=True) if c == 4 and t >= 0.3
    ]
    assert set(members) >= {80, 81, 82}
    for which, model in (("student", fitted.student), ("ema", fitted.ema)):
        mean = fitted.predict(blobs.features, np.array(members), which).features.mean(0)  # type: ignore[arg-type]
        cosine = torch.cosine_similarity(model.prototypes[4].detach(), torch.from_numpy(mean), dim=0)
        assert float(cosine) == pytest.approx(1, abs=1e-5)
        own = fitted.predict(blobs.features, np.arange(80, 100), which).y_slot  # type: ignore[arg-type]
        assert (own == 4).mean() > 0.8


@pytest.mark.parametrize("empty", [True, False])
def test_the_last_slot_without_a_class_goes_from_what_labels_explain_to_the_blob_without_labels(
    empty: bool, broken: tuple[Blobs, TrainingJob, PropagatedLabels]
) -> None:
    blobs, task, known = broken
    assert task.start is not None
    if empty:
        place(task.start, blobs, 5, np.flatnonzero(blobs.truth == 3))
    else:
        place(task.start, blobs, 5, np.array([61]))
    held = task.start.predict(blobs.features, np.arange(120)).y_slot == 5
    assert held.any() != empty
    assert repaired(task, known, [0, 1, 2, 3, 4])[1] == set()
    fitted = task.start.copy()
    drop_explained(fitted, task, known, mapping_of([0, 1, 2, 3, 4]))
    assert moved_slots(weights(task.start), weights(fitted)) == {5}
    for which in get_args(Which):
        own = fitted.predict(blobs.features, np.arange(100, 120), which).y_slot
        assert (own == 5).mean() > 0.8


def test_repair_never_moves_the_prototypes_of_old_classes(broken: tuple[Blobs, TrainingJob, PropagatedLabels]) -> None:
    blobs, task, known = broken
    assert task.start is not None
    for c in (0, 1, 2):
        place(task.start, blobs, c, np.flatnonzero(blobs.truth == c), sign=-1)
    for slots in ([0, 1, 2, 3, 4], [0, 1, 5, 3, 4]):  # the second is one without pinned old classes
        _, moved = repaired(task, known, slots)
        assert not moved & {0, 1, 2}
    stand_on_classes(task.start, blobs)
    assert 2 not in repaired(task, known, [0, 1, 5, 3, 4])[1]


def wider(fitted: Fitted, blobs: Blobs, rows: list[int]) -> Fitted:
    """A copy with one more slot on each of these rows."""
    fitted = fitted.copy()
    for which, model in (("student", fitted.student), ("ema", fitted.ema)):
        model.grow(torch.from_numpy(fitted.predict(blobs.features, np.array(rows), which).features))  # type: ignore[arg-type]
    return fitted


def test_slots_that_labels_explain_are_used_no_more_and_the_others_keep_their_numbers(
    broken: tuple[Blobs, TrainingJob, PropagatedLabels],
) -> None:
    blobs, task, known = broken
    assert task.start is not None
    stand_on_classes(task.start, blobs)
    start = wider(task.start, blobs, [65, 85])  # rows of classes 3 and 4, which have labels
    before = start.predict(blobs.features, np.arange(120)).y_slot
    assert set(before[60:100].tolist()) >= {6, 7}
    drop_explained(start, replace(task, start=start), known, mapping_of([0, 1, 2, 3, 4]))
    after = start.predict(blobs.features, np.arange(120))
    assert (after.probs[:, [6, 7]] == 0).all()
    assert start.n_slots == 8
    stays = ~np.isin(before, [6, 7])
    np.testing.assert_array_equal(after.y_slot[stays], before[stays])
    assert (after.y_slot[100:] == 5).mean() > 0.8, "what nobody has named keeps its slot"


def test_where_every_row_is_labelled_no_slot_is_placed(broken: tuple[Blobs, TrainingJob, PropagatedLabels]) -> None:
    blobs, task, _ = broken
    everything = blobs.labels.tell(np.flatnonzero(blobs.truth < 5), blobs.names(np.flatnonzero(blobs.truth < 5)), 1)
    task = replace(task, labels=replace(everything, held_out=blobs.truth == 5))
    assert task.start is not None
    fitted = task.start.copy()
    drop_explained(fitted, task, propagate_answers(task), mapping_of([0, 1, 2, 3, 4]))
    assert same(weights(fitted), weights(task.start))


def test_a_model_with_unused_slots_is_stored_loaded_and_grown(
    broken: tuple[Blobs, TrainingJob, PropagatedLabels], tmp_path: Path
) -> None:
    blobs, task, _ = broken
    assert task.start is not None
    fitted = task.start.copy()
    for model in (fitted.student, fitted.ema):
        model.disuse([4])
    fitted.save(tmp_path / "model.safetensors")
    loaded = Fitted.load(tmp_path / "model.safetensors", blobs.features)
    rows = np.arange(120)
    np.testing.assert_array_equal(
        loaded.predict(blobs.features, rows).probs, fitted.predict(blobs.features, rows).probs
    )
    used_again = wider(loaded, blobs, [85])
    assert (used_again.predict(blobs.features, rows).probs[:, 4] == 0).all()
    used_again.ema.place_prototypes([4], used_again.ema.prototypes.detach()[6:])
    assert (used_again.predict(blobs.features, rows).probs[:, 4] > 0).any()
    weight, bias = loaded.ema.linear_weights()
    x = torch.from_numpy(loaded.predict(blobs.features, rows).features)
    torch.testing.assert_close(x @ weight.T + bias, loaded.ema.classify(x).detach())


# --- the loss of propagated classes ----------------------------------------------------------------------------------


def slow_loss(logits: list[list[float]], slots: list[int], certainty: list[float], temp: float) -> float:
    total = 0.0
    for i, row in enumerate(logits):
        powers = [math.exp(v / temp) for v in row]
        total -= certainty[i % len(slots)] * math.log(powers[slots[i % len(slots)]] / sum(powers))
    return total / len(logits)


def test_the_loss_of_propagated_classes_is_cross_entropy_weighed_by_certainty_over_all_rows() -> None:
    draw = torch.Generator().manual_seed(0)
    logits, certainty = torch.rand(12, 5, generator=draw) * 2 - 1, torch.rand(6, generator=draw)
    slots = torch.tensor([0, 4, 2, 2, 1, 0])
    expected = slow_loss(logits.double().tolist(), slots.tolist(), certainty.tolist(), 0.1)
    assert float(losses.weighted_supervised(logits, slots, certainty, 0.1)) == pytest.approx(expected, rel=1e-4)
    certain = losses.weighted_supervised(logits, slots, torch.ones(6), 0.1)
    torch.testing.assert_close(certain, losses.supervised(logits, slots, 0.1))


def test_rows_without_certainty_teach_nothing_and_no_rows_give_zero() -> None:
    logits = torch.randn(8, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    certainty = torch.tensor([1.0, 0, 0, 0.5])
    losses.weighted_supervised(logits, torch.tensor([0, 1, 2, 0]), certainty, 0.1).backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert (logits.grad.abs().sum(1) > 0).tolist() == [True, False, False, True] * 2
    none = torch.empty(0, dtype=torch.int64)
    loss = losses.weighted_supervised(logits[:0], none, torch.empty(0), 0.1)
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == 0


def test_unlabelled_rows_of_a_batch_learn_the_slots_of_the_classes_propagated_to_them(tmp_path: Path) -> None:
    blobs = make_blobs()
    task = round_of(base_of("simgcd", blobs, tmp_path), blobs, tmp_path)
    run = simgcd._Run.of(task, config_of(our={"spread_weight": 3.0}).train)
    rows = np.array([0, 65, 60, 105, 1, 85])
    unlabelled = np.array([False, True, True, True, False, True])
    logits = torch.rand(12, 6, generator=torch.Generator().manual_seed(0)) * 2 - 1
    (teach,) = run._propagated_losses([rows[unlabelled]])
    y_class = np.where(unlabelled, -1, 0)
    (batch,) = read_batches(blobs.features, [rows], [y_class], np.random.default_rng(0))
    loss = teach(Output(logits, logits, logits), batch)
    slot_of_class = run.current_mapping().slot_of_class.tolist()
    position = {row: i for i, row in enumerate(run.propagated.rows.tolist())}
    own = [position[row] for row in rows[unlabelled].tolist()]
    slots = [slot_of_class[c] for c in run.propagated.y_class[own].tolist()]
    assert slots[1] == slot_of_class[3], "an answer that stays in the stream is learned as it was given"
    assert run.propagated.certainty[own[1]] == 1
    both = [row for row, kept in zip(logits.double().tolist(), unlabelled.tolist() * 2, strict=True) if kept]
    assert float(loss) == pytest.approx(
        3 * slow_loss(both, slots, run.propagated.certainty[own].tolist(), 0.1), rel=1e-4
    )


@two_phase_trainer
@pytest.mark.parametrize("keep", [False, True])
def test_rows_labelled_from_the_start_are_not_taught_what_is_propagated(
    name: str, keep: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs, taught = make_blobs(), set()

    def losses_of(_: Any, unlabelled: Sequence[IntArray]) -> list[Callable[[Output, Batch], Tensor]]:
        def loss(output: Output, batch: Batch, rows: IntArray) -> Tensor:
            assert len(output.logits) == 2 * len(batch.rows)
            assert batch.rows[batch.unlabelled.numpy()].tolist() == rows.tolist()
            taught.update(rows.tolist())
            return output.logits.sum() * 0

        return [partial(loss, rows=rows) for rows in unlabelled]

    task = round_of(base_of(name, blobs, tmp_path), blobs, tmp_path)
    monkeypatch.setattr(runs.TwoPhaseRun, "_propagated_losses", losses_of)
    get_trainer(name)(config_of(name, keep_queried_unlabelled=keep).train).fit(task)
    assert taught <= set(np.flatnonzero(task.labels.asked_round != 0).tolist())
    assert bool(taught & set(ASKED.tolist())) == keep


# --- all of it off -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["paper", "official"])
def test_when_all_is_off_neither_the_record_nor_the_key_of_a_run_knows_the_section(protocol: str) -> None:
    blobs = make_blobs()
    plain = make_config({"protocol": protocol})
    spelt_out = make_config({"protocol": protocol, "train": {"answers": OFF}})
    assert plain.train.answers == AnswersConfig()
    assert "answers" not in settings_record(plain)["train"]
    assert settings_record(spelt_out) == settings_record(plain)
    came_later = {"precision", "compile", "deterministic"}
    if protocol == "official":  # the paper's text wants others than were the only ones there once
        came_later |= {"queried_unsupervised", "first_mapping"}
    train = plain.train.model_dump(mode="json", exclude={"options", *came_later, *SECTIONS})
    key = digest(["run-1", blobs.features.fingerprint, labels_digest(blobs.labels), train, 6, 0, "parent"])
    for config in (plain, spelt_out):
        assert run_key(blobs.features, blobs.labels, config, 6, "parent") == key


@pytest.mark.parametrize("name", sorted(TRAINERS))
@pytest.mark.parametrize("switch", SWITCHES)
def test_each_switch_counts_in_rounds_of_the_trainers_that_read_it_and_nowhere_else(
    name: str, switch: dict[str, Any]
) -> None:
    blobs, reads = make_blobs(), name in ("simgcd", "simgcd_nn", "mugcd")
    off, on = (config_of(name, our) for our in (OFF, switch))

    def keys(parent: str | None) -> set[str]:
        return {run_key(blobs.features, blobs.labels, config, 6, parent) for config in (off, on)}

    assert len(keys(None)) == 1, "runs that differ in it share their base"
    assert len(keys("parent")) == (2 if reads else 1)
    assert (settings_record(on) != settings_record(off)) == reads


@two_phase_trainer
def test_when_all_is_off_nothing_is_propagated_and_a_round_is_the_one_of_old(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("nobody asked for it")

    blobs = make_blobs()
    base = base_of(name, blobs, tmp_path)
    trainer = get_trainer(name)(config_of(name, our=OFF).train)
    monkeypatch.setattr(runs, "propagate_answers", never)
    monkeypatch.setattr(runs, "repair", never)
    plain = trainer.fit(round_of(base, blobs, tmp_path / "plain"))
    monkeypatch.setattr(runs.TwoPhaseRun, "current_mapping", runs.TrainingRun.current_mapping)
    monkeypatch.setattr(runs.TwoPhaseRun, "_propagated_losses", lambda *_: [])
    of_old = trainer.fit(round_of(base, blobs, tmp_path / "of old"))
    assert same(weights(plain.fitted), weights(of_old.fitted))
    assert plain.last.to_json() == of_old.last.to_json()


@two_phase_trainer
def test_base_training_never_propagates_anything(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = make_blobs()
    monkeypatch.delattr(runs, "propagate_answers")
    off, on = (
        get_trainer(name)(config_of(name, our).train).fit(job(blobs, tmp_path / str(our["repair"]))).fitted
        for our in (OFF, OUR_ANSWERS)
    )
    assert same(weights(off), weights(on))


@pytest.mark.parametrize("values", [{"spread_weight": -1}, {"mapping": "votes"}, {"repairs": True}])
def test_bad_settings_are_refused_in_one_sentence(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"'train.answers.{next(iter(values))}'"):
        make_config({"train": {"answers": values}})


# --- all of it on ------------------------------------------------------------------------------------------------


@two_phase_trainer
def test_a_round_with_all_on_killed_after_any_epoch_and_resumed_equals_an_unbroken_one(
    name: str, tmp_path: Path
) -> None:
    blobs = make_blobs()
    base = base_of(name, blobs, tmp_path)
    repeat_class_3(base.fitted, blobs)
    before = weights(base.fitted)
    trainer = get_trainer(name)(config_of(name).train)
    active = {"labels": told(blobs, ASKED), "round": 1, "start": base.fitted, "previous": base.last}
    assert_kills_change_nothing(trainer, blobs, tmp_path, **active)
    assert same(before, weights(base.fitted)), "the model that a round starts from must stay as it is"


@two_phase_trainer
def test_each_switch_alone_changes_a_round_that_gives_it_something_to_do(name: str, tmp_path: Path) -> None:
    blobs = make_blobs()
    base = base_of(name, blobs, tmp_path)
    repeat_class_3(base.fitted, blobs)
    done = [
        get_trainer(name)(config_of(name, our).train).fit(round_of(base, blobs, tmp_path / str(i))).fitted
        for i, our in enumerate([OFF, {"unnamed": "drop"}, {"spread_weight": 2.0}, OUR_ANSWERS])
    ]
    states = [weights(fitted) for fitted in done]
    assert not any(same(a, b) for i, a in enumerate(states) for b in states[:i])


@two_phase_trainer
@pytest.mark.parametrize("n_slots", [3, 4, 9])
def test_a_class_named_beyond_the_number_of_slots_gets_one_with_all_on(name: str, n_slots: int, tmp_path: Path) -> None:
    blobs = make_blobs()
    session = make_session(blobs, tmp_path, config_of(name), n_slots=n_slots)
    session.train()
    rows = np.array([60, 61, 62, 80, 81, 82, 100, 101, 102])
    session.tell(rows, blobs.names(rows))
    done = session.train()
    assert done.fitted.n_slots == done.fitted.student.n_slots == max(6, n_slots)
    assert done.last.slot_of_class[:3].tolist() == [0, 1, 2]
    assert len(set(done.last.slot_of_class.tolist())) == 6
    found = done.fitted.predict(blobs.features, rows).y_slot
    assert (found == done.last.slot_of_class[session.labels.y_class[rows]]).mean() > 0.6


@two_phase_trainer
@pytest.mark.parametrize(
    "train", [{}, {"pin_old": False}, {"keep_queried_unlabelled": True}, {"map_every": 1, "init": "random"}]
)
def test_all_on_goes_with_the_other_settings_from_no_label_at_all(
    name: str, train: dict[str, Any], tmp_path: Path
) -> None:
    blobs = make_blobs(n_old=0, ratio=0.0, per_class=10)
    session = make_session(blobs, tmp_path, config_of(name, **train))
    session.train()
    session.train()  # a round without any answer
    query = session.ask(4)
    session.tell(query.rows, blobs.names(query.rows))
    done = session.train()
    assert np.isfinite(done.fitted.predict(blobs.features, np.arange(60)).probs).all()
    assert len(done.last.slot_of_class) == len(set(blobs.truth[query.rows]))


@two_phase_trainer
def test_labels_of_rows_outside_training_change_nothing(name: str, tmp_path: Path) -> None:
    blobs = make_blobs()
    base = base_of(name, blobs, tmp_path)
    held_out = np.arange(120) % 5 == 4
    hidden = replace(told(blobs, ASKED), held_out=held_out)
    hidden = replace(hidden, y_class=np.where(held_out, -1, hidden.y_class))
    poisoned = replace(hidden, y_class=np.where(held_out, np.arange(120) % 5, hidden.y_class))
    trainer = get_trainer(name)(config_of(name).train)
    first, second = (
        trainer.fit(round_of(base, blobs, tmp_path / str(i), labels=labels))
        for i, labels in enumerate((hidden, poisoned))
    )
    assert same(weights(first.fitted), weights(second.fitted))
    assert first.last.to_json() == second.last.to_json()
