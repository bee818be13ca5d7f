"""Runs an answer's Python with the checks that come with it (HaluAgent 2.2, code interpreter).

Checks are the assertions in the answer and the examples in the question (`>>> call` and what it
gives). Code without a check is not run: that it does not crash says little. This module only parses
the code; it runs in the sandbox.
"""

from __future__ import annotations

import ast
import doctest
import re
import secrets
import warnings
from dataclasses import dataclass

from core.concurrency import Stop
from core.tools.sandbox import Ran, run_python

FENCE = re.compile(r"^[ \t]*```[ \t]*(?:python[0-9]?|py)?[ \t]*\n(.*?)^[ \t]*```", re.M | re.S)
LONGEST = 50_000  # characters of code
# Runs the answer, then the question's examples; says the word only after all held. What it prints
# itself goes nowhere, so that nothing but the word stands on the channel.
HARNESS = """
import contextlib, doctest, io, sys
answer, examples, word = {answer!r}, {examples!r}, {word!r}
space = {{"__name__": "__main__"}}
with contextlib.redirect_stdout(io.StringIO()):
    exec(compile(answer, "answer.py", "exec"), space)
    heard = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    test = doctest.DocTestParser().get_doctest(examples, space, "example", "question", 0)
    runner.run(test, out=heard.append, clear_globs=False)
if runner.failures:
    sys.exit("".join(heard))
print(word)
"""
Kind = tuple[str, str]  # of an error: its type's name and its words


@dataclass(frozen=True)
class Snippet:
    """Python in a text: `[start, end)` there, what it says, and the question's examples."""

    start: int
    end: int
    code: str
    examples: str
    checks: int


@dataclass(frozen=True)
class CodeCheck:
    """Whether code passes its checks; `words` is a sentence for people."""

    holds: bool
    words: str
    is_out_of_time: bool = False


def snippet_of(question: str, response: str) -> Snippet | None:
    """The answer's code where it comes with checks; None where there is none or no check."""
    found = _code_in(response)
    if found is None:
        return None
    start, end, code, tree = found
    defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    asserted = sum(isinstance(node, ast.Assert) for node in ast.walk(tree))
    examples = _examples(question, defined)
    checks = asserted + examples.count(">>> ")
    return Snippet(start, end, code, examples, checks) if checks else None


def check_code(snippet: Snippet, stop: Stop) -> CodeCheck | None:
    """Run it; None where that tells nothing: a package is missing here, or memory ran out.

    Raises:
        RuntimeError: there is no sandbox here (`sandbox.why_off`).
    """
    word = secrets.token_hex(16)
    program = HARNESS.format(answer=snippet.code, examples=snippet.examples, word=word)
    ran = run_python(program, stop)
    count = "its check" if snippet.checks == 1 else f"its {snippet.checks} checks"
    if ran.ending == "finished" and ran.printed.split() == [word]:
        return CodeCheck(True, f"The code was run and passes {count}.")
    if ran.ending == "out_of_time":
        return CodeCheck(False, "The code was run and did not come to an end in time.", True)
    name, words = _error(ran)
    if ran.ending == "killed" or name in ("ModuleNotFoundError", "ImportError", "MemoryError"):
        return None
    said = f"{name}: {words}" if words else name
    if name == "AssertionError":
        return CodeCheck(False, f"The code was run and fails a check ({said}).")
    return CodeCheck(False, f"The code was run and does not pass {count} ({said}).")


def _code_in(response: str) -> tuple[int, int, str, ast.Module] | None:
    """The fenced blocks as one, else the whole text, where that is Python."""
    blocks = list(FENCE.finditer(response))
    if blocks:
        start, end = blocks[0].start(1), blocks[-1].end(1)
        code = "\n".join(block[1] for block in blocks)
    else:
        start, end, code = 0, len(response), response
    if len(code) > LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in somebody's code are not ours
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return (start, end, code, tree) if any(_is_code(node) for node in tree.body) else None


def _is_code(node: ast.stmt) -> bool:
    """Words of prose can be expressions too; a definition or an assertion is not prose."""
    return isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assert)


def _examples(question: str, defined: set[str]) -> str:
    """The question's examples that call what the code defines, as one docstring."""
    try:
        parts = doctest.DocTestParser().get_examples(question)
    except ValueError:
        return ""
    kept = [part for part in parts if part.want and _calls(part.source, defined)]
    return "\n".join(
        "".join(f"{'>>> ' if n == 0 else '... '}{line}\n" for n, line in enumerate(lines))
        + part.want
        for part in kept
        if (lines := part.source.rstrip("\n").split("\n"))
    )


def _calls(source: str, defined: set[str]) -> bool:
    try:
        names = {n.id for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name)}
    except (SyntaxError, ValueError, RecursionError):
        return False
    return bool(names & defined)


def _error(ran: Ran) -> Kind:
    """The error's name and words, from the last line of what was complained about."""
    lines = [line.strip() for line in ran.complained.splitlines() if line.strip()]
    failed = next((line for line in lines if line.startswith("Failed example:")), "")
    if failed:
        place = lines.index(failed)
        return "AssertionError", f"{lines[place + 1]} gives {lines[-1]}"[:200]
    name, _, words = (lines[-1] if lines else "it ended early").partition(": ")
    return name[:60], words[:140]
