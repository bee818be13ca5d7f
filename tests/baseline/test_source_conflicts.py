"""Passages that contradict each other, in two sources and in one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.baseline.assessment import Assessment, explain_label
from core.documents.segmentation import split_sentences
from core.runtime.concurrency import StopSignal
from core.schema.records import Passage
from tests.fakes import make_case, make_passage, make_view
from tests.readers import CONTRADICTS, NEUTRAL, SUPPORTS, Odds, ScriptedReader, assessor_with


def split_passages(text: str, source: str) -> list[Passage]:
    return [
        make_passage(text[start:end], number=number, source=source)
        for number, (start, end) in enumerate(split_sentences(text, "en"))
    ]


def assess(
    claim: str,
    *sources: str,
    language: str = "en",
    odds: tuple[Odds, Odds] = (SUPPORTS, CONTRADICTS),
    headings: tuple[str, ...] = (),
) -> Assessment:
    """Assess the claim; the reader's odds are those of the first sentence and of all others."""
    passages = [p for n, text in enumerate(sources) for p in split_passages(text, f"{n}.txt")]
    for number, heading in enumerate(headings):
        passages[number] = replace(passages[number], heading=heading)
    reader = ScriptedReader({passages[0].text: odds[0], "": odds[1]})
    view = make_view(make_case(claim, language=language), passages)
    return assessor_with(reader).assess(view, StopSignal())[0]


CONFLICTS = [
    ("en", "It takes 25 minutes.", "The ferry takes 25 minutes.", "The ferry takes 55 minutes."),
    ("en", "The last boat leaves at 21:40.", "The last boat leaves at 21:40.",
     "The last boat leaves at 19:10."),
    ("en", "The hall opened on 3 May 1994.", "The hall opened on 3 May 1994.",
     "The hall opened on June 5, 1996."),
    ("en", "Dogs are allowed on the beach.", "Dogs are allowed on the beach.",
     "Dogs are not allowed on the beach."),
    ("de", "Die Fähre braucht 25 Minuten.", "Die Fähre braucht 25 Minuten.",
     "Die Fähre braucht 55 Minuten."),
    ("de", "Hunde sind am Strand erlaubt.", "Hunde sind am Strand erlaubt.",
     "Hunde sind am Strand nicht erlaubt."),
    ("zh", "渡轮需要25分钟。", "渡轮需要25分钟。", "渡轮需要55分钟。"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "claim", "one", "other"), CONFLICTS)
@pytest.mark.parametrize("is_one_source", [False, True])
def test_same_words_with_other_value_or_negation_are_conflict(
    language: str, claim: str, one: str, other: str, is_one_source: bool
) -> None:
    sources = (f"{one} {other}",) if is_one_source else (one, other)
    found = assess(claim, *sources, language=language, odds=(SUPPORTS, NEUTRAL))
    assert (found.label, found.cause) == ("unclear", "sources_disagree")
    reason = explain_label(found, ())
    assert one in reason
    assert other in reason
    opening = "The source contradicts itself" if is_one_source else "The sources disagree"
    assert reason.startswith(opening)


@pytest.mark.parametrize(
    ("claim", "one", "other"),
    [
        ("The ferry takes 25 minutes.", "The ferry takes 25 minutes.", "The bus takes 55 minutes."),
        ("The ferry takes 25 minutes.", "The ferry takes 25 minutes in summer.",
         "The ferry takes 55 minutes in winter."),
        ("The ferry carried 400 people.", "In 2023 the ferry carried 400 people.",
         "In 2024 the ferry carried 500 people."),
        ("The ferry takes 25 minutes.", "The ferry takes 25 minutes.",
         "The ferry takes 25 to 30 minutes."),
        ("It cost 1.2 million euros.", "It cost 1.2 million euros.", "It cost 1,204,000 euros."),
        ("The hall has 3 floors.", "The hall has 3 floors.", "The hall has 40 rooms."),
        ("The hall opened in 1994.", "The hall opened in 1994.", "The hall opened on 3 May 1994."),
        ("Dogs are allowed.", "Dogs are allowed.", "Cats are not allowed."),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_one_source", [False, True])
def test_other_cases_and_equal_values_are_no_conflict(
    claim: str, one: str, other: str, is_one_source: bool
) -> None:
    sources = (f"{one} {other}",) if is_one_source else (one, other)
    assert assess(claim, *sources, odds=(SUPPORTS, NEUTRAL)).conflict is None


def test_sentence_that_says_more_is_conflict_if_reader_sees_contradiction() -> None:
    sources = ("The bridge is 412 m long.", "According to the annex, the bridge is 512 m long.")
    for odds, is_conflict in ((CONTRADICTS, True), (NEUTRAL, False)):
        for texts in (sources, (" ".join(sources),)):
            found = assess("The bridge is 412 m long.", *texts, odds=(SUPPORTS, odds))
            assert (found.cause == "sources_disagree") == is_conflict


def test_sources_in_other_words_are_conflict_if_reader_sees_contradiction() -> None:
    sources = (
        "The museum was founded in 1904 by nuns.",
        "Founded in 1912, the museum is large.",
    )
    for odds, is_conflict in ((CONTRADICTS, True), (NEUTRAL, False)):
        found = assess("The museum was founded in 1904.", *sources, odds=(SUPPORTS, odds))
        assert (found.cause == "sources_disagree") == is_conflict


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("In 2023 the ferry carried 400 people.", "In 2024 the ferry carried 500 people."),
        ("The train to Bonn takes 2 hours.", "The train to Kiel takes 4 hours."),
        ("Dogs are allowed on the beach.", "Cats are not allowed on the beach."),
    ],
)
def test_sentences_that_differ_in_two_points_are_no_conflict(one: str, other: str) -> None:
    assert assess(one, one, other).conflict is None


def test_sections_of_one_source_may_differ() -> None:
    text = "The ferry takes 25 minutes. The ferry takes 55 minutes."
    claim = "The ferry takes 25 minutes."
    headings = ("Summer", "Winter")
    assert assess(claim, text, odds=(SUPPORTS, NEUTRAL), headings=headings).conflict is None


def test_value_that_no_source_supports_is_no_conflict() -> None:
    sources = ("The ferry takes 25 minutes.", "The ferry takes 55 minutes.")
    assert (
        assess("The ferry takes 40 minutes.", *sources, odds=(CONTRADICTS, CONTRADICTS)).conflict
        is None
    )
