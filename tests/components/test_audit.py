"""An audit as it is drawn: every statement a row with its steps, as far as the run has come."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.report import build_report
from components.report_formats import write_markdown
from components.run.audit import (
    build_statement_rows,
    has_audit,
    list_link_targets,
    list_whole_response_calls,
    render_statement_row,
    render_step,
    render_whole_response,
    summarize_statements,
)
from components.run.tool_views import drop_repeated_sources, is_already_shown
from components.widgets.html import HtmlMark, LinkTarget, render_marked_text
from core.schema.events import MemoryEntry, MemoryUpdated, RunStarted, ToolCalled, ToolUse
from core.schema.records import Label, Passage, Plan, Run
from core.schema.run_state import fold_events
from tests.audit.audit_events import CASE, PASSAGE, RESPONSE, SENTENCES, STEPS, begun, told
from tests.components.test_markup import NASTY, bare

DONE = fold_events(told())


def drawn(place: int) -> str:
    """The row of a statement, opened."""
    return render_statement_row(build_statement_rows(DONE)[place], "there", is_over=True)


def test_statements_are_counted_by_label_and_those_not_concluded_apart() -> None:
    first_memory = next(n for n, event in enumerate(STEPS) if event.kind == "memory_updated")
    early = build_statement_rows(fold_events([*begun(), *STEPS[: first_memory + 1]]))
    assert [row.number for row in early] == [1, 2, 3, 4, 5]
    assert summarize_statements(early) == (
        "0 hallucinated · 0 unclear · 1 supported, of 5 statements; 4 not concluded"
    )


def test_a_row_tells_number_words_tools_verdict_and_evidence() -> None:
    shown = drawn(1)
    line = shown.partition("</summary>")[0]
    assert ">2<" in line
    assert ">Monday</mark>" in line
    assert "translate (off), calendar" in line
    assert "✗ Hallucinated" in line
    assert "98%" in line
    assert "12 March 2024 was a Tuesday." in line


def test_what_says_nothing_to_check_has_no_label() -> None:
    shown = bare(drawn(4))
    assert "Nothing to check" in shown.partition("In memory")[2]
    assert "Unclear" not in shown.partition("In memory")[2]
    assert "Unclear" not in bare(drawn(4).partition("</summary>")[0])
    assert summarize_statements(build_statement_rows(DONE)).endswith(
        "of 5 statements; 1 with nothing to check"
    )
    run = Run("r", CASE.id, CASE.project_id, Plan("audit"), "finished", 0.0)
    report = write_markdown(build_report(run, CASE, DONE, [], None))
    assert "| 5 | What a sight! | Nothing to check |  |" in report


def test_a_row_opens_on_its_steps_memory_and_what_reflection_changed() -> None:
    shown = bare(drawn(3))
    for words in (
        "search",
        "The tool failed. No answer within 10 s.",
        "In memory",
        "It rests on a wrong sum.",
        "Reflection (Reflector (rules))",
        "? Unclear → ✗ Hallucinated It repeats the 6 years of a wrong sum. Because of statement 3.",
    ):
        assert words in shown
    assert "“It states a sum.”" in bare(drawn(2))
    assert "bridge.pdf, p. 2" in bare(drawn(0))
    assert "Read asThe old bridge was opened" in bare(drawn(1))


@pytest.mark.parametrize("outcome", ["off", "failed", "nothing"])
@pytest.mark.parametrize("label", ["supported", "hallucinated"])
def test_a_tool_that_said_nothing_has_no_label(outcome: str, label: Label) -> None:
    use = ToolUse("search", 0, "{}", "{}", outcome, label, "Why.", 0.1)  # type: ignore[arg-type]
    shown = render_step(use)
    assert label.capitalize() not in bare(shown)
    assert "The tool " in shown


def test_the_whole_response_stands_apart_and_tells_the_gravest_first() -> None:
    uses = list_whole_response_calls(DONE)
    assert [use.tool for use in uses] == ["conditions", "code"]
    line = bare(render_whole_response(uses[::-1]).partition("</summary>")[0])
    assert line == "The whole response✗ Hallucinated 20 words were asked for, it has 34."


def test_links_lead_to_the_words_of_the_statement() -> None:
    shown = render_marked_text(RESPONSE, [HtmlMark(0, 60)], list_link_targets(DONE))
    assert bare(shown) == RESPONSE
    for number, words in enumerate(SENTENCES, start=1):
        found = re.search(rf'<span class="cp-part" id="cp-statement-{number}">(.*?)</span>', shown)
        assert found
        assert bare(found[1]) == words


@given(
    st.text(alphabet="ab 北é\u0301👩", max_size=30),
    st.lists(st.tuples(st.integers(-3, 33), st.integers(-3, 33)), max_size=5),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=3),
)
def test_parts_never_change_the_text(
    words: str, parts: list[tuple[int, int]], marks: list[tuple[int, int]]
) -> None:
    own = [LinkTarget(start, end, f"p{number}") for number, (start, end) in enumerate(parts)]
    shown = render_marked_text(words, [HtmlMark(min(place), max(place)) for place in marks], own)
    assert bare(shown) == words
    assert shown.count("<span") == shown.count("</span>")


def test_every_moment_of_a_run_can_be_drawn() -> None:
    events = told()
    for upto in range(len(events) + 1):
        progress = fold_events(events[:upto])
        for row in build_statement_rows(progress):
            assert bare(render_statement_row(row, "", is_over=False))
            assert row.memory is None or row.memory == progress.memory[row.statement.index]
    assert not has_audit(fold_events(begun()))
    assert has_audit(fold_events([*begun(), STEPS[0]]))


def test_a_statement_under_way_says_so_and_after_a_stop_that_it_was_not_checked() -> None:
    (row, *_) = build_statement_rows(fold_events([*begun(), STEPS[2]]))
    assert "checking with search" in render_statement_row(row, "", is_over=False)
    assert "not checked" in render_statement_row(row, "", is_over=True)
    assert "cp-pending" in render_statement_row(row, "", is_over=True)


def test_what_agents_say_is_text() -> None:
    use = ToolUse(
        NASTY, 0, '{"a":"<b>"}', '{"<i>":"<u>"}', "found", "unclear", NASTY, 0.1, thought=NASTY,
        agent=NASTY,
    )  # fmt: skip
    shown = render_step(use)
    for tag in ("<script", "<b", "<i>", "<u>"):
        assert tag not in shown


def test_a_response_of_another_protocol_has_no_audit() -> None:
    progress = fold_events([RunStarted(1.0, CASE, Plan(), ())])
    assert not has_audit(progress)
    assert list_link_targets(progress) == []


def test_uses_and_memory_of_statements_that_are_not_there_yet_wait() -> None:
    called = next(event for event in STEPS if isinstance(event, ToolCalled) and event.use.statement)
    held = next(event for event in STEPS if isinstance(event, MemoryUpdated))
    early = MemoryUpdated(1.0, replace(held.entry, statement=4))
    assert build_statement_rows(fold_events([begun()[0], called, early])) == []


def test_a_statement_that_says_nothing_to_check_is_not_called_unclear() -> None:
    idle = MemoryUpdated(12.0, MemoryEntry(4, "unclear", None, "A cry.", is_checkable=False))
    rows = build_statement_rows(fold_events([*told(), idle]))
    line = render_statement_row(rows[4], "", is_over=True).partition("</summary>")[0]
    assert "– nothing to check" in line
    assert "Unclear" not in line
    assert summarize_statements(rows) == (
        "3 hallucinated · 0 unclear · 1 supported, of 5 statements; 1 with nothing to check"
    )


def searched(text: str, title: str = "bridge.pdf") -> dict[str, str]:
    return {"title": title, "address": "page 2", "text": text}


def row_of(uses: Sequence[ToolUse], *passages: Passage) -> str:
    memory = MemoryEntry(0, "supported", 0.1, "So.", ("search",), tuple(p.id for p in passages))
    first = build_statement_rows(DONE)[0]
    row = replace(first, uses=tuple(uses), memory=memory, passages=passages)
    return bare(render_statement_row(row, "", is_over=True).partition("</summary>")[2])


def step(tool: str, *sources: dict[str, str]) -> ToolUse:
    gave = json.dumps({"finding": "holds", "by": "readers", "sources": sources})
    return ToolUse(tool, 0, "{}", gave, "found", "unclear", "So.", 0.1)


def test_an_opened_row_shows_each_passage_once() -> None:
    """It was found, compared and kept in memory: three times the same words."""
    around = f"Look at it. {PASSAGE.text} It is old."
    shown = row_of(
        [step("search", searched(around)), step("match", searched(PASSAGE.text))], PASSAGE
    )
    assert shown.count(PASSAGE.text) == 1
    assert "Compared (readers) with the 1 place above: the evidence says the same." in shown
    assert "Read, as shown above: bridge.pdf, p. 2" in shown


def test_a_passage_that_no_step_shows_stands_in_memory() -> None:
    shown = row_of([step("search", searched("Something else."))], PASSAGE)
    assert shown.count(PASSAGE.text) == 1
    assert "as shown above" not in shown


def test_what_is_cut_off_above_is_shown_where_it_is_kept() -> None:
    around = "x" * 600 + PASSAGE.text
    assert row_of([step("search", searched(around))], PASSAGE).count(PASSAGE.text) == 1


@given(st.lists(st.lists(st.sampled_from(("a", "ab", "c d", "")), max_size=4), max_size=4))
def test_no_words_of_a_source_are_lost_or_told_twice(steps: list[list[str]]) -> None:
    uses = [step("search", *(searched(text, f"s{n}") for text in texts))
            for n, texts in enumerate(steps)]  # fmt: skip
    kept, shown = drop_repeated_sources(uses)
    before = [text for texts in steps for text in texts if text]
    assert all(is_already_shown(text, shown) for text in before)
    for number, use in enumerate(kept):
        told = [source["text"] for source in json.loads(use.gave)["sources"]]
        earlier = [text for texts in steps[:number] for text in texts if text]
        assert not any(text and any(text in other for other in earlier) for text in told)


def test_a_search_has_no_label_of_its_own() -> None:
    shown = bare(render_step(step("search", searched(PASSAGE.text))))
    assert "Unclear" not in shown
    assert PASSAGE.text in shown


def test_passages_that_no_tool_read_are_not_told_as_what_is_held() -> None:
    worked_out = ToolUse("calendar", 0, "{}", "{}", "found", "supported", "It was a Monday.", 0.1)
    assert PASSAGE.text not in row_of([worked_out], PASSAGE)
