"""The translate tool: put back unseen, then compared; never without a model."""

from __future__ import annotations

import json

import pytest

from core.runtime.errors import ReplyError
from core.tools.registry import use
from core.tools.text_tools import TRANSLATE as TOOL
from core.tools.text_tools import Translate
from tests.tools.benches import ScriptedAsker, bench

GIVEN = Translate("It leaves before seven.", "Sie fährt nach sieben ab.", "English", "German")
BACK = {"translation": "It leaves after seven."}
WRONG = {
    "reason": "“nach” is after.",
    "same_meaning": False,
    "words": "nach sieben",
    "instead": "vor sieben",
    "p": 0.97,
}


def test_the_first_question_does_not_show_the_text() -> None:
    ask = ScriptedAsker([BACK, WRONG])
    used = use(TOOL, GIVEN, bench(ask))
    first, second = ask.asked
    assert first[0] == "back_translation"
    assert GIVEN.text not in str(first)
    assert first[1]["from_language"] == "German"
    assert second[1]["back"] == "It leaves after seven."
    assert (used.label, used.p, used.instead) == ("hallucinated", 0.97, "vor sieben")
    assert GIVEN.claimed[used.start : used.end] == "nach sieben"
    assert json.loads(used.gave)["back"] == "It leaves after seven."


def test_the_same_meaning_is_supported_and_marks_nothing() -> None:
    right = WRONG | {"same_meaning": True, "p": 0.04}
    used = use(TOOL, GIVEN, bench(ScriptedAsker([BACK, right])))
    assert (used.label, used.p, used.start, used.instead) == ("supported", 0.04, None, "")


def test_it_is_off_without_a_model_and_says_so() -> None:
    used = use(TOOL, GIVEN, bench())
    assert (used.outcome, used.label) == ("off", "unclear")
    assert "needs a language model" in used.words


def test_a_reply_that_cannot_be_used_is_no_label() -> None:
    ask = ScriptedAsker([BACK, ReplyError("Unusable.", reply="?")])
    used = use(TOOL, GIVEN, bench(ask))
    assert (used.outcome, used.label) == ("failed", "unclear")


@pytest.mark.parametrize("name", Translate.__struct_fields__)
def test_what_is_missing_is_named_before_anything_is_asked(name: str) -> None:
    ask = ScriptedAsker([])
    values = {field: getattr(GIVEN, field) for field in Translate.__struct_fields__}
    used = use(TOOL, Translate(**(values | {name: " "})), bench(ask))
    assert used.outcome == "failed"
    assert name in used.words
    assert ask.asked == []
