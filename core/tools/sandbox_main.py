"""Runs an answer's code and its checks where nobody can be asked: the program in the sandbox.

Its text is sent into the sandbox, so it imports nothing of ours and keeps to what older Pythons
know. What it found goes out behind a secret word, whatever becomes of the code's output.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib.machinery
import importlib.util
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

FILE = "/box/answer.py"
EXAMPLE = 0  # in place of a line: what failed is an example of the question


def run(code: str, asserted: list[int], watched: list[list[int]], examples: str, word: str) -> None:
    """Run the code, then the examples, and say how many checks held or what failed.

    `asserted` are the lines where assertions begin that count, `watched` the first and last lines
    of what a check consists of: an error elsewhere may be one that the answer means to show.
    """
    out, whose = os.dup(2), os.getpid()
    sys.dont_write_bytecode = True
    held: set[int] = set()
    failed: list[object] = []
    try:
        loader = _Loader("__main__", code, asserted)
        spec = importlib.machinery.ModuleSpec("__main__", loader, origin=FILE)
        spec.has_location = True
        module = importlib.util.module_from_spec(spec)
        module.__dict__["__held__"] = held.add
        sys.modules["__main__"] = module
        loader.exec_module(module)
        count, failed = _try_examples(examples, module.__dict__)
    except SystemExit:
        return  # it left early, which neither passes nor fails
    except BaseException as error:  # noqa: BLE001 - somebody's code may raise anything
        count, failed = 0, [_named(error), _words(error), _check_at(error, watched)]
    if os.getpid() != whose:
        return
    report = json.dumps({"held": len(held) + count, "failed": failed or None})
    os.write(out, ("\n" + word + report + "\n").encode("ascii"))


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads the code as the main program, with its checks counted."""

    def __init__(self, name: str, code: str, asserted: list[int]) -> None:
        super().__init__(name, FILE)
        self.tree = _Counting(asserted).visit(ast.parse(code))
        # For what asks for its own source.
        Path(FILE).write_text(code, encoding="utf-8", errors="replace")

    def source_to_code(self, data: Any, path: Any) -> Any:  # type: ignore[override]
        """From the text, whose encoding is known, whatever it says of it."""
        return super().source_to_code(self.tree, path)


class _Counting(ast.NodeTransformer):
    """Notes every assertion that was reached and held."""

    def __init__(self, lines: list[int]) -> None:
        self.lines = lines

    def visit_Assert(self, node: ast.Assert) -> ast.AST | list[ast.AST]:
        if node.lineno not in self.lines:
            return node
        note = ast.parse(f"__held__({node.lineno})").body[0]
        for part in ast.walk(note):
            ast.copy_location(part, node)
        return [node, note]


class _Values(doctest.OutputChecker):
    """Two ways of writing one value are the same: 'a' and "a", 0.5 and 0.50."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Whether what came is what was wanted."""
        if super().check_output(want, got, optionflags):
            return True
        with contextlib.suppress(Exception):
            return _same(ast.literal_eval(want.strip()), ast.literal_eval(got.strip()))
        return False


class _Runner(doctest.DocTestRunner):
    """Keeps the first example that fails and why; counts those that hold."""

    def __init__(self) -> None:
        super().__init__(_Values(), verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
        self.held = 0
        self.first: list[object] = []

    def report_start(self, out: Any, test: Any, example: doctest.Example) -> None:
        """Print nothing."""

    def report_success(self, out: Any, test: Any, example: doctest.Example, got: str) -> None:
        """An example without a result only prepares the next."""
        self.held += bool(example.want)

    def report_failure(self, out: Any, test: Any, example: doctest.Example, got: str) -> None:
        """Keep the first failure: the example and what it gave."""
        said = f"{example.source.strip()} gives {got.strip()}"
        self.first = self.first or ["AssertionError", said, EXAMPLE]

    def report_unexpected_exception(
        self, out: Any, test: Any, example: doctest.Example, exc_info: Any
    ) -> None:
        """Noted with the error; one in preparing is none of a check."""
        error = exc_info[1]
        said = f"{example.source.strip()} gives {_named(error)}: {_words(error)}"
        self.first = self.first or [_named(error), said, EXAMPLE if example.want else None]


def _try_examples(examples: str, names: dict[str, Any]) -> tuple[int, list[object]]:
    runner = _Runner()
    test = doctest.DocTestParser().get_doctest(examples, names, "example", "question", 0)
    runner.run(test, out=lambda words: None, clear_globs=False)
    return runner.held, runner.first


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    if type(one) is type(other) and isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _check_at(error: BaseException, watched: list[list[int]]) -> int | None:
    """The line of the check that the error comes up through; None where it is of no check."""
    trace = error.__traceback__
    while trace is not None:
        line, is_own = trace.tb_lineno, trace.tb_frame.f_code.co_filename == FILE
        if is_own and any(first <= line <= last for first, last in watched):
            return line
        trace = trace.tb_next
    return None


def _named(error: BaseException) -> str:
    """The error's name; with its module where that is not Python itself."""
    kind = type(error)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _words(error: BaseException) -> str:
    try:
        return str(error)[:300]
    except Exception:  # noqa: BLE001 - an error of somebody's own does anything when asked
        return ""
