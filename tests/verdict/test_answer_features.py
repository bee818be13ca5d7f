"""What an answer looked like in its debate is counted from the turns, whoever spoke them."""

from __future__ import annotations

import math

import pytest

from core.schema.records import Point, Quote, QuoteStatus, Reply, Stance, Turn
from core.verdict.consensus_weights import NAMES, answer_features, answers_in, vector


def turn(
    number: int,
    debater: str,
    stance: Stance,
    reply: Reply = "agree",
    quotes: tuple[QuoteStatus, ...] = (),
    **fields: object,
) -> Turn:
    checked = tuple(Quote("words", status) for status in quotes)
    own = Turn(debater, f"Agent {debater}", number, 1, reply, stance, "Words.", checked)
    return Turn(**(vars(own) | fields))


def test_attacks_on_an_answer_count_for_it_and_say_nothing_of_their_speakers_answer() -> None:
    found = answer_features(
        [
            turn(1, "Ada", "supported", manner="answer"),
            turn(2, "Ben", "hallucinated", manner="answer"),
            turn(3, "Ben", "hallucinated", quotes=("verified",), manner="attack", about="Ada"),
            turn(4, "Cleo", "supported", manner="advise", about="Ada"),
            turn(5, "Ada", "hallucinated", manner="reconsider"),
        ]
    )
    assert list(found) == ["Ada", "Ben"], "Cleo gave advice and no answer"
    ada, ben = found["Ada"], found["Ben"]
    assert (ada.side, ada.towards, ada.revisions) == (1.0, 2.0, 1.0)
    assert ada.attacked == pytest.approx(math.log(2)), "Cleo's takes another side than Ada does now"
    assert ada.backed == 0.0
    assert ada.helped == pytest.approx(math.log(2))
    assert (ben.attacked, ben.quotes) == (0.0, 0.0), "its attack's quote is not its answer's"
    assert (ada.agreement, ada.opening_agreement) == (1.0, 0.0)


def test_where_turns_name_nobody_a_denial_is_about_the_message_before() -> None:
    found = answer_features(
        [
            turn(1, "Ada", "supported"),
            turn(2, "Ben", "hallucinated", "deny", ("verified", "not_found")),
            turn(3, "Ada", "supported", "deny", ("not_found",)),
        ]
    )
    assert found["Ada"].attacked == found["Ada"].backed == pytest.approx(math.log(2))
    assert found["Ben"].attacked == pytest.approx(math.log(2))
    assert found["Ben"].backed == 0.0, "what stands nowhere in the evidence backs nothing"
    assert (found["Ben"].verified, found["Ben"].not_found) == (0.5, 0.5)
    assert (found["Ada"].denied, found["Ben"].denied) == (0.5, 1.0)


def test_a_side_that_was_assigned_is_nobodys_answer() -> None:
    turns = [
        turn(1, "Ada", "unclear", manner="answer", confidence=0.4),
        turn(2, "Ada", "hallucinated", manner="compete", assigned="hallucinated"),
        turn(3, "Ben", "supported", manner="compete", assigned="supported"),
    ]
    assert [t.number for t in answers_in(turns)["Ada"]] == [1]
    found = answer_features(turns)
    assert set(found) == {"Ada"}
    assert (found["Ada"].side, found["Ada"].confidence) == (0.0, 0.4)
    assert math.isnan(found["Ada"].agreement), "there is nobody to agree with"


def test_points_count_by_what_they_found() -> None:
    points = (
        Point(0, "contradicted", 0, 3, "The", "number_or_date", "A", "Another.", 0.9),
        Point(0, "carried", 0, 3, "The", "number_or_date", "The", "The same.", 0.9),
    )
    found = answer_features([turn(1, "Ada", "hallucinated", points=points)])["Ada"]
    assert (found.contradicted, found.carried) == (0.5, 0.5)
    assert len(vector(found)) == len(NAMES)
