"""The program inside the sandbox: runs an answer's code and its checks.

Its source is sent into the sandbox, so it imports nothing of ours and works with older Pythons. Its
report follows a secret word, so that it can be told from the output of the code.
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

ANSWER_PATH = "/box/answer.py"
EXAMPLE_LINE = 0  # instead of a line number: an example of the question failed


def run(code: str, asserted: list[int], watched: list[list[int]], examples: str, word: str) -> None:
    """Run the code, then the examples; report how many checks held, or what failed.

    `asserted` are the first lines of the assertions that count, `watched` the first and last lines
    of the parts of a check: an error elsewhere may be one that the answer means to show.
    """
    output, process_id = os.dup(2), os.getpid()
    sys.dont_write_bytecode = True
    held: set[int] = set()
    failed: list[object] = []
    try:
        loader = _MainLoader("__main__", code, asserted)
        spec = importlib.machinery.ModuleSpec("__main__", loader, origin=ANSWER_PATH)
        spec.has_location = True
        module = importlib.util.module_from_spec(spec)
        module.__dict__["__held__"] = held.add
        sys.modules["__main__"] = module
        loader.exec_module(module)
        count, failed = _run_examples(examples, module.__dict__)
    except SystemExit:
        return  # an early exit neither passes nor fails
    except BaseException as error:  # noqa: BLE001 - unknown code may raise anything
        count, failed = (
            0,
            [_error_name(error), _error_text(error), _find_check_line(error, watched)],
        )
    if os.getpid() != process_id:
        return
    report = json.dumps({"held": len(held) + count, "failed": failed or None})
    os.write(output, ("\n" + word + report + "\n").encode("ascii"))


class _MainLoader(importlib.machinery.SourceFileLoader):
    """Loads the code as the main program, with its checks counted."""

    def __init__(self, name: str, code: str, asserted: list[int]) -> None:
        super().__init__(name, ANSWER_PATH)
        self.tree = _AssertCounter(asserted).visit(ast.parse(code))
        # Code may inspect its own source.
        Path(ANSWER_PATH).write_text(code, encoding="utf-8", errors="replace")

    def source_to_code(self, data: Any, path: Any) -> Any:  # type: ignore[override]
        """Compile the parsed tree, whatever encoding the text declares."""
        return super().source_to_code(self.tree, path)


class _AssertCounter(ast.NodeTransformer):
    """Adds a call after each assertion that records that it held."""

    def __init__(self, lines: list[int]) -> None:
        self.lines = lines

    def visit_Assert(self, node: ast.Assert) -> ast.AST | list[ast.AST]:
        if node.lineno not in self.lines:
            return node
        note = ast.parse(f"__held__({node.lineno})").body[0]
        for part in ast.walk(note):
            ast.copy_location(part, node)
        return [node, note]


class _ValueChecker(doctest.OutputChecker):
    """Compares values instead of texts: 'a' equals "a", 0.5 equals 0.50."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Return True if the output is the wanted one."""
        if super().check_output(want, got, optionflags):
            return True
        with contextlib.suppress(Exception):
            return _is_equal(ast.literal_eval(want.strip()), ast.literal_eval(got.strip()))
        return False


class _ExampleRunner(doctest.DocTestRunner):
    """Counts the examples that hold, and keeps the first one that fails."""

    def __init__(self) -> None:
        super().__init__(_ValueChecker(), verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
        self.held = 0
        self.first: list[object] = []

    def report_start(self, out: Any, test: Any, example: doctest.Example) -> None:
        """Print nothing."""

    def report_success(self, out: Any, test: Any, example: doctest.Example, got: str) -> None:
        """Count the example, unless it only prepares the next one."""
        self.held += bool(example.want)

    def report_failure(self, out: Any, test: Any, example: doctest.Example, got: str) -> None:
        """Keep the first failure: the example and its result."""
        message = f"{example.source.strip()} gives {got.strip()}"
        self.first = self.first or ["AssertionError", message, EXAMPLE_LINE]

    def report_unexpected_exception(
        self, out: Any, test: Any, example: doctest.Example, exc_info: Any
    ) -> None:
        """Keep the error; an error in a preparing example belongs to no check."""
        error = exc_info[1]
        message = f"{example.source.strip()} gives {_error_name(error)}: {_error_text(error)}"
        self.first = self.first or [
            _error_name(error),
            message,
            EXAMPLE_LINE if example.want else None,
        ]


def _run_examples(examples: str, names: dict[str, Any]) -> tuple[int, list[object]]:
    runner = _ExampleRunner()
    test = doctest.DocTestParser().get_doctest(examples, names, "example", "question", 0)
    runner.run(test, out=lambda words: None, clear_globs=False)
    return runner.held, runner.first


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    if type(one) is type(other) and isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    return bool(one == other)


def _find_check_line(error: BaseException, watched: list[list[int]]) -> int | None:
    """Return the line of the check that the error passed through; None if there is none."""
    trace = error.__traceback__
    while trace is not None:
        line, is_own = trace.tb_lineno, trace.tb_frame.f_code.co_filename == ANSWER_PATH
        if is_own and any(first <= line <= last for first, last in watched):
            return line
        trace = trace.tb_next
    return None


def _error_name(error: BaseException) -> str:
    """Return the error's name, with its module unless it is built in."""
    kind = type(error)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _error_text(error: BaseException) -> str:
    try:
        return str(error)[:300]
    except Exception:  # noqa: BLE001 - a custom error may fail here
        return ""
