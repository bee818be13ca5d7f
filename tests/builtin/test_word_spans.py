"""Marks from word scores beside the debaters' points: what is added, what is left alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from core.builtin.spans import PointSpanExtractor, VotingSpanAdjudicator
from core.builtin.word_spans import (
    READER,
    WHOLE_UP_TO,
    category_of,
    evidence_texts,
    speaks_of,
    word_spans,
)
from core.categories import Category
from core.concurrency import Stop
from core.records import Judgement, Label, Span, Statement, WordScore
from core.roles import WordScorer
from tests.agents.seats import judge_view
from tests.builtin.debates import check
from tests.fakes import make_case, make_passage, make_view

RESPONSE = "The hall opened in 1923. Henrik Dahl built it."
CASE = make_case(RESPONSE)
STATEMENTS = (
    Statement(0, 0, 24, RESPONSE[:24], RESPONSE[:24]),
    Statement(1, 25, 46, RESPONSE[25:], RESPONSE[25:]),
)
PLACES = [(0, 3), (4, 8), (9, 15), (16, 18), (19, 23), (25, 31), (32, 36), (37, 42), (43, 45)]


def scores(**p: float) -> tuple[WordScore, ...]:
    return tuple(WordScore(a, b, p.get(RESPONSE[a:b], 0.1)) for a, b in PLACES)


def judged(*labels: Label, label: Label = "hallucinated") -> Judgement:
    return Judgement("judge", label, "It is so.", statement_labels=labels)


def marked(
    judgement: Judgement, found: Sequence[WordScore], taken: Sequence[Span] = ()
) -> list[str]:
    return [s.text for s in word_spans(CASE, STATEMENTS, judgement, (found, 0.4), taken)]


def test_stretches_from_the_threshold_on_are_marked_with_their_kind_and_mean() -> None:
    found = scores(**{"1923": 0.8, "Henrik": 0.5, "Dahl": 0.7, "built": 0.39})
    spans = word_spans(CASE, STATEMENTS, judged(), (found, 0.4), ())
    assert [(s.text, s.category, s.p, s.source) for s in spans] == [
        ("1923", "number_or_date", 0.8, READER),
        ("Henrik Dahl", "wrong_entity", 0.6, READER),
    ]
    assert all(RESPONSE[s.start : s.end] == s.text for s in spans)


def test_in_what_the_judge_calls_supported_a_word_must_be_wrong_more_likely_than_not() -> None:
    found = scores(**{"1923": 0.6, "hall": 0.45, "Henrik": 0.45})
    assert marked(judged("supported", "hallucinated"), found) == ["1923", "Henrik"]
    assert marked(judged("unclear", "hallucinated"), found) == ["hall", "1923", "Henrik"]


def test_a_debaters_contrast_stands_and_no_words_are_added_beside_it() -> None:
    contrast = Span(19, 23, "1923", 0.9, "number_or_date", "Ada", "1987")
    found = scores(**{"opened": 0.45, "1923": 0.9, "hall": 0.7, "Henrik": 0.45})
    assert marked(judged(), found, [contrast]) == ["Henrik"]


def test_where_the_judge_is_unclear_only_sure_words_are_marked() -> None:
    found = scores(**{"1923": 0.9, "Henrik": 0.5})
    assert marked(judged(label="unclear"), found) == ["1923"]


@pytest.mark.parametrize(
    ("text", "opens", "language", "category"),
    [
        ("in 1923", False, "en", "number_or_date"),
        ("१९२३", False, "hi", "number_or_date"),
        ("Henrik Dahl", False, "en", "wrong_entity"),
        ("Built", True, "en", "not_in_source"),
        ("Built by Dahl", True, "en", "wrong_entity"),
        ("never", False, "en", "contradicted"),
        ("aldrig", False, "sv", "contradicted"),
        ("a wooden roof", False, "en", "not_in_source"),
        ("斯德哥尔摩", False, "zh", "not_in_source"),
    ],
)
def test_the_kind_follows_from_the_words(
    text: str, opens: bool, language: str, category: Category
) -> None:
    assert category_of(text, opens, language) == category


@pytest.mark.parametrize(
    ("label", "p", "is_kept"),
    [
        ("hallucinated", 0.45, True),
        ("hallucinated", 0.2, False),
        ("unclear", 0.55, False),
        ("unclear", 0.65, True),
        ("supported", 0.99, False),
    ],
)
def test_the_readers_words_are_kept_by_verdict_and_score(
    label: Label, p: float, is_kept: bool
) -> None:
    span = Span(19, 23, "1923", p, "number_or_date", READER)
    view = judge_view(make_view(CASE, []))
    ruling = VotingSpanAdjudicator().adjudicate(view, span, label, Stop())
    assert (ruling.kept, ruling.span) == (is_kept, span)


def test_short_sources_are_evidence_as_a_whole_and_long_ones_by_what_was_retrieved() -> None:
    passage = make_passage("It opened in 1987.", before="The hall is old.")
    view = make_view(CASE, [passage])
    whole = replace(view, sources={passage.source_id: "The hall is old. It opened in 1987. More."})
    assert evidence_texts(whole) == ("The hall is old. It opened in 1987. More.",)
    long = replace(view, sources={passage.source_id: "x " * WHOLE_UP_TO})
    assert evidence_texts(long) == ("The hall is old.", "It opened in 1987.")


def test_evidence_about_something_else_says_nothing_of_the_words() -> None:
    assert speaks_of(RESPONSE, ("The hall opened in 1987. Henrik Dahl was there.",), "en")
    assert not speaks_of("Dogs love people.", ("The bridge was opened by the king.",), "en")


def test_the_extractor_scores_every_word_and_none_without_evidence() -> None:
    extractor = PointSpanExtractor()
    assert isinstance(extractor, WordScorer)
    view = make_view(CASE, [make_passage("The hall opened in 1987. Ole Berg built it.")])
    view = replace(view, sources={"facts.txt": "The hall opened in 1987. Ole Berg built it."})
    found = extractor.score_words(view, Stop())
    assert [(s.start, s.end) for s in found] == PLACES
    assert extractor.score_words(replace(view, sources={}), Stop()) == ()


def test_words_that_no_point_names_are_marked_in_a_wrong_answer() -> None:
    """From the outside: the contrast keeps its place and what the evidence says instead."""
    outcome = check(
        "The hall opened in 1923 in Bergen.",
        "The hall opened in 1987 in Bergen. It has a wooden roof.",
        question="When did the hall open?",
    )
    assert outcome.judgement.label == "hallucinated"
    assert outcome.wrong[0] == "1923"
    assert "1987" in outcome.instead[0]
