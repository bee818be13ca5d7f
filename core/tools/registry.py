"""The `Tool` type, the registry of all tools, calling one, and the command `python -m core tools`.

A tool is a typed function with a description for language models: a `Tool` in a module of this
package that is listed in `TOOL_MODULES`. Source: HaluAgent 2.2, 3.4, A.1, A.2 (table 5).
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from inspect import cleandoc
from typing import Any, Generic, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from core.runtime.concurrency import StopSignal
from core.runtime.config import MEGABYTE
from core.runtime.errors import BudgetReached, InputError, ModelError, ReplyError
from core.schema.events import ToolUse
from core.schema.records import Case, Label, Passage, Statement
from core.tools.vocabulary import load_words

ToolInput = TypeVar("ToolInput", bound=msgspec.Struct)
# The tool in `constraints` is called "conditions" in stored traces.
TOOL_MODULES = (
    "calculator",
    "calendar",
    "code",
    "constraints",
    "text_tools",
    "units",
    "web_search",
)
MAX_TRACE_CHARS = 20_000  # characters of input or output kept in a trace
MessageWriter = Callable[[str], None]
OutputWriter = Callable[[str | bytes], None]
INPUT_MEGABYTES = 16
TEXT_WIDTH_CHARS = 96
TOOLS_DESCRIPTION = """\
List the tools of an audit, show one, or use one.

Without a name every tool is listed with what it is for. A name alone shows that tool with its input
and two examples to copy. With --input it is used: its input is a JSON object. No language model is
asked; a tool that needs one, or anything else that is not here, is off and says so."""
TOOLS_EXAMPLES = """\
examples:
  python -m core tools
  python -m core tools calculator
  python -m core tools calculator --input '{"text": "Half of 90 is 46."}'
  python -m core tools units --input '{"value": 100, "unit": "km/h", "to": "mph"}' --json
  echo '{"text": "三加五等于八"}' | python -m core tools calculator --input -

exit code: 0 the tool answered, also where its label is unclear; 1 it is off here; 2 bad input, with
one line that says so."""


@dataclass(frozen=True)
class ToolAnswer:
    """The result of a tool.

    `label` is about the text that the tool was given, `unclear` if the tool cannot tell; `p` is the
    probability that this text is hallucinated. `words` is a sentence for people. `gave` holds the
    computed values as plain types, for the tool's own view. `[start, end)` marks the wrong words,
    as offsets in the text that the answer is about (`Tool.about`); `instead` is what they should
    say. `has_something` is False if the tool had nothing to work on.
    """

    label: Label
    words: str
    gave: Mapping[str, Any] = field(default_factory=dict)
    p: float | None = None
    start: int | None = None
    end: int | None = None
    instead: str = ""
    category: str = ""
    has_something: bool = True


class PromptRunner(Protocol):
    """A language model as tools call it: one prompt, one reply of a given type."""

    def __call__(self, prompt: str, fields: Mapping[str, str], kind: type[ToolInput]) -> ToolInput:
        """Return the reply to the named prompt, with these untrusted fields fenced.

        Raises:
            ModelError: the service failed.
            ReplyError: the reply is unusable.
        """
        ...


@dataclass(frozen=True)
class SearchResult:
    """One search result: its `title` and `address`, and `text`, the words found there.

    `by` names the provider. `seen_at` is set if the result comes from an earlier search: when that
    was, in seconds since 1970.
    """

    title: str
    address: str
    text: str
    by: str = ""
    seen_at: float | None = None


@dataclass(frozen=True)
class ToolContext:
    """The services a tool may use besides its input; a tool that needs one that is None is off.

    `library` searches the project's sources: (query, count) to passages, best first. `web` searches
    with the chosen provider. `ask` is a language model. `match` compares a statement with passages:
    (statement, passages) to an answer with the probability that it is contradicted or unsupported,
    and a sentence.
    """

    stop: StopSignal
    library: Callable[[str, int], Sequence[Passage]] | None = None
    web: Callable[[str, int], Sequence[SearchResult]] | None = None
    ask: PromptRunner | None = None
    match: Callable[[str, Sequence[Passage]], ToolAnswer] | None = None


@dataclass(frozen=True)
class ToolExample(Generic[ToolInput]):
    """An example of a tool: question, response, the input made from them, and the result."""

    question: str
    response: str
    given: ToolInput
    label: Label
    thought: str


def load_examples(name: str, takes: type[ToolInput]) -> tuple[ToolExample[ToolInput], ...]:
    """Return the examples of the named tool from `words/examples.json`."""
    shape = tuple[ToolExample[takes], ...]  # type: ignore[valid-type]
    return msgspec.convert(load_words("examples")[name], shape)


@dataclass(frozen=True)
class Tool(Generic[ToolInput]):
    """One tool; `description` tells an agent when to use it and which field holds what.

    `takes` is the input type: agents are shown its fields, people its docstring too. `reads` is
    for the tool picker without a model: it returns the input to use for a statement of a case (for
    the whole response if the statement is None), or None if the tool does not apply. `why_off`
    returns why the tool is unavailable, or an empty string. `is_system` marks the tools that run
    the audit itself. `about` names the input field with the text that the label and offsets refer
    to.
    """

    name: str
    description: str
    takes: type[ToolInput]
    work: Callable[[ToolInput, ToolContext], ToolAnswer]
    examples: tuple[ToolExample[ToolInput], ...]
    reads: Callable[[Statement | None, Case], ToolInput | None] | None = None
    why_off: Callable[[ToolContext], str] = lambda tool_context: ""
    is_system: bool = False
    about: str = "text"


@lru_cache(maxsize=1)
def load_tools() -> Mapping[str, Tool[Any]]:
    """Return all tools by name, sorted by name."""
    modules = [importlib.import_module(f"core.tools.{name}") for name in TOOL_MODULES]
    tools = [
        value for module in modules for value in vars(module).values() if isinstance(value, Tool)
    ]
    return {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}


def get_tool(name: str) -> Tool[Any]:
    """Return the tool with that name.

    Raises InputError if there is none; the message lists all names.
    """
    if name not in load_tools():
        raise InputError(f"Expected one of the tools {', '.join(load_tools())}, found “{name}”.")
    return load_tools()[name]


def read_input(tool: Tool[ToolInput], given: str) -> ToolInput:
    """Parse a tool's input from JSON.

    Raises InputError if it is not JSON of the tool's input type; the message names the place.
    """
    try:
        return msgspec.json.decode(given.encode(), type=tool.takes)
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        fields = ", ".join(tool.takes.__struct_fields__)
        raise InputError(
            f"Expected a JSON object with {fields} for the tool {tool.name}, found: {error}."
        ) from error


def use_tool(tool: Tool[ToolInput], given: ToolInput, tool_context: ToolContext) -> ToolUse:
    """Call a tool and record the result; a tool that is off or fails gets no label.

    Offsets are in the text that the tool was given; the caller shifts them. Raises Stopped if the
    person stopped the check meanwhile.
    """
    input_json = _truncate_json(msgspec.to_builtins(given))
    empty_use = ToolUse(tool.name, None, input_json, "{}", "off", "unclear", "", 0.0)
    if why := tool.why_off(tool_context):
        return replace(empty_use, words=why)
    began = time.perf_counter()
    try:
        answer = tool.work(given, tool_context)
    except (InputError, ModelError, ReplyError) as error:
        return replace(
            empty_use,
            outcome="failed",
            words=str(error),
            seconds=time.perf_counter() - began,
            is_over_cap=isinstance(error, BudgetReached),
        )
    return replace(
        empty_use,
        gave=_truncate_json(answer.gave),
        outcome="found" if answer.has_something else "nothing",
        label=answer.label,
        words=answer.words,
        seconds=time.perf_counter() - began,
        p=answer.p,
        start=answer.start,
        end=answer.end,
        instead=answer.instead,
        category=answer.category,
    )


def _truncate_json(value: Any) -> str:
    """Encode a JSON object; if it is too long to keep, shorten its texts."""
    shortened = {
        key: f"{part[:1000]}…" if isinstance(part, str) and len(part) > 1000 else part
        for key, part in value.items()
    }
    texts = (msgspec.json.encode(one).decode() for one in (value, shortened))
    return next((text for text in texts if len(text) <= MAX_TRACE_CHARS), '{"cut":true}')


def describe_tools(tools: Iterable[Tool[Any]]) -> str:
    """Describe the tools in their order, two lines each: a model reads this at every step."""
    return "\n".join(f"{format_signature(tool)}\n  {tool.description}" for tool in tools)


def format_signature(tool: Tool[Any]) -> str:
    """Return the tool's name with its fields and their types, in short; `?` may be left out."""
    return f"{tool.name}({_format_fields(tool.takes)})"


def _format_fields(struct: type[msgspec.Struct]) -> str:
    hints = get_type_hints(struct)
    return ", ".join(
        f"{field.name}{'' if field.required else '?'}: {_format_type(hints[field.name])}"
        for field in msgspec.structs.fields(struct)
    ).replace(": text", "")


def _format_type(hint: Any) -> str:
    """Format a type: a list in brackets, a struct in braces; a field without a type is text."""
    arguments = [one for one in get_args(hint) if one not in (type(None), ...)]
    if get_origin(hint) is Literal:
        return "|".join(arguments)
    if get_origin(hint) in (list, tuple):
        return f"[{', '.join(map(_format_type, arguments))}]"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return f"{{{_format_fields(hint)}}}"
    if arguments:
        return "|".join(map(_format_type, arguments))
    return "text" if hint is str else str(hint.__name__)


def add_commands(commands: Any, add_home: Any) -> None:
    """Add the command `tools`; `add_home` adds `--home`."""
    tools = commands.add_parser(
        "tools",
        help="list the tools of an audit, or use one",
        description=TOOLS_DESCRIPTION,
        epilog=TOOLS_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tools.add_argument("tool", nargs="?", metavar="NAME", help="the tool's name")
    tools.add_argument(
        "--input", metavar="JSON", help="the tool's input as a JSON object, or - for standard input"
    )
    tools.add_argument("--json", action="store_true", help="print one JSON object")
    add_home(tools)


def run_tools(
    given: argparse.Namespace, tool_context: ToolContext, say: MessageWriter, out: OutputWriter
) -> int:
    """List, show or use tools; return 0, or 1 if the tool is off here.

    Raises InputError if there is no such tool, or its input is invalid.
    """
    if given.tool is None:
        if given.input is not None:
            raise InputError("Expected a tool's name before --input, found none; give one.")
        tools = list(load_tools().values())
        if given.json:
            out(_dump_json([_tool_to_dict(tool, tool_context) for tool in tools]))
            return 0
        for tool in tools:
            off = f"\n  Off here: {why}" if (why := tool.why_off(tool_context)) else ""
            words = textwrap.indent(textwrap.fill(tool.description, TEXT_WIDTH_CHARS - 2), "  ")
            out(f"{format_signature(tool)}\n{words}{off}\n\n")
        return 0
    tool = get_tool(given.tool)
    if given.input is None:
        out(
            _dump_json(_tool_to_dict(tool, tool_context))
            if given.json
            else _format_tool(tool, tool_context)
        )
        return 0
    tool_use = use_tool(tool, read_input(tool, _read_argument(given.input)), tool_context)
    if tool_use.outcome == "failed":
        raise InputError(tool_use.words)
    if given.json:
        out(_dump_json(_use_to_dict(tool_use)))
    if tool_use.outcome == "off":
        say(tool_use.words)
        return 1
    if not given.json:
        out(_format_use(tool_use))
    return 0


def _tool_to_dict(tool: Tool[Any], tool_context: ToolContext) -> dict[str, Any]:
    examples = [
        {
            "question": one.question, "response": one.response,
            "input": msgspec.to_builtins(one.given), "label": one.label,
        }
        for one in tool.examples
    ]  # fmt: skip
    return {
        "name": tool.name, "signature": format_signature(tool), "description": tool.description,
        "is_system": tool.is_system, "off": tool.why_off(tool_context), "examples": examples,
    }  # fmt: skip


def _format_tool(tool: Tool[Any], tool_context: ToolContext) -> str:
    lines = [describe_tools([tool]), cleandoc(tool.takes.__doc__ or "")]
    if why := tool.why_off(tool_context):
        lines.append(f"Off here: {why}")
    for example in tool.examples:
        given = msgspec.json.encode(example.given).decode()
        lines.append(f"--input '{given}'\n  {example.label}")
    return "\n".join(lines) + "\n"


def _read_argument(given: str) -> str:
    if given != "-":
        return given
    if sys.stdin is None:
        raise InputError("Expected the input on standard input, found it closed.")
    content = sys.stdin.buffer.read(INPUT_MEGABYTES * MEGABYTE + 1)
    if len(content) > INPUT_MEGABYTES * MEGABYTE:
        raise InputError(f"Expected at most {INPUT_MEGABYTES} MB of input, found more; give less.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"Expected UTF-8 text on standard input, found another encoding at byte {error.start}."
        ) from error


def _use_to_dict(used: ToolUse) -> dict[str, Any]:
    return {
        "tool": used.tool, "outcome": used.outcome, "label": used.label, "p_hallucinated": used.p,
        "words": used.words, "start": used.start, "end": used.end, "instead": used.instead,
        "category": used.category, "given": json.loads(used.given), "gave": json.loads(used.gave),
        "seconds": round(used.seconds, 4),
    }  # fmt: skip


def _format_use(used: ToolUse) -> str:
    probability = f"  p(hallucinated) = {used.p:.2f}" if used.p is not None else ""
    lines = [f"{used.label.upper()}{probability}", used.words]
    if used.start is not None and used.end is not None:
        # The offsets are those of the first input text that is long enough to hold them.
        texts = (text for text in json.loads(used.given).values() if isinstance(text, str))
        text = next((text for text in texts if len(text) >= used.end), "")
        instead = f": it should say {used.instead}" if used.instead else ""
        lines.append(f"  wrong: “{text[used.start : used.end]}”{instead}")
    return "\n".join(lines) + "\n"


def _dump_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
