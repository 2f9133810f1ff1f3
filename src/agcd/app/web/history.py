"""The rounds so far: what each changed, how good a blind audit finds it, and what the next answers may buy."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from agcd.app.audit import audit_of, mapping_changes
from agcd.app.rounds import Atlas, open_atlas
from agcd.app.store.queries import latest_query, n_unanswered, strategy_of_round
from agcd.app.store.standing import Standing
from agcd.app.store.store import Store
from agcd.app.web.schemas import AuditScore, Forecast, RoundCard, Rounds
from agcd.app.web.server_state import Desk
from agcd.app.web.snapshot import Look
from agcd.io import read_json


def rounds_page(desk: Desk, store: Store) -> Rounds:
    """Every finished round, and a look ahead."""
    look, numbers = desk.look(store), range(desk.n_finished(store))
    audited = look.standing.only_audited()
    atlases = [open_atlas(desk.folder, number) for number in numbers]
    asked = strategy_of_round(store)
    cards = []
    for number, atlas in enumerate(atlases):
        metrics = read_json(desk.project.run_folder(number) / "metrics.json")
        before = atlases[number - 1] if number else None
        cards.append(_round_card(audited, number, metrics, atlas, before, asked.get(number)))
    return Rounds(rounds=cards, forecast=forecast(look, cards), n_audit_open=n_audit_open(store))


def n_audit_open(store: Store) -> int:
    audit = latest_query(store, audit=True)
    return n_unanswered(store, audit.id) if audit else 0


def _round_card(
    audited: Standing,
    number: int,
    metrics: dict[str, Any],
    atlas: Atlas | None,
    before: Atlas | None,
    strategy: str | None,
) -> RoundCard:
    owned = [slot for slot, class_id in enumerate(atlas.facts["class_ids"]) if class_id] if atlas else []
    return RoundCard(
        number=number,
        n_labels=metrics["n_labels"],
        n_answers=metrics["n_queried"],
        n_classes=metrics["n_classes"],
        n_slots=metrics["n_slots"],
        n_named=len(owned) if atlas else metrics["n_classes"],
        named_share=float(atlas.sizes[owned].sum() / max(1, len(atlas.order))) if atlas else 0.0,
        agreement=metrics["agreement"],
        moved_share=atlas.facts["moved_share"] if atlas else None,
        changes=mapping_changes(audited.registry, before, atlas) if atlas and before else [],
        audit=_score(audited, atlas) if atlas else None,
        seconds=metrics["seconds"],
        strategy=strategy,
    )


def _score(audited: Standing, atlas: Atlas) -> AuditScore | None:
    found = audit_of(audited, atlas)
    return AuditScore(**asdict(found)) if found else None


def forecast(look: Look, cards: list[RoundCard]) -> Forecast:
    """What the next answers are likely to buy: unnamed groups, contradictions, and how the audit has moved so far."""
    if look.atlas is None or not cards:
        return Forecast(sentences=["Train first: then it can be said what answers are worth."])
    sizes = look.atlas.sizes
    unnamed = sorted((int(sizes[slot]) for slot, c in enumerate(look.owner_of_slot) if c is None), reverse=True)
    n_rows = max(1, len(look.atlas.order))
    sentences = []
    if unnamed:
        sentences.append(
            f"{len(unnamed)} group(s) have no name yet; they hold {sum(unnamed)} of {n_rows} pictures "
            f"({100 * (sum(unnamed) / n_rows):.0f} %). One answer in the largest names about {unnamed[0]} pictures."
        )
    else:
        sentences.append("Every group has a name: answers now move borders between classes.")
    margins = look.atlas.margin(look.atlas.order)
    unsure = int((margins < 0.3).sum())
    sentences.append(f"The model wavers over {unsure} pictures ({100 * (unsure / n_rows):.0f} %).")
    return Forecast(sentences=[*sentences, *_trend(cards)])


def _trend(cards: list[RoundCard]) -> list[str]:
    """What answers have bought so far, by the audit; noise is called noise."""
    scored = [card for card in cards if card.audit is not None]
    if not scored:
        return ["How good the model is, nobody has checked: a blind audit of 30 pictures tells within about 15 points."]
    if len(scored) < 2:
        return []
    first, last = scored[-2], scored[-1]
    assert first.audit is not None
    assert last.audit is not None
    answers, gain = last.n_answers - first.n_answers, last.audit.share - first.audit.share
    if last.audit.low <= first.audit.share <= last.audit.high:
        return [f"The last {answers} answers moved the audited accuracy by {100 * gain:+.0f} points, within its noise."]
    return [f"The last {answers} answers moved the audited accuracy by {100 * gain:+.0f} points."]
