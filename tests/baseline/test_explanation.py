"""Explanations: the wrong words, what the source says in their place, and only what it does say."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from core.baseline.assessment import (
    Assessment,
    place_in_response,
    points_of,
    reason_of,
    wrong_words,
)
from core.baseline.entailment import Pair, PairReading, Reader
from core.runtime.concurrency import Stop
from core.schema.records import Point, Statement
from tests.fakes import make_case, make_passage, make_view
from tests.readers import (
    CONTRADICTS,
    NEUTRAL,
    SUPPORTS,
    ScriptedReader,
    WordReader,
    assessor_with,
)


class CorrectedReader(WordReader):
    """Supports only the given claims, contradicts all others."""

    def __init__(self, *claims: str) -> None:
        self._claims = frozenset(claims)

    def read(self, pairs: Sequence[Pair], stop: Stop | None = None) -> list[PairReading]:
        found = super().read(pairs, stop)
        return [
            PairReading(*(SUPPORTS if claim in self._claims else CONTRADICTS), reading.words)
            for (_, claim), reading in zip(pairs, found, strict=True)
        ]


def assessed(claim: str, reader: Reader, *texts: str, question: str = "") -> Assessment:
    passages = [make_passage(t, number=n, source=f"{n}.txt") for n, t in enumerate(texts)]
    view = make_view(make_case(claim, question=question), passages)
    (item,) = assessor_with(reader).assess(view, Stop())
    return item


def explained(claim: str, reader: Reader, *texts: str) -> tuple[tuple[Point, ...], str]:
    item = assessed(claim, reader, *texts)
    points = points_of(item, reader, Stop())
    return points, reason_of(item, points)


@pytest.mark.parametrize(
    ("claim", "text", "wrong", "instead"),
    [
        ("The tower is 512 m tall.", "The tower is 412 m tall.", "512 m", "412 m"),
        ("Lena Berg built the tower.", "Lena Moor built the tower.", "Berg", "Moor"),
        ("The tower is painted red today.", "The tower is painted blue today.", "red", "blue"),
        ("It opened on 4 May 1911.", "It opened on 5 May 1911.", "4 May 1911", "5 May 1911"),
    ],
)
def test_the_source_says_the_other_where_the_corrected_claim_is_borne_out(
    claim: str, text: str, wrong: str, instead: str
) -> None:
    points, reason = explained(claim, CorrectedReader(claim.replace(wrong, instead)), text)
    assert (points[0].text, points[0].evidence, points[0].finding) == (
        wrong, instead, "contradicted",
    )  # fmt: skip
    assert claim[points[0].start : points[0].end] == wrong
    assert points[0].quote is not None
    assert points[0].quote.text == text
    assert reason == f"“{wrong}” is wrong: the source says “{instead}” (“{text}” (0.txt))."


def test_a_figure_of_something_else_is_not_put_in_the_place_of_the_wrong_one() -> None:
    """The reader does not bear out that the tower has 90 floors; 90 are the visitors' years."""
    claim, text = "The tower has 512 floors.", "The tower is tall. Its guide is 90 years old."
    points, reason = explained(claim, CorrectedReader(), text)
    assert [point.evidence for point in points] == [""] * len(points)
    assert {point.finding for point in points} == {"missing"}
    assert "the source says “90" not in reason


def test_what_a_replacement_is_taken_from_is_what_it_is_checked_against() -> None:
    claim = "The tower is 512 m tall."
    reader = ScriptedReader({"412": CONTRADICTS})
    item = assessed(claim, reader, "The tower is 412 m tall.", "Boats are 300 m long.")
    wrong_words(item, reader, Stop())
    corrected = [pair for pair in reader.pairs if pair[1] != claim]
    assert corrected
    assert all(value in evidence for evidence, said in corrected for value in ("412",))
    assert all("300" not in said for _, said in corrected)


def test_a_supported_statement_names_the_passage_and_no_wrong_words() -> None:
    points, reason = explained("The tower is tall.", WordReader(), "The tower is tall.", "Swans.")
    assert [(p.finding, p.evidence) for p in points] == [("carried", "The tower is tall.")]
    assert reason == "The source says so: “The tower is tall.” (0.txt)."


def test_at_most_two_places_are_named_and_none_overlap() -> None:
    claim = "Lena Berg built 9 red towers of glass in 1911."
    points, _ = explained(claim, CorrectedReader(), "Lena Moor built 8 blue huts of wood in 1910.")
    assert 1 <= len(points) <= 2
    spans = sorted((p.start, p.end) for p in points)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))


def test_what_is_open_says_why_and_names_no_words() -> None:
    points, reason = explained(
        "The tower is tall.", ScriptedReader({"": NEUTRAL}), "The tower is old and tall."
    )
    assert points == ()
    assert reason == "The sources neither plainly support nor plainly contradict this."


@pytest.mark.parametrize(
    ("own", "claim", "words", "place"),
    [
        ("It is 5 m and 5 m.", "It is 5 m and 5 m.", (14, 17), (14, 17)),
        ("5 m.", "Is it 5 m? 5 m.", (11, 14), (0, 3)),
        ("It is  5\nm.", "It is 5 m.", (6, 9), (7, 10)),
        ("It is old.", "The tower is old.", (0, 9), None),
    ],
)
def test_words_of_the_claim_are_found_again_in_the_response(
    own: str, claim: str, words: tuple[int, int], place: tuple[int, int] | None
) -> None:
    statement = Statement(0, 100, 100 + len(own), own, claim)
    found = place_in_response(statement, claim, *words)
    assert found == (place and (100 + place[0], 100 + place[1]))
