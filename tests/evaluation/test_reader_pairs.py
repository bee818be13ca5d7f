"""What the entailment reader is trained on: labelled rows, and hard cases made from them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.config import ENCODER_DIR
from core.evaluation.gold import GoldRow
from core.evaluation.reader_near import Near
from core.evaluation.reader_negatives import Maker
from core.evaluation.reader_pairs import (
    CONTRADICTED,
    NOT_ENOUGH,
    NOT_SUPPORTED,
    SUPPORTED,
    Allowed,
    Pair,
    Source,
    joined,
    pair_of,
)
from core.models.encoder import load_encoder
from core.records import Label

EVIDENCE = (
    "The Lira bridge was opened in March 1932 by Anna Kovac. It is 512 m long and carries two "
    "roads. The older Mora bridge was built by Pavel Horn in 1871 and is 340 m long."
)
OTHER = "Goats of the Sava valley graze in herds of 30 and are milked twice a day by Jan Rus."


def pair(statement: str, allowed: tuple[int, int, int], evidence: str = EVIDENCE) -> Pair:
    return Pair(evidence, statement, allowed, 1.0, "own", evidence)


def row(label: Label, **values: str) -> GoldRow:
    return GoldRow("1", "own, line 1", values.get("response", "It is long."), label, "g",
                   question=values.get("question", ""), documents=(EVIDENCE, OTHER))  # fmt: skip


PAIRS = [
    pair("The Lira bridge was opened in March 1932 by Anna Kovac.", SUPPORTED),
    pair("The Lira bridge is 512 m long and the older one is 340 m long.", SUPPORTED),
    pair("The Lira bridge was opened in 1940.", CONTRADICTED),
    pair("The Lira bridge carries trams.", NOT_ENOUGH),
    pair("The goats of Jan Rus graze in herds of 30.", SUPPORTED, OTHER),
]


@pytest.mark.parametrize(
    ("label", "allowed"),
    [("supported", SUPPORTED), ("hallucinated", NOT_SUPPORTED), ("unclear", NOT_ENOUGH)],
)
def test_a_sets_negatives_are_what_its_source_says(
    label: Label, allowed: tuple[int, int, int]
) -> None:
    made = pair_of(row(label), Source("own", 2.0, hallucinated=NOT_SUPPORTED))
    assert made.allowed == allowed
    assert made.evidence == f"{EVIDENCE} {OTHER}"
    assert made.times == 2.0


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (SUPPORTED, SUPPORTED, SUPPORTED),
        (SUPPORTED, NOT_ENOUGH, NOT_ENOUGH),
        (NOT_ENOUGH, NOT_SUPPORTED, NOT_SUPPORTED),
        (NOT_SUPPORTED, CONTRADICTED, CONTRADICTED),
    ],
)
def test_two_halves_are_as_bad_as_the_worse(one: Allowed, other: Allowed, both: Allowed) -> None:
    assert joined(one, other) == joined(other, one) == both


def test_a_question_and_its_answer_are_one_statement() -> None:
    asked = row("supported", question="Who opened it?", response="Anna Kovac")
    made = pair_of(asked, Source("own", 1.0))
    assert made.statement == "Anna Kovac opened it."


def test_the_same_seed_makes_the_same_cases() -> None:
    one, again = (list(Maker(PAIRS, 5).made(60)) for _ in range(2))
    assert one == again
    assert one != list(Maker(PAIRS, 6).made(60))
    assert len({p.name for p in one}) >= 8


def test_a_wrong_value_differs_in_that_value_alone() -> None:
    maker = Maker(PAIRS, 1)
    made = [found for _ in range(40) if (found := maker.other_value(PAIRS[1]))]
    assert made
    for found in made:
        assert found.allowed == CONTRADICTED
        assert found.statement != PAIRS[1].statement
        before, after = PAIRS[1].statement.split(), found.statement.split()
        assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_a_wrong_name_is_no_part_of_the_right_one() -> None:
    maker = Maker(PAIRS, 1)
    made = [found for _ in range(40) if (found := maker.other_name(PAIRS[0]))]
    assert made
    assert all(m.statement != PAIRS[0].statement for m in made)
    assert any("Anna Kovac" not in m.statement for m in made)
    assert {m.allowed for m in made} <= {CONTRADICTED, NOT_SUPPORTED}


def test_evidence_of_another_row_decides_nothing() -> None:
    maker = Maker(PAIRS, 1)
    made = [found for _ in range(30) if (found := maker.beside_the_point(PAIRS[0]))]
    assert made
    assert all(m.allowed == NOT_ENOUGH and m.evidence == OTHER for m in made)


def near_of(pairs: list[Pair]) -> Near:
    return Near(pairs, load_encoder(ENCODER_DIR), 2)


def test_what_a_search_finds_in_other_rows_decides_nothing() -> None:
    boats = "The Lira ferry carries forty cars over the Sava. It is painted green."
    cut = pair("The Lira bridge is 90 m wide.", NOT_ENOUGH, EVIDENCE.split(". ")[0] + ".")
    pairs = [*PAIRS, cut, pair("The ferry is painted green.", SUPPORTED, boats)]
    near = near_of(pairs)
    maker = Maker(pairs, 1, near)
    made = [found for _ in range(20) if (found := maker.retrieved(PAIRS[3]))]
    assert made
    # neither its own evidence nor a part of it, though that is most like it
    assert {m.evidence for m in made} <= {boats, OTHER, f"{boats} {OTHER}", f"{OTHER} {boats}"}
    assert any(boats in m.evidence for m in made)
    assert {m.allowed for m in made} == {NOT_ENOUGH}
    assert {m.statement for m in made} == {PAIRS[3].statement}


def test_sets_of_one_subject_lend_each_other_nothing() -> None:
    covid = replace(PAIRS[3], name="entailment_healthver")
    near = near_of([*PAIRS, replace(covid, evidence="Trams cross the Lira bridge.")])
    assert near.evidence(covid) is None
    found = [near.evidence(PAIRS[3]) or "" for _ in range(20)]
    assert not any("Trams" in text for text in found)


def test_one_bad_half_makes_the_whole_bad() -> None:
    maker = Maker(PAIRS, 1)
    made = [found for _ in range(60) if (found := maker.half_true(PAIRS[0]))]
    by_half = {
        half: {m.allowed for m in made if half in m.statement}
        for half in ("is 340 m long", "in 1940", "carries trams")
    }
    assert by_half["is 340 m long"] == {SUPPORTED}
    assert by_half["in 1940"] == {CONTRADICTED}
    assert by_half["carries trams"] == {NOT_ENOUGH}


def test_other_sentences_around_the_evidence_leave_the_label() -> None:
    maker = Maker(PAIRS, 1)
    made = [found for _ in range(40) if (found := maker.among_others(PAIRS[2]))]
    assert made
    assert all(m.allowed == CONTRADICTED and EVIDENCE in m.evidence for m in made)
    assert any(m.evidence != EVIDENCE for m in made)


def test_a_question_made_of_a_statement_keeps_its_answer_or_gets_a_wrong_one() -> None:
    maker = Maker(PAIRS, 1)
    made = [found for _ in range(60) if (found := maker.asked(PAIRS[0]))]
    right = [m for m in made if m.allowed == SUPPORTED]
    wrong = [m for m in made if m.allowed == CONTRADICTED]
    assert right
    assert wrong
    assert all(m.statement != w.statement for m in right for w in wrong)


def test_a_later_sentence_is_said_of_the_one_the_evidence_opens_with() -> None:
    evidence = (
        "Marta Keller drew maps in Basel for the city. Her brother kept the accounts of the shop. "
        "She left for Turin in 1921 with two of her pupils."
    )
    about = pair("Maps were drawn.", NOT_SUPPORTED, evidence)
    maker = Maker([about, *PAIRS], 3)
    found = [made for _ in range(60) if (made := maker.resolved(about))]
    right = {made.statement for made in found if made.allowed == SUPPORTED}
    assert right == {
        "Marta Keller's brother kept the accounts of the shop.",
        "Marta Keller left for Turin in 1921 with two of her pupils.",
    }
    assert any(made.allowed == CONTRADICTED for made in found)


def test_wrong_cases_are_made_of_supported_pairs_or_of_copied_sentences() -> None:
    beside = pair("The Lira bridge has 40 lamps.", NOT_ENOUGH)
    maker = Maker(PAIRS, 3)
    for way in (maker.other_value, maker.other_name, maker.opposite, maker.denied, maker.asked):
        assert way(beside) is None


def test_a_word_of_a_row_becomes_another_that_the_evidence_does_not_hold() -> None:
    about = pair("The bridge is shut on Mondays.", SUPPORTED, "On Mondays and Fridays it is shut.")
    maker = Maker([about, *PAIRS], 3)
    made = [found for _ in range(30) if (found := maker.other_of_row(about))]
    assert {found.allowed for found in made} == {CONTRADICTED}
    days = {found.statement.split()[-1].rstrip(".") for found in made}
    assert days <= {"Tuesdays", "Wednesdays", "Thursdays", "Saturdays", "Sundays"}
    assert len(days) > 2


def test_a_bound_from_below_becomes_one_from_above() -> None:
    about = pair("It holds up to 300 people.", SUPPORTED, "The hall holds up to 300 people.")
    made = Maker([about, *PAIRS], 3).other_of_row(about)
    assert made is not None
    assert made.allowed == NOT_SUPPORTED
    assert made.statement in {
        f"It holds {bound} 300 people."
        for bound in ("at least", "more than", "over", "no fewer than", "a minimum of")
    }
