"""What a tool finds out about a case without any evidence: a length, a date, code that is run.

The chooser is deterministic: each tool reads the question itself and speaks only where it is
meant. Source: HaluAgent 2.2, 2.3 (one tool per kind of statement).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from core.concurrency import Stop
from core.evidence.segment import sentences
from core.records import Case, Category
from core.tools.asked_length import asked_lengths
from core.tools.code import Snippet, check_code, snippet_of
from core.tools.conditions import LengthCheck, check_length
from core.tools.date_answers import DateFinding
from core.tools.date_questions import check_dates
from core.tools.sandbox import why_off

RULE = """The question asks for a length: the answer is counted. Within 7.5 % of a bare figure (20 %
of "about") it is kept; bounds allow nothing.
The question is one for a calendar and states its dates, from 1583 on: the answer is worked out. A
right figure is only enough for one sentence that says nothing else. A figure that stands beside a
"not" or an "or" is left open, and so are days that miss by one where both ends may count.
The answer holds Python with checks (assertions that try what it defines, or examples in the
question): it is run, walled off from everything else here, and must pass them all. Passing is
enough only where nothing is said beside the code but words that lead to it, without names or
figures and within 200 characters. Code made to deceive its checks can."""
# No error on 100 and 50 shared answers: with 95 % confidence fewer than three in n go wrong.
LENGTH_DOUBT, DATE_DOUBT = 0.03, 0.06
# None on 34 either; code that is merely slow is not wrong as surely.
CODE_DOUBT, SLOW_DOUBT = 0.09, 0.2
# Shared answers called right strain up to two thirds of what is allowed, wrong ones from four.
SURE_BELOW, SURE_FROM = 2 / 3, 4 / 3
SHORT = 200
# Words of an answer that only gives a figure; a Chinese character is a word here.
WORD = re.compile(r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+")
BESIDE_A_FIGURE = frozenset(
    (
        "a an the it that this there they he she is are was were be will would falls fell on in of"
        " and to between from until exactly total altogether so therefore answer result date day"
        " days week weeks month months year years old aged age both two dates one three four five"
        " six 1 2 3 4 5 6 passed been has have"
    ).split()
) | frozenset("一共有总计是为的了在那这天日周月年岁号星期礼拜个零又共间隔相之和到从他她它答案结果")
LENGTH_TOOL, DATE_TOOL, CODE_TOOL = "Length", "Calendar", "Code"


@dataclass(frozen=True)
class ToolFinding:
    """A tool's word on the response; `p` is the probability that it is hallucinated.

    `sentence` is for people. `[start, end)` in `Case.response` is what it is about, None where
    that is all of it. `is_answer` tells the answer itself from a condition on it: a kept length
    says nothing about what is written. `instead` is what the words should say.
    """

    label: Literal["supported", "hallucinated"]
    p: float
    sentence: str
    tool: str
    start: int | None = None
    end: int | None = None
    is_answer: bool = False
    instead: str = ""
    category: Category = "number_or_date"


def tool_finding(case: Case, stop: Stop) -> ToolFinding | None:
    """What the tools find; None where none applies. A broken condition weighs most.

    Raises:
        Stopped: the person stopped the check while code ran.
    """
    if not case.response.strip():
        return None
    ways: tuple[Callable[[Case], ToolFinding | None], ...] = (_length, _date)
    found = [finding for way in ways if case.question.strip() and (finding := way(case))]
    if code := _code(case, stop):
        found.append(code)
    wrong = [finding for finding in found if finding.label == "hallucinated"]
    answers = [finding for finding in found if finding.is_answer]
    return next(iter((*wrong, *answers, *found)), None)


def _length(case: Case) -> ToolFinding | None:
    asked = asked_lengths(case.question)
    checks = [check_length(case.response, length, case.language) for length in asked]
    known = [check for check in checks if check is not None]
    if not known or (len(known) < len(asked) and all(check.holds for check in known)):
        return None
    worst = max(known, key=lambda check: check.strain)
    label: Literal["supported", "hallucinated"] = "supported" if worst.holds else "hallucinated"
    return ToolFinding(label, _length_p(worst), worst.words, LENGTH_TOOL)


def _length_p(check: LengthCheck) -> float:
    """From sure that it is kept to sure that it is not, evenly in between."""
    share = min(1.0, max(0.0, (check.strain - SURE_BELOW) / (SURE_FROM - SURE_BELOW)))
    p = LENGTH_DOUBT + share * (1.0 - 2 * LENGTH_DOUBT)
    # At the very edge the rule decides, not the rounding.
    return round(min(p, 0.49) if check.holds else max(p, 0.51), 4)


def _date(case: Case) -> ToolFinding | None:
    found = check_dates(case.question, case.response, case.language)
    if found is None or (found.holds and not _says_only_that(case, found)):
        return None
    label: Literal["supported", "hallucinated"] = "supported" if found.holds else "hallucinated"
    p = DATE_DOUBT if found.holds else 1.0 - DATE_DOUBT
    return ToolFinding(
        label,
        p,
        _date_sentence(found),
        DATE_TOOL,
        found.start,
        found.end,
        is_answer=True,
        instead=found.worked_out,
    )


def what_is_off(case: Case) -> str:
    """Which tool this case would have needed that cannot work here, and why; mostly empty."""
    return why_off() if _snippet(case) else ""


def _snippet(case: Case) -> Snippet | None:
    return snippet_of(case.question, case.response)


def _code(case: Case, stop: Stop) -> ToolFinding | None:
    snippet = _snippet(case)
    found = check_code(snippet, stop) if snippet and not why_off() else None
    if snippet is None or found is None or (found.holds and not snippet.is_alone):
        return None
    doubt = SLOW_DOUBT if found.is_out_of_time else CODE_DOUBT
    label: Literal["supported", "hallucinated"] = "supported" if found.holds else "hallucinated"
    p = doubt if found.holds else 1.0 - doubt
    return ToolFinding(label, p, found.words, CODE_TOOL, is_answer=True, category="reasoning")


def _says_only_that(case: Case, found: DateFinding) -> bool:
    """Whether the answer is one short sentence of words that say nothing beside its figure."""
    if len(case.response) > SHORT or len(sentences(case.response, case.language)) > 1:
        return False
    rest = f"{case.response[: found.start]} {case.response[found.end :]}".lower()
    asked = set(WORD.findall(case.question.lower()))
    return all(word in asked or word in BESIDE_A_FIGURE for word in WORD.findall(rest))


def _date_sentence(found: DateFinding) -> str:
    if found.holds:
        return f"The calendar gives {found.worked_out}, as the answer says."
    return f"The calendar gives {found.worked_out}, but the answer says “{found.given}”."
