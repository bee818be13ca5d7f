"""Finds what keeps an answer's Python from working at all, without running it.

Syntax that is none, and names that nothing binds: a module that was not imported, a function that
is not there. Speaks only where that is sure. Source: HaluAgent 2.1 (code that is syntactically
incorrect, missing dependencies).
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 50_000  # characters of code
FENCED = re.compile(
    r"^[ \t]*```[ \t]*(?:python[0-9.]*|py)[ \t]*\n(.*?)^[ \t]*```[ \t]*$",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
STARTS = re.compile(r"\s*(?:def \w+\(|class \w+|import \w+|from \w[\w.]* import )")
WANTS_PYTHON = re.compile(r"\bpython\b|\bdef \w+\(", re.IGNORECASE)
# What is not meant as a program of its own, or not for this Python: placeholders, sessions,
# notebooks, templates, Python 2, and syntax younger than the Python that reads it here.
NO_PROGRAM = re.compile(
    r"^[ \t]*(?:>>>|\.\.\.|…|[%!$]|In \[|<<<<|@@ |[-+]{3} |#\s*\.\.\.)|<[a-z_ ]+>|\{\{"
    r"|\b(?:YOUR|your)_|^[ \t]*(?:print|exec)\s+[^(=\s]|except\s+\w+\s*,\s*\w+\s*:"
    r"|^[ \t]*type\s+\w+|^(?:def|class)\s+\w+\[|\bf[\"']|\blambda\s*\(",
    re.MULTILINE,
)
ANYTHING = {"exec", "eval", "globals", "locals", "vars", "setattr", "__getattr__"}
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef)
GIVEN = set(dir(builtins)) | {"__name__", "__file__", "__doc__", "__builtins__", "__spec__"}
COMMON_NAMES = {"np": "numpy", "pd": "pandas", "plt": "matplotlib"}


@dataclass(frozen=True)
class CodeFault:
    """What is wrong, in words for people, with its line in the code, counted from 1."""

    words: str
    line: int


def fault_in(question: str, response: str) -> CodeFault | None:
    """The first sure fault of an answer's program, fenced as Python or bare; mostly None.

    Lines are those of its fenced blocks below each other.
    """
    response = response.replace("\r\n", "\n")
    blocks = [match[1] for match in FENCED.finditer(response)]
    if not blocks and STARTS.match(response) and "```" not in response:
        blocks = [response]
    code = "\n".join(blocks)
    if not code.strip() or len(code) > LONGEST or NO_PROGRAM.search(code):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except SyntaxError as error:
        return _syntax(error) if len(blocks) == 1 and WANTS_PYTHON.search(question) else None
    except (ValueError, RecursionError, MemoryError):
        return None
    return _unbound(tree, question)


def _syntax(error: SyntaxError) -> CodeFault | None:
    line = error.lineno or 1
    said = (error.msg or "it cannot be read").rstrip(".")
    return CodeFault(f"The code is no Python: {said} in line {line}.", line)


def _unbound(tree: ast.Module, question: str) -> CodeFault | None:
    """The first name read within a function, or a module read anywhere, that nothing binds."""
    bound = GIVEN | set(_bound(tree)) | set(re.findall(r"[^\W\d]\w*", question))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    has_star = any(
        alias.name == "*"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    )
    if has_star or names & ANYTHING or not any(isinstance(node, SCOPES) for node in tree.body):
        return None
    bases = _bases(tree)
    # What stands in the types of a function need not exist.
    within = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, SCOPES)
        for statement in node.body
        for part in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or node.id in bound or not isinstance(node.ctx, ast.Load):
            continue
        if id(node) in bases and (node.id in sys.stdlib_module_names or node.id in COMMON_NAMES):
            module = COMMON_NAMES.get(node.id, node.id)
            words = f"The code uses “{node.id}” without importing {module}."
            return CodeFault(words, node.lineno)
        if id(node) in within:
            return CodeFault(f"The code uses “{node.id}”, which nothing defines.", node.lineno)
    return None


def _bases(tree: ast.Module) -> set[int]:
    """The names that something is taken from: `math` in `math.pi`."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def _bound(tree: ast.Module) -> Iterator[str]:
    """Every name that anything in the program binds, wherever: too many rather than too few."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest
        elif isinstance(node, ast.Global | ast.Nonlocal):
            yield from node.names
