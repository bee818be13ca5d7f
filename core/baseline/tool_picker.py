"""Picks tools by rule: first those that read a statement as theirs, then search and comparison.

Beside the picker stand its thoughts, which models learn from (HaluAgent 2.4.1), what of a statement
is left once tools have worked out the rest, and which can be checked at all. Source: HaluAgent 2.3;
where the paper asks a language model for the type of a sentence, each tool's `reads` says it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from core.baseline.assessment import NAME, says_something
from core.baseline.wording import RULES
from core.documents.segmentation import query_terms
from core.llm.prompting import prompt_language
from core.runtime.concurrency import Stop
from core.schema.events import ToolUse
from core.schema.records import Case, Statement
from core.schema.roles import AuditView, Step
from core.tools.code import is_code
from core.tools.registry import Tool, toolbox
from core.tools.vocabulary import read_words

SEARCH, MATCH = "search", "match"
# What can be worked out for certain comes first; tools that are not named follow by their names.
ORDER = ("code", "conditions", "calendar", "calculator")


class BuiltInToolPicker:
    """Built-in tool picker; `tools` are the toolbox unless a test brings its own."""

    name = "Tool picker"
    built_in = True
    rule = RULES["tool picker"]

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
            return Step(thoughts["refuted"].format(tool=refuting.tool))
        done = {use.tool for use in view.used}
        tools = toolbox() if self._tools is None else self._tools
        order = {name: place for place, name in enumerate(ORDER)}
        for tool in sorted(tools.values(), key=lambda t: (order.get(t.name, 99), t.name)):
            if not tool.reads or tool.is_system or tool.name in (SEARCH, MATCH):
                continue
            given = None if tool.name in done else _given(tool, statement, case)
            if given is not None and not _is_for_statements(tool, given, view):
                other = thoughts["other"].format(tool=tool.name)
                return Step(thoughts["meant"].get(tool.name, other), tool.name, given)
        if statement is None:
            return Step(thoughts["whole_done"])
        return self._by_reading(view, statement, tools)

    def _by_reading(
        self, view: AuditView, statement: Statement, tools: Mapping[str, Tool[Any]]
    ) -> Step:
        done = {use.tool for use in view.used}
        right = [use for use in view.used if use.label == "supported"]
        case, rest = view.view.case, rest_of(statement, view.used)
        thoughts = thoughts_in(case.language)
        names = _names(statement.text, case.language)
        is_told = rest.says_something(case.language) and view.view.evidence.of(statement.index)
        if right and not names and not is_told:
            return Step(thoughts["right"])
        if SEARCH in tools and SEARCH not in done and (names or not right):
            why = thoughts["search_rest"] if right else thoughts["search"]
            return Step(why, SEARCH, _given(tools[SEARCH], statement, case) or "{}")
        is_found = bool(view.view.evidence.of(statement.index) or _texts_found(view))
        if MATCH in tools and MATCH not in done and is_found:
            why = thoughts["compare_rest"] if right else thoughts["compare"]
            return Step(why, MATCH, _compared(tools[MATCH], view, statement, rest))
        if any(use.tool == MATCH and use.label == "hallucinated" for use in view.used):
            return _compared_in_vain(view, statement, rest, right, is_named=bool(names))
        is_unread = right and all(use.tool != MATCH for use in right)
        if is_unread and names - set(query_terms(case.question, case.language)):
            words = f"{right[-1].words} Nothing here speaks of the rest."
            return Step(thoughts["rest_unknown"], label="unclear", evidence=words)
        return Step(thoughts["done"] if is_found else thoughts["nothing_found"])


def _is_for_statements(tool: Tool[Any], given: str, view: AuditView) -> bool:
    """True where the response as a whole tells the tool nothing that its statements do not.

    They do where the tool reads one of them and is given the same with it beside the words.
    """
    if view.statement is not None:
        return False
    case = view.view.case
    own = _beside(given, case.response)
    return any(
        own in (_beside(inner, statement.text), _beside(inner, statement.rewrite))
        for statement in view.view.statements
        if (inner := _given(tool, statement, case)) is not None
    )


def _beside(given: str, words: str) -> dict[str, Any]:
    """A tool's input without the field that holds these words."""
    fields: dict[str, Any] = msgspec.json.decode(given)
    return {name: value for name, value in fields.items() if value != words}


def _compared_in_vain(
    view: AuditView, statement: Statement, rest: Rest, right: Sequence[ToolUse], *, is_named: bool
) -> Step:
    """The end of a statement that the sources do not carry: a right sum may stand all the same."""
    thoughts = thoughts_in(view.view.case.language)
    sources = [p.text for p in view.view.evidence.of(statement.index)] + _texts_found(view)
    use = next(use for use in view.used if use.tool == MATCH)
    stands = _denies_only_parts if is_named else _denies_no_value
    if right and stands(use, rest, statement, sources):
        words = f"{right[-1].words} The sources have no other value."
        return Step(thoughts["not_denied"], label="supported", evidence=words)
    return Step(thoughts["denied"])


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
    used = [use for use in view.used if use.tool == SEARCH and use.outcome == "found"]
    found = [one for use in used for one in msgspec.json.decode(use.gave).get("sources", ())]
    return [one["text"] for one in found if isinstance(one.get("text"), str)]


def _given(tool: Tool[Any], statement: Statement | None, case: Case) -> str | None:
    given = tool.reads(statement, case) if tool.reads else None
    return None if given is None else msgspec.json.encode(given).decode()


def _names(text: str, language: str) -> set[str]:
    named = (match.group() for match in NAME.finditer(text) if match.start() > 0)
    return {term for name in named for term in query_terms(name, language)}


def thoughts_in(language: str) -> Mapping[str, Any]:
    """The sentences for a response in that language (a BCP 47 tag or `und`).

    `meant` tells of each tool that works something out what it saw there, `other` of any tool that
    is not named. `whole_done` ends the response as a whole, the others after them a statement.
    """
    thoughts: dict[str, Any] = read_words("thoughts")
    return thoughts["zh" if prompt_language(language) == "zh" else "en"]  # type: ignore[no-any-return]


NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
MULTIPLIES = re.compile(r"[*×xX·/÷%^]|\b(?:of|times|by|per)\b|[乘除的]", re.IGNORECASE)
BY_VALUE = frozenset({"number_or_date", "reasoning"})
Place = tuple[int, int]


class _Equation(msgspec.Struct, frozen=True):
    formula: str
    stated: str
    start: int
    end: int
    result: Place
    holds: bool | None = None


class _Point(msgspec.Struct, frozen=True):
    finding: str
    start: int
    end: int
    category: str = ""
    evidence: str = ""


class _Told(msgspec.Struct, frozen=True):
    """What of a tool's work is asked for here; all else in it is left aside."""

    text: str = ""
    equations: tuple[_Equation, ...] = ()
    follows: tuple[Place, ...] = ()
    points: tuple[_Point, ...] = ()
    readers: tuple[object, ...] = ()
    finding: str = ""


DECODER = msgspec.json.Decoder(_Told)


@dataclass(frozen=True)
class Sum:
    """A right sum: the numbers it is made of and those of its result, as they are written.

    Where it `is_scaled` it multiplies or divides: what comes of it is nothing of the kind of its
    parts, which therefore cannot stand in its place.
    """

    numbers: frozenset[str]
    value: frozenset[str]
    is_scaled: bool


@dataclass(frozen=True)
class Rest:
    """The statement's `text` with blanks for what is not to be looked for, and its right sums."""

    text: str
    sums: tuple[Sum, ...] = ()

    def says_something(self, language: str) -> bool:
        """True where it has words beside its numbers and dates: pure arithmetic has none."""
        return any(term[0].isalpha() and len(term) > 1 for term in query_terms(self.text, language))


def rest_of(statement: Statement, used: Sequence[ToolUse]) -> Rest:
    """What is left of the statement after the tools that were used for it."""
    text, sums = statement.text, []
    for use in used:
        if use.outcome != "found" or _decoded(use.given).text != statement.text:
            continue
        told = _decoded(use.gave)
        for place in told.follows:
            text = _blanked(text, place)
        for one in told.equations:
            stated = _place_of_result(one, statement.text) if one.holds else None
            if stated is not None:
                text = _blanked(_blanked(text, (one.start, stated[0])), (stated[1], one.end))
                made, value = (frozenset(NUMBER.findall(t)) for t in (one.formula, one.stated))
                sums.append(Sum(made, value, MULTIPLIES.search(one.formula) is not None))
    return Rest(text, tuple(sums))


def _denies_no_value(
    use: ToolUse, rest: Rest, statement: Statement, sources: Sequence[str]
) -> bool:
    """True where the comparison found no other value in the sources in place of the statement's.

    A part of the sum itself is no other value. Who compares without naming words, as a language
    model does, is taken at its word.
    """
    told = _decoded(use.gave)
    if not told.readers:
        return told.finding != "contradicted"
    against = [p for p in told.points if p.finding == "contradicted" and p.category in BY_VALUE]
    return all(_is_part(point, rest, statement, sources) for point in against)


def _denies_only_parts(
    use: ToolUse, rest: Rest, statement: Statement, sources: Sequence[str]
) -> bool:
    """True where nothing is held against the statement but results whose parts the sources have."""
    against = [point for point in _decoded(use.gave).points if point.finding != "carried"]
    return bool(against) and all(_is_part(p, rest, statement, sources) for p in against)


def _is_part(point: _Point, rest: Rest, statement: Statement, sources: Sequence[str]) -> bool:
    """True for a result that the sources have in parts, and nothing but parts in its place.

    What a product is made of is told in the sources or not; beside it they may tell other prices.
    """
    start, end = point.start - statement.start, point.end - statement.start
    said = frozenset(NUMBER.findall(statement.text[max(0, start) : end]))
    given = {number for text in sources for number in NUMBER.findall(text)}
    instead = set(NUMBER.findall(point.evidence)) if point.finding == "contradicted" else set()
    own = [one for one in rest.sums if said <= one.value]
    for one in own:
        # “2” stands somewhere in most texts.
        telling = {number for number in one.numbers if len(number) > 1}
        is_told = one.is_scaled and telling and telling <= given
        if is_told or (instead <= one.numbers and (one.numbers <= given or one.is_scaled)):
            return True
    return False


def _place_of_result(one: _Equation, text: str) -> Place | None:
    """Where the result stands with its unit; None for a sum that is told in other words."""
    first, last = one.result
    start = text.find(one.stated, max(one.start, last - len(one.stated)), one.end)
    is_written = one.formula in text[one.start : one.end]
    if not one.stated or not is_written or not 0 <= start <= first:
        return None
    return start, start + len(one.stated)


def _blanked(text: str, place: Place) -> str:
    start, end = max(0, place[0]), min(place[1], len(text))
    return f"{text[:start]}{' ' * (end - start)}{text[end:]}" if start < end else text


def _decoded(told: str) -> _Told:
    """Nothing where it is of another shape: a model may have called the tool in its own way."""
    try:
        return DECODER.decode(told.encode())
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _Told()


QUESTION = re.compile(r"[?？؟][\s\"'”’)）】」]*$")
FIGURE = re.compile(r"\d|[零一二两三四五六七八九十百千万亿]{2,}")
NO_FACT = "It greets, offers, wishes or gives an opinion, and states no fact to check."


def why_not_checkable(case: Case, statement: Statement) -> str:
    """Why none can be checked of it, in a sentence; empty where something can.

    What only leads up to a fact ("Of course, …") leaves it one. An opinion that states a figure or
    names somebody is checked: what it says of them may be a fact that is put carefully.
    """
    text = statement.text.strip()
    if is_code(text):
        return "It is code: running it tells whether it works, comparing its words does not."
    if QUESTION.search(text):
        return "It asks, and states nothing."
    said = text
    while lead := _opening("leads_in", case.language).match(said):
        said = said[lead.end() :]
    if not FIGURE.search(text):
        if not said.strip(" .,!:;…。，！：；") or _opening("greetings", case.language).match(said):
            return NO_FACT
        if _opening("opinions", case.language).match(said) and not _names(said, case.language):
            return NO_FACT
    is_empty = not says_something(statement, case)
    return "It says nothing that could be true or false." if is_empty else ""


@lru_cache(maxsize=64)
def _opening(kind: str, language: str) -> re.Pattern[str]:
    """How a lead, an opener or an opinion begins; in English where the language is unknown."""
    words, end = _openings(kind, language)
    return re.compile(rf"[\W_]*(?:{words}){end}", re.IGNORECASE)


def _openings(kind: str, language: str) -> tuple[str, str]:
    """The language's words of a kind as a pattern, and what ends a word in it."""
    lists = read_words("openings")[kind]
    known = language if language in lists else "en"
    return "|".join(lists[known]), "" if known == "zh" else r"(?![\w-])"


def concludes(text: str, language: str) -> bool:
    """True where the statement says by its words that it follows from others."""
    (opener, end), (total, _) = (_openings(k, language) for k in ("conclusions", "totals"))
    start, end = (r"(?<!\w)", r"(?!\w)") if end else ("", "")
    lead = r"[\W_]*(?:(?:and|und|et|y|e|en|而)\s+)?"
    opens = re.match(rf"{lead}(?:{opener}){end}", text, re.IGNORECASE)
    return bool(opens or re.search(rf"{start}(?:{total}){end}", text, re.IGNORECASE))
