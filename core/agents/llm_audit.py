"""The audit's agents on a language model: segmenter, tool picker (ReAct) and reflector.

Source: HaluAgent 2.3, 2.4.1, figures 4 and 7. A tool's input is checked before it is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import msgspec

from core.agents.agent_runner import AgentContext, LlmAgent
from core.documents.quotes import locate_quote
from core.documents.segmentation import split_sentences
from core.llm.call import (
    ReplySchema,
    UnusableReply,
    ask_structured,
    decodes_by_grammar,
    with_property_schema,
)
from core.runtime.concurrency import StopSignal
from core.runtime.errors import InputError
from core.schema.events import LabelRevision, MemoryEntry, ReflectionScope, ToolUse
from core.schema.records import Case, Label, Statement
from core.schema.roles import AuditView, CaseView, ToolStep
from core.schema.rosters import AgentConfig
from core.tools.registry import describe_tools, get_tool, load_tools, read_input

MAX_EVIDENCE_CHARS = 400  # characters of a statement's evidence
MAX_STEP_CHARS = 1_500  # characters of a step's input and output
CONTEXT_CHARS = 3_000  # characters of the response on either side of a statement
# Placeholders that a model may write for a long text that a tool receives in full.
RESPONSE_PLACEHOLDER, QUESTION_PLACEHOLDER, STATEMENT_PLACEHOLDER = (
    "<response>",
    "<question>",
    "<statement>",
)
WHOLE_RESPONSE_TASK = (
    "The response as a whole: its length and form, its code, dates that the question asks for."
)
NOTHING_YET = "Nothing yet."


class _Cut(msgspec.Struct, frozen=True):
    quote: str
    rewrite: str


class _Cuts(msgspec.Struct, frozen=True):
    statements: list[_Cut]


SEGMENTATION_SCHEMA = ReplySchema(_Cuts)


class LlmSegmenter(LlmAgent):
    """Segmenter on a language model; its quotes must stand in the response."""

    prompts = ("segment",)

    def segment(self, case: Case, stop: StopSignal) -> tuple[Statement, ...]:
        """Return all statements in order.

        If a quote is not in the response, or there are no quotes, the sentences that no statement
        covers are added as they are: a slip of the model must not exempt one from the check.
        """
        call = self._asking(
            "segment",
            case,
            stop,
            role="segmenter",
            slot="segment",
            schema=SEGMENTATION_SCHEMA.json_schema,
        )
        messages = call.whole(call.fields(response=case.response, question=case.question))

        def check(cuts: _Cuts) -> None:
            if cuts.statements and not _locate_quotes(case.response, cuts):
                raise UnusableReply(
                    "None of the quotes stands in the text; copy them from it exactly."
                )

        cuts = ask_structured(call.say, messages, SEGMENTATION_SCHEMA, call.mend, check)
        located = _locate_quotes(case.response, cuts)
        if len(located) < max(1, len(cuts.statements)):
            covered = [(start, end) for start, end, _ in located]
            for s in split_sentences(case.response, case.language):
                if not any(start < s.end and s.start < end for start, end in covered):
                    located.append((s.start, s.end, case.response[s.start : s.end]))
        return tuple(
            Statement(index, start, end, case.response[start:end], rewrite)
            for index, (start, end, rewrite) in enumerate(sorted(located))
        )


def _locate_quotes(response: str, cuts: _Cuts) -> list[tuple[int, int, str]]:
    """Return (start, end, rewrite) of each quote that stands in the response."""
    located: list[tuple[int, int, str]] = []
    for cut in cuts.statements:
        taken = [(start, end) for start, end, _ in located]
        place = locate_quote(cut.quote, response, taken)
        if place and place not in taken:
            located.append((*place, cut.rewrite.strip() or response[place[0] : place[1]]))
    return located


class _Change(msgspec.Struct, frozen=True):
    statement: int
    reason: str
    reach: ReflectionScope
    because_of: list[int]
    after: Label


class _Changes(msgspec.Struct, frozen=True):
    changes: list[_Change]


REFLECTION_SCHEMA = ReplySchema(_Changes)


class LlmReflector(LlmAgent):
    """Reflector on a language model; its prompts number statements from 1, as people do."""

    prompts = ("reflect",)

    def reflect(
        self,
        view: CaseView,
        memory: Sequence[MemoryEntry],
        uses: Sequence[ToolUse],
        stop: StopSignal,
    ) -> tuple[LabelRevision, ...]:
        """Return the statements whose labels have to change.

        Raises:
            ModelError: The service failed.
            ReplyError: Two replies were unusable.
        """
        checkable = {entry.statement: entry for entry in memory if entry.is_checkable}
        if not checkable:
            return ()
        schema = REFLECTION_SCHEMA.json_schema
        if decodes_by_grammar(self._agent):
            schema = _build_reflection_schema([index + 1 for index in sorted(checkable)])
        call = self._asking(
            "reflect", view.case, stop, role="reflector", slot="reflect", schema=schema
        )
        texts = {s.index: s.text for s in view.statements}
        lines = [
            f"{index + 1}. {texts[index]}\n   label: {entry.label}"
            f"\n   evidence: {entry.evidence[:MAX_EVIDENCE_CHARS]}"
            for index, entry in sorted(checkable.items())
        ]
        fields = call.fields(question=view.case.question, statements="\n".join(lines))

        def check(reply: _Changes) -> None:
            _check_changes(reply.changes, {index + 1 for index in checkable})

        reply = ask_structured(call.say, call.whole(fields), REFLECTION_SCHEMA, call.mend, check)
        return tuple(
            LabelRevision(
                change.statement - 1,
                change.reach,
                checkable[change.statement - 1].label,
                change.after,
                change.reason.strip(),
                tuple(number - 1 for number in change.because_of),
                self.name,
            )
            for change in reply.changes
        )


def _build_reflection_schema(numbers: Sequence[int]) -> Mapping[str, Any]:
    """Return the schema restricted to changes of the statements with these numbers.

    A global change names other statements than its own, and makes none supported.
    """
    one = REFLECTION_SCHEMA.json_schema["$defs"]["_Change"]
    fields = one["properties"]
    none = {"type": "array", "items": {"enum": [*numbers]}, "maxItems": 0}
    kinds = [{"statement": {"enum": [*numbers]}, "reach": {"enum": ["local"]}, "because_of": none}]
    after = {"enum": ["hallucinated", "unclear"]}
    for number in numbers:
        if others := [other for other in numbers if other != number]:
            rest = {"type": "array", "items": {"enum": others}, "minItems": 1}
            kinds.append(
                {"statement": {"enum": [number]}, "reach": {"enum": ["global"]}}
                | {"because_of": rest, "after": after}
            )
    changes = [{**one, "properties": {**fields, **kind}} for kind in kinds]
    whole = {"type": "array", "items": {"anyOf": changes}, "maxItems": len(numbers)}
    return dict(with_property_schema(REFLECTION_SCHEMA.json_schema, "changes", whole))


def _check_changes(changes: Sequence[_Change], known: set[int]) -> None:
    """Raise UnusableReply for changes that the schema cannot rule out.

    A global change concerns a statement that rests on other, wrong ones; it never makes the
    statement supported (HaluAgent 2.3).
    """
    for change in changes:
        number = change.statement
        if unknown := {number, *change.because_of} - known:
            raise UnusableReply(f"There is no statement {min(unknown)}; use the numbers given.")
        if not change.reason.strip():
            raise UnusableReply(f"The change of statement {number} has no reason.")
        if change.reach != "global":
            continue
        if not change.because_of or number in change.because_of:
            raise UnusableReply(
                f"The global change of statement {number} names no other statement."
            )
        if change.after == "supported":
            raise UnusableReply(
                f"Statement {number} cannot become supported by resting on a wrong one."
            )
    if len({change.statement for change in changes}) < len(changes):
        raise UnusableReply("A statement is changed twice; give one change for each.")


class _Reply(msgspec.Struct, frozen=True):
    thought: str
    tool: str
    input: dict[str, Any]
    label: Literal["", "supported", "hallucinated", "unclear", "not_checkable"]
    evidence: str


TOOL_STEP_SCHEMA = ReplySchema(_Reply)


class LlmToolPicker(LlmAgent):
    """Tool picker on a language model."""

    prompts = ("pick_tool",)

    def __init__(self, config: AgentConfig, agent_context: AgentContext) -> None:
        super().__init__(config, agent_context)
        # Providers refuse a schema of unlike inputs; they get the prompt's words alone.
        self._schema = build_step_schema() if decodes_by_grammar(config) else None

    def next_step(self, view: AuditView, stop: StopSignal) -> ToolStep:
        """Return the next tool with its input, or the model's conclusion.

        Raises:
            ModelError: The service failed.
            ReplyError: Two replies were unusable.
        """
        case, statement = view.case_view.case, view.statement
        about = "whole" if statement is None else f"statement {statement.index}"
        slot = f"{about} step {len(view.used) + 1}"
        call = self._asking(
            "pick_tool", case, stop, role="tool picker", slot=slot, schema=self._schema
        )
        texts = {s.index: s.text for s in view.case_view.statements}
        memory = [
            f"{entry.statement + 1}. {texts[entry.statement]}\n   {entry.label}: {entry.evidence}"
            for entry in view.memory
            if entry.statement in texts
        ]
        steps = [
            f"{number}. thought: {use.thought}\n   action: "
            f"{use.tool}({use.given[:MAX_STEP_CHARS]})\n"
            f"   observation ({use.outcome}, label {use.label}): {use.words}\n   "
            f"{use.gave[:MAX_STEP_CHARS]}"
            for number, use in enumerate(view.used, 1)
        ]
        tools, examples = describe_toolbox()
        fields = {"tools": tools, "tool_examples": examples} | call.fields(
            question=case.question,
            response=_cut_response(case, statement),
            statement=statement.rewrite if statement else "",
            steps="\n".join(steps),
            memory="\n".join(memory),
        )
        if statement is None:
            fields["statement"] = WHOLE_RESPONSE_TASK
        fields |= {
            name: NOTHING_YET for name, found in (("steps", steps), ("memory", memory)) if not found
        }
        reply = ask_structured(
            call.say, call.whole(fields), TOOL_STEP_SCHEMA, call.mend, _check_step
        )
        if not reply.tool:
            is_checkable = reply.label != "not_checkable"
            label = reply.label if reply.label != "" and reply.label != "not_checkable" else None
            return ToolStep(
                reply.thought,
                label=label,
                evidence=reply.evidence.strip(),
                is_checkable=is_checkable,
            )
        placeholders = {RESPONSE_PLACEHOLDER: case.response, QUESTION_PLACEHOLDER: case.question}
        if statement:
            placeholders[STATEMENT_PLACEHOLDER] = statement.text
        tool_input = {
            name: placeholders.get(value, value) if isinstance(value, str) else value
            for name, value in reply.input.items()
        }
        return ToolStep(reply.thought, reply.tool, msgspec.json.encode(tool_input).decode())


def _check_step(reply: _Reply) -> None:
    """Raise UnusableReply unless the reply is a known tool with a valid input, or a conclusion.

    The error's text is written for the model.
    """
    if not reply.tool:
        if not reply.label:
            raise UnusableReply("Neither a tool nor a label is given; give one of the two.")
        return
    if reply.label:
        raise UnusableReply(
            "Both a tool and a label are given; call the tool, or conclude without one."
        )
    try:
        tool = get_tool(reply.tool)
        if tool.is_system:
            raise InputError(f"The tool {tool.name} is not for single statements; choose another.")
        read_input(tool, msgspec.json.encode(reply.input).decode())
    except InputError as error:
        raise UnusableReply(str(error)) from error


@lru_cache(maxsize=1)
def build_step_schema() -> Mapping[str, Any]:
    """Return the schema of a step: one of the tools with its own input, or a conclusion."""
    tools = [tool for tool in load_tools().values() if not tool.is_system]
    inputs, defs = msgspec.json.schema_components(tool.takes for tool in tools)
    for properties in (part["properties"].values() for part in defs.values()):
        for one in properties:
            if one.get("type") == "string":
                one["maxLength"] = MAX_STEP_CHARS
    nothing: Mapping[str, Any] = {"enum": [""]}
    none = {"type": "object", "properties": {}, "additionalProperties": False}
    labels = TOOL_STEP_SCHEMA.json_schema["properties"]["label"]["enum"]
    steps = [
        {"tool": {"enum": [tool.name]}, "input": taken, "label": nothing, "evidence": nothing}
        for tool, taken in zip(tools, inputs, strict=True)
    ]
    conclusion = {"enum": [label for label in labels if label]}
    steps.append(
        {"tool": nothing, "input": none, "label": conclusion, "evidence": {"type": "string"}}
    )
    return {
        "anyOf": [
            {
                "type": "object",
                "properties": {"thought": {"type": "string"}} | step,
                "required": ["thought", *step],
                "additionalProperties": False,
            }
            for step in steps
        ],
        "$defs": dict(defs),
    }


@lru_cache(maxsize=1)
def describe_toolbox() -> tuple[str, str]:
    """Return the tools' descriptions, and one example as a step in the form of a reply.

    One shows the form; with two of each tool a laptop read for minutes before its first word.
    """
    example = get_tool("search").examples[0]
    reply = _Reply(example.thought, "search", msgspec.to_builtins(example.given), "", "")
    step = f"Statement: {example.response}\n{msgspec.json.encode(reply).decode()}"
    return describe_tools(tool for tool in load_tools().values() if not tool.is_system), step


def _cut_response(case: Case, statement: Statement | None) -> str:
    """Return the response, or the part around the statement if it is long."""
    if statement is None or len(case.response) <= 2 * CONTEXT_CHARS:
        return case.response
    start, end = max(0, statement.start - CONTEXT_CHARS), statement.end + CONTEXT_CHARS
    before, after = "… " if start else "", " …" if end < len(case.response) else ""
    return f"{before}{case.response[start:end]}{after}"
