"""Code: runs an answer's Python with the checks that it or the question brings, walled off.

Checks are assertions that try what the answer defines, and the question's `>>>` examples; code
without one is only looked at (pyflakes). Answer and checks share a process: one that sets out to
deceive can forge its result, one that is merely wrong cannot. Source: HaluAgent 2.1, 2.2, table 5.
"""

from __future__ import annotations

import ast
import builtins
import doctest
import re
import secrets
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
import regex

from core.runtime.concurrency import Stop
from core.schema.records import Case, Label, Statement
from core.tools import sandbox
from core.tools.registry import Answer, Bench, Tool, read_examples
from core.tools.sandbox import CPU_SECONDS, Ran, run_python
from core.tools.vocabulary import PatternTable, read_words

WRITTEN = PatternTable("code")
# None wrong on 34 shared answers; code that is merely slow is not wrong as surely.
DOUBT, SLOW_DOUBT = 0.09, 0.2
# A program may be meant to go with another that is not shown.
FAULT_DOUBT = 0.15
NOTHING_RUN: dict[str, Any] = {
    "checks": 0, "held": 0, "code": "", "examples": "", "output": "", "error": "",
    "error_line": None,
}  # fmt: skip


CALLED = ("test", "check")  # how functions are named whose assertions are checks
LONGEST = 50_000  # characters of code
LONGEST_VALUE = 500  # characters of what an example gives
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# What lies within is called later, or not at all, or may swallow what fails.
PARTED = (*DEFINITIONS, ast.Lambda, ast.With, ast.AsyncWith)
CONSTANT = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Constant, ast.JoinedStr, ast.Lambda)


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
        calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
        return bool(names_in(node) & self.made) or any(names_in(f) & self.own for f in calls)

    def assign(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        """Names that are given such a value stand for it from here on."""
        names = {name for target in targets for name in names_in(target)}
        if self.tries(value):
            self.made |= names
        elif isinstance(value, ast.Name) and value.id in self.own:
            self.own |= names


def defined_in(tree: ast.Module) -> set[str]:
    """The functions and classes that a program defines at its outermost level."""
    return {node.name for node in tree.body if isinstance(node, DEFINITIONS)}


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
    watched, used = list(asserted), {name for node in asserted for name in names_in(node)}
    for check in _called_checks(tree, names):
        found = _tested(check, names)
        asserted += found
        watched += [check] if found else []
    for node in _reached(tree):
        if isinstance(node, ast.Assign) and names_in(node) & used and names.tries(node.value):
            watched.append(node)
    lines = tuple((node.lineno, node.end_lineno or node.lineno) for node in watched)
    return Checks(tuple(node.lineno for node in asserted), lines)


def _called_checks(tree: ast.Module, names: _Names) -> list[ast.FunctionDef]:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    checks = {node.name: node for node in functions if node.name.startswith(CALLED)}
    called: dict[str, ast.FunctionDef] = {}
    for call in _reached(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            check = checks.get(call.func.id)
            called |= {check.name: check} if check else {}
            for given, taken in zip(call.args, check.args.args if check else (), strict=False):
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
    if isinstance(test, ast.BoolOp):
        return all(map(_is_test, test.values))
    return not isinstance(test, CONSTANT)


def _reached(tree: ast.AST) -> Iterator[ast.AST]:
    """What lies within and runs there, but for what errors are caught around."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, PARTED) and not (isinstance(node, ast.Try) and node.handlers):
            yield node
            yield from _reached(node)


def examples_of(question: str, tree: ast.Module) -> tuple[str, int]:
    """The question's examples that try the code, as one docstring, and how many they are.

    One that cannot be read for sure ends them: it may have prepared what later ones use.
    """
    try:
        text = WRITTEN.closing.sub("", question.replace("\r\n", "\n"))
        parts = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return "", 0
    names = _Names(defined_in(tree))
    known, count, kept = names.own | set(dir(builtins)), 0, []
    for part in parts:
        wanted, read = _wanted(part), _statement(part)
        if wanted is None or read is None:
            break
        nodes = (node for node in ast.walk(read) if isinstance(node, ast.Name))
        bound = {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
        if not names_in(read) <= known | bound:
            break
        if isinstance(read, ast.Assign):
            names.assign(read.targets, read.value)
            known |= bound
        elif not wanted or not names.tries(read):
            break
        count += bool(wanted)
        lines = part.source.rstrip("\n").split("\n")
        kept.append("".join(f"{'... ' if n else '>>> '}{line}\n" for n, line in enumerate(lines)))
        kept[-1] += wanted
    return ("\n".join(kept), count) if count else ("", 0)


def _statement(part: doctest.Example) -> ast.stmt | None:
    """The one statement of an example: a value, or an assignment that gives none."""
    tree = None if "doctest:" in part.source else parsed(part.source)
    body = tree.body if tree else []
    kind = ast.Expr if part.want else ast.Assign
    return body[0] if len(body) == 1 and isinstance(body[0], kind) else None


def _wanted(part: doctest.Example) -> str | None:
    """What the example gives where that is plainly a value; prose may go on below it."""
    first, _, rest = part.want.partition("\n")
    # Two values below each other were both printed, and who knows where that ends.
    if first and (not _is_value(first) or _is_value(rest.partition("\n")[0])):
        return None
    return f"{first}\n" if first else ""


def _is_value(line: str) -> bool:
    try:
        ast.literal_eval(line.strip() if len(line) <= LONGEST_VALUE and "..." not in line else "")
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True


def parsed(code: str) -> ast.Module | None:
    """The tree of a program; None where it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in somebody's code are not ours
            return ast.parse(code) if len(code) <= LONGEST else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


PYTHON = re.compile(r"(?:python[0-9.]*|py)?\s*", re.IGNORECASE)
LONGEST_SHOWN = 120  # characters of a check that failed
LONGEST_PRINTED = 2_000  # characters of output that are kept
EXAMPLE = 0  # as `sandbox_main` says it
# Errors that are the code's own. Any other may come of what the sandbox withholds (files, network,
# packages, input, threads, room) or of another Python version, and says nothing about the answer.
OWN_ERRORS = {
    "AssertionError", "AttributeError", "IndexError", "KeyError", "NameError", "OverflowError",
    "RecursionError", "StopIteration", "TypeError", "UnboundLocalError", "ValueError",
    "ZeroDivisionError",
}  # fmt: skip
# Words beside the code that only lead to it or take leave; anything else states what no run checks.
LONGEST_PROSE = 200
MARKUP = re.compile(r"[#*>]+|\bPython\b")
NAMED = re.compile(r"`[A-Za-z_]\w*(?:\([^`]*\))?`")


# An error's name and words, and the line of the check that failed; None for that of no check.
Failure = tuple[str, str, int | None]


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
    blocks = [text for info, text in WRITTEN.fence.findall(response) if PYTHON.fullmatch(info)]
    code = "\n".join(blocks) or response
    tree = parsed(code)
    defined: set[str] = set()
    for block in map(parsed, blocks):
        names = defined_in(block) if block else set()
        if names & defined:
            return None  # which of two definitions is meant is open
        defined |= names
    # Words of prose can be expressions too; a definition or an assertion is not prose.
    kinds = ast.FunctionDef | ast.ClassDef | ast.Assert
    if tree is None or not any(isinstance(node, kinds) for node in tree.body):
        return None
    found = checks_in(tree)
    examples, count = examples_of(question, tree)
    checks = len(found.asserted) + count
    is_alone = not blocks or _only_leads(WRITTEN.fence.sub("\n", response))
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
    program = Path(__file__).with_name("sandbox_main.py").read_text(encoding="utf-8")
    ran = run_python(f"{program}\n\nrun{asked!r}\n", stop)
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


def _failed(snippet: Snippet, held: int, failed: Failure, printed: str) -> CodeCheck | None:
    """What failed in words; None where that is no check's or none of the code's own doing."""
    name, words, line = failed
    if line is None or name not in OWN_ERRORS:
        return None
    said = words if name == "AssertionError" else f"{name}: {words}".rstrip(": ")
    if line == EXAMPLE:
        why = f"The code was run and fails an example of the question: {words}."
        return CodeCheck(False, why, False, held, printed, said)
    source = " ".join(snippet.code.splitlines()[line - 1].split())
    source = source if len(source) <= LONGEST_SHOWN else f"{source[:LONGEST_SHOWN]}…"
    shown = f" ({said})" if said and said not in source else ""
    why = f"The code was run and fails its check “{source}”{shown}."
    return CodeCheck(False, why, False, held, printed, said or source, line)


def _only_leads(prose: str) -> bool:
    """Whether the words beside the code state nothing: short lines that lead to it."""
    lines = (MARKUP.sub("", NAMED.sub("it", line)).strip() for line in prose.splitlines())
    is_short = len(prose.strip()) <= LONGEST_PROSE
    return is_short and all(WRITTEN.leads_in.fullmatch(line) for line in lines if line)


class _Report(msgspec.Struct, forbid_unknown_fields=True):
    """As `sandbox_main` writes it; the answer may have written another one."""

    held: Annotated[int, msgspec.Meta(ge=0)]
    failed: Failure | None


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
    at = report.failed[2] if report.failed else None
    return report if at is None or 0 <= at <= lines else None


ANYTHING = {"exec", "eval", "globals", "locals", "vars", "setattr", "__getattr__"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
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
    found = [
        text
        for info, text in WRITTEN.fence.findall(response)
        if info.strip() and PYTHON.fullmatch(info)
    ]
    if not found and WRITTEN.starts.match(response) and "```" not in response:
        found = [response]
    code = "\n".join(found)
    if not code.strip() or len(code) > LONGEST or WRITTEN.no_program.search(code):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except SyntaxError as error:
        if len(found) > 1 or not re.search(r"\bpython\b|\bdef \w+\(", question, re.IGNORECASE):
            return None
        line, said = error.lineno or 1, (error.msg or "it cannot be read").rstrip(".")
        return CodeFault(f"The code is no Python: {said} in line {line}.", line)
    except (ValueError, RecursionError, MemoryError):
        return None
    return _undefined(tree, question)


def _undefined(tree: ast.Module, question: str) -> CodeFault | None:
    """The first name read within a function, or a module read anywhere, that nothing binds."""
    from pyflakes import checker, messages

    if names_in(tree) & ANYTHING or not any(isinstance(node, FUNCTIONS) for node in tree.body):
        return None
    known = set(re.findall(r"[^\W\d]\w*", question))
    nodes = list(ast.walk(tree))
    bases = {(n.value.lineno, n.value.col_offset) for n in nodes if isinstance(n, ast.Attribute)}
    # What stands in the types of a function need not exist.
    bodies = [statement for n in nodes if isinstance(n, FUNCTIONS) for statement in n.body]
    inside = (part for statement in bodies for part in ast.walk(statement))
    within = {(part.lineno, part.col_offset) for part in inside if isinstance(part, ast.Name)}
    found = checker.Checker(tree).messages
    # A star import may bind anything; a name bound anywhere may be bound in time.
    if any(isinstance(one, messages.ImportStarUsed) for one in found):
        return None
    stored = (n for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    known |= {node.id for node in stored}
    undefined = [one for one in found if isinstance(one, messages.UndefinedName)]
    for one in sorted(undefined, key=lambda one: (one.lineno, one.col)):
        name, place = one.message_args[0], (one.lineno, one.col)
        if name in known:
            continue
        if place in bases and (name in sys.stdlib_module_names or name in COMMON_NAMES):
            module = COMMON_NAMES.get(name, name)
            return CodeFault(f"The code uses “{name}” without importing {module}.", one.lineno)
        if place in within:
            return CodeFault(f"The code uses “{name}”, which nothing defines.", one.lineno)
    return None


LANGUAGES = (
    r"python[\d.]*|py|java|kotlin|scala|swift|go|rust|rs|ruby|rb|php|perl|lua|julia|r|dart|haskell"
    r"|javascript|js|jsx|typescript|ts|tsx|c|cpp|c\+\+|c#|csharp|cs|sql|bash|sh|shell|zsh|powershell"
)
# A fence without a language holds code where it opens like Python.
OPENED = (
    rf"[ \t]*(?:(?:{LANGUAGES})[ \t]*\r?\n"
    r"|\r?\n(?=\s*(?:def \w+\(|class \w+|import \w+|from \w[\w.]* import )))"
)
BLOCK = regex.compile(
    rf"^[ \t]*(?P<fence>```|~~~){OPENED}.*?(?:^[ \t]*(?P=fence)[ \t]*$|\Z)",
    regex.MULTILINE | regex.DOTALL | regex.IGNORECASE,
)


DEFINES = regex.compile(r"^(?:async def|def|class) \w+", regex.MULTILINE)


def code_blocks(text: str) -> list[tuple[int, int]]:
    """Places of the programs in order, fences included; one that is never closed ends the text.

    A text that is Python as it stands and defines something is one program.
    """
    blocks = [match.span() for match in BLOCK.finditer(text)]
    if not blocks and _is_program(bare := text.strip()):
        start = text.index(bare)
        return [(start, start + len(bare))]
    return blocks


def is_code(text: str) -> bool:
    """True where the text is such a program and nothing else."""
    bare = text.strip()
    return BLOCK.fullmatch(bare) is not None or _is_program(bare)


def _is_program(text: str) -> bool:
    return DEFINES.search(text) is not None and parsed(text) is not None


class Code(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer that holds Python, bare or in fences, and the question as it was put.

    Assertions in the answer and `>>>` examples in the question are what the code is checked by.
    """

    text: str
    question: str = ""


def _work(given: Code, bench: Bench) -> Answer:
    """Run the code with its checks; where it has none, look whether it can work at all.

    `gave` has `checks` (how many there are), `held` (how many were passed), `code` (what was run),
    `examples` (the question's, as a docstring), `output` (the end of what it printed), `error` (its
    words, empty for none) and `error_line` (of `code`, counted from 1; null for none). Raises
    Stopped if the person stopped the check meanwhile.
    """
    snippet = snippet_of(given.question, given.text)
    found = check_code(snippet, bench.stop) if snippet else None
    fault = None if found else fault_in(given.question, given.text)
    if fault is not None:
        gave = {**NOTHING_RUN, "error": fault.words, "error_line": fault.line}
        return Answer("hallucinated", fault.words, gave, 1.0 - FAULT_DOUBT, category="reasoning")
    if snippet is None:
        return Answer("unclear", "There is no Python here with a check.", has_something=False)
    what = {"checks": snippet.checks, "code": snippet.code, "examples": snippet.examples}
    gave = NOTHING_RUN | what
    if found is not None:
        gave |= {"held": found.held, "output": found.printed, "error": found.error,
                 "error_line": found.error_line}  # fmt: skip
    if found is None:
        said = "Running the code tells nothing: it left early, waited, or wants what is withheld."
        return Answer("unclear", said, gave, has_something=False)
    if found.holds and not snippet.is_alone:
        said = f"{found.words} What is said beside the code was not checked."
        return Answer("unclear", said, gave)
    doubt = SLOW_DOUBT if found.is_out_of_time else DOUBT
    p = doubt if found.holds else 1.0 - doubt
    label: Label = "supported" if found.holds else "hallucinated"
    return Answer(label, found.words, gave, p, category="reasoning")


def _reads(statement: Statement | None, case: Case) -> Code | None:
    asked = (case.question, case.response)
    is_read = statement is None and (snippet_of(*asked) or fault_in(*asked))
    return Code(case.response, case.question) if is_read else None


TOOL = Tool(
    name="code",
    description=read_words("descriptions")["code"],
    takes=Code,
    work=_work,
    examples=read_examples("code", Code),
    reads=_reads,
    why_off=lambda bench: sandbox.why_off(),
)
