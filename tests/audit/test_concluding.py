"""The judgement of the whole response from its statements and from tools over all of it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from core.pipeline.audit_stage import Found, judgement_of
from core.pipeline.audit_steps import settled
from core.schema.events import Remembered, ToolUse
from core.schema.records import ReaderView, Statement
from core.schema.roles import CaseView, Evidence
from tests.fakes import make_case

RESPONSE = "It was a mild winter. There are 104 days."
CASE = make_case(RESPONSE, question="How many days are there from 2014-02-06 to 2014-05-25?")
MILD, DAYS = RESPONSE[:21], RESPONSE[22:]
STATEMENTS = (Statement(0, 0, 21, MILD, MILD), Statement(1, 22, 41, DAYS, DAYS))
VIEW = CaseView(CASE, STATEMENTS, Evidence({}, {}), {})
BROKEN = ToolUse(
    "calendar", None, "{}", "{}", "found", "hallucinated", "The calendar gives 108 days.", 0.0,
    p=0.94, start=32, end=40, instead="108 days", category="number_or_date",
)  # fmt: skip
OPEN = {i: Remembered(i, "unclear", None, "No tool says anything about it.") for i in (0, 1)}


@pytest.fixture
def found() -> Found:
    """A date that is wrong in the second statement, found over the response as a whole."""
    memory = OPEN | {entry.statement: entry for entry in settled(STATEMENTS, OPEN, [BROKEN])}
    return Found(VIEW, memory, [BROKEN])


def test_an_error_found_over_the_whole_counts_once(found: Found) -> None:
    assert found.memory[1].label == "hallucinated"
    assert judgement_of(found).p == 0.94


def test_it_is_told_once(found: Found) -> None:
    assert judgement_of(found).prose.count("The calendar gives 108 days.") == 1


def test_only_its_words_are_wrong_not_all_of_the_statement(found: Found) -> None:
    assert [point.text for point in judgement_of(found).points] == ["104 days"]


def test_readers_are_told_in_the_order_of_the_statements_whoever_answered_first() -> None:
    seen = [ReaderView("Value checker", index, "unclear") for index in (1, 0)]
    uses = [
        ToolUse("match", r.statement, "{}", json.dumps({"readers": [asdict(r)]}), "found",
                "unclear", "", 0.0)
        for r in seen
    ]  # fmt: skip
    assert judgement_of(Found(VIEW, OPEN, uses)).readers == tuple(reversed(seen))


def test_what_stands_in_no_statement_is_told_and_counted_beside_them(found: Found) -> None:
    length = replace(
        BROKEN, tool="conditions", words="Nine words, not five.", start=None, end=None, p=0.8
    )
    both = judgement_of(replace(found, uses=[BROKEN, length]))
    assert both.prose.startswith("Nine words, not five.")
    assert both.p == pytest.approx(1 - 0.06 * 0.2, abs=1e-4)
