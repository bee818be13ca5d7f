"""What a tool is, the registry of all tools, how one is called, and `python -m core tools`.

A tool is a typed function with a description that a language model can read: a `Tool` in a file
beside this one, whose name stands in `MODULES`. Source: HaluAgent 2.2, 3.4, A.1, A.2 (table 5).
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
from typing import Any, Generic, Protocol, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from core.runtime.concurrency import Stop
from core.runtime.config import MEGABYTE
from core.runtime.errors import BudgetReached, InputError, ModelError, ReplyError
from core.schema.events import ToolUse
from core.schema.records import Case, Label, Passage, Statement
from core.tools.vocabulary import read_words

Given = TypeVar("Given", bound=msgspec.Struct)
# The modules of all tools; the tool of `constraints` is named "conditions" in stored traces.
MODULES = ("calculator", "calendar", "code", "constraints", "text_tools", "units", "web_search")
MOST_SHOWN = 20_000  # characters of input or output that are kept in a trace


@dataclass(frozen=True)
class Answer:
    """What a tool says.

    `label` is about the text that it was given, `unclear` where nothing follows for it; `p` is the
    probability that the text is hallucinated. `words` is a sentence for people. `gave` is what was
    worked out, as plain values, for the tool's own view. `[start, end)` are the words that do not
    hold, in the text that it is about (`Tool.about`), and `instead` is what they should say.
    `has_something` is False where the tool had nothing to look at.
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


class Asker(Protocol):
    """A language model as tools use it: one question, one reply in the shape that is asked for."""

    def __call__(self, prompt: str, fields: Mapping[str, str], shape: type[Given]) -> Given:
        """The reply to the prompt of that name, with these untrusted fields fenced.

        Raises:
            ModelError: the service failed.
            ReplyError: it answered, unusably.
        """
        ...


@dataclass(frozen=True)
class SearchResult:
    """One thing a search found: `title` and `address` say where, `text` is what it says.

    `by` names who found it; `seen_at` is when, in seconds since 1970, where an earlier search is
    answered again.
    """

    title: str
    address: str
    text: str
    by: str = ""
    seen_at: float | None = None


@dataclass(frozen=True)
class Bench:
    """What tools may reach beside their input; what is None is not there, and the tool is off.

    `library` searches the project's sources: (query, how many) to passages, best first. `web` asks
    the provider that is set up. `ask` is a language model. `match` reads a statement against
    passages: (statement, passages) to the probability that it is contradicted or unsupported, and
    a sentence.
    """

    stop: Stop
    library: Callable[[str, int], Sequence[Passage]] | None = None
    web: Callable[[str, int], Sequence[SearchResult]] | None = None
    ask: Asker | None = None
    match: Callable[[str, Sequence[Passage]], Answer] | None = None


@dataclass(frozen=True)
class Example(Generic[Given]):
    """A tool at work: what was asked and answered, the input it takes from that, what it says."""

    question: str
    response: str
    given: Given
    label: Label
    thought: str


def read_examples(name: str, takes: type[Given]) -> tuple[Example[Given], ...]:
    """The examples of the tool of that name, from `words/examples.json`."""
    shape = tuple[Example[takes], ...]  # type: ignore[valid-type]
    return msgspec.convert(read_words("examples")[name], shape)


@dataclass(frozen=True)
class Tool(Generic[Given]):
    """One tool. `description` tells an agent when to use it and what comes back.

    `takes` is its input; its docstring and fields become the schema that agents read. `reads` is
    the deterministic chooser's part: the input where this tool is meant for a statement of a case
    (the whole response where there is no statement), else None. `why_off` says why it cannot work
    here, empty where it can. `is_system` marks the tools that run the audit itself. `about` names
    the field of the input that holds the text which an answer's label and offsets are about.
    """

    name: str
    description: str
    takes: type[Given]
    work: Callable[[Given, Bench], Answer]
    examples: tuple[Example[Given], ...]
    reads: Callable[[Statement | None, Case], Given | None] | None = None
    why_off: Callable[[Bench], str] = lambda bench: ""
    is_system: bool = False
    about: str = "text"


@lru_cache(maxsize=1)
def toolbox() -> Mapping[str, Tool[Any]]:
    """All tools by name, in the order of their names."""
    modules = (vars(importlib.import_module(f"core.tools.{name}")) for name in MODULES)
    found = [value for module in modules for value in module.values() if isinstance(value, Tool)]
    return {tool.name: tool for tool in sorted(found, key=lambda tool: tool.name)}


def tool_named(name: str) -> Tool[Any]:
    """The tool of that name.

    Raises InputError if there is none; the message names those that there are.
    """
    if name not in toolbox():
        raise InputError(f"Expected one of the tools {', '.join(toolbox())}, found “{name}”.")
    return toolbox()[name]


def read_input(tool: Tool[Given], given: str) -> Given:
    """The tool's input from JSON.

    Raises InputError if it is not JSON of the tool's shape; the message names the place.
    """
    try:
        return msgspec.json.decode(given.encode(), type=tool.takes)
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        fields = ", ".join(tool.takes.__struct_fields__)
        raise InputError(
            f"Expected a JSON object with {fields} for the tool {tool.name}, found: {error}."
        ) from error


def use(tool: Tool[Given], given: Given, bench: Bench) -> ToolUse:
    """Call a tool and tell what came of it: a tool that is off or fails has no label.

    Offsets of the use are those of the text that the tool was given; the caller moves them. Raises
    Stopped if the person stopped the check meanwhile.
    """
    shown = _as_json(msgspec.to_builtins(given))
    blank = ToolUse(tool.name, None, shown, "{}", "off", "unclear", "", 0.0)
    if why := tool.why_off(bench):
        return replace(blank, words=why)
    began = time.perf_counter()
    try:
        answer = tool.work(given, bench)
    except (InputError, ModelError, ReplyError) as error:
        return replace(
            blank, outcome="failed", words=str(error), seconds=time.perf_counter() - began,
            is_over_cap=isinstance(error, BudgetReached),
        )  # fmt: skip
    return replace(
        blank, gave=_as_json(answer.gave), outcome="found" if answer.has_something else "nothing",
        label=answer.label, words=answer.words, seconds=time.perf_counter() - began, p=answer.p,
        start=answer.start, end=answer.end, instead=answer.instead, category=answer.category,
    )  # fmt: skip


def _as_json(value: Any) -> str:
    """A JSON object, with its texts cut where it would be too long to keep."""
    cut = {
        key: f"{part[:1000]}…" if isinstance(part, str) and len(part) > 1000 else part
        for key, part in value.items()
    }
    texts = (msgspec.json.encode(one).decode() for one in (value, cut))
    return next((text for text in texts if len(text) <= MOST_SHOWN), '{"cut":true}')


def describe_tools(tools: Iterable[Tool[Any]]) -> str:
    """All these tools, one paragraph each, in their order."""
    described = []
    for tool in tools:
        words = f"{tool.description}\n{cleandoc(tool.takes.__doc__ or '')}"
        lines = (line.rstrip() for line in words.splitlines())
        described.append("\n  ".join([signature(tool), *filter(None, lines)]))
    return "\n\n".join(described)


def signature(tool: Tool[Any]) -> str:
    """The tool's name with its fields, their types and defaults, as one would declare it."""
    return f"{tool.name}({_fields(tool.takes)})"


def _fields(struct: type[msgspec.Struct]) -> str:
    hints = get_type_hints(struct)
    return ", ".join(
        f"{field.name}: {_type_words(hints[field.name])}{_default(field)}"
        for field in msgspec.structs.fields(struct)
    )


def _type_words(hint: Any) -> str:
    """A type as Python writes it; an object as its fields in braces."""
    if get_origin(hint) in (list, tuple):
        inner = ", ".join("..." if one is ... else _type_words(one) for one in get_args(hint))
        return f"{get_origin(hint).__name__}[{inner}]"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return f"{{{_fields(hint)}}}"
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return f" = {field.default_factory()!r}"
    return "" if field.default is msgspec.NODEFAULT else f" = {field.default!r}"


Say = Callable[[str], None]
Out = Callable[[str | bytes], None]
INPUT_MEGABYTES = 16
WIDTH = 96
TOOLS_WORDS = """\
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


def add_commands(commands: Any, add_home: Any) -> None:
    """Add the command `tools`; `add_home` adds `--home`."""
    tools = commands.add_parser(
        "tools",
        help="list the tools of an audit, or use one",
        description=TOOLS_WORDS,
        epilog=TOOLS_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tools.add_argument("tool", nargs="?", metavar="NAME", help="the tool's name")
    tools.add_argument(
        "--input", metavar="JSON", help="the tool's input as a JSON object, or - for standard input"
    )
    tools.add_argument("--json", action="store_true", help="print one JSON object")
    add_home(tools)


def run_tools(given: argparse.Namespace, bench: Bench, say: Say, out: Out) -> int:
    """List, show or use; 0 when that was done, 1 when the tool is off here.

    Raises InputError if there is no such tool, or its input is not what it takes.
    """
    if given.tool is None:
        if given.input is not None:
            raise InputError("Expected a tool's name before --input, found none; give one.")
        tools = list(toolbox().values())
        if given.json:
            out(_json([_as_object(tool, bench) for tool in tools]))
        for tool in tools if not given.json else ():
            off = f"\n  Off here: {why}" if (why := tool.why_off(bench)) else ""
            words = textwrap.indent(textwrap.fill(tool.description, WIDTH - 2), "  ")
            out(f"{signature(tool)}\n{words}{off}\n\n")
        return 0
    tool = tool_named(given.tool)
    if given.input is None:
        out(_json(_as_object(tool, bench)) if given.json else _with_examples(tool, bench))
        return 0
    used = use(tool, read_input(tool, _read_json(given.input)), bench)
    if used.outcome == "failed":
        raise InputError(used.words)
    if given.json:
        out(_json(_use_as_object(used)))
    if used.outcome == "off":
        say(used.words)
        return 1
    if not given.json:
        out(_use_in_words(used))
    return 0


def _as_object(tool: Tool[Any], bench: Bench) -> dict[str, Any]:
    examples = [
        {
            "question": one.question, "response": one.response,
            "input": msgspec.to_builtins(one.given), "label": one.label,
        }
        for one in tool.examples
    ]  # fmt: skip
    return {
        "name": tool.name, "signature": signature(tool), "description": tool.description,
        "is_system": tool.is_system, "off": tool.why_off(bench), "examples": examples,
    }  # fmt: skip


def _with_examples(tool: Tool[Any], bench: Bench) -> str:
    lines = [describe_tools([tool])]
    if why := tool.why_off(bench):
        lines.append(f"Off here: {why}")
    for example in tool.examples:
        given = msgspec.json.encode(example.given).decode()
        lines.append(f"--input '{given}'\n  {example.label}")
    return "\n".join(lines) + "\n"


def _read_json(given: str) -> str:
    if given != "-":
        return given
    if sys.stdin is None:
        raise InputError("Expected the input on standard input, found it closed.")
    whole = sys.stdin.buffer.read(INPUT_MEGABYTES * MEGABYTE + 1)
    if len(whole) > INPUT_MEGABYTES * MEGABYTE:
        raise InputError(f"Expected at most {INPUT_MEGABYTES} MB of input, found more; give less.")
    try:
        return whole.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"Expected UTF-8 text on standard input, found another encoding at byte {error.start}."
        ) from error


def _use_as_object(used: ToolUse) -> dict[str, Any]:
    return {
        "tool": used.tool, "outcome": used.outcome, "label": used.label, "p_hallucinated": used.p,
        "words": used.words, "start": used.start, "end": used.end, "instead": used.instead,
        "category": used.category, "given": json.loads(used.given), "gave": json.loads(used.gave),
        "seconds": round(used.seconds, 4),
    }  # fmt: skip


def _use_in_words(used: ToolUse) -> str:
    sure = f"  p(hallucinated) = {used.p:.2f}" if used.p is not None else ""
    lines = [f"{used.label.upper()}{sure}", used.words]
    if used.start is not None and used.end is not None:
        # The wrong words stand in the text among the input that is long enough to hold them.
        texts = (text for text in json.loads(used.given).values() if isinstance(text, str))
        text = next((text for text in texts if len(text) >= used.end), "")
        instead = f": it should say {used.instead}" if used.instead else ""
        lines.append(f"  wrong: “{text[used.start : used.end]}”{instead}")
    return "\n".join(lines) + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
