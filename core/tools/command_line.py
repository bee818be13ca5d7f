"""`python -m core tools`: lists tools, shows one, or uses one."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from core.audited import ToolUse
from core.config import MEGABYTE
from core.errors import InputError
from core.tools.described import described, signature
from core.tools.toolbox import Bench, Tool, read_input, tool_named, toolbox, use

Say = Callable[[str], None]
Out = Callable[[str | bytes], None]
INPUT_MEGABYTES = 16
WIDTH = 96


def run_tools(given: argparse.Namespace, bench: Bench, say: Say, out: Out) -> int:
    """List, show or use; 0 when that was done, 1 when the tool is off here.

    Raises:
        InputError: there is no such tool, or its input is not what it takes.
    """
    if given.tool is None:
        if given.input is not None:
            raise InputError("Expected a tool's name before --input, found none; give one.")
        _tell_all(bench, given.json, out)
        return 0
    tool = tool_named(given.tool)
    if given.input is None:
        out(_json(_shown(tool, bench)) if given.json else _plainly_shown(tool, bench))
        return 0
    told = use(tool, read_input(tool, _input(given.input)), bench)
    if told.outcome == "failed":
        raise InputError(told.words)
    if given.json:
        out(_json(_told(told)))
    if told.outcome == "off":
        say(told.words)
        return 1
    if not given.json:
        out(_plainly_told(told))
    return 0


def _tell_all(bench: Bench, is_json: bool, out: Out) -> None:
    tools = list(toolbox().values())
    if is_json:
        out(_json([_shown(tool, bench) for tool in tools]))
        return
    for tool in tools:
        off = f"\n  Off here: {tool.why_off(bench)}" if tool.why_off(bench) else ""
        words = textwrap.fill(tool.description, WIDTH, initial_indent="  ", subsequent_indent="  ")
        out(f"{signature(tool)}\n{words}{off}\n")


def _shown(tool: Tool[Any], bench: Bench) -> dict[str, Any]:
    """One tool as an object: how it is called, what for, and two examples."""
    return {
        "name": tool.name,
        "signature": signature(tool),
        "description": tool.description,
        "is_system": tool.is_system,
        "off": tool.why_off(bench),
        "examples": [
            {
                "question": example.question,
                "response": example.response,
                "input": msgspec.to_builtins(example.given),
                "label": example.label,
            }
            for example in tool.examples
        ],
    }


def _plainly_shown(tool: Tool[Any], bench: Bench) -> str:
    lines = [described([tool])]
    if why := tool.why_off(bench):
        lines.append(f"Off here: {why}")
    for example in tool.examples:
        given = msgspec.json.encode(example.given).decode()
        lines.append(f"--input '{given}'\n  {example.label}")
    return "\n".join(lines) + "\n"


def _input(given: str) -> str:
    """The input's JSON, from the argument or from standard input."""
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


def _told(told: ToolUse) -> dict[str, Any]:
    """What came of a use, its input and output as objects."""
    return {
        "tool": told.tool,
        "outcome": told.outcome,
        "label": told.label,
        "p_hallucinated": told.p,
        "words": told.words,
        "start": told.start,
        "end": told.end,
        "instead": told.instead,
        "category": told.category,
        "given": json.loads(told.given),
        "gave": json.loads(told.gave),
        "seconds": round(told.seconds, 4),
    }


def _plainly_told(told: ToolUse) -> str:
    sure = f"  p(hallucinated) = {told.p:.2f}" if told.p is not None else ""
    lines = [f"{told.label.upper()}{sure}", told.words]
    if told.start is not None and told.end is not None:
        instead = f": it should say {told.instead}" if told.instead else ""
        lines.append(f"  wrong: “{_words_at(told)}”{instead}")
    return "\n".join(lines) + "\n"


def _words_at(told: ToolUse) -> str:
    """The wrong words, from the text among the input that is long enough to hold them."""
    given: Mapping[str, Any] = json.loads(told.given)
    texts = [value for value in given.values() if isinstance(value, str)]
    text = next((text for text in texts if len(text) >= (told.end or 0)), "")
    return text[told.start : told.end]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
