"""`python -m core tools`: lists tools, shows one, or uses one."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import msgspec

from core.config import MEGABYTE
from core.errors import InputError
from core.events import ToolUse
from core.tools.registry import (
    Bench,
    Tool,
    describe_tools,
    read_input,
    signature,
    tool_named,
    toolbox,
    use,
)

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
    """Add it; `add_home` adds `--home`."""
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
        out(
            _json([_as_object(tool, bench) for tool in tools])
            if given.json
            else "".join(f"{_in_a_list(tool, bench)}\n" for tool in tools)
        )
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


def _in_a_list(tool: Tool[Any], bench: Bench) -> str:
    why = tool.why_off(bench)
    off = f"\n  Off here: {why}" if why else ""
    words = textwrap.fill(tool.description, WIDTH, initial_indent="  ", subsequent_indent="  ")
    return f"{signature(tool)}\n{words}{off}\n"


def _as_object(tool: Tool[Any], bench: Bench) -> dict[str, Any]:
    """One tool: how it is called, what for, and two examples."""
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


def _use_as_object(used: ToolUse) -> dict[str, Any]:
    """What came of a use, its input and output as objects."""
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
