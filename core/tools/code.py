"""Runs an answer's Python with the checks that come with it (HaluAgent 2.2, code interpreter).

Checks are the assertions in the answer that running it reaches, and the examples in the question
(`>>> call` and what it gives). Code without a check is not run: that it does not crash says little.
This module only parses the code; it runs in the sandbox, within `inside`.

Answer and checks share a process, so an answer that sets out to deceive can forge what is said of
it; one that is merely wrong cannot pass by leaving early.
"""

from __future__ import annotations

import ast
import re
import secrets
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from core.concurrency import Stop
from core.tools.code_checks import Checks, checks_in, defined_in, examples_of
from core.tools.sandbox import CPU_SECONDS, Ran, run_python

FENCE = re.compile(r"^[ \t]*```[ \t]*([^`\n]*)\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"(?:python[0-9.]*|py)?\s*", re.IGNORECASE)
LONGEST = 50_000  # characters of code
LONGEST_SHOWN = 120  # characters of a check that failed
LONGEST_PRINTED = 2_000  # characters of output that are kept
EXAMPLE = 0  # as `inside` says it
# Errors that are the code's own. Any other may come of what the sandbox withholds (files, network,
# packages, input, threads, room) or of another Python version, and says nothing about the answer.
OWN_ERRORS = {
    "AssertionError", "AttributeError", "IndexError", "KeyError", "NameError", "OverflowError",
    "RecursionError", "StopIteration", "TypeError", "UnboundLocalError", "ValueError",
    "ZeroDivisionError",
}  # fmt: skip
# Words beside the code that only lead to it or take leave; anything else states what no run checks.
LONGEST_PROSE = 200
LEADS_IN = re.compile(
    r"(?:(?:Sure|Certainly|Of course|Okay|OK|Great)\b[!,.:]?\s*)?"
    # No capital within and no figure: such a line names nothing that could be wrong.
    r"(?:[A-Za-z][a-z ,'’_()]*\b(?:it|code|function|class|program|script|solution|implementation"
    r"|tests?|checks?|examples?|usage|answer|assertions?)\b[a-z ,'’_()]{0,40}:)?"
    r"|(?:Solution|Code|Tests?|Usage|Examples?|Implementation|Answer)[.:]?"
    r"|(?:That(?:'s| is) (?:all|it)|(?:I )?[Hh]ope (?:this|it|that) helps)[.!]?"
    r"|(?:以下|下面|这是|这里|代码|测试|示例|答案)[^。\d]{0,30}[:：]"
)
MARKUP = re.compile(r"[#*>]+|\bPython\b")
NAMED = re.compile(r"`[A-Za-z_]\w*(?:\([^`]*\))?`")


@dataclass(frozen=True)
class Snippet:
    """An answer's Python, the question's examples as a docstring, and how many checks they hold.

    `is_alone` where the answer says nothing beside its code, so that a run checks all of it.
    """

    code: str
    examples: str
    found: Checks
    checks: int
    is_alone: bool = True


@dataclass(frozen=True)
class CodeCheck:
    """Whether code passes its checks; `words` is a sentence for people.

    `held` counts the checks that were passed, `printed` is the end of what the code wrote, `error`
    the words of what failed, and `error_line` its line in the code, from 1; None where it has none.
    """

    holds: bool
    words: str
    is_out_of_time: bool = False
    held: int = 0
    printed: str = ""
    error: str = ""
    error_line: int | None = None


def snippet_of(question: str, response: str) -> Snippet | None:
    """The answer's code where it comes with checks; None where there is none or no check."""
    response = response.replace("\r\n", "\n")
    blocks = [text for info, text in FENCE.findall(response) if PYTHON.fullmatch(info)]
    code = "\n".join(blocks) or response
    tree = _parsed(code)
    if tree is None or _are_several(blocks) or not any(_is_code(node) for node in tree.body):
        return None
    found = checks_in(tree)
    examples, count = examples_of(question, tree)
    checks = len(found.asserted) + count
    is_alone = not blocks or _only_leads(FENCE.sub("\n", response))
    return Snippet(code, examples, found, checks, is_alone) if checks else None


def check_code(snippet: Snippet, stop: Stop) -> CodeCheck | None:
    """Run it; None where that tells nothing: it left early, wants what is withheld, or waited.

    Raises:
        Stopped: the person stopped the check meanwhile.
        RuntimeError: there is no sandbox here (`sandbox.why_off`).
    """
    word = secrets.token_hex(16)
    found = snippet.found
    asked = (snippet.code, list(found.asserted), found.watched, snippet.examples, word)
    ran = run_python(f"{_inside()}\n\nrun{asked!r}\n", stop)
    printed = ran.printed[-LONGEST_PRINTED:]
    if ran.ending == "out_of_time":
        said = f"The code was run and had not ended after {CPU_SECONDS} s of computing."
        return CodeCheck(False, said, True, 0, printed, "out of time")
    report = _report(ran, snippet, word)
    if report is None:
        return None
    held, failed = report.held, report.failed
    if not failed:
        count = "its check" if held == 1 else f"its {held} checks"
        said = f"The code was run and passes {count}."
        return CodeCheck(True, said, False, held, printed) if held else None
    return _failed(snippet, held, failed, printed)


def _failed(snippet: Snippet, held: int, failed: _Failure, printed: str) -> CodeCheck | None:
    """What failed in words; None where that is no check's or none of the code's own doing."""
    name, words, line = failed
    if line is None or name not in OWN_ERRORS:
        return None
    said = words if name == "AssertionError" else f"{name}: {words}".rstrip(": ")
    if line == EXAMPLE:
        why = f"The code was run and fails an example of the question: {words}."
        return CodeCheck(False, why, False, held, printed, said)
    source = _shortened(snippet.code.splitlines()[line - 1])
    shown = f" ({said})" if said and said not in source else ""
    why = f"The code was run and fails its check “{source}”{shown}."
    return CodeCheck(False, why, False, held, printed, said or source, line)


def _shortened(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= LONGEST_SHOWN else f"{line[:LONGEST_SHOWN]}…"


@lru_cache(maxsize=1)
def _inside() -> str:
    return Path(__file__).with_name("inside.py").read_text(encoding="utf-8")


def _parsed(code: str) -> ast.Module | None:
    if len(code) > LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in somebody's code are not ours
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_code(node: ast.stmt) -> bool:
    """Words of prose can be expressions too; a definition or an assertion is not prose."""
    return isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assert)


def _are_several(blocks: list[str]) -> bool:
    """Whether a later block defines again what one before it does: which is meant is open."""
    seen: set[str] = set()
    for block in blocks:
        tree = _parsed(block)
        names = defined_in(tree) if tree else set()
        if names & seen:
            return True
        seen |= names
    return False


def _only_leads(prose: str) -> bool:
    """Whether the words beside the code state nothing: short lines that lead to it."""
    lines = (MARKUP.sub("", NAMED.sub("it", line)).strip() for line in prose.splitlines())
    is_short = len(prose.strip()) <= LONGEST_PROSE
    return is_short and all(LEADS_IN.fullmatch(line) for line in lines if line)


class _Failure(NamedTuple):
    """What failed: an error's name and words, and the line of the check (None: of no check)."""

    name: str
    words: str
    line: int | None


class _Report(msgspec.Struct, forbid_unknown_fields=True):
    """As `inside` writes it; the answer may have written another one."""

    held: Annotated[int, msgspec.Meta(ge=0)]
    failed: _Failure | None


def _report(ran: Ran, snippet: Snippet, word: str) -> _Report | None:
    """How many checks held and what failed, where the run came to that and ended by itself."""
    line = next((x for x in ran.complained.splitlines() if x.startswith(word)), "")
    if ran.ending != "finished" or not line:
        return None
    try:
        report = msgspec.json.decode(line[len(word) :], type=_Report)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    lines = len(snippet.code.splitlines())
    at = report.failed.line if report.failed else None
    return report if at is None or 0 <= at <= lines else None
