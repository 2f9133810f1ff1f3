"""The rounds so far: what each changed, how good a blind audit finds it, and what the next answers may buy."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from agcd.app.figures import figures_of
from agcd.app.labels import LabelView
from agcd.app.project import Project
from agcd.app.rounds import RoundView, audit_of, mapping_changes
from agcd.app.snapshot import Snapshot
from agcd.app.store.queries import strategy_of_round
from agcd.app.web.schemas import AuditScore, Forecast, RoundCard, Rounds
from agcd.app.web.server_state import ServerState


def rounds_page(server: ServerState, project: Project) -> Rounds:
    """Every finished round, and a look ahead."""
    snapshot, asked = server.snapshot(project), strategy_of_round(project.store)
    views = [project.round_view(number) for number in range(snapshot.n_finished)]
    cards = []
    for number, seen in enumerate(views):
        before = views[number - 1] if number else None
        cards.append(_round_card(snapshot.labels, number, project.metrics(number), seen, before, asked.get(number)))
    return Rounds(rounds=cards, forecast=forecast(snapshot, cards), n_audit_open=snapshot.n_audit_open)


def _round_card(
    labels: LabelView,
    number: int,
    metrics: dict[str, Any],
    seen: RoundView | None,
    before: RoundView | None,
    strategy: str | None,
) -> RoundCard:
    return RoundCard(
        number=number,
        n_labels=metrics["n_labels"],
        n_answers=metrics["n_queried"],
        n_classes=metrics["n_classes"],
        n_slots=metrics["n_slots"],
        n_named=seen.n_named if seen else metrics["n_classes"],
        named_share=seen.named_share if seen else 0.0,
        agreement=metrics["agreement"],
        moved_share=seen.facts["moved_share"] if seen else None,
        changes=mapping_changes(labels.registry, before, seen) if seen and before else [],
        audit=_score(labels, seen) if seen else None,
        seconds=metrics["seconds"],
        strategy=strategy,
    )


def _score(labels: LabelView, seen: RoundView) -> AuditScore | None:
    found = audit_of(labels, seen)
    return AuditScore(**asdict(found)) if found else None


def forecast(snapshot: Snapshot, cards: list[RoundCard]) -> Forecast:
    """How good the names are, what is still hidden, what the next answers are likely to buy, and what audits say."""
    figures = figures_of(snapshot)
    sentences = [f"{figures.headline[0].upper()}{figures.headline[1:]}.", *figures.sentences] if figures else []
    return Forecast(sentences=[*sentences, *_trend(cards, snapshot.noun)])


def _trend(cards: list[RoundCard], noun: str) -> list[str]:
    """What answers have bought so far, by the audit; noise is called noise."""
    scored = [(card.n_answers, card.audit) for card in cards if card.audit is not None]
    if not scored:
        return [f"A blind check of 30 random {noun}s would tell the share of right names within about 15 points."]
    if len(scored) < 2:
        return []
    (n_first, first), (n_last, last) = scored[-2:]
    gain = 100 * (last.share - first.share)
    moved = f"The last {n_last - n_first} answers moved the audited accuracy by {gain:+.0f} points"
    return [f"{moved}, within its noise." if last.low <= first.share <= last.high else f"{moved}."]
