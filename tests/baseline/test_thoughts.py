"""The built-in tool picker says at each step what it does and why, in the response's language."""

from __future__ import annotations

import re

import pytest

from core.baseline.audit_agents import BuiltInSegmenter
from core.baseline.tool_picker import MATCH, SEARCH, BuiltInToolPicker, thoughts_in
from core.runtime.concurrency import Stop
from core.schema.events import ToolUse
from core.schema.records import Label
from core.schema.roles import AuditView, CaseView, Evidence, Step
from core.tools.registry import toolbox
from tests.fakes import make_case, make_passage

HAN = re.compile(r"[\u4e00-\u9fff]")
TEXTS = {
    "en": ("The Orrin bridge carries a tramway.", "The walk took 2 + 3 = 6 hours."),
    "zh": ("云溪桥上有电车轨道。", "全程用了2 + 3 = 6小时。"),
}


def step(text: str, language: str, *used: tuple[str, Label]) -> Step:
    """The next step for the only statement of a response that has one passage."""
    case = make_case(text, language=language)
    statements = BuiltInSegmenter().segment(case, Stop())
    passage = make_passage(text)
    evidence = Evidence({passage.id: passage}, {0: (passage.id,)})
    view = CaseView(case, statements, evidence, {})
    uses = tuple(ToolUse(tool, 0, "{}", "{}", "found", label, "", 0.0) for tool, label in used)
    return BuiltInToolPicker().next_step(AuditView(view, statements[0], uses, ()), Stop())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_step_of_a_statement_is_told_with_its_reason(language: str) -> None:
    fact, total = TEXTS[language]
    steps = [
        step(total, language),
        step(total, language, ("calculator", "hallucinated")),
        step(fact, language),
        step(fact, language, (SEARCH, "unclear")),
        step(fact, language, (SEARCH, "unclear"), (MATCH, "unclear")),
    ]
    assert [one.tool for one in steps] == ["calculator", "", SEARCH, MATCH, ""]
    thoughts = [one.thought for one in steps]
    assert len(set(thoughts)) == len(thoughts)
    assert all(bool(HAN.search(thought)) == (language == "zh") for thought in thoughts)
    assert "calculator" in thoughts[1], "which tool refuted it"


def test_both_languages_say_it_of_every_tool_that_is_called_by_rule() -> None:
    by_rule = {tool.name for tool in toolbox().values() if tool.reads and not tool.is_system}
    english, chinese = thoughts_in("en"), thoughts_in("zh")
    assert set(english["meant"]) == set(chinese["meant"]) == by_rule - {SEARCH, MATCH}
    assert set(english) == set(chinese)
    for name, words in chinese.items():
        told = words.values() if isinstance(words, dict) else [words]
        assert all(HAN.search(one) for one in told), name
