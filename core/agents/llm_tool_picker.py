"""Picks tools by a language model: a thought, then a call of a tool or a conclusion (ReAct).

Source: HaluAgent 2.3, 2.4.1, figures 4 and 7 (instructions, tools with their usage examples). The
thought and the action are one structured reply; the tool's input is checked against its schema
before it is called, and a wrong one is shown to the model once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import msgspec

from core.agents.ask import Asking, LlmAgent
from core.audited import Remembered, ToolUse
from core.concurrency import Stop
from core.errors import InputError
from core.models.structured import Shape, Unusable, ask_structured
from core.records import Case, Label, Statement
from core.roles import AuditView, Step
from core.tools.registry import Tool, describe_tools, read_input, tool_named, toolbox

SHOWN = 1_500  # characters of what one step brought
BESIDE = 3_000  # characters of the response on either side of a statement
# What a model may write in place of a long text that a tool is to be given whole.
RESPONSE, QUESTION, STATEMENT = "<response>", "<question>", "<statement>"
WHOLE = "The response as a whole: its length and form, its code, dates that the question asks for."
NONE_YET = "Nothing yet."
NOT_CHECKABLE = "not_checkable"
LABELS: Mapping[str, Label] = {
    "supported": "supported",
    "hallucinated": "hallucinated",
    "unclear": "unclear",
}


class _Reply(msgspec.Struct, frozen=True):
    thought: str
    tool: str
    input: dict[str, Any]
    label: Literal["", "supported", "hallucinated", "unclear", "not_checkable"]
    evidence: str


SHAPE = Shape(_Reply)


class LlmToolPicker(LlmAgent):
    """Tool picker with a language model."""

    prompts = ("pick_tool",)

    def next_step(self, view: AuditView, stop: Stop) -> Step:
        """The next tool with its input, or the model's conclusion.

        Raises:
            ModelError: the service failed.
            ReplyError: two replies could not be used.
        """
        case, statement = view.view.case, view.statement
        about = "whole" if statement is None else f"statement {statement.index}"
        slot = f"{about} step {len(view.used) + 1}"
        # The schema would have to allow any input; providers' strict schemas refuse that.
        asking = self._asking("pick_tool", case, stop, role="tool picker", slot=slot)
        tools, examples = told_tools()
        fields = {
            "tools": tools,
            "tool_examples": examples,
            "question": asking.fenced("question", case.question),
            "response": asking.fenced("response", _around(case, statement)),
            "statement": asking.fenced("statement", statement.rewrite) if statement else WHOLE,
            "steps": _steps(asking, view.used),
            "memory": _memory(asking, view),
        }
        reply = ask_structured(asking.say, asking.whole(fields), SHAPE, asking.mend, _check)
        if reply.tool:
            stands_for = {RESPONSE: case.response, QUESTION: case.question}
            stands_for |= {STATEMENT: statement.text} if statement else {}
            given = {
                name: stands_for.get(value, value) if isinstance(value, str) else value
                for name, value in reply.input.items()
            }
            return Step(reply.thought, reply.tool, msgspec.json.encode(given).decode())
        is_checkable = reply.label != NOT_CHECKABLE
        label = LABELS.get(reply.label)
        return Step(
            reply.thought, label=label, evidence=reply.evidence.strip(), is_checkable=is_checkable
        )


def _check(reply: _Reply) -> None:
    """What a schema cannot say: a known tool with an input that it takes, or a conclusion.

    Raises:
        Unusable: with words for the model.
    """
    if not reply.tool:
        if not reply.label:
            raise Unusable("Neither a tool nor a label is given; give one of the two.")
        return
    if reply.label:
        raise Unusable("Both a tool and a label are given; call the tool, or conclude without one.")
    try:
        tool = tool_named(reply.tool)
        if tool.is_system:
            raise InputError(f"The tool {tool.name} is not for single statements; choose another.")
        read_input(tool, msgspec.json.encode(reply.input).decode())
    except InputError as error:
        raise Unusable(str(error)) from error


@lru_cache(maxsize=1)
def told_tools() -> tuple[str, str]:
    """The tools in words, and each of them at work."""
    tools = [tool for tool in toolbox().values() if not tool.is_system]
    return describe_tools(tools), _examples(tools)


def _around(case: Case, statement: Statement | None) -> str:
    """The response, or of a long one what stands around the statement."""
    if statement is None or len(case.response) <= 2 * BESIDE:
        return case.response
    start, end = max(0, statement.start - BESIDE), statement.end + BESIDE
    before, after = "… " if start else "", " …" if end < len(case.response) else ""
    return f"{before}{case.response[start:end]}{after}"


def _examples(tools: Iterable[Tool[Any]]) -> str:
    """Both examples of every tool, as steps of this very form."""
    return "\n".join(
        f"Question: {example.question}\nResponse: {example.response}\n"
        f"{_call(example.thought, tool.name, msgspec.to_builtins(example.given))}\n"
        f"It comes back with: {example.label}\n"
        for tool in tools
        for example in tool.examples
    )


def _call(thought: str, tool: str, given: object) -> str:
    body = {"thought": thought, "tool": tool, "input": given, "label": "", "evidence": ""}
    return msgspec.json.encode(body).decode()


def _steps(asking: Asking, used: Sequence[ToolUse]) -> str:
    """Thought, action and observation of every step; what came back is untrusted."""
    told = [
        f"{number}. thought: {use.thought}\n   action: {use.tool}({use.given[:SHOWN]})\n"
        f"   observation ({use.outcome}, label {use.label}): {use.words}\n   {use.gave[:SHOWN]}"
        for number, use in enumerate(used, 1)
    ]
    return asking.fenced("steps", "\n".join(told) or NONE_YET)


def _memory(asking: Asking, view: AuditView) -> str:
    """What is held of others, in the order of the response."""
    texts = {s.index: s.text for s in view.view.statements}
    told = [_line(entry, texts) for entry in view.memory if entry.statement in texts]
    return asking.fenced("memory", "\n".join(told) or NONE_YET)


def _line(entry: Remembered, texts: Mapping[int, str]) -> str:
    return f"{entry.statement + 1}. {texts[entry.statement]}\n   {entry.label}: {entry.evidence}"
