"""Calendar: works out days between dates, dates some time away, weekdays and ages.

Source: HaluAgent 2.2, 3.4 (the calendar as a tool that is added).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import msgspec

from core.errors import InputError
from core.records import Case, Statement
from core.tools.age_claims import claims_in
from core.tools.bare_answers import says_only
from core.tools.calendar import TimeUnit, in_language, weekday_name
from core.tools.date_answers import DateFinding
from core.tools.date_claims import DateClaim
from core.tools.date_questions import check_dates
from core.tools.given_dates import check_given
from core.tools.toolbox import Answer, Bench, Example, Tool

RULE = """The question is one for a calendar and states its dates, from 1583 on: the answer is
worked out. A right figure is only enough for one sentence that says nothing else. A figure that
stands beside a "not" or an "or" is left open, and so are days that miss by one where both ends may
count."""
# No error on 50 shared answers: with 95 % confidence fewer than six in a hundred go wrong.
DOUBT = 0.06
BEFORE = 1_000  # characters in front of a statement


class Dates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said of dates in `text`, and the question that it answers or the dates themselves.

    With `question`, one for a calendar, the answer `text` is checked; without, what the text
    itself states of dates, where `before` may hold what stands in front of it. Or give `first`, a
    date as 2014-02-06, with one of these: `second`, a date too, for the time between the two in
    `unit` (or the age on `second` of somebody born on `first`, where `is_birth`); `later`, so many
    of `unit` after `first` (negative for before it); neither, for the weekday of `first`. What
    `text` says is then held against that.
    """

    text: str = ""
    question: str = ""
    before: str = ""
    language: str = "und"
    first: str = ""
    second: str = ""
    unit: TimeUnit = "day"
    later: int | None = None
    is_birth: bool = False


def _work(given: Dates, bench: Bench) -> Answer:
    """Work out the dates and hold what the text says against them.

    `gave` has `dates` (a list of objects with `date` as 2014-02-06 and `weekday`), `days_between`
    (of the first two, null where there is one), `worked_out` (what the calendar gives, in words),
    `said` (the words of the text about it, empty for none) and `holds` (null where none); where
    the text itself was read, `claims` says how many of its claims the calendar can check, and
    `follows` where (half-open, in `text`) the words stand that it bears out: no source need say
    them.

    Raises:
        InputError: a date is not written as 2014-02-06, is not of the calendar, or is missing.
    """
    if given.first:
        first = _date(given.first)
        second = _date(given.second) if given.second else None
        found = check_given(
            given.text,
            given.language,
            first,
            second,
            unit=given.unit,
            later=given.later,
            is_birth=given.is_birth,
        )
        return _answer(found, given)
    if not given.text.strip():
        raise InputError("Expected a text or a first date to work on, found neither.")
    read = check_dates(given.question, given.text, given.language)
    if read is not None:
        return _answer(read, given)
    claims = claims_in(given.text, given.language, given.before)
    if not claims:
        return Answer("unclear", "Nothing here is one for a calendar.", has_something=False)
    return _of_claims(claims, given)


def _of_claims(claims: Sequence[DateClaim], given: Dates) -> Answer:
    """The first wrong claim decides; right ones alone where nothing else is said."""
    wrong = next((claim for claim in claims if not claim.finding.holds), None)
    first = wrong or claims[0]
    alone = given if wrong else _without(given, [claim for claim in claims if claim is not first])
    answer = _answer(first.finding, alone, said_in=(first.start, first.end))
    follows = [claim.follows for claim in claims if claim.finding.holds]
    gave = {**answer.gave, "claims": len(claims), "follows": follows}
    return replace(answer, gave=gave)


def _without(given: Dates, others: Sequence[DateClaim]) -> Dates:
    """With blanks in place of other claims: what holds too is nothing that is left unchecked."""
    text = given.text
    for claim in others:
        gap = " " * (claim.end - claim.start)
        text = f"{text[: claim.start]}{gap}{text[claim.end :]}"
    return msgspec.structs.replace(given, text=text)


def _date(written: str) -> date:
    try:
        return date.fromisoformat(written)
    except ValueError as error:
        raise InputError(
            f"Expected a date of the calendar as 2014-02-06, found “{written}”."
        ) from error


def _answer(found: DateFinding, given: Dates, *, said_in: tuple[int, int] | None = None) -> Answer:
    """What follows from one finding; `said_in` is the place of all the words of its claim."""
    gave = _shown(found)
    if not found.given:
        return Answer("unclear", f"The calendar gives {found.worked_out}.", gave)
    if not found.holds:
        words = f"The calendar gives {found.worked_out}, but the text says “{found.given}”."
        return Answer(
            "hallucinated", words, gave, 1.0 - DOUBT, found.start, found.end,
            in_language(found.worked_out, given.language), category="number_or_date",
        )  # fmt: skip
    words = f"The calendar gives {found.worked_out}, as the text says."
    start, end = said_in or (found.start, found.end)
    if not says_only(given.text, start, end, given.question, given.language):
        return Answer("unclear", f"{words} What is said beside it was not checked.", gave)
    return Answer("supported", words, gave, DOUBT, found.start, found.end)


def _shown(found: DateFinding) -> dict[str, Any]:
    dates = found.dates
    return {
        "dates": [{"date": day.isoformat(), "weekday": weekday_name(day)} for day in dates],
        "days_between": abs((dates[1] - dates[0]).days) if len(dates) > 1 else None,
        "worked_out": found.worked_out,
        "said": found.given,
        "holds": found.holds if found.given else None,
    }


def _reads(statement: Statement | None, case: Case) -> Dates | None:
    """The whole response where its question is one for a calendar; a statement that states dates.

    What stands before the statement goes with it, for a date that it leans on.
    """
    if statement is None:
        has_both = case.question.strip() and case.response.strip()
        is_asked = has_both and check_dates(case.question, case.response, case.language)
        return Dates(case.response, case.question, language=case.language) if is_asked else None
    before = case.response[max(0, statement.start - BEFORE) : statement.start]
    if not claims_in(statement.text, case.language, before):
        return None
    return Dates(statement.text, before=before, language=case.language)


ASKED = "How many days are there from 2014-02-06 to 2014-05-21?"

TOOL = Tool(
    name="calendar",
    description=(
        "Works out the time between two dates, the date some time before or after another, the"
        " weekday of a date, and an age, and says whether a text that states such a thing is right."
        " Use it where a question or a statement is about dates that are stated in full."
    ),
    takes=Dates,
    work=_work,
    examples=(
        Example(
            ASKED, "104 days", Dates("104 days", ASKED), "supported",
            "The days between two dates can be counted exactly.",
        ),
        Example(
            "When was the bridge opened?",
            "It was opened on Monday, 12 March 2024.",
            Dates("It was opened on Monday, 12 March 2024.", first="2024-03-12"),
            "hallucinated",
            "The date is given with a weekday, which can be looked up.",
        ),
    ),
    reads=_reads,
)  # fmt: skip
