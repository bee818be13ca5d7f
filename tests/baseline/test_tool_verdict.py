"""What tools work out decides where the readers cannot, or where it refutes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.baseline.judge import BuiltInJudge, with_tools
from core.runtime.concurrency import Stop
from core.schema.records import Cause, Context, Judgement, Label
from core.schema.roles import CaseView, JudgeView
from core.store.versions import SEED_VERSION
from core.tools import sandbox
from core.verdict.classifier import load_classifier
from tests.fakes import make_case, make_view
from tests.readers import word_assessor

NO_EVIDENCE = Judgement(
    "Judge", "unclear", "No verdict.", cause="no_evidence", cause_words="There is none."
)
DAYS = "How many days are there between 30 December 2023 and March 1, 2024?"
TEN_WORDS = "Describe the harbour in ten words."
KEPT = "Boats come and go with every single tide here, slowly."
TOO_SHORT = "Boats come and go."


def seen(question: str, response: str) -> CaseView:
    return make_view(replace(make_case(response), question=question), ())


def said(label: Label, cause: Cause | None = None) -> Judgement:
    return Judgement("Judge", label, "As read.", cause=cause, p=0.2, statement_labels=(label,))


def test_a_case_for_no_tool_keeps_its_judgement() -> None:
    view = seen("Who built the tower?", "Stephen Sauvestre drew it.")
    assert with_tools(NO_EVIDENCE, view, Stop()) is NO_EVIDENCE


@pytest.mark.parametrize(
    ("question", "response", "label"),
    [
        (DAYS, "62 days.", "supported"),
        (DAYS, "There are 64 days.", "hallucinated"),
        (TEN_WORDS, KEPT, "supported"),
        (TEN_WORDS, TOO_SHORT, "hallucinated"),
    ],
)
def test_without_evidence_a_tool_decides(question: str, response: str, label: Label) -> None:
    found = with_tools(NO_EVIDENCE, seen(question, response), Stop())
    assert (found.label, found.cause, found.cause_words) == (label, None, "")
    assert found.p is not None
    assert (found.p > 0.5) is (label == "hallucinated")
    assert found.by_tool == ("Calendar" if question == DAYS else "Length")
    classifier = load_classifier(Path("no home: the seed ships"), SEED_VERSION)
    assert classifier.verdict(found).label == label
    assert classifier.verdict(found).rationale == found.prose


def test_wrong_words_are_pointed_at_with_what_they_should_say() -> None:
    response = "I counted. There are 64 days."
    (point,) = with_tools(NO_EVIDENCE, seen(DAYS, response), Stop()).points
    assert response[point.start : point.end] == point.text == "64 days"
    assert (point.evidence, point.category) == ("62 days", "number_or_date")


def test_a_kept_length_says_that_nothing_else_was_checked() -> None:
    found = with_tools(NO_EVIDENCE, seen(TEN_WORDS, KEPT), Stop())
    assert "10 words were asked for and the answer has 10." in found.prose
    assert "Nothing else was checked" in found.prose


@pytest.mark.parametrize("label", ["supported", "unclear", "hallucinated"])
def test_a_broken_length_is_wrong_whatever_the_evidence_says(label: Label) -> None:
    found = with_tools(said(label), seen(TEN_WORDS, TOO_SHORT), Stop())
    assert found.label == "hallucinated"
    assert "10 words were asked for but the answer has 4." in found.prose
    assert found.p is not None
    assert found.p > 0.9


def test_a_kept_length_clears_nothing_that_the_evidence_refutes_or_leaves_open() -> None:
    view = seen(TEN_WORDS, KEPT)
    for judgement in (said("hallucinated"), said("unclear", "not_addressed")):
        assert with_tools(judgement, view, Stop()) is judgement


def test_the_calendar_answers_where_the_evidence_is_silent_but_yields_to_a_refutation() -> None:
    view = seen(DAYS, "62 days.")
    assert with_tools(said("unclear", "not_addressed"), view, Stop()).label == "supported"
    assert with_tools(said("hallucinated"), view, Stop()).label == "hallucinated"


def test_an_image_that_cannot_be_read_still_holds_up_a_right_answer() -> None:
    judgement = said("unclear", "image_not_readable")
    assert with_tools(judgement, seen(DAYS, "62 days."), Stop()) is judgement
    assert with_tools(judgement, seen(DAYS, "64 days."), Stop()).label == "hallucinated"


def test_the_judge_asks_the_tools() -> None:
    judge = BuiltInJudge(word_assessor())
    view = JudgeView(seen(DAYS, "64 days."), Context((), (), ""), (), reached_consensus=False)
    found = judge.decide(view, Stop())
    assert found.label == "hallucinated"
    assert "62 days" in found.prose
    assert "calendar" in judge.rule


def test_a_tool_that_is_off_says_so_beside_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "why_off", lambda: "The code was not run: no sandbox.")
    view = seen("", "def add(a, b):\n    return a - b\n\nassert add(2, 1) == 3\n")
    left_open = with_tools(NO_EVIDENCE, view, Stop())
    assert (left_open.label, left_open.cause) == ("unclear", "no_evidence")
    assert left_open.cause_words == "There is none. The code was not run: no sandbox."
    decided = with_tools(said("supported"), view, Stop())
    assert decided.label == "supported"
    assert decided.prose == "As read. The code was not run: no sandbox."
