"""Groups, scopes, parts played and order: what a sentence's own structure shows."""

from __future__ import annotations

import pytest

from core.builtin.alignment import align, best_clause
from core.builtin.asked import kind_contrasts
from core.builtin.contrast import Contrast, Pair
from core.builtin.groups import groups, preposition
from core.builtin.mixed import mixed_contrasts
from core.builtin.modality import condition_contrasts, hedge_contrasts
from core.builtin.parts_played import converse, order_contrasts, place_contrasts, role_contrasts
from core.builtin.polarity import denials, denials_of
from core.builtin.reading import read


def _pair(claim: str, evidence: str, own_start: int = 0) -> Pair:
    whole = align(read(claim, "en"), read(evidence, "en"))
    return Pair(whole, best_clause(whole), own_start)


def _shown(found: list[Contrast]) -> list[tuple[str, str]]:
    return [(item.claim, item.evidence) for item in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The train leaves at 10:15 and arrives at 12:40.",
         [["train", "leaves", "10:15"], ["arrives", "12:40"]]),
        ("It grew from 2,000 in 1950 to 5,000 in 2000.",
         [["grew", "2,000", "1950"], ["5,000", "2000"]]),
        ("Maria, who was born in Lima, moved to Madrid.",
         [["Maria"], [], ["born", "Lima"], ["moved", "Madrid"]]),
        ("He walked to the market.", [["walked", "market"]]),
        ("", []),
    ],
)  # fmt: skip
def test_a_sentence_falls_into_groups(text: str, expected: list[list[str]]) -> None:
    reading = read(text, "en")
    found = [[reading.units[i].text for i in part.units] for part in groups(reading)]
    assert [part for part in found if part] == [part for part in expected if part]


def test_the_preposition_of_a_unit_is_found_past_articles() -> None:
    reading = read("She flew from the capital to Rome and Oslo.", "en")
    words = {unit.text: preposition(reading, unit) for unit in reading.units}
    assert words["capital"] == "from"
    assert words["Rome"] == "to"
    assert words["Oslo"] == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Neither Tom nor Anna passed.", ["Neither"]),
        ("She failed to pay.", ["failed"]),
        ("She failed the test.", []),
        ("It is not only large.", []),
        ("It didn't open until 1950 and was never closed.", ["n't", "never"]),
    ],
)
def test_denials_are_told_from_words_that_look_like_them(text: str, expected: list[str]) -> None:
    assert [token.text for token in denials(read(text, "en"))] == expected


@pytest.mark.parametrize(
    ("claim", "evidence", "reached"),
    [
        ("Penguins fly.", "Penguins cannot fly but they swim well.", True),
        ("Penguins swim well.", "Penguins cannot fly but they swim well.", False),
        ("He eats fish.", "He eats no meat or fish.", True),
        ("Tom passed.", "Everyone except Tom passed.", True),
        ("Anna passed.", "Everyone except Tom passed, even Anna.", False),
    ],
)
def test_a_denial_reaches_as_far_as_its_scope(claim: str, evidence: str, reached: bool) -> None:
    assert bool(denials_of(_pair(claim, evidence))) is reached


@pytest.mark.parametrize(
    ("claim", "evidence", "expected"),
    [
        ("The train arrives at 10:15.", "The train leaves at 10:15 and arrives at 12:40.",
         [("10:15", "12:40")]),
        ("The train leaves at 10:15.", "The train leaves at 10:15 and arrives at 12:40.", []),
        ("Mozart was born in Vienna.", "Mozart was born in Salzburg and died in Vienna.",
         [("Vienna", "Salzburg")]),
        ("He visited Rome.", "He visited Paris in 1920 and sunny Rome in 1921.", []),
        ("He got 10 mg of aspirin.", "He got 5 mg of aspirin and 10 mg of ibuprofen.",
         [("10 mg", "5 mg")]),
        ("Revenue rose to 10 million.", "Revenue rose from 10 million to 13 million.",
         [("10 million", "13 million")]),
    ],
)  # fmt: skip
def test_a_value_of_another_part_is_contested_with_the_parts_own(
    claim: str, evidence: str, expected: list[tuple[str, str]]
) -> None:
    found = _shown(list(mixed_contrasts(_pair(claim, evidence))))
    assert list(dict.fromkeys(found)) == expected


@pytest.mark.parametrize(
    ("claim", "evidence", "swapped"),
    [
        ("The student praised the teacher.", "The teacher praised the student.", True),
        ("The student was praised by the teacher.", "The teacher praised the student.", False),
        ("Brutus was killed by Caesar.", "Brutus killed Caesar.", True),
        ("Karl married Anna.", "Anna married Karl.", False),
        ("Soup was made by Tom.", "It was made by Eva, Tom and Max as soup.", False),
    ],
)
def test_swapped_parts_are_seen_and_passives_turned(
    claim: str, evidence: str, swapped: bool
) -> None:
    assert bool(list(role_contrasts(_pair(claim, evidence)))) is swapped


def test_converses_say_the_same_the_other_way_round() -> None:
    younger = "Anna is younger than Bob."
    assert converse(_pair("Bob is older than Anna.", younger)) == "comparison"
    assert converse(_pair("Anna is older than Bob.", younger)) == ""
    sold = "Alice sold the house to Bob."
    assert converse(_pair("Bob bought the house.", sold)) == "exchange"


def test_what_comes_first_in_time_is_compared() -> None:
    evidence = "Salmon returned after the weir was removed."
    wrong = _pair("The weir was removed after salmon returned.", evidence)
    right = _pair("After the weir was removed, salmon returned.", evidence)
    assert [item.claim for item in order_contrasts(wrong)] == ["after"]
    assert list(order_contrasts(right)) == []


def test_places_hedges_and_conditions_are_named() -> None:
    place = place_contrasts(_pair("The cat is under the table.", "The cat is on the table."))
    assert _shown(list(place)) == [("under", "on")]
    hedge = hedge_contrasts(_pair("It causes noise.", "It may cause noise."))
    assert _shown(list(hedge)) == [("causes", "may cause")]
    condition = _pair("The match is cancelled.", "If it rains, the match is cancelled.")
    assert [item.evidence for item in condition_contrasts(condition)] == ["If it rains"]
    assert not list(hedge_contrasts(_pair("It may cause noise.", "It may cause noise.")))


def test_an_answer_of_the_wrong_kind_is_named_with_one_of_the_right_kind() -> None:
    question = "How tall is the tower? "
    evidence = "The tower was finished in 1889 and is 330 m tall."
    found = list(kind_contrasts(_pair(question + "1889", evidence, len(question))))
    assert _shown(found) == [("1889", "330 m")]
    assert not list(kind_contrasts(_pair(question + "330 m", evidence, len(question))))
    members = "How many members are there? "
    counted = "The club has 1,889 members and 3 halls."
    assert not list(kind_contrasts(_pair(members + "1889", counted, len(members))))
