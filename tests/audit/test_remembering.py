"""What is held of a statement once its picker has ended."""

from __future__ import annotations

from dataclasses import replace

from core.pipeline.audit_stage import Found, judgement_of
from core.pipeline.audit_steps import concluded
from core.schema.events import ToolUse
from core.schema.records import Label, Statement
from core.schema.roles import CaseView, Evidence, Step
from tests.fakes import make_case

END = Step("Done.")
SEARCHED = ToolUse("search", 0, "{}", "{}", "found", "unclear", "Found 2 places.", 0.1)
FAILED = ToolUse("match", 0, "{}", "{}", "failed", "unclear", "The service is down.", 0.1)


def use(tool: str, label: Label, p: float) -> ToolUse:
    return ToolUse(tool, 0, "{}", "{}", "found", label, f"{tool} says {label}.", 0.1, p=p)


def test_a_search_after_a_comparison_takes_no_label_from_it() -> None:
    held = concluded(0, [use("match", "hallucinated", 0.9), SEARCHED], END)
    assert (held.label, held.p) == ("hallucinated", 0.9)


def test_a_picker_who_shrugs_at_what_was_worked_out_wrong_contests_it() -> None:
    shrug = Step("Who knows.", label="unclear", evidence="Hard to say.")
    assert concluded(0, [use("calculator", "hallucinated", 0.95)], shrug).is_contested
    beside = concluded(0, [use("calculator", "supported", 0.15)], shrug)
    assert (beside.label, beside.is_contested) == ("unclear", False)


def test_a_tool_that_failed_is_told_of_and_is_no_lack_of_evidence() -> None:
    held = concluded(0, [SEARCHED, FAILED], END)
    assert held.label == "unclear"
    assert held.evidence == "Found 2 places. The tool match failed: The service is down."
    whole = Statement(0, 0, 12, "It is a fact", "It is a fact")
    view = CaseView(make_case(whole.text), (whole,), Evidence({}, {}), {})
    told = judgement_of(Found(view, {0: held}, [SEARCHED, FAILED, replace(FAILED, tool="code")]))
    assert "2 calls of “code” and “match” failed" in told.cause_words
