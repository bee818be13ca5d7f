"""Which assertions and examples check an answer's code: those that try something it defines.

`assert 1 + 1 == 2` tests Python. What a name holds is followed through plain assignments and
through what a check is called with, no further. Source: HaluAgent 2.2 (code interpreter).
"""

from __future__ import annotations

import ast
import builtins
import doctest
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

CALLED = ("test", "check")  # how functions are named whose assertions are checks
LONGEST_VALUE = 500  # characters of what an example gives
# What closes the text that an example stands in is none of its result.
CLOSING = re.compile(r'^.*(?:"""|\'\'\'|```|~~~).*$', re.MULTILINE)
# What lies within is called later, or not at all, or may swallow what fails.
PARTED = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.With, ast.AsyncWith
)  # fmt: skip


@dataclass(frozen=True)
class Checks:
    """What counts in a program: lines where assertions begin, and the lines of what they need.

    `watched` are pairs of a first and a last line, counted from one.
    """

    asserted: tuple[int, ...]
    watched: tuple[tuple[int, int], ...]


@dataclass
class _Names:
    """What names stand for: `own` is what the code defines, `made` what calling that gave."""

    own: set[str]
    made: set[str] = field(default_factory=set)

    def tries(self, node: ast.AST) -> bool:
        """Whether this calls the code's own or holds what such a call gave."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in self.made:
                return True
            if isinstance(part, ast.Call) and names_in(part.func) & self.own:
                return True
        return False

    def assign(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        """Names that are given such a value stand for it from here on."""
        names = {name for target in targets for name in names_in(target)}
        if self.tries(value):
            self.made |= names
        elif isinstance(value, ast.Name) and value.id in self.own:
            self.own |= names


def defined_in(tree: ast.Module) -> set[str]:
    """The functions and classes that a program defines at its outermost level."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


def names_in(node: ast.AST) -> set[str]:
    """Every name that is read or written within."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def checks_in(tree: ast.Module) -> Checks:
    """The assertions that test the code's own where running it may reach them.

    One within a function counts where that is named as a check and called from outside: others
    guard what they are given. One whose failure something may swallow does not count.
    """
    names = _Names(defined_in(tree))
    asserted = _tested(tree, names)
    watched = list(asserted)
    used = {name for node in asserted for name in names_in(node)}
    for check in _called_checks(tree, names):
        if found := _tested(check, names):
            asserted += found
            watched.append(check)
    for node in _reached(tree):
        if isinstance(node, ast.Assign) and names_in(node) & used and names.tries(node.value):
            watched.append(node)
    lines = tuple((node.lineno, node.end_lineno or node.lineno) for node in watched)
    return Checks(tuple(node.lineno for node in asserted), lines)


def _called_checks(tree: ast.Module, names: _Names) -> list[ast.FunctionDef]:
    """The checks that are called; what they are called with is known to them by their names."""
    checks = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith(CALLED)
    }
    called = {}
    for call in _reached(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        if (check := checks.get(call.func.id)) is None:
            continue
        called[check.name] = check
        for given, taken in zip(call.args, check.args.args, strict=False):
            names.assign([ast.Name(taken.arg)], given)
    return list(called.values())


def _tested(place: ast.AST, names: _Names) -> list[ast.stmt]:
    """The assertions of one program or function that count, in order."""
    found: list[ast.stmt] = []
    for node in _reached(place):
        if isinstance(node, ast.Assign):
            names.assign(node.targets, node.value)
        elif isinstance(node, ast.For):
            names.assign([node.target], node.iter)
        elif isinstance(node, ast.Assert) and _is_test(node.test) and names.tries(node.test):
            found.append(node)
    return found


def _is_test(test: ast.expr) -> bool:
    """False for what holds whatever the code does: a tuple, a choice of which one is constant."""
    kinds = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Constant, ast.JoinedStr, ast.Lambda)
    if isinstance(test, ast.BoolOp):
        return all(map(_is_test, test.values))
    return not isinstance(test, kinds)


def _reached(tree: ast.AST) -> Iterator[ast.AST]:
    """What lies within and runs there, but for what errors are caught around."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, PARTED):
            continue
        if isinstance(node, ast.Try) and node.handlers:
            continue
        yield node
        yield from _reached(node)


def examples_of(question: str, tree: ast.Module) -> tuple[str, int]:
    """The question's examples that try the code, as one docstring, and how many they are.

    One that cannot be read for sure ends them: it may have prepared what later ones use.
    """
    text = CLOSING.sub("", question.replace("\r\n", "\n"))
    try:
        parts = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return "", 0
    names = _Names(defined_in(tree))
    known = names.own | set(dir(builtins))
    kept: list[str] = []
    count = 0
    for part in parts:
        wanted = _wanted(part)
        read = _read(part)
        if wanted is None or read is None:
            break
        bound = {n.id for n in ast.walk(read) if isinstance(n, ast.Name) and _is_bound(n)}
        if not names_in(read) <= known | bound:
            break
        if isinstance(read, ast.Assign):
            names.assign(read.targets, read.value)
            known |= bound
        elif not wanted or not names.tries(read):
            break
        count += bool(wanted)
        kept.append(_written(part.source) + wanted)
    return ("\n".join(kept), count) if count else ("", 0)


def _is_bound(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _read(part: doctest.Example) -> ast.stmt | None:
    """The one statement of an example: a value, or an assignment that gives none."""
    if "doctest:" in part.source:
        return None
    try:
        body = ast.parse(part.source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    kind = ast.Expr if part.want else ast.Assign
    return body[0] if len(body) == 1 and isinstance(body[0], kind) else None


def _wanted(part: doctest.Example) -> str | None:
    """What the example gives where that is plainly a value; prose may go on below it."""
    first, _, rest = part.want.partition("\n")
    if not first:
        return ""
    # Two values below each other were both printed, and who knows where that ends.
    if not _is_value(first) or _is_value(rest.partition("\n")[0]):
        return None
    return first + "\n"


def _is_value(line: str) -> bool:
    if len(line) > LONGEST_VALUE or "..." in line:
        return False
    try:
        ast.literal_eval(line.strip())
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True


def _written(source: str) -> str:
    lines = source.rstrip("\n").split("\n")
    return "".join(f"{'... ' if n else '>>> '}{line}\n" for n, line in enumerate(lines))
