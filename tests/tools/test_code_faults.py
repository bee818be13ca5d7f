"""Python that cannot work, found without running it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.runtime.concurrency import Stop
from core.schema.records import Case
from core.tools.code import fault_in
from core.tools.registry import Bench, tool_named, use
from tests.needs import need

ASKED = "Write a Python function that gives the area of a circle."
RIGHT = "import math\n\ndef area(r):\n    return math.pi * r ** 2\n"


def fenced(code: str) -> str:
    return f"Here it is:\n```python\n{code}```\n"


@pytest.mark.parametrize(
    ("code", "said", "line"),
    [
        ("def area(r):\n    return math.pi * r ** 2\n", "without importing math", 2),
        ("def area(r):\n    return np.pi * r ** 2\n", "without importing numpy", 2),
        ("def area(r):\n    return pi_of(r) * r\n", "“pi_of”, which nothing defines", 2),
        ("def area(r:\n    return r\n", "The code is no Python", 1),
        ("def area(r)\n    return r\n", "The code is no Python", 1),
        ("def area(r):\nreturn r\n", "The code is no Python", 2),
    ],
)
def test_what_cannot_work_is_told_with_its_line(code: str, said: str, line: int) -> None:
    for response in (fenced(code), code):
        fault = fault_in(ASKED, response)
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
    assert fault_in(ASKED, fenced(code)) is None


def test_what_the_question_names_is_there() -> None:
    code = "def area(r):\n    return pi_of(r) * r\n"
    assert fault_in(f"{ASKED} Use the function pi_of.", code) is None


def test_broken_lines_are_no_fault_where_no_python_is_asked_for() -> None:
    assert fault_in("What does this do?", fenced("def area(r:\n    return r\n")) is None
    assert fault_in(ASKED, "def is the word that begins a function.") is None
    assert fault_in(ASKED, "```js\nlet x = {\n```") is None


def test_the_tool_tells_of_a_fault_without_a_run() -> None:
    tool = tool_named("code")
    need(not tool.why_off(Bench(Stop())), tool.why_off(Bench(Stop())))
    assert tool.reads is not None
    response = fenced("def area(r):\n    return math.pi * r ** 2\n")
    told = use(tool, tool.reads(None, Case("c", "p", response, ASKED)), Bench(Stop()))
    assert (told.label, told.outcome) == ("hallucinated", "found")
    assert json.loads(told.gave)["error_line"] == 2
    assert tool.reads(None, Case("c", "p", fenced(RIGHT), ASKED)) is None


@given(st.text(max_size=200))
def test_any_text_can_be_looked_at(text: str) -> None:
    for response in (text, fenced(text), f"def f():\n    return {text}"):
        fault = fault_in(ASKED, response)
        assert fault is None or fault.line >= 1
