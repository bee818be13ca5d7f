"""Picks tools by rule: first those that read a statement as theirs, then search and comparison.

Source: HaluAgent 2.3 (the tool by the type of a sentence). Where the paper's agent judges by a
language model which type it is, each tool here says by its own deterministic `reads`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from core.audited import ToolUse
from core.builtin.checkable import why_not_checkable
from core.builtin.reading import read
from core.builtin.still_to_find import Rest, denies_no_value, denies_only_parts, rest_of
from core.builtin.thoughts import thoughts_in
from core.concurrency import Stop
from core.records import Case, Statement
from core.roles import AuditView, Step
from core.tools.toolbox import Tool, toolbox

SEARCH, MATCH = "search", "match"
# What can be worked out for certain comes first; tools that are not named follow by their names.
ORDER = ("code", "conditions", "calendar", "calculator")
RULE = """For the response as a whole, then for each statement by itself:
1. A question, greeting, offer or opinion that states no figure is not checked.
2. Every tool that works something out and reads the statement as one of its own is called: code,
conditions, calendar and calculator in this order, then the others by name. One that refutes the
statement ends it.
3. A statement that was worked out to be right and names nobody is done where it is arithmetic
alone or nothing was found for it; else it is compared with that, and wrong only where that has
another value.
4. All else is searched for in the sources and compared with what was found: of a right sum its
result, of what the calendar bears out nothing. Sources that have the parts of a right sum do not
deny its result. A right sum beside a name that neither these nor the question speak of leaves the
statement unclear."""


class BuiltInToolPicker:
    """Built-in tool picker; `tools` are the toolbox unless a test brings its own."""

    name = "Tool picker"
    built_in = True
    rule = RULE

    def __init__(self, tools: Mapping[str, Tool[Any]] | None = None) -> None:
        self._tools = tools

    def next_step(self, view: AuditView, stop: Stop) -> Step:
        """The next tool by rule, or the end."""
        case, statement = view.view.case, view.statement
        if statement is not None and (why := why_not_checkable(case, statement)):
            return Step(why, evidence=why, is_checkable=False)
        thoughts = thoughts_in(case.language)
        wrong = (u for u in view.used if u.label == "hallucinated" and u.tool != MATCH)
        if (refuting := next(wrong, None)) is not None:
            return Step(thoughts.refuted.format(tool=refuting.tool))
        done = {use.tool for use in view.used}
        for tool in self._that_work_out():
            given = None if tool.name in done else _given(tool, statement, case)
            if given is not None and not _is_for_statements(tool, given, view):
                return Step(thoughts.for_tool(tool.name), tool.name, given)
        if statement is None:
            return Step(thoughts.whole_done)
        return self._by_reading(view, statement, done)

    def _that_work_out(self) -> list[Tool[Any]]:
        """Tools that read statements themselves, in the stated order."""
        tools = toolbox() if self._tools is None else self._tools
        own = [t for t in tools.values() if t.reads and not t.is_system]
        own = [tool for tool in own if tool.name not in (SEARCH, MATCH)]
        return sorted(own, key=lambda t: (ORDER.index(t.name) if t.name in ORDER else 99, t.name))

    def _by_reading(self, view: AuditView, statement: Statement, done: set[str]) -> Step:
        tools = toolbox() if self._tools is None else self._tools
        right = [use for use in view.used if use.label == "supported"]
        case, rest = view.view.case, rest_of(statement, view.used)
        thoughts = thoughts_in(case.language)
        names = _names(statement.text, case.language)
        is_told = rest.says_something(case.language) and view.view.evidence.of(statement.index)
        if right and not names and not is_told:
            return Step(thoughts.right)
        if SEARCH in tools and SEARCH not in done and (names or not right):
            why = thoughts.search_rest if right else thoughts.search
            return Step(why, SEARCH, _given(tools[SEARCH], statement, case) or "{}")
        is_found = _is_something_found(view, statement)
        if MATCH in tools and MATCH not in done and is_found:
            why = thoughts.compare_rest if right else thoughts.compare
            return Step(why, MATCH, _compared(tools[MATCH], view, statement, rest))
        if any(use.tool == MATCH and use.label == "hallucinated" for use in view.used):
            return _compared_in_vain(view, statement, rest, right, is_named=bool(names))
        if right and all(use.tool != MATCH for use in right) and names - _known(case):
            words = f"{right[-1].words} Nothing here speaks of the rest."
            return Step(thoughts.rest_unknown, label="unclear", evidence=words)
        return Step(thoughts.done if is_found else thoughts.nothing_found)


def _is_for_statements(tool: Tool[Any], given: str, view: AuditView) -> bool:
    """True where the response as a whole tells the tool nothing that its statements do not.

    They do where the tool reads one of them and is given the same with it beside the words.
    """
    if view.statement is not None:
        return False
    case = view.view.case
    own = _beside(given, case.response)
    for statement in view.view.statements:
        inner = _given(tool, statement, case)
        if inner is not None and own in (
            _beside(inner, w) for w in (statement.text, statement.rewrite)
        ):
            return True
    return False


def _beside(given: str, words: str) -> dict[str, Any]:
    """A tool's input without the field that holds these words."""
    fields: dict[str, Any] = msgspec.json.decode(given)
    return {name: value for name, value in fields.items() if value != words}


def _is_something_found(view: AuditView, statement: Statement) -> bool:
    return bool(view.view.evidence.of(statement.index)) or bool(_texts_found(view))


def _compared_in_vain(
    view: AuditView,
    statement: Statement,
    rest: Rest,
    right: Sequence[ToolUse],
    *,
    is_named: bool,
) -> Step:
    """The end of a statement that the sources do not carry: a right sum may stand all the same."""
    thoughts = thoughts_in(view.view.case.language)
    sources = [p.text for p in view.view.evidence.of(statement.index)] + _texts_found(view)
    use = next(use for use in view.used if use.tool == MATCH)
    stands = denies_only_parts if is_named else denies_no_value
    if right and stands(use, rest, statement, sources):
        words = f"{right[-1].words} The sources have no other value."
        return Step(thoughts.not_denied, label="supported", evidence=words)
    return Step(thoughts.denied)


def _compared(tool: Tool[Any], view: AuditView, statement: Statement, rest: Rest) -> str:
    """The input of the comparison: with the case's own passages, else with what a search brought.

    What tools have worked out is blank in it: nobody has to have written that. The rest of the
    response is left out: whether statements contradict each other is for the reflector, who sees
    them all.
    """
    given = tool.reads(statement, view.view.case) if tool.reads else None
    if given is None:
        return "{}"
    fields = msgspec.to_builtins(given)
    if tool.about in fields:
        fields[tool.about] = rest.text
    if "before" in fields:
        fields["before"] = ""
    if "context" in fields and not view.view.evidence.of(statement.index):
        fields["context"] = "\n".join(_texts_found(view))
    return msgspec.json.encode(fields).decode()


def _texts_found(view: AuditView) -> list[str]:
    """What the searches for this statement brought."""
    texts: list[str] = []
    for use in view.used:
        if use.tool == SEARCH and use.outcome == "found":
            gave = msgspec.json.decode(use.gave)
            texts += [s["text"] for s in gave.get("sources", ()) if isinstance(s.get("text"), str)]
    return texts


def _given(tool: Tool[Any], statement: Statement | None, case: Case) -> str | None:
    given = tool.reads(statement, case) if tool.reads else None
    return None if given is None else msgspec.json.encode(given).decode()


def _names(text: str, language: str) -> set[str]:
    """The words of all names in the text, as they are compared."""
    units = read(text, language).units
    return {word for unit in units if unit.kind == "name" for word in unit.words}


def _known(case: Case) -> set[str]:
    """Words of the question: whom it names, the answer may name without a source."""
    return {word for unit in read(case.question, case.language).units for word in unit.words}
