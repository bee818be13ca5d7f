"""The built-in tool picker of an audit: it chooses the next tool for a statement by rule.

Tools whose `reads` accepts the statement come first, then search and comparison. The module also
holds the picker's thoughts, which models learn from (HaluAgent 2.4.1), the part of a statement that
remains once tools have computed the rest, and the test for whether a statement can be checked.
Source: HaluAgent 2.3; the paper asks a language model for the type of a sentence instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from core.baseline.assessment import NAME_PATTERN, has_checkable_content
from core.baseline.wording import AGENT_RULES
from core.documents.segmentation import extract_query_terms
from core.llm.prompting import prompt_language
from core.runtime.concurrency import StopSignal
from core.schema.events import ToolUse
from core.schema.records import Case, Statement
from core.schema.roles import AuditView, ToolStep
from core.tools.code import is_code
from core.tools.registry import Tool, load_tools
from core.tools.vocabulary import load_words

SEARCH_TOOL, MATCH_TOOL = "search", "match"
# Tools whose results are certain come first; the tools not listed here follow in order of name.
TOOL_ORDER = ("code", "conditions", "calendar", "calculator")
NUMBER_PATTERN = re.compile(r"\d+(?:[.,]\d+)*")
MULTIPLICATION = re.compile(r"[*×xX·/÷%^]|\b(?:of|times|by|per)\b|[乘除的]", re.IGNORECASE)
VALUE_CATEGORIES = frozenset({"number_or_date", "reasoning"})
Offsets = tuple[int, int]
QUESTION_END = re.compile(r"[?？؟][\s\"'”’)）】」]*$")
FIGURE_PATTERN = re.compile(r"\d|[零一二两三四五六七八九十百千万亿]{2,}")
NO_FACT = "It greets, offers, wishes or gives an opinion, and states no fact to check."


class BuiltInToolPicker:
    """The rule-based tool picker; `tools` defaults to the toolbox."""

    name = "Tool picker"
    built_in = True
    rule = AGENT_RULES["tool picker"]

    def __init__(self, tools: Mapping[str, Tool[Any]] | None = None) -> None:
        self._tools = tools

    def next_step(self, view: AuditView, stop: StopSignal) -> ToolStep:
        """Return the step that calls the next tool, or the step that ends the statement."""
        case, statement = view.case_view.case, view.statement
        if statement is not None and (why := explain_uncheckable(case, statement)):
            return ToolStep(why, evidence=why, is_checkable=False)
        thoughts = load_thoughts(case.language)
        wrong = (u for u in view.used if u.label == "hallucinated" and u.tool != MATCH_TOOL)
        refuting = next(wrong, None)
        if refuting is not None:
            return ToolStep(thoughts["refuted"].format(tool=refuting.tool))
        done = {use.tool for use in view.used}
        tools = load_tools() if self._tools is None else self._tools
        order = {name: place for place, name in enumerate(TOOL_ORDER)}
        for tool in sorted(tools.values(), key=lambda t: (order.get(t.name, 99), t.name)):
            if not tool.reads or tool.is_system or tool.name in (SEARCH_TOOL, MATCH_TOOL):
                continue
            tool_input = None if tool.name in done else _encode_input(tool, statement, case)
            if tool_input is not None and not _is_covered_by_statements(tool, tool_input, view):
                other = thoughts["other"].format(tool=tool.name)
                return ToolStep(thoughts["meant"].get(tool.name, other), tool.name, tool_input)
        if statement is None:
            return ToolStep(thoughts["whole_done"])
        return self._choose_source_step(view, statement, tools)

    def _choose_source_step(
        self, view: AuditView, statement: Statement, tools: Mapping[str, Tool[Any]]
    ) -> ToolStep:
        done = {use.tool for use in view.used}
        right = [use for use in view.used if use.label == "supported"]
        case, rest = view.case_view.case, find_unchecked_text(statement, view.used)
        thoughts = load_thoughts(case.language)
        names = _name_terms(statement.text, case.language)
        has_evidence = rest.says_something(case.language) and view.case_view.evidence.of(
            statement.index
        )
        if right and not names and not has_evidence:
            return ToolStep(thoughts["right"])
        if SEARCH_TOOL in tools and SEARCH_TOOL not in done and (names or not right):
            why = thoughts["search_rest"] if right else thoughts["search"]
            return ToolStep(
                why, SEARCH_TOOL, _encode_input(tools[SEARCH_TOOL], statement, case) or "{}"
            )
        has_texts = bool(view.case_view.evidence.of(statement.index) or _searched_texts(view))
        if MATCH_TOOL in tools and MATCH_TOOL not in done and has_texts:
            why = thoughts["compare_rest"] if right else thoughts["compare"]
            return ToolStep(
                why, MATCH_TOOL, _comparison_input(tools[MATCH_TOOL], view, statement, rest)
            )
        if any(use.tool == MATCH_TOOL and use.label == "hallucinated" for use in view.used):
            return _end_denied_statement(view, statement, rest, right, is_named=bool(names))
        is_unread = right and all(use.tool != MATCH_TOOL for use in right)
        if is_unread and names - set(extract_query_terms(case.question, case.language)):
            reason = f"{right[-1].words} Nothing here speaks of the rest."
            return ToolStep(thoughts["rest_unknown"], label="unclear", evidence=reason)
        return ToolStep(thoughts["done"] if has_texts else thoughts["nothing_found"])


def _is_covered_by_statements(tool: Tool[Any], whole_input: str, view: AuditView) -> bool:
    """Return True if the tool gains nothing from reading the response as a whole.

    This is so if the tool reads one statement with the same input, apart from the text itself.
    """
    if view.statement is not None:
        return False
    case = view.case_view.case
    whole_fields = _other_fields(whole_input, case.response)
    for statement in view.case_view.statements:
        statement_input = _encode_input(tool, statement, case)
        if statement_input is None:
            continue
        for text in (statement.text, statement.rewrite):
            if _other_fields(statement_input, text) == whole_fields:
                return True
    return False


def _other_fields(tool_input: str, text: str) -> dict[str, Any]:
    """Return a tool's input without the field whose value is `text`."""
    fields: dict[str, Any] = msgspec.json.decode(tool_input)
    return {name: value for name, value in fields.items() if value != text}


def _end_denied_statement(
    view: AuditView,
    statement: Statement,
    rest: UncheckedText,
    right: Sequence[ToolUse],
    *,
    is_named: bool,
) -> ToolStep:
    """Return the last step for a statement that the sources deny; a correct sum may still hold."""
    thoughts = load_thoughts(view.case_view.case.language)
    sources = [p.text for p in view.case_view.evidence.of(statement.index)] + _searched_texts(view)
    use = next(use for use in view.used if use.tool == MATCH_TOOL)
    is_upheld = _denies_only_parts if is_named else _denies_no_value
    if right and is_upheld(use, rest, statement, sources):
        reason = f"{right[-1].words} The sources have no other value."
        return ToolStep(thoughts["not_denied"], label="supported", evidence=reason)
    return ToolStep(thoughts["denied"])


def _comparison_input(
    tool: Tool[Any], view: AuditView, statement: Statement, rest: UncheckedText
) -> str:
    """Return the comparison's input, with the case's passages or else with the search results.

    What tools have computed is blanked out: no source has to state it. The rest of the response is
    left out: the reflector, which sees all statements, checks whether they contradict each other.
    """
    tool_input = tool.reads(statement, view.case_view.case) if tool.reads else None
    if tool_input is None:
        return "{}"
    fields = msgspec.to_builtins(tool_input)
    if tool.about in fields:
        fields[tool.about] = rest.text
    if "before" in fields:
        fields["before"] = ""
    if "context" in fields and not view.case_view.evidence.of(statement.index):
        fields["context"] = "\n".join(_searched_texts(view))
    return msgspec.json.encode(fields).decode()


def _searched_texts(view: AuditView) -> list[str]:
    searches = [use for use in view.used if use.tool == SEARCH_TOOL and use.outcome == "found"]
    outputs = [msgspec.json.decode(use.gave) for use in searches]
    sources = [source for output in outputs for source in output.get("sources", ())]
    return [source["text"] for source in sources if isinstance(source.get("text"), str)]


def _encode_input(tool: Tool[Any], statement: Statement | None, case: Case) -> str | None:
    tool_input = tool.reads(statement, case) if tool.reads else None
    return None if tool_input is None else msgspec.json.encode(tool_input).decode()


def _name_terms(text: str, language: str) -> set[str]:
    names = (match.group() for match in NAME_PATTERN.finditer(text) if match.start() > 0)
    return {term for name in names for term in extract_query_terms(name, language)}


def load_thoughts(language: str) -> Mapping[str, Any]:
    """Return the picker's sentences for a response in `language` (a BCP 47 tag or `und`).

    `meant` has a sentence for each tool that computes something, `other` one for any other tool.
    `whole_done` ends the response as a whole, the keys after it end a statement.
    """
    thoughts: dict[str, Any] = load_words("thoughts")
    return thoughts["zh" if prompt_language(language) == "zh" else "en"]  # type: ignore[no-any-return]


class _Equation(msgspec.Struct, frozen=True):
    formula: str
    stated: str
    start: int
    end: int
    result: Offsets
    holds: bool | None = None


class _Point(msgspec.Struct, frozen=True):
    finding: str
    start: int
    end: int
    category: str = ""
    evidence: str = ""


class _ToolOutput(msgspec.Struct, frozen=True):
    """The fields of a tool's input or output that the picker uses; others are ignored."""

    text: str = ""
    equations: tuple[_Equation, ...] = ()
    follows: tuple[Offsets, ...] = ()
    points: tuple[_Point, ...] = ()
    readers: tuple[object, ...] = ()
    finding: str = ""


OUTPUT_DECODER = msgspec.json.Decoder(_ToolOutput)


@dataclass(frozen=True)
class CorrectSum:
    """A correct sum: the numbers in its formula and in its result, as they are written.

    A sum that `is_scaled` multiplies or divides: its result is a quantity of another kind than its
    parts, so a part cannot stand in for the result.
    """

    numbers: frozenset[str]
    value: frozenset[str]
    is_scaled: bool


@dataclass(frozen=True)
class UncheckedText:
    """A statement's `text` with what needs no source blanked out, and its correct sums."""

    text: str
    sums: tuple[CorrectSum, ...] = ()

    def says_something(self, language: str) -> bool:
        """Return True if it has words besides numbers and dates; pure arithmetic has none."""
        return any(
            term[0].isalpha() and len(term) > 1 for term in extract_query_terms(self.text, language)
        )


def find_unchecked_text(statement: Statement, used: Sequence[ToolUse]) -> UncheckedText:
    """Return what is left of the statement after the tools used on it."""
    text, sums = statement.text, []
    for use in used:
        if use.outcome != "found" or _decode_output(use.given).text != statement.text:
            continue
        output = _decode_output(use.gave)
        for place in output.follows:
            text = _blank_out(text, place)
        for equation in output.equations:
            result = _locate_result(equation, statement.text) if equation.holds else None
            if result is not None:
                text = _blank_out(text, (equation.start, result[0]))
                text = _blank_out(text, (result[1], equation.end))
                numbers = frozenset(NUMBER_PATTERN.findall(equation.formula))
                value = frozenset(NUMBER_PATTERN.findall(equation.stated))
                sums.append(
                    CorrectSum(numbers, value, MULTIPLICATION.search(equation.formula) is not None)
                )
    return UncheckedText(text, tuple(sums))


def _denies_no_value(
    use: ToolUse, rest: UncheckedText, statement: Statement, sources: Sequence[str]
) -> bool:
    """Return True if the comparison found no value in the sources that replaces the statement's.

    A part of the sum itself does not count. The finding is taken as it is from a comparison that
    names no words, such as a language model's.
    """
    output = _decode_output(use.gave)
    if not output.readers:
        return output.finding != "contradicted"
    against = [
        p for p in output.points if p.finding == "contradicted" and p.category in VALUE_CATEGORIES
    ]
    return all(_is_part(point, rest, statement, sources) for point in against)


def _denies_only_parts(
    use: ToolUse, rest: UncheckedText, statement: Statement, sources: Sequence[str]
) -> bool:
    """Return True if the only objections are to results whose parts the sources have."""
    against = [point for point in _decode_output(use.gave).points if point.finding != "carried"]
    return bool(against) and all(_is_part(p, rest, statement, sources) for p in against)


def _is_part(
    point: _Point, rest: UncheckedText, statement: Statement, sources: Sequence[str]
) -> bool:
    """Return True if the sources have the result's parts and offer only parts in its place.

    If the sources have all factors of a product, other values in them, such as prices, may differ.
    """
    start, end = point.start - statement.start, point.end - statement.start
    stated = frozenset(NUMBER_PATTERN.findall(statement.text[max(0, start) : end]))
    source_numbers = {number for text in sources for number in NUMBER_PATTERN.findall(text)}
    replacements = (
        set(NUMBER_PATTERN.findall(point.evidence)) if point.finding == "contradicted" else set()
    )
    sums = [total for total in rest.sums if stated <= total.value]
    for total in sums:
        # A single digit such as “2” occurs in most texts.
        long_numbers = {number for number in total.numbers if len(number) > 1}
        has_factors = total.is_scaled and long_numbers and long_numbers <= source_numbers
        if has_factors or (
            replacements <= total.numbers and (total.numbers <= source_numbers or total.is_scaled)
        ):
            return True
    return False


def _locate_result(equation: _Equation, text: str) -> Offsets | None:
    """Return the result's offsets with its unit; None if the text writes the sum differently."""
    first, last = equation.result
    low = max(equation.start, last - len(equation.stated))
    start = text.find(equation.stated, low, equation.end)
    is_written = equation.formula in text[equation.start : equation.end]
    if not equation.stated or not is_written or not 0 <= start <= first:
        return None
    return start, start + len(equation.stated)


def _blank_out(text: str, place: Offsets) -> str:
    start, end = max(0, place[0]), min(place[1], len(text))
    return f"{text[:start]}{' ' * (end - start)}{text[end:]}" if start < end else text


def _decode_output(encoded: str) -> _ToolOutput:
    """Decode a tool's JSON; empty if it has another shape, as a model's own call may have."""
    try:
        return OUTPUT_DECODER.decode(encoded.encode())
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _ToolOutput()


def explain_uncheckable(case: Case, statement: Statement) -> str:
    """Return why nothing in the statement can be checked, in a sentence; "" if something can.

    A lead-in ("Of course, …") is skipped. An opinion that states a figure or names somebody is
    checked: it may be a cautiously worded fact.
    """
    text = statement.text.strip()
    if is_code(text):
        return "It is code: running it tells whether it works, comparing its words does not."
    if QUESTION_END.search(text):
        return "It asks, and states nothing."
    rest = text
    while lead := _opening_pattern("leads_in", case.language).match(rest):
        rest = rest[lead.end() :]
    if not FIGURE_PATTERN.search(text):
        is_bare = not rest.strip(" .,!:;…。，！：；")
        if is_bare or _opening_pattern("greetings", case.language).match(rest):
            return NO_FACT
        is_opinion = _opening_pattern("opinions", case.language).match(rest)
        if is_opinion and not _name_terms(rest, case.language):
            return NO_FACT
    if not has_checkable_content(statement, case):
        return "It says nothing that could be true or false."
    return ""


@lru_cache(maxsize=64)
def _opening_pattern(kind: str, language: str) -> re.Pattern[str]:
    """Return a pattern for the openings of a kind; English if the language is unknown."""
    words, end = _opening_words(kind, language)
    return re.compile(rf"[\W_]*(?:{words}){end}", re.IGNORECASE)


def _opening_words(kind: str, language: str) -> tuple[str, str]:
    """Return an alternation of the language's words of a kind, and the pattern that ends a word."""
    lists = load_words("openings")[kind]
    known = language if language in lists else "en"
    return "|".join(lists[known]), "" if known == "zh" else r"(?![\w-])"


def is_conclusion(text: str, language: str) -> bool:
    """Return True if the wording marks the statement as a conclusion from others."""
    (opener, end), (totals, _) = (_opening_words(k, language) for k in ("conclusions", "totals"))
    start, end = (r"(?<!\w)", r"(?!\w)") if end else ("", "")
    lead = r"[\W_]*(?:(?:and|und|et|y|e|en|而)\s+)?"
    opens = re.match(rf"{lead}(?:{opener}){end}", text, re.IGNORECASE)
    return bool(opens or re.search(rf"{start}(?:{totals}){end}", text, re.IGNORECASE))
