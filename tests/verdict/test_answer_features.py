"""A debate and its answers in numbers: schemas whose names, order and meaning stand still."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from core.schema.records import (
    DebatePoint,
    Judgement,
    Quote,
    QuoteStatus,
    ReaderStance,
    Stance,
    Turn,
    TurnReply,
)
from core.schema.run_state import RunState
from core.verdict.consensus_weights import (
    ANSWER_FEATURES,
    DEBATE_FEATURES,
    FEATURES_SCHEMA,
    compute_answer_features,
    compute_debate_features,
    group_answers,
)

POINT = DebatePoint(0, "contradicted", 0, 3, "The", "number_or_date", "A", "Another.", 0.9)


def turn(
    number: int,
    debater: str,
    stance: Stance,
    reply: TurnReply = "agree",
    quotes: tuple[QuoteStatus, ...] = (),
    **fields: object,
) -> Turn:
    checked = tuple(Quote("words", status) for status in quotes)
    own = Turn(debater, f"Agent {debater}", number, 1, reply, stance, "Words.", checked)
    return Turn(**(vars(own) | fields))


def is_like(found: Mapping[str, float], **wanted: float) -> bool:
    return {name: found[name] for name in wanted} == pytest.approx(wanted, nan_ok=True)


def test_attacks_on_an_answer_count_for_it_and_say_nothing_of_their_speakers_answer() -> None:
    found = compute_answer_features(
        [
            turn(1, "Ada", "supported", manner="answer"),
            turn(2, "Ben", "hallucinated", manner="answer"),
            turn(3, "Ben", "hallucinated", quotes=("verified",), manner="attack", about="Ada"),
            turn(4, "Cleo", "supported", manner="advise", about="Ada"),
            turn(5, "Ada", "hallucinated", manner="reconsider"),
        ]
    )
    assert list(found) == ["Ada", "Ben"], "Cleo gave advice and no answer"
    assert is_like(found["Ada"], side=1.0, towards=2.0, revisions=1.0, backed=0.0)
    one = math.log(2)
    assert is_like(found["Ada"], attacked=one, helped=one), "Cleo's takes another side than Ada now"
    assert is_like(found["Ada"], agreement=1.0, opening_agreement=0.0)
    assert is_like(found["Ben"], attacked=0.0, quotes=0.0), "its attack's quote is no answer's"


def test_where_turns_name_nobody_a_denial_is_about_the_message_before() -> None:
    found = compute_answer_features(
        [
            turn(1, "Ada", "supported"),
            turn(2, "Ben", "hallucinated", "deny", ("verified", "not_found")),
            turn(3, "Ada", "supported", "deny", ("not_found",)),
        ]
    )
    one = math.log(2)
    assert is_like(found["Ada"], attacked=one, backed=one, denied=0.5)
    assert is_like(found["Ben"], attacked=one, verified=0.5, not_found=0.5, denied=1.0)
    assert is_like(found["Ben"], backed=0.0), "what stands nowhere in the evidence backs nothing"


def test_a_side_that_was_assigned_is_nobodys_answer() -> None:
    turns = [
        turn(1, "Ada", "unclear", manner="answer", confidence=0.4),
        turn(2, "Ada", "hallucinated", manner="compete", assigned="hallucinated"),
        turn(3, "Ben", "supported", manner="compete", assigned="supported"),
    ]
    assert [t.number for t in group_answers(turns)["Ada"]] == [1]
    found = compute_answer_features(turns)
    assert set(found) == {"Ada"}
    assert is_like(found["Ada"], side=0.0, confidence=0.4)
    assert math.isnan(found["Ada"]["agreement"]), "there is nobody to agree with"


def test_points_count_by_what_they_found() -> None:
    points = (POINT, replace(POINT, finding="carried"))
    found = compute_answer_features([turn(1, "Ada", "hallucinated", points=points)])["Ada"]
    assert is_like(found, contradicted=0.5, carried=0.5)
    assert tuple(found) == ANSWER_FEATURES


DEBATE = RunState(
    turns=[
        turn(1, "Ada", "supported", "agree", ("verified",), confidence=0.6),
        turn(2, "Ben", "hallucinated", "deny", ("verified", "fuzzy"), points=(POINT,)),
        turn(3, "Ada", "hallucinated", "deny", ("not_found",), confidence=0.9, round=2),
        turn(4, "Ben", "hallucinated", "agree", round=2),
    ],
    reached_consensus=True,
    judgement=Judgement(
        "Judge", "hallucinated", "Text.", p=0.8,
        readers=(
            ReaderStance("Value checker", 0, "hallucinated"),
            ReaderStance("Entailment reader", 0, "supported"),
            ReaderStance("Value checker", 1, "unclear"),
            ReaderStance("Entailment reader", 1, "unclear"),
        ),
    ),
)  # fmt: skip


def test_the_schema_of_a_debate_is_this_one() -> None:
    """Another meaning of a name, another name or order is another schema number."""
    assert FEATURES_SCHEMA == 1
    assert DEBATE_FEATURES == tuple(compute_debate_features(DEBATE)) == (
        "turns", "rounds", "critiques", "critique_count", "revisions", "revised_towards",
        "quotes", "verified", "fuzzy", "not_found", "agreement", "opening_agreement",
        "reached_consensus", "confidence", "spread", "contradicted", "carried", "missing",
        "readers_apart", "statements", "judge_p",
    )  # fmt: skip


def test_a_debate_in_numbers() -> None:
    assert is_like(
        compute_debate_features(DEBATE),
        turns=4, rounds=2, critiques=0.5, critique_count=2,
        revisions=1, revised_towards=2,  # Ada went all the way over
        quotes=4, verified=0.5, fuzzy=0.25, not_found=0.25,
        agreement=1.0, opening_agreement=0.5, reached_consensus=1.0,
        confidence=0.75, spread=0.3, contradicted=1.0, carried=0.0, missing=0.0,
        readers_apart=0.5, statements=0.0, judge_p=0.8,
    )  # fmt: skip


def test_what_is_not_known_is_no_number() -> None:
    found = compute_debate_features(RunState())
    unknown = {name for name in DEBATE_FEATURES if math.isnan(found[name])}
    assert {"critiques", "verified", "agreement", "confidence", "judge_p"} <= unknown
    assert is_like(found, turns=0, quotes=0, revisions=0, statements=0)


def test_an_assigned_side_is_no_stance() -> None:
    turns = [replace(turn, assigned=turn.stance) for turn in DEBATE.turns]
    assert is_like(
        compute_debate_features(RunState(turns=turns)),
        turns=4,
        quotes=4,
        revisions=0,
        agreement=math.nan,
    )
