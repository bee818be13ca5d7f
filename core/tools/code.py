"""The tool `code`: runs an answer's Python with its checks in a sandbox.

Checks are assertions that test what the answer defines, and the question's `>>>` examples; code
without checks is only analysed (pyflakes). Answer and checks share a process: code written to
deceive can forge its result, code that is merely wrong cannot. Source: HaluAgent 2.1, 2.2, table 5.
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

from core.runtime.concurrency import StopSignal
from core.schema.records import Case, Label, Statement
from core.tools import sandbox
from core.tools.registry import Tool, ToolAnswer, ToolContext, load_examples
from core.tools.sandbox import CPU_SECONDS, SandboxRun, run_python
from core.tools.vocabulary import PatternTable, load_words

PATTERNS = PatternTable("code")
# No error on 34 shared answers; slow code is less certainly wrong.
ERROR_RATE, SLOW_ERROR_RATE = 0.09, 0.2
# The program may depend on another one that is not shown.
FAULT_ERROR_RATE = 0.15
EMPTY_DETAILS: dict[str, Any] = {
    "checks": 0, "held": 0, "code": "", "examples": "", "output": "", "error": "",
    "error_line": None,
}  # fmt: skip
CHECK_PREFIXES = ("test", "check")  # how the names of functions with checks begin
MAX_CODE_CHARS = 50_000  # characters of code
MAX_VALUE_CHARS = 500  # characters of what an example gives
DEFINITION_NODES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Code inside these runs later or never, or its errors may be suppressed.
SEPARATE_NODES = (*DEFINITION_NODES, ast.Lambda, ast.With, ast.AsyncWith)
CONSTANT_NODES = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Constant, ast.JoinedStr, ast.Lambda)
PYTHON_FENCE = re.compile(r"(?:python[0-9.]*|py)?\s*", re.IGNORECASE)
MAX_SHOWN_CHARS = 120  # characters of a check that failed
MAX_OUTPUT_CHARS = 2_000  # characters of output that are kept
EXAMPLE_LINE = 0  # must be the same as in `sandbox_main`
# Errors that the code itself causes. Others may come from limits of the sandbox (files, network,
# packages, input, threads, memory) or another Python version, and say nothing about the answer.
CODE_ERRORS = {
    "AssertionError", "AttributeError", "IndexError", "KeyError", "NameError", "OverflowError",
    "RecursionError", "StopIteration", "TypeError", "UnboundLocalError", "ValueError",
    "ZeroDivisionError",
}  # fmt: skip
# Longer prose beside the code states something that running it cannot check.
MAX_PROSE_CHARS = 200
MARKUP_PATTERN = re.compile(r"[#*>]+|\bPython\b")
QUOTED_NAME = re.compile(r"`[A-Za-z_]\w*(?:\([^`]*\))?`")
# An error's name and text, and the line of the failed check; None if it is no check.
CheckFailure = tuple[str, str, int | None]
DYNAMIC_NAMES = {"exec", "eval", "globals", "locals", "vars", "setattr", "__getattr__"}
FUNCTION_NODES = (ast.FunctionDef, ast.AsyncFunctionDef)
MODULE_ALIASES = {"np": "numpy", "pd": "pandas", "plt": "matplotlib"}
FENCE_LANGUAGES = (
    r"python[\d.]*|py|java|kotlin|scala|swift|go|rust|rs|ruby|rb|php|perl|lua|julia|r|dart|haskell"
    r"|javascript|js|jsx|typescript|ts|tsx|c|cpp|c\+\+|c#|csharp|cs|sql|bash|sh|shell|zsh|powershell"
)
# A fence without a language holds code if it starts like Python.
FENCE_OPENING = (
    rf"[ \t]*(?:(?:{FENCE_LANGUAGES})[ \t]*\r?\n"
    r"|\r?\n(?=\s*(?:def \w+\(|class \w+|import \w+|from \w[\w.]* import )))"
)
CODE_BLOCK = regex.compile(
    rf"^[ \t]*(?P<fence>```|~~~){FENCE_OPENING}.*?(?:^[ \t]*(?P=fence)[ \t]*$|\Z)",
    regex.MULTILINE | regex.DOTALL | regex.IGNORECASE,
)
DEFINITION_PATTERN = regex.compile(r"^(?:async def|def|class) \w+", regex.MULTILINE)


@dataclass(frozen=True)
class CheckLines:
    """The checks of a program: lines where assertions begin, and the lines of what they use.

    `watched` are pairs of a first and a last line, counted from 1.
    """

    asserted: tuple[int, ...]
    watched: tuple[tuple[int, int], ...]


@dataclass
class _TestedNames:
    """Names: `definitions` are the code's own, `results` hold what calling it gave."""

    definitions: set[str]
    results: set[str] = field(default_factory=set)

    def tests_code(self, node: ast.AST) -> bool:
        """Return True if the node calls the code's own functions or uses such a result."""
        calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
        return bool(list_names(node) & self.results) or any(
            list_names(f) & self.definitions for f in calls
        )

    def assign(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        """Record an assignment: the targets now stand for the value."""
        names = {name for target in targets for name in list_names(target)}
        if self.tests_code(value):
            self.results |= names
        elif isinstance(value, ast.Name) and value.id in self.definitions:
            self.definitions |= names


def list_definitions(tree: ast.Module) -> set[str]:
    """Return the functions and classes that a program defines at its top level."""
    return {node.name for node in tree.body if isinstance(node, DEFINITION_NODES)}


def list_names(node: ast.AST) -> set[str]:
    """Return every name that is read or written inside the node."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def find_checks(tree: ast.Module) -> CheckLines:
    """Return the assertions that test the code's own definitions and that running it may reach.

    One inside a function counts if the function is named as a check and called from outside: other
    assertions guard arguments. An assertion whose failure may be caught does not count.
    """
    names = _TestedNames(list_definitions(tree))
    asserted = _find_assertions(tree, names)
    watched, used = list(asserted), {name for node in asserted for name in list_names(node)}
    for check in _find_called_checks(tree, names):
        assertions = _find_assertions(check, names)
        asserted += assertions
        watched += [check] if assertions else []
    for node in _walk_reached(tree):
        if (
            isinstance(node, ast.Assign)
            and list_names(node) & used
            and names.tests_code(node.value)
        ):
            watched.append(node)
    lines = tuple((node.lineno, node.end_lineno or node.lineno) for node in watched)
    return CheckLines(tuple(node.lineno for node in asserted), lines)


def _find_called_checks(tree: ast.Module, names: _TestedNames) -> list[ast.FunctionDef]:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    checks = {node.name: node for node in functions if node.name.startswith(CHECK_PREFIXES)}
    called: dict[str, ast.FunctionDef] = {}
    for call in _walk_reached(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            check = checks.get(call.func.id)
            called |= {check.name: check} if check else {}
            for argument, parameter in zip(
                call.args, check.args.args if check else (), strict=False
            ):
                names.assign([ast.Name(parameter.arg)], argument)
    return list(called.values())


def _find_assertions(place: ast.AST, names: _TestedNames) -> list[ast.stmt]:
    """Return the assertions of one program or function that count, in order."""
    assertions: list[ast.stmt] = []
    for node in _walk_reached(place):
        if isinstance(node, ast.Assign):
            names.assign(node.targets, node.value)
        elif isinstance(node, ast.For):
            names.assign([node.target], node.iter)
        elif isinstance(node, ast.Assert) and _is_test(node.test) and names.tests_code(node.test):
            assertions.append(node)
    return assertions


def _is_test(test: ast.expr) -> bool:
    """Return False for what always holds: a tuple, a constant, a choice with a constant."""
    if isinstance(test, ast.BoolOp):
        return all(map(_is_test, test.values))
    return not isinstance(test, CONSTANT_NODES)


def _walk_reached(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes that run in place, except those whose errors are caught."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, SEPARATE_NODES) and not (
            isinstance(node, ast.Try) and node.handlers
        ):
            yield node
            yield from _walk_reached(node)


def extract_examples(question: str, tree: ast.Module) -> tuple[str, int]:
    """Return the question's examples that test the code, as one docstring, and their number.

    An example that cannot be read safely ends them: it may have prepared later ones.
    """
    try:
        text = PATTERNS.closing.sub("", question.replace("\r\n", "\n"))
        parts = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return "", 0
    names = _TestedNames(list_definitions(tree))
    known, count, examples = names.definitions | set(dir(builtins)), 0, []
    for part in parts:
        expected, statement = _read_expected(part), _parse_example(part)
        if expected is None or statement is None:
            break
        nodes = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
        bound = {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
        if not list_names(statement) <= known | bound:
            break
        if isinstance(statement, ast.Assign):
            names.assign(statement.targets, statement.value)
            known |= bound
        elif not expected or not names.tests_code(statement):
            break
        count += bool(expected)
        lines = part.source.rstrip("\n").split("\n")
        examples.append(
            "".join(f"{'... ' if n else '>>> '}{line}\n" for n, line in enumerate(lines))
        )
        examples[-1] += expected
    return ("\n".join(examples), count) if count else ("", 0)


def _parse_example(part: doctest.Example) -> ast.stmt | None:
    """Return the one statement of an example: an expression, or an assignment without output."""
    tree = None if "doctest:" in part.source else parse_program(part.source)
    body = tree.body if tree else []
    kind = ast.Expr if part.want else ast.Assign
    return body[0] if len(body) == 1 and isinstance(body[0], kind) else None


def _read_expected(part: doctest.Example) -> str | None:
    """Return the expected output if it is clearly a value; prose may follow below."""
    first, _, rest = part.want.partition("\n")
    # Of two values below each other it is unclear where the output ends.
    if first and (not _is_value(first) or _is_value(rest.partition("\n")[0])):
        return None
    return f"{first}\n" if first else ""


def _is_value(line: str) -> bool:
    try:
        ast.literal_eval(line.strip() if len(line) <= MAX_VALUE_CHARS and "..." not in line else "")
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True


def parse_program(code: str) -> ast.Module | None:
    """Return the tree of a program; None if the text is not one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in the code are not our concern
            return ast.parse(code) if len(code) <= MAX_CODE_CHARS else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@dataclass(frozen=True)
class CodeSnippet:
    """An answer's Python, the question's examples as a docstring, and the number of checks.

    `is_alone` is True if the answer says nothing besides its code, so that a run checks all of it.
    """

    code: str
    examples: str
    found: CheckLines
    checks: int
    is_alone: bool = True


@dataclass(frozen=True)
class CodeCheck:
    """Whether code passes its checks; `words` is a sentence for people.

    `held` counts the passed checks, `printed` is the end of the output, `error` the text of what
    failed, and `error_line` its line in the code, from 1; None if it has none.
    """

    holds: bool
    words: str
    is_out_of_time: bool = False
    held: int = 0
    printed: str = ""
    error: str = ""
    error_line: int | None = None


def extract_snippet(question: str, response: str) -> CodeSnippet | None:
    """Return the answer's code with its checks; None if there is no code or no check."""
    response = response.replace("\r\n", "\n")
    blocks = [
        text for info, text in PATTERNS.fence.findall(response) if PYTHON_FENCE.fullmatch(info)
    ]
    code = "\n".join(blocks) or response
    tree = parse_program(code)
    defined: set[str] = set()
    for block in map(parse_program, blocks):
        names = list_definitions(block) if block else set()
        if names & defined:
            return None  # it is unclear which of two definitions is meant
        defined |= names
    # Prose can parse as an expression, but not as a definition or assertion.
    kinds = ast.FunctionDef | ast.ClassDef | ast.Assert
    if tree is None or not any(isinstance(node, kinds) for node in tree.body):
        return None
    found_checks = find_checks(tree)
    examples, count = extract_examples(question, tree)
    checks = len(found_checks.asserted) + count
    is_alone = not blocks or _only_introduces(PATTERNS.fence.sub("\n", response))
    return CodeSnippet(code, examples, found_checks, checks, is_alone) if checks else None


def check_code(snippet: CodeSnippet, stop: StopSignal) -> CodeCheck | None:
    """Run the code; None if that proves nothing (it exits early, waits, or needs more access).

    Raises:
        Stopped: the person stopped the check meanwhile.
        RuntimeError: there is no sandbox here (`sandbox.why_off`).
    """
    word = secrets.token_hex(16)
    checks = snippet.found
    arguments = (snippet.code, list(checks.asserted), checks.watched, snippet.examples, word)
    program = Path(__file__).with_name("sandbox_main.py").read_text(encoding="utf-8")
    ran = run_python(f"{program}\n\nrun{arguments!r}\n", stop)
    printed = ran.printed[-MAX_OUTPUT_CHARS:]
    if ran.ending == "out_of_time":
        message = f"The code was run and had not ended after {CPU_SECONDS} s of computing."
        return CodeCheck(False, message, True, 0, printed, "out of time")
    report = _read_report(ran, snippet, word)
    if report is None:
        return None
    held, failed = report.held, report.failed
    if not failed:
        count = "its check" if held == 1 else f"its {held} checks"
        message = f"The code was run and passes {count}."
        return CodeCheck(True, message, False, held, printed) if held else None
    return _describe_failure(snippet, held, failed, printed)


def _describe_failure(
    snippet: CodeSnippet, held: int, failed: CheckFailure, printed: str
) -> CodeCheck | None:
    """Describe the failure; None if no check failed, or not through the code itself."""
    name, words, line = failed
    if line is None or name not in CODE_ERRORS:
        return None
    message = words if name == "AssertionError" else f"{name}: {words}".rstrip(": ")
    if line == EXAMPLE_LINE:
        sentence = f"The code was run and fails an example of the question: {words}."
        return CodeCheck(False, sentence, False, held, printed, message)
    source = " ".join(snippet.code.splitlines()[line - 1].split())
    source = source if len(source) <= MAX_SHOWN_CHARS else f"{source[:MAX_SHOWN_CHARS]}…"
    shown = f" ({message})" if message and message not in source else ""
    sentence = f"The code was run and fails its check “{source}”{shown}."
    return CodeCheck(False, sentence, False, held, printed, message or source, line)


def _only_introduces(prose: str) -> bool:
    """Return True if the words beside the code state nothing: short lines introducing it."""
    lines = (
        MARKUP_PATTERN.sub("", QUOTED_NAME.sub("it", line)).strip() for line in prose.splitlines()
    )
    is_short = len(prose.strip()) <= MAX_PROSE_CHARS
    return is_short and all(PATTERNS.leads_in.fullmatch(line) for line in lines if line)


class _Report(msgspec.Struct, forbid_unknown_fields=True):
    """The report of `sandbox_main`; the answer may have written another one."""

    held: Annotated[int, msgspec.Meta(ge=0)]
    failed: CheckFailure | None


def _read_report(ran: SandboxRun, snippet: CodeSnippet, word: str) -> _Report | None:
    """Return how many checks held and what failed, if the run ended by itself."""
    line = next((x for x in ran.complained.splitlines() if x.startswith(word)), "")
    if ran.ending != "finished" or not line:
        return None
    try:
        report = msgspec.json.decode(line[len(word) :], type=_Report)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    lines = len(snippet.code.splitlines())
    failed_line = report.failed[2] if report.failed else None
    return report if failed_line is None or 0 <= failed_line <= lines else None


@dataclass(frozen=True)
class CodeFault:
    """What is wrong, in words for people, and its line in the code, counted from 1."""

    words: str
    line: int


def find_fault(question: str, response: str) -> CodeFault | None:
    """Return the first certain fault of an answer's program, fenced as Python or bare; else None.

    Lines count through its fenced blocks joined together.
    """
    response = response.replace("\r\n", "\n")
    fences = PATTERNS.fence.findall(response)
    programs = [text for info, text in fences if info.strip() and PYTHON_FENCE.fullmatch(info)]
    if not programs and PATTERNS.starts.match(response) and "```" not in response:
        programs = [response]
    code = "\n".join(programs)
    if not code.strip() or len(code) > MAX_CODE_CHARS or PATTERNS.no_program.search(code):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except SyntaxError as error:
        if len(programs) > 1 or not re.search(r"\bpython\b|\bdef \w+\(", question, re.IGNORECASE):
            return None
        line, problem = error.lineno or 1, (error.msg or "it cannot be read").rstrip(".")
        return CodeFault(f"The code is no Python: {problem} in line {line}.", line)
    except (ValueError, RecursionError, MemoryError):
        return None
    return _find_undefined(tree, question)


def _find_undefined(tree: ast.Module, question: str) -> CodeFault | None:
    """Return the first name in a function, or module anywhere, that nothing binds."""
    from pyflakes import checker, messages

    if list_names(tree) & DYNAMIC_NAMES or not any(
        isinstance(node, FUNCTION_NODES) for node in tree.body
    ):
        return None
    bound = set(re.findall(r"[^\W\d]\w*", question))
    nodes = list(ast.walk(tree))
    bases = {(n.value.lineno, n.value.col_offset) for n in nodes if isinstance(n, ast.Attribute)}
    # Names in type annotations need not exist.
    bodies = [statement for n in nodes if isinstance(n, FUNCTION_NODES) for statement in n.body]
    inside = (part for statement in bodies for part in ast.walk(statement))
    in_functions = {(part.lineno, part.col_offset) for part in inside if isinstance(part, ast.Name)}
    findings = checker.Checker(tree).messages
    # A star import may bind any name; a name bound anywhere may be bound in time.
    if any(isinstance(one, messages.ImportStarUsed) for one in findings):
        return None
    stored = (n for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    bound |= {node.id for node in stored}
    undefined = [one for one in findings if isinstance(one, messages.UndefinedName)]
    for one in sorted(undefined, key=lambda one: (one.lineno, one.col)):
        name, place = one.message_args[0], (one.lineno, one.col)
        if name in bound:
            continue
        if place in bases and (name in sys.stdlib_module_names or name in MODULE_ALIASES):
            module = MODULE_ALIASES.get(name, name)
            return CodeFault(f"The code uses “{name}” without importing {module}.", one.lineno)
        if place in in_functions:
            return CodeFault(f"The code uses “{name}”, which nothing defines.", one.lineno)
    return None


def find_code_blocks(text: str) -> list[tuple[int, int]]:
    """Return the places of the programs in order, with fences; an unclosed one ends the text.

    A text that as a whole is Python and defines something is one program.
    """
    blocks = [match.span() for match in CODE_BLOCK.finditer(text)]
    if not blocks and _is_program(bare := text.strip()):
        start = text.index(bare)
        return [(start, start + len(bare))]
    return blocks


def is_code(text: str) -> bool:
    """Return True if the text is one such program and nothing else."""
    bare = text.strip()
    return CODE_BLOCK.fullmatch(bare) is not None or _is_program(bare)


def _is_program(text: str) -> bool:
    return DEFINITION_PATTERN.search(text) is not None and parse_program(text) is not None


class CodeInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer that holds Python, bare or in fences, and the question as it was put.

    Assertions in the answer and `>>>` examples in the question are what the code is checked by.
    """

    text: str
    question: str = ""


def _check_answer(given: CodeInput, tool_context: ToolContext) -> ToolAnswer:
    """Run the code with its checks; without checks, look for certain faults.

    `gave` has `checks` (how many there are), `held` (how many passed), `code` (what was run),
    `examples` (the question's, as a docstring), `output` (the end of what it printed), `error` (its
    text, empty for none) and `error_line` (in `code`, counted from 1; null for none). Raises
    Stopped if the person stopped the check meanwhile.
    """
    snippet = extract_snippet(given.question, given.text)
    result = check_code(snippet, tool_context.stop) if snippet else None
    fault = None if result else find_fault(given.question, given.text)
    if fault is not None:
        details = {**EMPTY_DETAILS, "error": fault.words, "error_line": fault.line}
        return ToolAnswer(
            "hallucinated", fault.words, details, 1.0 - FAULT_ERROR_RATE, category="reasoning"
        )
    if snippet is None:
        return ToolAnswer("unclear", "There is no Python here with a check.", has_something=False)
    program = {"checks": snippet.checks, "code": snippet.code, "examples": snippet.examples}
    details = EMPTY_DETAILS | program
    if result is not None:
        details |= {
            "held": result.held,
            "output": result.printed,
            "error": result.error,
            "error_line": result.error_line,
        }
    if result is None:
        words = "Running the code tells nothing: it left early, waited, or wants what is withheld."
        return ToolAnswer("unclear", words, details, has_something=False)
    if result.holds and not snippet.is_alone:
        words = f"{result.words} What is said beside the code was not checked."
        return ToolAnswer("unclear", words, details)
    doubt = SLOW_ERROR_RATE if result.is_out_of_time else ERROR_RATE
    p = doubt if result.holds else 1.0 - doubt
    label: Label = "supported" if result.holds else "hallucinated"
    return ToolAnswer(label, result.words, details, p, category="reasoning")


def _read_response(statement: Statement | None, case: Case) -> CodeInput | None:
    texts = (case.question, case.response)
    is_read = statement is None and (extract_snippet(*texts) or find_fault(*texts))
    return CodeInput(case.response, case.question) if is_read else None


TOOL = Tool(
    name="code",
    description=load_words("descriptions")["code"],
    takes=CodeInput,
    work=_check_answer,
    examples=load_examples("code", CodeInput),
    reads=_read_response,
    why_off=lambda tool_context: sandbox.explain_unavailable(),
)
