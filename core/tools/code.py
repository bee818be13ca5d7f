"""Runs an answer's Python with the checks that come with it (HaluAgent 2.2, code interpreter).

Checks are the assertions in the answer that running it reaches, and the examples in the question
(`>>> call` and what it gives). Code without a check is not run: that it does not crash says little.
This module only parses the code; it runs in the sandbox.

Answer and checks share a process, so an answer that sets out to deceive can forge what is said of
it; one that is merely wrong cannot pass by leaving early.
"""

from __future__ import annotations

import ast
import doctest
import re
import secrets
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from core.concurrency import Stop
from core.tools.sandbox import CPU_SECONDS, Ran, run_python

FENCE = re.compile(r"^[ \t]*```[ \t]*(?:python[0-9]?|py)?[ \t]*\n(.*?)^[ \t]*```", re.M | re.S)
LONGEST = 50_000  # characters of code
# Stands behind the answer, tries the question's examples, and says the word only after all held.
TAIL = """

import doctest as _doctest, sys as _sys
_heard = []
_runner = _doctest.DocTestRunner(verbose=False, optionflags=_doctest.NORMALIZE_WHITESPACE)
_test = _doctest.DocTestParser().get_doctest({examples!r}, globals(), "example", "question", 0)
_runner.run(_test, out=_heard.append, clear_globs=False)
if _runner.failures:
    _sys.exit("".join(_heard))
_sys.__stdout__.write("\\n" + {word!r})
"""
# Errors that are the code's own. Any other may come of what the sandbox withholds (files, network,
# packages, input, threads, room) or of another Python version, and says nothing about the answer.
OWN_ERRORS = {
    "AssertionError", "AttributeError", "IndexError", "KeyError", "NameError", "OverflowError",
    "RecursionError", "StopIteration", "TypeError", "UnboundLocalError", "ValueError",
    "ZeroDivisionError",
}  # fmt: skip
CALLED = ("test", "check")  # how functions are named whose assertions are checks


@dataclass(frozen=True)
class Snippet:
    """An answer's Python, the question's examples as a docstring, and how many checks they hold."""

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
    code, tree = found
    defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    asserted = _asserted(tree)
    examples = _examples(question, defined)
    checks = asserted + examples.count(">>> ")
    return Snippet(code, examples, checks) if checks else None


def check_code(snippet: Snippet, stop: Stop) -> CodeCheck | None:
    """Run it; None where that tells nothing: it left early, wants what is withheld, or waited.

    Raises:
        Stopped: the person stopped the check meanwhile.
        RuntimeError: there is no sandbox here (`sandbox.why_off`).
    """
    word = secrets.token_hex(16)
    ran = run_python(snippet.code + TAIL.format(examples=snippet.examples, word=word), stop)
    count = "its check" if snippet.checks == 1 else f"its {snippet.checks} checks"
    if ran.ending == "finished" and ran.printed.split()[-1:] == [word]:
        return CodeCheck(True, f"The code was run and passes {count}.")
    if ran.ending == "out_of_time":
        said = f"The code was run and had not ended after {CPU_SECONDS} s of computing."
        return CodeCheck(False, said, True)
    name, words = _error(ran)
    if ran.ending != "failed" or name not in OWN_ERRORS:
        return None
    said = f"{name}: {words}" if words else name
    if name == "AssertionError":
        return CodeCheck(False, f"The code was run and fails a check ({said}).")
    return CodeCheck(False, f"The code was run and does not pass {count} ({said}).")


def _code_in(response: str) -> tuple[str, ast.Module] | None:
    """The fenced blocks as one, else the whole text, where that is Python."""
    code = "\n".join(FENCE.findall(response)) or response
    if len(code) > LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in somebody's code are not ours
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return (code, tree) if any(_is_code(node) for node in tree.body) else None


def _is_code(node: ast.stmt) -> bool:
    """Words of prose can be expressions too; a definition or an assertion is not prose."""
    return isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assert)


def _asserted(tree: ast.Module) -> int:
    """How many assertions stand where running the code reaches them and nothing swallows them.

    One within a function counts where that is named as a check and called from outside: others
    guard what they are given.
    """
    outside = list(_reached(tree))
    called = {
        node.func.id
        for node in outside
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    checks = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and node.name in called
        and node.name.startswith(CALLED)
    ]
    reached = [*outside, *(node for check in checks for node in _reached(check))]
    return sum(isinstance(node, ast.Assert) for node in reached)


def _reached(tree: ast.AST) -> Iterator[ast.AST]:
    """What lies within, but for functions' bodies and what errors are caught around."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.Try) and node.handlers:
            continue
        yield node
        yield from _reached(node)


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


def _error(ran: Ran) -> tuple[str, str]:
    """The error's name and words, from the last line of what was complained about."""
    lines = [line.strip() for line in ran.complained.splitlines() if line.strip()]
    failed = next((line for line in lines if line.startswith("Failed example:")), "")
    if failed:
        place = lines.index(failed)
        return "AssertionError", f"{lines[place + 1]} gives {lines[-1]}"[:200]
    name, _, words = (lines[-1] if lines else "it ended early").partition(": ")
    return name[:60], words[:140]
