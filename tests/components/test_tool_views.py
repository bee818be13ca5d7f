"""Each tool's own view: what it shows of a sound answer, and that no other answer breaks it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.run.audit import render_step
from components.run.tool_views import MAX_ROWS, TOOL_VIEWS, render_own_view, render_tool_output
from core.runtime.concurrency import StopSignal
from core.schema.events import ToolUse
from core.tools.registry import ToolContext, load_tools, use_tool
from tests.components.test_markup import NASTY, bare

LENGTH = {"kind": "length", "asked": "100 words", "found": "87 words", "holds": False}
DATES = {
    "dates": [
        {"date": "2024-02-28", "weekday": "Wednesday"},
        {"date": "2024-03-12", "weekday": "Tuesday"},
    ],
    "days_between": 13,
    "worked_out": "13 days",
    "said": "12 days",
    "holds": False,
}
CODE = {
    "checks": 3,
    "held": 1,
    "code": "def f(x):\n    return x * 2\nassert f(1) == 2\nassert f(2) == <b>5</b>\n",
    "output": "hello <i>there</i>",
    "error": "AssertionError",
    "error_line": 4,
}
SUMS = [
    {"formula": "3 + 0.5 + 1.5", "stated": "6", "worked_out": "5", "holds": False, "why": ""},
    {"formula": "2 * 3", "stated": "6", "worked_out": "6", "holds": True, "why": ""},
    {"formula": "9 ^ 9 ^ 9", "stated": "1", "worked_out": "", "holds": None, "why": "too large"},
]
SOURCES = [
    {"title": "bridge.pdf", "address": "", "text": "It is 412 m long."},
    {"title": "Bridge", "address": "https://example.org/b?a=1", "text": "A <b>bridge</b>."},
    {"title": "Evil", "address": "javascript:alert(1)", "text": "x"},
]
SOUND: dict[str, dict[str, Any]] = {
    "calculator": {"equations": SUMS},
    "calendar": DATES,
    "code": CODE,
    "conditions": {"conditions": [LENGTH, LENGTH | {"kind": "format", "holds": None}]},
    "match": {"finding": "contradicted", "by": "built-in readers", "sources": SOURCES},
    "search": {"sources": SOURCES, "by": "library"},
    "translate": {"text": "Guten Tag", "claimed": "Good night", "back": "Gute Nacht"},
}


def told(tool: str, gave: object) -> ToolUse:
    return ToolUse(tool, 0, '{"text":"…"}', json.dumps(gave), "found", "unclear", "So.", 0.1)


def view(tool: str) -> str:
    drawn = render_own_view(tool, json.dumps(SOUND[tool]))
    assert drawn is not None
    return drawn


def test_every_view_is_tried_here() -> None:
    assert set(SOUND) == set(TOOL_VIEWS)


def test_what_was_asked_stands_beside_what_was_counted() -> None:
    shown = view("conditions")
    assert "✗ brokenasked: 100 wordsfound: 87 words" in bare(shown)
    assert shown.count('class="cp-length"') == 1, "only a length has a bar"
    assert "width: 79.1%" in shown
    assert 'aria-label="87 words where 100 words was asked for"' in shown
    assert "? cannot be determined" in shown


def test_a_sum_stands_with_the_stated_value_beside_the_right_one() -> None:
    wrong, right, left_open = view("calculator").split('<div class="cp-sum ')[1:]
    assert "3 + 0.5 + 1.5 = 6 ✗" in wrong
    assert "<li>3 + 0.5 = 3.5</li><li>3.5 + 1.5 = 5</li>" in wrong
    assert "It comes to 5." in wrong
    assert "2 * 3 = 6 ✓" in right
    assert "comes to" not in right
    assert "9 ^ 9 ^ 9 = 1 ? not worked out" in left_open
    assert "too large" in left_open


def test_dates_are_marked_in_their_months_with_the_days_between() -> None:
    shown = view("calendar")
    assert "28 February 2024, Wednesday → 12 March 2024, Tuesday: 13 days" in bare(shown)
    assert "The answer says12 days ✗" in bare(shown)
    assert "Worked out13 days" in bare(shown)
    assert shown.count("cp-month-day") == 2
    # A leap year's February begins on a Thursday and has a 29th.
    assert "February 2024MoTuWeThFrSaSu1234" in bare(shown)
    assert "28</strong></td><td>29</td>" in shown


def test_code_shows_the_line_that_failed_as_text() -> None:
    shown = view("code")
    assert "1 of 3 checks passed" in shown
    assert "Error in line 4" in shown
    (wrong,) = [line for line in shown.split("<div") if "cp-code-wrong" in line]
    assert "assert f(2) == &lt;b&gt;5&lt;/b&gt;" in wrong
    assert "hello &lt;i&gt;there&lt;/i&gt;" in shown


def test_a_long_program_is_shown_around_the_line_that_failed() -> None:
    code = "\n".join(f"x = {n}" for n in range(1, 1001))
    shown = render_own_view("code", json.dumps(CODE | {"code": code, "error_line": 700}))
    assert shown
    assert "x = 700<" in shown
    assert "x = 1<" not in shown
    assert "940 more lines are not shown" in shown


def test_only_web_addresses_are_links_and_they_say_that_they_lead_away() -> None:
    shown = view("search")
    assert shown.count("<a ") == 1
    assert 'href="https://example.org/b?a=1"' in shown
    assert "https://example.org/b?a=1 ↗" in bare(shown)
    assert "noopener" in shown
    assert "javascript:alert(1)" in bare(shown)
    assert "A &lt;b&gt;bridge&lt;/b&gt;." in shown


def test_a_comparison_says_in_words_what_it_came_to() -> None:
    assert "Compared (built-in readers): the evidence says otherwise." in bare(view("match"))
    assert "Put backGute Nacht" in bare(view("translate"))


@pytest.mark.parametrize("tool", sorted(TOOL_VIEWS))
def test_views_draw_what_the_real_tools_give(tool: str) -> None:
    """A tool that changes what it gives would else fall back to the plain table unseen."""
    for example in load_tools()[tool].examples:
        found = use_tool(load_tools()[tool], example.given, ToolContext(StopSignal()))
        if found.outcome == "found":
            assert render_own_view(tool, found.gave) is not None, found.gave


any_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["9999-12-31", "0001-01-01", NASTY, "9" * 5000, "\x00", "http://a b"])
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@st.composite
def twisted(draw: st.DrawFn, sound: Any) -> Any:
    """A sound value of which parts are missing, of another kind, or out of every proportion."""
    if draw(st.integers(0, 3)) == 0:
        return draw(any_json)
    if isinstance(sound, dict):
        kept = [name for name in sound if draw(st.integers(0, 4))]
        return {name: draw(twisted(sound[name])) for name in kept}
    if isinstance(sound, list):
        return [draw(twisted(one)) for one in sound] * draw(st.sampled_from([0, 1, 1, 200]))
    return sound


@given(st.sampled_from(sorted(SOUND)).flatmap(lambda t: st.tuples(st.just(t), twisted(SOUND[t]))))
def test_no_answer_breaks_a_view_or_the_page(case: tuple[str, Any]) -> None:
    tool, gave = case
    shown = render_step(told(tool, gave))
    assert "<script" not in shown
    assert shown.count("<div") == shown.count("</div>")
    assert len(shown) < 400_000


@given(st.text(alphabet="abc", max_size=5) | st.sampled_from(sorted(TOOL_VIEWS)), any_json)
def test_any_json_of_any_tool_is_drawn(tool: str, gave: Any) -> None:
    text = json.dumps(gave)
    shown = render_step(ToolUse(tool, 0, text, text, "found", "unclear", "So.", 0.1))
    assert "<script" not in shown
    assert shown.count("<div") == shown.count("</div>")


@pytest.mark.parametrize(
    "gave",
    ["", "not json", "[1]", "null", '{"a":' * 900 + "1" + "}" * 900, '{"a":1e999}', "\ud800"],
)
@pytest.mark.parametrize("tool", ["calendar", "juggler"])
def test_what_is_no_json_object_is_drawn_as_nothing_or_a_table(tool: str, gave: str) -> None:
    render_tool_output(ToolUse(tool, 0, gave, gave, "found", "unclear", "", 0.0))


def test_an_unknown_tool_gets_a_plain_table() -> None:
    shown = render_tool_output(told("juggler", {"balls": 3, "hands": [], "left": True}))
    assert shown.count("<tr>") == 3
    assert bare(shown) == "balls3hands–leftyes"


def test_a_list_of_objects_is_a_table_of_its_own_and_its_rest_is_counted() -> None:
    rows = [{"name": f"n{number}", "is": number} for number in range(100)]
    shown = render_tool_output(told("juggler", {"balls": rows}))
    assert '<th scope="col">name</th><th scope="col">is</th>' in shown
    assert shown.count("<tr>") == 2 + MAX_ROWS
    assert f"and {100 - MAX_ROWS} more" in shown
