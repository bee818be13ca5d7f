"""Code that comes with checks, found in answers and run."""

from __future__ import annotations

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


def test_assertions_in_the_answer_are_checks() -> None:
    response = DOUBLE.format(body="x") + "\nassert double(3) == 6, 'three'"
    check = run("", response)
    assert check is not None
    assert check.words == "The code was run and fails a check (AssertionError: three)."


def test_fenced_blocks_are_one_program_and_prose_is_none() -> None:
    response = (
        "First the function:\n```python\ndef half(x):\n    return x / 2\n```\n"
        "Then its test:\n```\nassert half(4) == 2\n```\nThat is all."
    )
    snippet = snippet_of("", response)
    assert snippet is not None
    assert snippet.code.startswith("def half")
    assert snippet.checks == 1
    assert run("", response) == CodeCheck(True, "The code was run and passes its check.")


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
    assert run("", f"{leaving}\nassert 1 == 2\n") is None


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
    check = run("", "print('so')\nassert 1 == 1\n")
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
    assert run("", f"{wanting}\nassert 1 == 1\n") is None


def test_waiting_says_nothing_but_computing_on_and_on_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox, "WALL_SECONDS", 0.5)
    assert run("", "import time\ntime.sleep(60)\nassert 1 == 1\n") is None
    monkeypatch.undo()
    monkeypatch.setattr(sandbox, "CPU_SECONDS", 1)
    check = run("", "while True: pass\nassert 1 == 1\n")
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


@given(st.text(max_size=200), st.text(max_size=200))
def test_no_text_breaks_the_look_for_code(question: str, response: str) -> None:
    snippet = snippet_of(question, response)
    assert snippet is None or snippet.checks > 0
