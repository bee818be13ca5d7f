"""What `tools` takes on the command line."""

from __future__ import annotations

import argparse
from typing import Any

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
