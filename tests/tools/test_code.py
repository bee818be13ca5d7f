"""Code that comes with checks, found in answers and run."""

from __future__ import annotations

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.concurrency import Stop
from core.tools import sandbox
from core.tools.code import CodeCheck, check_code, snippet_of
from core.tools.sandbox import why_off
from tests.needs import need

DOUBLE = "def double(x):\n    return {body}\n"
ASKED = "Write a function that doubles.\n\n    >>> double(4)\n    8\n    >>> double(0)\n    0\n"


def run(question: str, response: str) -> CodeCheck | None:
    need(not why_off(), why_off())
    snippet = snippet_of(question, response)
    assert snippet is not None
    return check_code(snippet, Stop())


TRUE = "def true():\n    return True\nassert true()\n"  # code with a check that holds


@pytest.mark.parametrize(
    ("body", "holds"), [("2 * x", True), ("x + x", True), ("x ** 2", False), ("y", False)]
)
def test_the_questions_examples_are_checks(body: str, holds: bool) -> None:
    check = run(ASKED, DOUBLE.format(body=body))
    assert check is not None
    assert check.holds is holds


def test_what_fails_is_told() -> None:
    check = run(ASKED, DOUBLE.format(body="x ** 2"))
    assert check is not None
    assert "double(4) gives 16" in check.words


@pytest.mark.parametrize(
    ("body", "check", "said"),
    [
        ("x", "double(3) == 6", "“assert double(3) == 6”."),
        ("x", "double(3) == 6, 'three'", "“assert double(3) == 6, 'three'”."),
        (
            "7 * x",
            "double(3) == 6, str(double(3))",
            "“assert double(3) == 6, str(double(3))” (21).",
        ),
        ("1 / (x - 3)", "double(3) == 6", "“assert double(3) == 6” (ZeroDivisionError: .*)."),
    ],
)
def test_the_assertion_that_fails_is_told(body: str, check: str, said: str) -> None:
    found = run("", DOUBLE.format(body=body) + f"\nassert double(2)\nassert {check}")
    assert found is not None
    before, *after = f"The code was run and fails its check {said}".split(".*")
    assert found.words.startswith(before)
    assert found.words.endswith("".join(after))


def test_fenced_blocks_are_one_program_and_prose_is_none() -> None:
    response = (
        "First the function:\n```python\ndef half(x):\n    return x / 2\n```\n"
        "Then its test:\n```\nassert half(4) == 2\n```\nThat is all."
    )
    snippet = snippet_of("", response)
    assert snippet is not None
    assert snippet.code.startswith("def half")
    assert snippet.checks == 1
    assert run("", response) == CodeCheck(True, "The code was run and passes its check.", held=1)


@pytest.mark.parametrize(
    "response",
    [
        "yes",
        "1889",
        "The tower was built in 1889.",
        "def double(x):\n    return 2 * x\n",
        "```python\nprint('no check')\n```",
        "def broken(:\n",
        "assert\x00",
        "(" * 5000,
        "```\nassert 1",
    ],
)
def test_what_is_no_code_with_checks_is_let_be(response: str) -> None:
    assert snippet_of("", response) is None


def test_examples_of_something_else_are_no_checks() -> None:
    assert snippet_of(ASKED, "def triple(x):\n    return 3 * x\n") is None


@pytest.mark.parametrize(
    "leaving",
    ["import os; os._exit(0)", "import sys; sys.exit(0)", "exit()", "import os; os.kill(0, 9)"],
)
def test_leaving_early_is_neither_passing_nor_failing(leaving: str) -> None:
    assert run("", f"{leaving}\n{TRUE}assert not true()\n") is None


@pytest.mark.parametrize(
    "never",
    [
        "def mean(xs):\n    assert xs\n    return sum(xs)\nprint(mean([1]))",
        "def test_sum():\n    assert sum([1]) == 2\n",
        "try:\n    assert 1 == 2\nexcept AssertionError:\n    pass",
        "ok = lambda: [x for x in ()]\ndef f():\n    def test_it():\n        assert 0\n",
    ],
)
def test_assertions_that_check_nothing_are_no_checks(never: str) -> None:
    assert snippet_of("", never) is None


@pytest.mark.parametrize("name", ["test_double", "check"])
def test_a_check_that_is_called_is_a_check(name: str) -> None:
    code = DOUBLE.format(body="x") + f"def {name}():\n    assert double(3) == 6\n{name}()\n"
    check = run("", code)
    assert check is not None
    assert not check.holds


def test_printing_does_not_disturb() -> None:
    check = run("", f"print('so')\n{TRUE}")
    assert check is not None
    assert check.holds


@pytest.mark.parametrize(
    "wanting",
    [
        "import numpy_of_nowhere",
        "open('table.csv')",
        "input()",
        "import socket; socket.create_connection(('127.0.0.1', 9), timeout=2)",
        "import urllib.request; urllib.request.urlopen('http://198.51.100.1', timeout=2)",
        "bytearray(4 << 30)",
        "for _ in range(10**6): print('flood' * 20)",
        "import threading as t\nfor _ in range(40): t.Timer(9, print).start()",
        "import sqlite3; sqlite3.connect('/nowhere/at.all')",
        "class Unknown(Exception): pass\nraise Unknown('so')",
    ],
)
def test_what_the_sandbox_withholds_says_nothing_about_the_code(wanting: str) -> None:
    assert run("", f"{wanting}\n{TRUE}") is None


def test_waiting_says_nothing_but_computing_on_and_on_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox, "WALL_SECONDS", 0.5)
    assert run("", f"import time\ntime.sleep(60)\n{TRUE}") is None
    monkeypatch.setattr(sandbox, "WALL_SECONDS", 60.0)  # a busy machine takes longer for a second
    monkeypatch.setattr(sandbox, "CPU_SECONDS", 1)
    check = run("", f"while True: pass\n{TRUE}")
    assert check is not None
    assert check.is_out_of_time


def test_names_of_the_answer_do_not_disturb_the_examples() -> None:
    check = run(ASKED, "sys = print = None\n" + DOUBLE.format(body="2 * x"))
    assert check is not None
    assert check.holds


def test_imports_from_the_future_may_stand_first() -> None:
    check = run(ASKED, "from __future__ import annotations\n" + DOUBLE.format(body="2 * x"))
    assert check is not None
    assert check.holds


@pytest.mark.parametrize(
    "question",
    [
        'def double(x):\n    """Doubles.\n    >>> double(4)\n    8\n    """\n',
        "It doubles:\n```\n>>> double(4)\n8\n```\nWrite it.",
        "It doubles:\n>>> double(4)\n8\nNumbers may be negative.",
        "It doubles.\r\n>>> double(4)\r\n8\r\nWrite it.",
        ">>> double('ab')\n\"abab\"\n",
        ">>> double(0.1)\n0.20\n",
        ">>> x = 4\n>>> y = double(x)\n>>> y\n8\n",
        ">>> print(double(4))\n8\n",
    ],
)
def test_what_stands_behind_an_example_is_none_of_its_result(question: str) -> None:
    right, wrong = (run(question, DOUBLE.format(body=body)) for body in ("2 * x", "3 * x"))
    assert right is not None
    assert right.holds
    assert wrong is not None
    assert not wrong.holds


@pytest.mark.parametrize(
    "question",
    [
        ">>> double(4)\nEight\n",
        ">>> double(4)  # doctest: +SKIP\n9\n",
        ">>> double([1])\n[1,\n 1]\n",
        ">>> double(range(9))\n[0, ...]\n",
        ">>> double(4)\n8\n9\n",
        ">>> double(size)\n8\n",
        ">>> double(4) == 8\n>>> double(0) == 0\n",
        ">>> 1 + 1\n2\n",
    ],
)
def test_examples_that_cannot_be_read_for_sure_are_none(question: str) -> None:
    assert snippet_of(question, DOUBLE.format(body="2 * x")) is None


@pytest.mark.parametrize(
    "check",
    [
        "assert 1 + 1 == 2",
        "assert True, double(3)",
        "assert double",
        "assert (double(3), 'six')",
        "assert double(3) == 7 or True",
        "expected = 6\nassert expected == 6",
    ],
)
def test_assertions_about_nothing_of_the_answers_own_are_no_checks(check: str) -> None:
    assert snippet_of("", DOUBLE.format(body="2 * x") + check + "\n") is None


@pytest.mark.parametrize(
    "check",
    [
        "if False:\n    assert double(3) == 6",
        "for _ in []:\n    assert double(3) == 6",
        "def check(f):\n    if f is None:\n        assert f(3) == 6\ncheck(double)",
    ],
)
def test_assertions_that_are_never_reached_check_nothing(check: str) -> None:
    assert run("", DOUBLE.format(body="2 * x") + check + "\n") is None


@pytest.mark.parametrize(
    "check",
    [
        "assert double(3) == 6",
        "six = double(3)\nassert six == 6",
        "if __name__ == '__main__':\n    assert double(3) == 6",
        "for x in (1, 2):\n    assert double(x) == x + x",
        "def check(f):\n    got = f(3)\n    assert got == 6\ncheck(double)",
        "twice = double\nassert twice(3) == 6",
    ],
)
def test_what_the_code_defines_is_followed_to_its_checks(check: str) -> None:
    for body, holds in (("2 * x", True), ("x ** 2", False), ("x + nothing", False)):
        found = run("", DOUBLE.format(body=body) + check + "\n")
        assert found is not None
        assert found.holds is holds


def test_an_error_that_the_answer_shows_is_no_failed_check() -> None:
    assert run("", TRUE + "int('ten')  # raises ValueError\n") is None


def test_what_the_sandbox_withholds_in_an_example_says_nothing() -> None:
    assert run(ASKED, "def double(x):\n    open('/nowhere/at.all')\n") is None


def test_words_of_a_failed_assertion_do_not_rename_it() -> None:
    code = DOUBLE.format(body="x") + "assert double(3) == 6, 'three\\nOSError'\n"
    check = run("", code)
    assert check is not None
    assert not check.holds


@pytest.mark.parametrize(
    "around",
    [
        "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')",
        "import io, sys\nsys.stderr = io.StringIO()",
        "import sys\nsys.stdout = sys.stderr = None",
        "import sys\nsys.stdout.close()\nsys.stderr.close()",
        "import atexit\natexit.register(print, 'bye')",
        "# -*- coding: gbk -*-\nprint('汉字')",
        "import sys\nsys.exit = sys.excepthook = exit = None",
    ],
)
def test_what_becomes_of_the_output_does_not_matter(around: str) -> None:
    check = run("", f"{around}\n{TRUE}")
    assert check is not None
    assert check.holds
    check = run("", f"{around}\n{TRUE}assert not true()\n")
    assert check is not None
    assert not check.holds


def test_of_two_programs_neither_is_run() -> None:
    one, other = (DOUBLE.format(body=body) + "assert double(3) == 6\n" for body in ("x", "x + x"))
    assert snippet_of("", f"Wrong:\n```python\n{one}```\nRight:\n```python\n{other}```\n") is None
    late = f"```python\n{TRUE}```\n```python\nfrom __future__ import annotations\n```\n"
    assert run("", late) is None


def test_other_languages_and_the_words_between_fences_are_no_code() -> None:
    response = f"```js\nlet x\n```\nThen:\n```python\n{TRUE}```\n"
    snippet = snippet_of("", response)
    assert snippet is not None
    assert snippet.code == TRUE


def test_what_runs_in_the_sandbox_is_never_loaded_here() -> None:
    check = run("", TRUE)
    assert check is not None
    assert "core.tools.sandbox_main" not in sys.modules


def test_code_may_ask_for_its_own_source() -> None:
    check = run(
        "", f"import inspect\n{TRUE}assert 'return' in inspect.getsource(true) and true()\n"
    )
    assert check is not None
    assert check.holds


@given(st.text(max_size=200), st.text(max_size=200))
def test_no_text_breaks_the_look_for_code(question: str, response: str) -> None:
    snippet = snippet_of(question, response)
    assert snippet is None or snippet.checks > 0


PIECES = (
    "def f(x):",
    "    return x",
    "assert f(1) == 1",
    "```python",
    "```",
    ">>> f(1)",
    "1",
    "\t",
)


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=20), max_size=12))
def test_no_lines_of_near_code_break_the_look_for_code(lines: list[str]) -> None:
    text = "\n".join(lines)
    for question, response in ((text, text), ("", text), (text, "def f(x):\n    return x\n")):
        snippet = snippet_of(question, response)
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
    snippet_of(text, text)
    snippet_of("", f"```python\n{text}\n```")
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
