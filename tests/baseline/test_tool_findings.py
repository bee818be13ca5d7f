"""What tools find out about cases that bring no evidence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.baseline.judge import (
    BuiltInJudge,
    ToolFinding,
    apply_tools,
    find_tool_finding,
    find_unavailable_tool,
)
from core.runtime.concurrency import StopSignal
from core.schema.records import Case, EvidenceContext, Judgement, Label, UnclearCause
from core.schema.roles import CaseView, JudgeView
from core.store.versions import SEED_VERSION
from core.tools import sandbox
from core.tools.sandbox import explain_unavailable
from core.verdict.classifier import load_classifier
from tests.fakes import make_case, make_view
from tests.needs import need
from tests.readers import word_assessor

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "haluagent"


def found(question: str, response: str, language: str = "en") -> ToolFinding | None:
    return find_tool_finding(Case("c", "p", response, question, language=language), StopSignal())


def test_a_length_that_is_not_kept_says_both_figures() -> None:
    finding = found("Describe the harbour in 10 words.", "Boats come and go with every tide here.")
    assert finding is not None
    assert finding.label == "hallucinated"
    assert finding.p > 0.9
    assert finding.sentence == "10 words were asked for but the answer has 8."
    assert (finding.start, finding.end) == (None, None)


def test_another_condition_refutes_and_does_not_confirm() -> None:
    question = "What are tides? Do not use the word 'moon'."
    broken = found(question, "The moon pulls at the water.")
    assert broken is not None
    assert (broken.label, broken.tool, broken.start) == ("hallucinated", "Conditions", 4)
    assert broken.category == "instruction_not_followed"
    assert found(question, "Something pulls at the water.") is None


def test_a_kept_length_is_a_condition_and_no_answer() -> None:
    finding = found("用六个字描述大海。", "海水又蓝又深。", "zh")
    assert finding is not None
    assert finding.label == "supported"
    assert not finding.is_answer


def test_the_worst_of_several_conditions_decides() -> None:
    question = "Write two sentences, using at most 5 words."
    finding = found(question, "The boats come in. The boats go out.")
    assert finding is not None
    assert finding.label == "hallucinated"
    assert "at most 5 words" in finding.sentence.lower()


def test_a_wrong_date_is_shown_with_the_words_it_is_about() -> None:
    response = "那天是星期五。"
    finding = found("2000年1月1日是星期几？", response, "zh")
    assert finding is not None
    assert (finding.label, finding.tool) == ("hallucinated", "Calendar")
    assert response[finding.start : finding.end] == "星期五"
    assert "Saturday" in finding.sentence


def test_a_right_figure_does_not_carry_a_long_answer() -> None:
    question = "How many days are there between 30 December 2023 and March 1, 2024?"
    short = found(question, "62 days.")
    assert short is not None
    assert (short.label, short.is_answer) == ("supported", True)
    told = "62 days. The king died on the first. The queen went to Rome. Nobody saw her again."
    assert found(question, told) is None
    wrong = found(question, told.replace("62", "64"))
    assert wrong is not None
    assert wrong.label == "hallucinated"


@pytest.mark.parametrize(
    "told", ["62 days. Napoleon died in 1950.", "62 days, and Napoleon died.", "62天，拿破仑死了。"]
)
def test_a_right_figure_carries_nothing_that_is_said_beside_it(told: str) -> None:
    question = "How many days are there between 30 December 2023 and March 1, 2024?"
    assert found(question, told) is None


@pytest.mark.parametrize(
    ("question", "response"),
    [("", "62 days"), ("Who built the tower?", "Stephen Sauvestre."), ("In 5 words?", "  ")],
)
def test_tools_are_silent_where_they_are_not_meant(question: str, response: str) -> None:
    assert found(question, response) is None


@pytest.mark.parametrize(
    ("name", "has"), [("word_cnt_test_100.json", ""), ("translation&date_calculation.json", "天")]
)
def test_every_shared_answer_is_decided_rightly(name: str, has: str) -> None:
    path = DATA / name
    need(path.is_file(), f"the shared set {DATA.name} is not beside this checkout: {name}")
    rows = [row for row in json.loads(path.read_text("utf-8")) if has in row["question"]]
    rows = [row for row in rows if "翻译" not in row["question"]]
    labels = {0: "supported", 1: "hallucinated"}
    wrong = [
        index
        for index, row in enumerate(rows)
        if (finding := found(row["question"], str(row["answer"]), "zh")) is None
        or finding.label != labels[row["judge"]]
    ]
    assert len(rows) >= 50
    assert not wrong


@given(st.text(max_size=120), st.text(max_size=120))
def test_any_question_and_answer_can_be_read(question: str, response: str) -> None:
    for led in (question, f"Write 10 words {question}", f"How many days {question} 2020-01-02"):
        finding = found(led, response)
        assert finding is None or 0.0 < finding.p < 1.0


ADD = "def add(a, b):\n    return a {sign} b\n\nassert add(2, 1) == 3\n"


@pytest.mark.parametrize(("sign", "label"), [("+", "supported"), ("-", "hallucinated")])
def test_code_that_brings_its_checks_is_run(sign: str, label: str) -> None:
    need(not explain_unavailable(), explain_unavailable())
    finding = found("", f"Here it is:\n```python\n{ADD.format(sign=sign)}```\n")
    assert finding is not None
    assert (finding.label, finding.tool, finding.is_answer) == (label, "Code", True)
    assert (finding.p > 0.5) is (label == "hallucinated")


def test_code_is_not_run_where_there_is_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "explain_unavailable", lambda: "The code was not run: no sandbox.")
    case = Case("c", "p", ADD.format(sign="-"))
    assert find_tool_finding(case, StopSignal()) is None
    assert find_unavailable_tool(case) == "The code was not run: no sandbox."
    assert find_unavailable_tool(Case("c", "p", "Two and one make three.")) == ""


@pytest.mark.parametrize(
    ("beside", "label"),
    [
        ("Here is the function, with its test:", "supported"),
        ("Sure! Here's a Python function `add(a, b)`:", "supported"),
        ("## Solution", "supported"),
        ("下面是代码：", "supported"),
        ("The capital of France is Rome.", ""),
        ("Here it is. Napoleon died in 1950:", ""),
        ("This is the fastest way there is.", ""),
        ("Here it is:\n" * 30, ""),
    ],
)
def test_a_run_confirms_code_and_not_what_is_said_beside_it(beside: str, label: str) -> None:
    need(not explain_unavailable(), explain_unavailable())
    right, wrong = (
        found("", f"{beside}\n```python\n{ADD.format(sign=sign)}```\n") for sign in "+-"
    )
    assert (right.label if right else "") == label
    assert wrong is not None
    assert wrong.label == "hallucinated"


def test_haluagents_code_answers_are_all_told_apart() -> None:
    need(DATA.is_dir(), f"There are no shared data at {DATA}.")
    need(not explain_unavailable(), explain_unavailable())
    (path,) = DATA.glob("*humaneval*.json")
    rows = json.loads(path.read_text(encoding="utf-8"))
    told = [found(row["question"], row["answer"], "zh") for row in rows]
    assert [finding.label if finding else "" for finding in told] == [
        "hallucinated" if row["judge"] else "supported" for row in rows
    ]


NO_EVIDENCE = Judgement(
    "Judge", "unclear", "No verdict.", cause="no_evidence", cause_words="There is none."
)
DAYS = "How many days are there between 30 December 2023 and March 1, 2024?"
TEN_WORDS = "Describe the harbour in ten words."
KEPT = "Boats come and go with every single tide here, slowly."
TOO_SHORT = "Boats come and go."


def seen(question: str, response: str) -> CaseView:
    return make_view(replace(make_case(response), question=question), ())


def said(label: Label, cause: UnclearCause | None = None) -> Judgement:
    return Judgement("Judge", label, "As read.", cause=cause, p=0.2, statement_labels=(label,))


def test_a_case_for_no_tool_keeps_its_judgement() -> None:
    view = seen("Who built the tower?", "Stephen Sauvestre drew it.")
    assert apply_tools(NO_EVIDENCE, view, StopSignal()) is NO_EVIDENCE


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
    found = apply_tools(NO_EVIDENCE, seen(question, response), StopSignal())
    assert (found.label, found.cause, found.cause_words) == (label, None, "")
    assert found.p is not None
    assert (found.p > 0.5) is (label == "hallucinated")
    assert found.by_tool == ("Calendar" if question == DAYS else "Length")
    classifier = load_classifier(Path("no home: the seed ships"), SEED_VERSION)
    assert classifier.verdict(found).label == label
    assert classifier.verdict(found).rationale == found.prose


def test_wrong_words_are_pointed_at_with_what_they_should_say() -> None:
    response = "I counted. There are 64 days."
    (point,) = apply_tools(NO_EVIDENCE, seen(DAYS, response), StopSignal()).points
    assert response[point.start : point.end] == point.text == "64 days"
    assert (point.evidence, point.category) == ("62 days", "number_or_date")


def test_a_kept_length_says_that_nothing_else_was_checked() -> None:
    found = apply_tools(NO_EVIDENCE, seen(TEN_WORDS, KEPT), StopSignal())
    assert "10 words were asked for and the answer has 10." in found.prose
    assert "Nothing else was checked" in found.prose


@pytest.mark.parametrize("label", ["supported", "unclear", "hallucinated"])
def test_a_broken_length_is_wrong_whatever_the_evidence_says(label: Label) -> None:
    found = apply_tools(said(label), seen(TEN_WORDS, TOO_SHORT), StopSignal())
    assert found.label == "hallucinated"
    assert "10 words were asked for but the answer has 4." in found.prose
    assert found.p is not None
    assert found.p > 0.9


def test_a_kept_length_clears_nothing_that_the_evidence_refutes_or_leaves_open() -> None:
    view = seen(TEN_WORDS, KEPT)
    for judgement in (said("hallucinated"), said("unclear", "not_addressed")):
        assert apply_tools(judgement, view, StopSignal()) is judgement


def test_the_calendar_answers_where_the_evidence_is_silent_but_yields_to_a_refutation() -> None:
    view = seen(DAYS, "62 days.")
    assert apply_tools(said("unclear", "not_addressed"), view, StopSignal()).label == "supported"
    assert apply_tools(said("hallucinated"), view, StopSignal()).label == "hallucinated"


def test_an_image_that_cannot_be_read_still_holds_up_a_right_answer() -> None:
    judgement = said("unclear", "image_not_readable")
    assert apply_tools(judgement, seen(DAYS, "62 days."), StopSignal()) is judgement
    assert apply_tools(judgement, seen(DAYS, "64 days."), StopSignal()).label == "hallucinated"


def test_the_judge_asks_the_tools() -> None:
    judge = BuiltInJudge(word_assessor())
    view = JudgeView(
        seen(DAYS, "64 days."), EvidenceContext((), (), ""), (), reached_consensus=False
    )
    found = judge.decide(view, StopSignal())
    assert found.label == "hallucinated"
    assert "62 days" in found.prose
    assert "calendar" in judge.rule


def test_a_tool_that_is_off_says_so_beside_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "explain_unavailable", lambda: "The code was not run: no sandbox.")
    view = seen("", "def add(a, b):\n    return a - b\n\nassert add(2, 1) == 3\n")
    left_open = apply_tools(NO_EVIDENCE, view, StopSignal())
    assert (left_open.label, left_open.cause) == ("unclear", "no_evidence")
    assert left_open.cause_words == "There is none. The code was not run: no sandbox."
    decided = apply_tools(said("supported"), view, StopSignal())
    assert decided.label == "supported"
    assert decided.prose == "As read. The code was not run: no sandbox."
