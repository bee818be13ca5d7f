"""Statements that hold both what a tool works out and what only the sources can say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.pipeline.review import ReviewResources
from core.runtime.concurrency import StopSignal
from core.schema.records import Plan
from core.schema.roles import AuditView, Roster, ToolStep
from core.schema.run_state import RunState, fold_events
from tests.fakes import case_of, review

LENGTH = "The bridge is 412 m long. It was opened on 4 May 1911."
NAMED = "The Orrin bridge is 412 m long. It was opened on 4 May 1911."
PARTS = "The bridge has a main span of 400 m and an approach of 12 m."
FARES = "A ticket costs 12.50 euros for adults and 6.00 euros for children."
VISITS = "In 2023 the ferries carried 410,000 passengers."
ZH = "桥长412米。桥于1911年5月4日通车。"
FERRY = "The ferry ran from 1998 to 2023."

Audit = Callable[[str, str], RunState]


@pytest.fixture
def audit(resources: ReviewResources, roster: Roster) -> Audit:
    """A whole audit of a claim against one text."""

    def audited(facts: str, claim: str) -> RunState:
        case = case_of(resources.home, claim, ("facts.txt", facts.encode()))
        return fold_events(list(review(case, Plan("audit"), roster, resources, StopSignal())))

    return audited


@pytest.mark.parametrize(
    ("facts", "claim", "label", "marked"),
    [
        (LENGTH, "The bridge is 500 m + 12 m = 512 m long.", "hallucinated", ["512 m"]),
        (LENGTH, "The bridge is 400 m + 12 m = 412 m long.", "supported", []),
        (NAMED, "The Orrin bridge is 500 m + 12 m = 512 m long.", "hallucinated", ["512 m"]),
        (NAMED, "The Orrin bridge is 400 m + 12 m = 412 m long.", "supported", []),
        (ZH, "桥长500米+12米=512米。", "hallucinated", ["512米"]),
        (ZH, "桥长400米+12米=412米。", "supported", []),
        (PARTS, "The bridge is 400 m + 12 m = 412 m long.", "supported", []),
        (VISITS, "So they carried about 1,123 a day (410,000 / 365 = 1,123).", "supported", []),
        (LENGTH, "She has 3 + 4 = 7 apples.", "supported", []),
        (FARES, "A ticket is 12.50 euros, so two cost 2 * 12.50 = 25 euros.", "supported", []),
        (FARES, "Two tickets for adults cost 2 * 12.50 = 25 euros.", "supported", []),
        (LENGTH, "3 + 4 = 7.", "supported", []),
        (ZH, "3+4=7。", "supported", []),
    ],
)  # fmt: skip
def test_of_a_right_sum_the_result_is_held_against_the_sources(
    facts: str, claim: str, label: str, marked: list[str], audit: Audit
) -> None:
    state = audit(facts, claim)
    assert state.memory[0].label == label, state.memory[0].evidence
    assert state.verdict
    assert state.verdict.label == label
    assert [span.text for span in state.spans] == marked


def test_arithmetic_alone_is_compared_with_nothing(audit: Audit) -> None:
    assert [use.tool for use in audit(LENGTH, "3 + 4 = 7.").tool_uses] == ["calculator"]


@pytest.mark.parametrize(
    ("facts", "claim", "label", "marked"),
    [
        (LENGTH, "The bridge was opened on 4 May 1911, which was a Thursday.", "supported", []),
        (LENGTH, "The bridge was opened on 4 May 1911; that day was a Thursday.", "supported", []),
        (LENGTH, "The bridge was opened on 4 May 1911, which was a Friday.", "hallucinated",
         ["Friday"]),
        (LENGTH.replace("1911", "1912"),
         "The bridge was opened on 4 May 1911, which was a Thursday.", "hallucinated",
         ["4 May 1911"]),
        (ZH, "桥于1911年5月4日通车，那天是星期四。", "supported", []),
        (ZH.replace("1911", "1912"), "桥于1911年5月4日通车，那天是星期四。", "hallucinated",
         ["1911年5月4日"]),
        (FERRY, "The ferry ran from 1998 to 2023, which is 25 years.", "supported", []),
    ],
)  # fmt: skip
def test_what_the_calendar_bears_out_is_not_looked_for_in_the_sources(
    facts: str, claim: str, label: str, marked: list[str], audit: Audit
) -> None:
    state = audit(facts, claim)
    assert state.memory[0].label == label, state.memory[0].evidence
    assert [span.text for span in state.spans] == marked


@pytest.mark.parametrize(
    ("facts", "claim", "label"),
    [
        (FERRY, "From 1998 to 2023 are 25 years.", "supported"),
        (FERRY, "From 1998 to 2023 are 35 years.", "hallucinated"),
        (LENGTH, "Between 1998 and 2023 there are 35 years.", "hallucinated"),
        (FERRY, "从1998年到2023年是25年。", "supported"),
        (FERRY, "从1998年到2023年共35年。", "hallucinated"),
    ],
)
def test_years_between_two_others_are_the_calendar_s(
    facts: str, claim: str, label: str, audit: Audit
) -> None:
    state = audit(facts, claim)
    assert (state.tool_uses[0].tool, state.tool_uses[0].label) == ("calendar", label)
    assert state.memory[0].label == label
    assert "25 years" in state.memory[0].evidence


def test_no_word_is_marked_in_what_is_left_open(audit: Audit) -> None:
    facts = (
        "The Velmora Ferry Company was founded on 14 March 1998 in Sarnby. It runs four ferries. "
        "The crossing from Sarnby to Grey Island takes 50 minutes."
    )
    claim = "It runs five ferries. The sea around Grey Island is home to a colony of 2,000 seals."
    state = audit(facts, claim)
    assert [entry.label for _, entry in sorted(state.memory.items())] == [
        "hallucinated",
        "unclear",
    ]
    open_one = state.statements[1]
    assert state.spans
    assert all(span.end <= open_one.start for span in state.spans)


def test_what_goes_to_debate_is_what_is_still_to_be_found(
    resources: ReviewResources, roster: Roster
) -> None:
    claim = "The Orrin bridge is 500 m + 12 m = 512 m long."
    case = case_of(resources.home, claim, ("facts.txt", NAMED.encode()))
    state = fold_events(list(review(case, Plan("audit"), roster, resources, StopSignal())))
    points = [point.text for turn in state.turns for point in turn.points]
    assert points
    assert "500 m" not in points
    assert "12 m" not in points


class Rewording:
    """Picks as the built-in does, but asks the calculator about words of its own."""

    name = "Rewording picker"
    built_in = False
    rule = "as the test wrote"

    def __init__(self, inner: Roster) -> None:
        self._inner = inner.tool_picker

    def next_step(self, view: AuditView, stop: StopSignal) -> ToolStep:
        step = self._inner.next_step(view, stop)
        if step.tool != "calculator":
            return step
        return replace(step, given='{"text": "It is 500 m + 12 m = 512 m long, they say."}')


def test_places_in_other_words_are_none_in_the_statement(
    resources: ReviewResources, roster: Roster
) -> None:
    claim = "The bridge is 500 m + 12 m = 512 m long."
    case = case_of(resources.home, claim, ("facts.txt", LENGTH.encode()))
    played = replace(roster, tool_picker=Rewording(roster))
    state = fold_events(list(review(case, Plan("audit"), played, resources, StopSignal())))
    given = next(use.given for use in state.tool_uses if use.tool == "match")
    assert claim in given, "nothing is cut out of the statement by another text's places"
