"""The features of a debate: a schema whose names, order and meaning stand still."""

from __future__ import annotations

import math
from dataclasses import replace

from core.schema.progress import Progress
from core.schema.records import (
    Judgement,
    Point,
    Quote,
    QuoteStatus,
    ReaderView,
    Reply,
    Stance,
    Turn,
)
from core.verdict.consensus_weights import DEBATE_NAMES, FEATURES_SCHEMA, features_of


def turn(
    number: int, debater: str, reply: Reply, stance: Stance, *quotes: QuoteStatus,
    confidence: float | None = None, points: tuple[Point, ...] = (),
) -> Turn:  # fmt: skip
    return Turn(
        debater, f"Agent {debater}", number, (number + 1) // 2, reply, stance, "Words.",
        tuple(Quote("q", status) for status in quotes), points, confidence,
    )  # fmt: skip


POINT = Point(0, "contradicted", 0, 1, "T", "contradicted", "e", "x", 0.9)
DEBATE = Progress(
    turns=[
        turn(1, "Ada", "agree", "supported", "verified", confidence=0.6),
        turn(2, "Ben", "deny", "hallucinated", "verified", "fuzzy", points=(POINT,)),
        turn(3, "Ada", "deny", "hallucinated", "not_found", confidence=0.9),
        turn(4, "Ben", "agree", "hallucinated"),
    ],
    reached_consensus=True,
    judgement=Judgement(
        "Judge", "hallucinated", "Text.", p=0.8,
        readers=(
            ReaderView("Value checker", 0, "hallucinated"),
            ReaderView("Entailment reader", 0, "supported"),
            ReaderView("Value checker", 1, "unclear"),
            ReaderView("Entailment reader", 1, "unclear"),
        ),
    ),
)  # fmt: skip


def test_the_schema_is_this_one() -> None:
    """Another meaning of a name, another name or order is another schema number."""
    assert FEATURES_SCHEMA == 1
    assert DEBATE_NAMES == (
        "turns", "rounds", "critiques", "critique_count", "revisions", "revised_towards",
        "quotes", "verified", "fuzzy", "not_found", "agreement", "opening_agreement",
        "reached_consensus", "confidence", "spread", "contradicted", "carried", "missing",
        "readers_apart", "statements", "judge_p",
    )  # fmt: skip


def test_a_debate_in_numbers() -> None:
    found = features_of(DEBATE)
    assert (found.turns, found.rounds) == (4, 2)
    assert (found.critiques, found.critique_count) == (0.5, 2)
    assert (found.revisions, found.revised_towards) == (1, 2), "Ada went all the way over"
    assert (found.quotes, found.verified, found.fuzzy, found.not_found) == (4, 0.5, 0.25, 0.25)
    assert (found.agreement, found.opening_agreement, found.reached_consensus) == (1.0, 0.5, 1.0)
    assert found.confidence == 0.75
    assert math.isclose(found.spread, 0.3)
    assert (found.contradicted, found.carried, found.missing) == (1.0, 0.0, 0.0)
    assert found.readers_apart == 0.5
    assert found.judge_p == 0.8


def test_what_is_not_known_is_no_number() -> None:
    found = features_of(Progress())
    unknown = {name for name in DEBATE_NAMES if math.isnan(getattr(found, name))}
    assert {"critiques", "verified", "agreement", "confidence", "judge_p"} <= unknown
    assert (found.turns, found.quotes, found.revisions, found.statements) == (0, 0, 0, 0)


def test_an_assigned_side_is_no_stance() -> None:
    turns = [replace(turn, assigned=turn.stance) for turn in DEBATE.turns]
    found = features_of(Progress(turns=turns))
    assert (found.turns, found.quotes, found.revisions) == (4, 4, 0)
    assert math.isnan(found.agreement)
