"""What can be checked, what a tool is thought to be for, and references that are completed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.baseline.segmenter import BuiltInSegmenter
from core.baseline.tool_picker import (
    MATCH_TOOL,
    SEARCH_TOOL,
    BuiltInToolPicker,
    explain_uncheckable,
    load_thoughts,
)
from core.runtime.concurrency import StopSignal
from core.schema.events import ToolUse
from core.schema.records import Label, Statement
from core.schema.roles import AuditView, CaseView, Evidence, ToolStep
from core.tools.registry import load_tools
from tests.fakes import make_case, make_passage
from tests.tools.corpus import table


def why(text: str, language: str = "en") -> str:
    statement = Statement(0, 0, len(text), text, text)
    return explain_uncheckable(replace(make_case(text), language=language), statement)


@pytest.mark.parametrize(*table("checkable: a fact stays one whatever leads up to it"))
def test_a_fact_stays_one_whatever_leads_up_to_it(text: str, language: str) -> None:
    assert not why(text, language)


@pytest.mark.parametrize(*table("checkable: greetings offers opinions and questions state nothing"))
def test_greetings_offers_opinions_and_questions_state_nothing(text: str, language: str) -> None:
    assert why(text, language)


def test_an_opinion_with_a_figure_is_checked() -> None:
    assert not why("I think it is 412 m long.")


HAN = re.compile(r"[\u4e00-\u9fff]")
TEXTS = {
    "en": ("The Orrin bridge carries a tramway.", "The walk took 2 + 3 = 6 hours."),
    "zh": ("云溪桥上有电车轨道。", "全程用了2 + 3 = 6小时。"),
}


def step(text: str, language: str, *used: tuple[str, Label]) -> ToolStep:
    """The next step for the only statement of a response that has one passage."""
    case = make_case(text, language=language)
    statements = BuiltInSegmenter().segment(case, StopSignal())
    passage = make_passage(text)
    evidence = Evidence({passage.id: passage}, {0: (passage.id,)})
    view = CaseView(case, statements, evidence, {})
    uses = tuple(ToolUse(tool, 0, "{}", "{}", "found", label, "", 0.0) for tool, label in used)
    return BuiltInToolPicker().next_step(AuditView(view, statements[0], uses, ()), StopSignal())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_step_of_a_statement_is_told_with_its_reason(language: str) -> None:
    fact, total = TEXTS[language]
    steps = [
        step(total, language),
        step(total, language, ("calculator", "hallucinated")),
        step(fact, language),
        step(fact, language, (SEARCH_TOOL, "unclear")),
        step(fact, language, (SEARCH_TOOL, "unclear"), (MATCH_TOOL, "unclear")),
    ]
    assert [one.tool for one in steps] == ["calculator", "", SEARCH_TOOL, MATCH_TOOL, ""]
    thoughts = [one.thought for one in steps]
    assert len(set(thoughts)) == len(thoughts)
    assert all(bool(HAN.search(thought)) == (language == "zh") for thought in thoughts)
    assert "calculator" in thoughts[1], "which tool refuted it"


def test_both_languages_say_it_of_every_tool_that_is_called_by_rule() -> None:
    by_rule = {tool.name for tool in load_tools().values() if tool.reads and not tool.is_system}
    english, chinese = load_thoughts("en"), load_thoughts("zh")
    assert set(english["meant"]) == set(chinese["meant"]) == by_rule - {SEARCH_TOOL, MATCH_TOOL}
    assert set(english) == set(chinese)
    for name, words in chinese.items():
        told = words.values() if isinstance(words, dict) else [words]
        assert all(HAN.search(one) for one in told), name


def last_of(text: str, language: str) -> tuple[str, str]:
    case = make_case(text, language=language)
    found = BuiltInSegmenter().segment(case, StopSignal())
    assert all(text[s.start : s.end] == s.text for s in found)
    return found[-1].text, found[-1].rewrite


@pytest.mark.parametrize(*table("checkable: references that are completed"))
def test_what_refers_back_is_completed(language: str, text: str, rewrite: str) -> None:
    assert last_of(text, language)[1] == rewrite


@pytest.mark.parametrize(*table("checkable: references that stay"))
def test_what_does_not_stays_as_it_is(language: str, text: str) -> None:
    own, rewrite = last_of(text, language)
    assert rewrite == own


def test_a_chinese_sentence_ends_before_a_digit() -> None:
    case = make_case("它长512米。3 + 4 = 8。所以是8。", language="zh")
    texts = [s.text for s in BuiltInSegmenter().segment(case, StopSignal())]
    assert texts == ["它长512米。", "3 + 4 = 8。", "所以是8。"]


@given(st.text(max_size=120), st.sampled_from(["en", "zh", "de", "fr", "es", "ar"]))
def test_offsets_are_those_of_the_response_whatever_it_says(text: str, language: str) -> None:
    case = make_case(text, language=language)
    end = 0
    for number, statement in enumerate(BuiltInSegmenter().segment(case, StopSignal())):
        assert statement.index == number
        assert end <= statement.start < statement.end <= len(text)
        assert text[statement.start : statement.end] == statement.text
        assert statement.rewrite
        end = statement.end
