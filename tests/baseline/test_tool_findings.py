"""What tools find out about cases that bring no evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.baseline.judge import ToolFinding, tool_finding, what_is_off
from core.runtime.concurrency import Stop
from core.schema.records import Case
from core.tools import sandbox
from core.tools.sandbox import why_off
from tests.needs import need

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "haluagent"


def found(question: str, response: str, language: str = "en") -> ToolFinding | None:
    return tool_finding(Case("c", "p", response, question, language=language), Stop())


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
    "told",
    ["62 days. Napoleon died in 1950.", "62 days, and Napoleon died.", "62天，拿破仑死了。"],
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
    need(not why_off(), why_off())
    finding = found("", f"Here it is:\n```python\n{ADD.format(sign=sign)}```\n")
    assert finding is not None
    assert (finding.label, finding.tool, finding.is_answer) == (label, "Code", True)
    assert (finding.p > 0.5) is (label == "hallucinated")


def test_code_is_not_run_where_there_is_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "why_off", lambda: "The code was not run: no sandbox.")
    case = Case("c", "p", ADD.format(sign="-"))
    assert tool_finding(case, Stop()) is None
    assert what_is_off(case) == "The code was not run: no sandbox."
    assert what_is_off(Case("c", "p", "Two and one make three.")) == ""


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
    need(not why_off(), why_off())
    right, wrong = (
        found("", f"{beside}\n```python\n{ADD.format(sign=sign)}```\n") for sign in "+-"
    )
    assert (right.label if right else "") == label
    assert wrong is not None
    assert wrong.label == "hallucinated"


def test_haluagents_code_answers_are_all_told_apart() -> None:
    need(DATA.is_dir(), f"There are no shared data at {DATA}.")
    need(not why_off(), why_off())
    (path,) = DATA.glob("*humaneval*.json")
    rows = json.loads(path.read_text(encoding="utf-8"))
    told = [found(row["question"], row["answer"], "zh") for row in rows]
    assert [finding.label if finding else "" for finding in told] == [
        "hallucinated" if row["judge"] else "supported" for row in rows
    ]
