"""Code: runs an answer's Python with the checks that it or the question brings, walled off.

Source: HaluAgent 2.2 (code interpreter), table 5.
"""

from __future__ import annotations

from typing import Any

import msgspec

from core.records import Case, Label, Statement
from core.tools import sandbox
from core.tools.code import CodeCheck, Snippet, check_code, snippet_of
from core.tools.code_faults import fault_in
from core.tools.toolbox import Answer, Bench, Example, Tool

RULE = """The answer holds Python with checks (assertions that try what it defines, or examples in
the question): it is run, walled off from everything else here, and must pass them all. Passing is
enough only where nothing is said beside the code but words that lead to it, without names or
figures and within 200 characters. Code made to deceive its checks can. Python that cannot be read
as such, or uses what nothing in it defines or imports, is wrong without being run."""
# None wrong on 34 shared answers; code that is merely slow is not wrong as surely.
DOUBT, SLOW_DOUBT = 0.09, 0.2
# A program may be meant to go with another that is not shown.
FAULT_DOUBT = 0.15
NOTHING_RUN: dict[str, Any] = {
    "checks": 0, "held": 0, "code": "", "examples": "", "output": "", "error": "",
    "error_line": None,
}  # fmt: skip


class Code(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer that holds Python, bare or in fences, and the question as it was put.

    Assertions in the answer and `>>>` examples in the question are what the code is checked by.
    """

    text: str
    question: str = ""


def _work(given: Code, bench: Bench) -> Answer:
    """Run the code with its checks; where it has none, look whether it can work at all.

    `gave` has `checks` (how many there are), `held` (how many were passed), `code` (what was
    run), `examples` (the question's, as a docstring), `output` (the end of what it printed),
    `error` (its words, empty for none) and `error_line` (of `code`, counted from 1; null for none).

    Raises:
        Stopped: the person stopped the check meanwhile.
    """
    snippet = snippet_of(given.question, given.text)
    found = check_code(snippet, bench.stop) if snippet else None
    fault = None if found else fault_in(given.question, given.text)
    if fault is not None:
        gave = {**NOTHING_RUN, "error": fault.words, "error_line": fault.line}
        return Answer("hallucinated", fault.words, gave, 1.0 - FAULT_DOUBT, category="reasoning")
    if snippet is None:
        return Answer("unclear", "There is no Python here with a check.", has_something=False)
    gave = _shown(snippet, found)
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


def _shown(snippet: Snippet, found: CodeCheck | None) -> dict[str, Any]:
    return {
        "checks": snippet.checks,
        "held": found.held if found else 0,
        "code": snippet.code,
        "examples": snippet.examples,
        "output": found.printed if found else "",
        "error": found.error if found else "",
        "error_line": found.error_line if found else None,
    }


def _reads(statement: Statement | None, case: Case) -> Code | None:
    """The whole response, where it holds Python with checks, or Python that cannot work."""
    if statement is not None:
        return None
    has_checks = snippet_of(case.question, case.response) is not None
    is_read = has_checks or fault_in(case.question, case.response) is not None
    return Code(case.response, case.question) if is_read else None


ASKED = "Write a function that halves a number.\n\n>>> half(8)\n4.0\n"
RIGHT = "def half(x):\n    return x / 2\n"
WRONG = "def half(x):\n    return x * 2\n"

TOOL = Tool(
    name="code",
    description=(
        "Runs the Python of an answer in a sandbox, with the assertions in it and the examples in"
        " the question, and says whether it passes them. Use it for the answer as a whole where it"
        " holds Python. Code without a check is not run, but looked at for syntax that is none and"
        " for names that nothing defines or imports."
    ),
    takes=Code,
    work=_work,
    examples=(
        Example(
            ASKED, RIGHT, Code(RIGHT, ASKED), "supported",
            "The question gives an example of a call, so the function can be tried on it.",
        ),
        Example(
            ASKED, WRONG, Code(WRONG, ASKED), "hallucinated",
            "It multiplies where it should halve; running the example will show it.",
        ),
    ),
    reads=_reads,
    why_off=lambda bench: sandbox.why_off(),
)  # fmt: skip
