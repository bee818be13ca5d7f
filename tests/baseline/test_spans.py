"""Marks: the judge's points first, scored words where it names none, never in a right statement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.baseline.assessment import category_of
from core.baseline.panel import (
    READER,
    WHOLE_UP_TO,
    PointSpanExtractor,
    ThresholdSpanAdjudicator,
    evidence_texts,
)
from core.runtime.concurrency import Stop
from core.schema.records import Category, Judgement, Label, Point, Span, Statement
from core.schema.roles import CaseView, WordScorer
from tests.agents.seats import judge_view
from tests.fakes import make_case, make_passage, make_view
from tests.readers import word_assessor

RESPONSE = "The hall opened in 1923. Henrik Dahl built it."
SOURCE = "The hall opened in 1987. Ole Berg built it."
CASE = make_case(RESPONSE)
STATEMENTS = (
    Statement(0, 0, 24, RESPONSE[:24], RESPONSE[:24]),
    Statement(1, 25, 46, RESPONSE[25:], RESPONSE[25:]),
)
PLACES = [(0, 3), (4, 8), (9, 15), (16, 18), (19, 23), (25, 31), (32, 36), (37, 42), (43, 45)]
YEAR = Point(0, "contradicted", 19, 23, "1923", "number_or_date", "1987", "", 0.9)


def view() -> CaseView:
    seen = make_view(CASE, [make_passage(SOURCE)])
    return replace(seen, statements=STATEMENTS, sources={"facts.txt": SOURCE})


def judged(
    *labels: Label, label: Label = "hallucinated", points: tuple[Point, ...] = ()
) -> Judgement:
    return Judgement("judge", label, "It is so.", statement_labels=labels, points=points)


def marked(judgement: Judgement) -> list[Span]:
    extractor = PointSpanExtractor(word_assessor())
    return list(extractor.propose(judge_view(view()), judgement, Stop()))


def test_a_point_keeps_its_place_and_what_the_source_says_and_nothing_is_added_beside_it() -> None:
    (span,) = marked(judged("hallucinated", "supported", points=(YEAR,)))
    assert (span.text, span.instead, span.category, span.source) == (
        "1923", "1987", "number_or_date", "judge",
    )  # fmt: skip


def test_wrong_statements_without_a_point_are_marked_by_the_word_scores() -> None:
    spans = marked(judged("hallucinated", "hallucinated", points=(YEAR,)))
    assert [(s.text, s.category, s.source) for s in spans] == [
        ("1923", "number_or_date", "judge"),
        ("Henrik Dahl", "wrong_entity", READER),
    ]
    assert all(RESPONSE[s.start : s.end] == s.text for s in spans)


@pytest.mark.parametrize("other", ["supported", "unclear"])
def test_no_word_of_another_statement_is_marked(other: Label) -> None:
    assert [s.text for s in marked(judged(other, "hallucinated"))] == ["Henrik Dahl"]


@pytest.mark.parametrize("label", ["supported", "unclear"])
def test_nothing_is_marked_where_the_response_is_not_called_wrong(label: Label) -> None:
    assert marked(judged("hallucinated", label=label, points=(YEAR,))) == []


@pytest.mark.parametrize(
    ("text", "opens", "category"),
    [
        ("in 1923", False, "number_or_date"),
        ("१९२३", False, "number_or_date"),
        ("Henrik Dahl", False, "wrong_entity"),
        ("Built", True, "not_in_source"),
        ("Built by Dahl", True, "wrong_entity"),
        ("a wooden roof", False, "not_in_source"),
        ("斯德哥尔摩", False, "not_in_source"),
    ],
)
def test_the_kind_follows_from_the_words(text: str, opens: bool, category: Category) -> None:
    assert category_of(text, opens) == category


@pytest.mark.parametrize("source", [READER, "judge"])
@pytest.mark.parametrize(
    ("label", "p", "is_kept"),
    [("hallucinated", 0.5, True), ("hallucinated", 0.49, False), ("unclear", 0.99, False),
     ("supported", 0.99, False)],
)  # fmt: skip
def test_words_are_kept_by_verdict_and_score(
    label: Label, p: float, is_kept: bool, source: str
) -> None:
    span = Span(19, 23, "1923", p, "number_or_date", source)
    agent = ThresholdSpanAdjudicator(word_assessor())
    ruling = agent.adjudicate(judge_view(make_view(CASE, [])), span, label, Stop())
    assert (ruling.kept, ruling.span) == (is_kept, span)


def test_short_sources_are_evidence_as_a_whole_and_long_ones_by_what_was_retrieved() -> None:
    passage = make_passage("It opened in 1987.", before="The hall is old.")
    view = make_view(CASE, [passage])
    whole = replace(view, sources={passage.source_id: "The hall is old. It opened in 1987. More."})
    assert evidence_texts(whole) == ("The hall is old. It opened in 1987. More.",)
    long = replace(view, sources={passage.source_id: "x " * WHOLE_UP_TO})
    assert evidence_texts(long) == ("The hall is old.", "It opened in 1987.")


def test_the_extractor_scores_every_word_and_none_without_evidence() -> None:
    extractor = PointSpanExtractor(word_assessor())
    assert isinstance(extractor, WordScorer)
    found = extractor.score_words(view(), Stop())
    assert [(s.start, s.end) for s in found] == PLACES
    assert extractor.score_words(replace(view(), sources={}), Stop()) == ()
