"""Code that comes with checks, found in answers and run; faults that are seen without a run."""

from __future__ import annotations

import json
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.runtime.concurrency import StopSignal
from core.schema.records import Case
from core.tools import sandbox
from core.tools.code import CodeCheck, check_code, extract_snippet, find_fault
from core.tools.registry import ToolContext, get_tool, use_tool
from core.tools.sandbox import explain_unavailable
from tests.needs import need
from tests.tools.corpus import table

ASKED = "Write a function that doubles.\n\n    >>> double(4)\n    8\n    >>> double(0)\n    0\n"


def run(question: str, response: str) -> CodeCheck | None:
    need(not explain_unavailable(), explain_unavailable())
    snippet = extract_snippet(question, response)
    assert snippet is not None
    return check_code(snippet, StopSignal())


TRUE = "def true():\n    return True\nassert true()\n"  # code with a check that holds


def doubling(body: str, check: str = "") -> str:
    """An answer that doubles in that way, with a check below it."""
    return f"def double(x):\n    return {body}\n{check}\n"


HOLDS = [
    (ASKED, doubling("2 * x"), True), (ASKED, doubling("x + x"), True),
    (ASKED, doubling("x ** 2"), False), (ASKED, doubling("y"), False),
    ("", f"print('so')\n{TRUE}", True),
    # Names of the answer do not disturb the examples, and its future imports may stand first.
    (ASKED, "sys = print = None\n" + doubling("2 * x"), True),
    (ASKED, "from __future__ import annotations\n" + doubling("2 * x"), True),
    # A check that is called is a check.
    ("", doubling("x", "def check():\n    assert double(3) == 6\ncheck()"), False),
    ("", doubling("x", "def test_double():\n    assert double(3) == 6\ntest_double()"), False),
    # Words of a failed assertion do not rename it.
    ("", doubling("x", "assert double(3) == 6, 'three\\nOSError'"), False),
    ("", f"import inspect\n{TRUE}assert 'return' in inspect.getsource(true) and true()\n", True),
]  # fmt: skip


@pytest.mark.parametrize(("question", "response", "holds"), HOLDS)
def test_code_passes_its_checks_or_not(question: str, response: str, holds: bool) -> None:
    check = run(question, response)
    assert check is not None
    assert check.holds is holds


def test_what_fails_is_told() -> None:
    check = run(ASKED, doubling("x ** 2"))
    assert check is not None
    assert "double(4) gives 16" in check.words


@pytest.mark.parametrize(*table("code: the assertion that fails is told"))
def test_the_assertion_that_fails_is_told(body: str, check: str, said: str) -> None:
    found = run("", doubling(body) + f"\nassert double(2)\nassert {check}")
    assert found is not None
    before, *after = f"The code was run and fails its check {said}".split(".*")
    assert found.words.startswith(before)
    assert found.words.endswith("".join(after))


def test_fenced_blocks_are_one_program_and_prose_is_none() -> None:
    response = (
        "First the function:\n```python\ndef half(x):\n    return x / 2\n```\n"
        "Then its test:\n```\nassert half(4) == 2\n```\nThat is all."
    )
    snippet = extract_snippet("", response)
    assert snippet is not None
    assert snippet.code.startswith("def half")
    assert snippet.checks == 1
    assert run("", response) == CodeCheck(True, "The code was run and passes its check.", held=1)


# Neither prose nor code without a check, nor assertions that try nothing of the answer's own.
NO_CHECKS = [
    ("", "yes"),
    ("", "1889"),
    ("", "The tower was built in 1889."),
    ("", "def double(x):\n    return 2 * x\n"),
    ("", "```python\nprint('no check')\n```"),
    ("", "def broken(:\n"),
    ("", "assert\x00"),
    ("", "(" * 5000),
    ("", "```\nassert 1"),
    ("", "def mean(xs):\n    assert xs\n    return sum(xs)\nprint(mean([1]))"),
    ("", "def test_sum():\n    assert sum([1]) == 2\n"),
    ("", "try:\n    assert 1 == 2\nexcept AssertionError:\n    pass"),
    ("", "ok = lambda: [x for x in ()]\ndef f():\n    def test_it():\n        assert 0\n"),
    ("", doubling("2 * x", "assert 1 + 1 == 2")),
    ("", doubling("2 * x", "assert True, double(3)")),
    ("", doubling("2 * x", "assert double")),
    ("", doubling("2 * x", "assert (double(3), 'six')")),
    ("", doubling("2 * x", "assert double(3) == 7 or True")),
    ("", doubling("2 * x", "expected = 6\nassert expected == 6")),
    (">>> double(4)\nEight\n", doubling("2 * x")),
    (">>> double(4)  # doctest: +SKIP\n9\n", doubling("2 * x")),
    (">>> double([1])\n[1,\n 1]\n", doubling("2 * x")),
    (">>> double(range(9))\n[0, ...]\n", doubling("2 * x")),
    (">>> double(4)\n8\n9\n", doubling("2 * x")),
    (">>> double(size)\n8\n", doubling("2 * x")),
    (">>> double(4) == 8\n>>> double(0) == 0\n", doubling("2 * x")),
    (">>> 1 + 1\n2\n", doubling("2 * x")),
    (ASKED, "def triple(x):\n    return 3 * x\n"),
]


@pytest.mark.parametrize(("question", "response"), NO_CHECKS)
def test_what_is_no_code_with_checks_is_let_be(question: str, response: str) -> None:
    assert extract_snippet(question, response) is None


# It leaves early, wants what the sandbox withholds, or never reaches its check.
TELLS_NOTHING = [
    ("", "import os; os._exit(0)" + f"\n{TRUE}assert not true()\n"),
    ("", "import sys; sys.exit(0)" + f"\n{TRUE}assert not true()\n"),
    ("", "exit()" + f"\n{TRUE}assert not true()\n"),
    ("", "import os; os.kill(0, 9)" + f"\n{TRUE}assert not true()\n"),
    ("", "import numpy_of_nowhere" + f"\n{TRUE}"),
    ("", "open('table.csv')" + f"\n{TRUE}"),
    ("", "input()" + f"\n{TRUE}"),
    ("", "import socket; socket.create_connection(('127.0.0.1', 9), timeout=2)" + f"\n{TRUE}"),
    (
        "",
        "import urllib.request; urllib.request.urlopen('http://198.51.100.1', timeout=2)"
        + f"\n{TRUE}",
    ),
    ("", "bytearray(4 << 30)" + f"\n{TRUE}"),
    ("", "for _ in range(10**6): print('flood' * 20)" + f"\n{TRUE}"),
    ("", "import threading as t\nfor _ in range(40): t.Timer(9, print).start()" + f"\n{TRUE}"),
    ("", "import sqlite3; sqlite3.connect('/nowhere/at.all')" + f"\n{TRUE}"),
    ("", "class Unknown(Exception): pass\nraise Unknown('so')" + f"\n{TRUE}"),
    ("", doubling("2 * x", "if False:\n    assert double(3) == 6")),
    ("", doubling("2 * x", "for _ in []:\n    assert double(3) == 6")),
    (
        "",
        doubling(
            "2 * x", "def check(f):\n    if f is None:\n        assert f(3) == 6\ncheck(double)"
        ),
    ),
    ("", TRUE + "int('ten')  # raises ValueError\n"),
    (ASKED, "def double(x):\n    open('/nowhere/at.all')\n"),
]


@pytest.mark.parametrize(("question", "response"), TELLS_NOTHING)
def test_a_run_that_comes_to_no_check_says_nothing_about_the_code(
    question: str, response: str
) -> None:
    assert run(question, response) is None


def test_waiting_says_nothing_but_computing_on_and_on_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "WALL_SECONDS", 0.5)
    assert run("", f"import time\ntime.sleep(60)\n{TRUE}") is None
    monkeypatch.setattr(sandbox, "WALL_SECONDS", 60.0)  # a busy machine takes longer for a second
    monkeypatch.setattr(sandbox, "CPU_SECONDS", 1)
    check = run("", f"while True: pass\n{TRUE}")
    assert check is not None
    assert check.is_out_of_time


@pytest.mark.parametrize(*table("code: what stands behind an example is none of its result"))
def test_what_stands_behind_an_example_is_none_of_its_result(question: str) -> None:
    right, wrong = (run(question, doubling(body)) for body in ("2 * x", "3 * x"))
    assert right is not None
    assert right.holds
    assert wrong is not None
    assert not wrong.holds


@pytest.mark.parametrize(*table("code: what the code defines is followed to its checks"))
def test_what_the_code_defines_is_followed_to_its_checks(check: str) -> None:
    for body, holds in (("2 * x", True), ("x ** 2", False), ("x + nothing", False)):
        found = run("", doubling(body, check))
        assert found is not None
        assert found.holds is holds


@pytest.mark.parametrize(*table("code: what becomes of the output does not matter"))
def test_what_becomes_of_the_output_does_not_matter(around: str) -> None:
    check = run("", f"{around}\n{TRUE}")
    assert check is not None
    assert check.holds
    check = run("", f"{around}\n{TRUE}assert not true()\n")
    assert check is not None
    assert not check.holds


def test_of_two_programs_neither_is_run() -> None:
    one, other = (doubling(body) + "assert double(3) == 6\n" for body in ("x", "x + x"))
    assert (
        extract_snippet("", f"Wrong:\n```python\n{one}```\nRight:\n```python\n{other}```\n") is None
    )
    late = f"```python\n{TRUE}```\n```python\nfrom __future__ import annotations\n```\n"
    assert run("", late) is None


def test_other_languages_and_the_words_between_fences_are_no_code() -> None:
    response = f"```js\nlet x\n```\nThen:\n```python\n{TRUE}```\n"
    snippet = extract_snippet("", response)
    assert snippet is not None
    assert snippet.code == TRUE


def test_what_runs_in_the_sandbox_is_never_loaded_here() -> None:
    check = run("", TRUE)
    assert check is not None
    assert "core.tools.sandbox_main" not in sys.modules


@given(st.text(max_size=200), st.text(max_size=200))
def test_no_text_breaks_the_look_for_code(question: str, response: str) -> None:
    snippet = extract_snippet(question, response)
    assert snippet is None or snippet.checks > 0


PIECES = (
    "def f(x):", "    return x", "assert f(1) == 1", "```python", "```", ">>> f(1)", "1", "\t"
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=20), max_size=12))
def test_no_lines_of_near_code_break_the_look_for_code(lines: list[str]) -> None:
    text = "\n".join(lines)
    for question, response in ((text, text), ("", text), (text, "def f(x):\n    return x\n")):
        snippet = extract_snippet(question, response)
        assert snippet is None or (snippet.checks > 0 and snippet.code)


@pytest.mark.parametrize(
    "text",
    [
        "```" * 20_000,
        "assert " * 20_000,
        "(" * 50_000 + ")" * 50_000,
        "f(" * 3_000 + ")" * 3_000 + "\nassert f(1)",
        "def f():\n" + "".join(f"{' ' * n}if 1:\n" for n in range(1, 200)),
        ">>> f(1)\n" * 10_000,
        "def f():pass\n" * 10_000 + "assert f() is None",
        "-" * 10_000 + "1\nassert f(1)",
        "\x00\ud800\u2028assert f(1)",
        "x = " + "[" * 400 + "]" * 400 + "\nassert x",
        "assert f" + ".a" * 5_000 + " == 1",
    ],
)
def test_hostile_texts_are_looked_at_in_little_time(text: str) -> None:
    began = time.monotonic()
    extract_snippet(text, text)
    extract_snippet("", f"```python\n{text}\n```")
    assert time.monotonic() - began < 10


FORGES = """```python
import os, re
word = re.findall(r"'([0-9a-f]{{32}})'[)]", open("/in.py").read())[-1]
os.write(2, ("\\n" + word + {said!r} + "\\n").encode())
def double(x):
    return x + x
assert double(2) == 4
```"""


@pytest.mark.parametrize(
    "said",
    [
        "null", "[]", "[" * 30_000, '{"held": 1}', '{"held": "x", "failed": []}',
        '{"held": 1e400, "failed": []}', '{"held": -5, "failed": []}',
        '{"held": 1, "failed": 5}', '{"held": 1, "failed": ["AssertionError"]}',
        '{"held": 1, "failed": ["AssertionError", "no", 99999]}',
        '{"held": 1, "failed": ["AssertionError", "no", -1]}',
        '{"held": 1, "failed": ["AssertionError", ["no"], 1]}',
        '{"held": 1, "failed": ["AssertionError", "\\ud800", 1]}',
    ],
)  # fmt: skip
def test_a_report_that_the_answer_wrote_itself_is_none_where_it_is_not_of_our_shape(
    said: str,
) -> None:
    assert run("Write some Python.", FORGES.format(said=said)) is None


ASKED_IN_PYTHON = "Write a Python function that gives the area of a circle."
RIGHT = "import math\n\ndef area(r):\n    return math.pi * r ** 2\n"


def fenced(code: str) -> str:
    return f"Here it is:\n```python\n{code}```\n"


@pytest.mark.parametrize(*table("code_faults: what cannot work is told with its line"))
def test_what_cannot_work_is_told_with_its_line(code: str, said: str, line: int) -> None:
    for response in (fenced(code), code):
        fault = find_fault(ASKED_IN_PYTHON, response)
        assert fault is not None
        assert said in fault.words
        assert fault.line == line


@pytest.mark.parametrize(
    "code",
    [
        RIGHT,
        "from math import *\n\ndef area(r):\n    return pi * r ** 2\n",
        "def area(r):\n    import math\n    return math.pi * r ** 2\n",
        "def area(r: Number) -> Number:\n    return r\n",
        "def area(r):\n    exec(r)\n    return s\n",
        "def area(r):\n    return [x for x in r if (y := x)]\n",
        "def area(r):\n    try:\n        return 1\n    except ValueError as e:\n        return e\n",
        "def area(r):\n    ...  # your code\n    # ...\n    return circle\n",
        "def area(r):\n    print r\n",
        ">>> area(1)\n3.14\n",
        "total = df.sum()\n",
        "def area(r):\n    return f'{r!r:{'>'}10}'\n",
        "def area[T](r: T) -> T:\n    return r\n",
        "def area(<radius>):\n    return 1\n",
        "",
    ],
)
def test_what_may_work_is_left_alone(code: str) -> None:
    assert find_fault(ASKED_IN_PYTHON, fenced(code)) is None


def test_what_the_question_names_is_there() -> None:
    code = "def area(r):\n    return pi_of(r) * r\n"
    assert find_fault(f"{ASKED_IN_PYTHON} Use the function pi_of.", code) is None


def test_broken_lines_are_no_fault_where_no_python_is_asked_for() -> None:
    assert find_fault("What does this do?", fenced("def area(r:\n    return r\n")) is None
    assert find_fault(ASKED_IN_PYTHON, "def is the word that begins a function.") is None
    assert find_fault(ASKED_IN_PYTHON, "```js\nlet x = {\n```") is None


def test_the_tool_tells_of_a_fault_without_a_run() -> None:
    tool = get_tool("code")
    need(not tool.why_off(ToolContext(StopSignal())), tool.why_off(ToolContext(StopSignal())))
    assert tool.reads is not None
    response = fenced("def area(r):\n    return math.pi * r ** 2\n")
    told = use_tool(
        tool, tool.reads(None, Case("c", "p", response, ASKED_IN_PYTHON)), ToolContext(StopSignal())
    )
    assert (told.label, told.outcome) == ("hallucinated", "found")
    assert json.loads(told.gave)["error_line"] == 2
    assert tool.reads(None, Case("c", "p", fenced(RIGHT), ASKED_IN_PYTHON)) is None


@given(st.text(max_size=200))
def test_any_text_can_be_looked_at(text: str) -> None:
    for response in (text, fenced(text), f"def f():\n    return {text}"):
        fault = find_fault(ASKED_IN_PYTHON, response)
        assert fault is None or fault.line >= 1
