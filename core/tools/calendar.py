"""The tool `calendar`: days between dates, dates some time away, weekdays and ages.

It answers questions that state all they need, and checks what a text states about dates. Source:
HaluAgent 2.2, 3.4 (the calendar as an added tool).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import msgspec

from core.documents.segmentation import split_sentences
from core.runtime.errors import InputError
from core.schema.records import Case, Statement
from core.tools.date_claims import (
    FILLER_WORDS,
    RESULT_WORDS,
    SIDE_WORDS,
    UNIT_DAYS,
    WEEKDAY_LINKS,
    WORD_PATTERN,
    DateClaim,
    DateFinding,
    TimeUnit,
    check_question,
    compare_figure,
    compare_stated_date,
    compare_weekday,
    compute_age,
    find_claims,
    format_count,
    has_only_words,
    measure_span,
    name_weekday,
    shift_date,
    translate_duration,
)
from core.tools.dates import TextPlace
from core.tools.registry import Tool, ToolAnswer, ToolContext, load_examples
from core.tools.vocabulary import load_words

# No error on 50 shared answers: with 95 % confidence the error rate is below 6 %.
ERROR_RATE = 0.06
MAX_SHORT_CHARS, CONTEXT_CHARS = 200, 1_000  # characters


class CalendarInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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


def _check_dates(given: CalendarInput, tool_context: ToolContext) -> ToolAnswer:
    """Compute the dates and compare them with what the text says.

    `gave` has `dates` (a list of objects with `date` as 2014-02-06 and `weekday`), `days_between`
    (of the first two, null if there is only one), `worked_out` (the calendar's result in words),
    `said` (the words of the text about it, may be empty) and `holds` (null if the text says
    nothing). If the text itself was read, `claims` counts its claims that the calendar can check,
    and `follows` lists the half-open places in `text` of words that the calendar confirms, so no
    source has to. Raises InputError if a date is not written as 2014-02-06, does not exist, or is
    missing.
    """
    if given.first:
        return _make_answer(_check_given_dates(given), given)
    if not given.text.strip():
        raise InputError("Expected a text or a first date to work on, found neither.")
    finding = check_question(given.question, given.text, given.language)
    if finding is not None:
        return _make_answer(finding, given)
    claims = find_claims(given.text, given.language, given.before)
    if not claims:
        return ToolAnswer("unclear", "Nothing here is one for a calendar.", has_something=False)
    return _combine_claims(claims, given)


def _check_given_dates(given: CalendarInput) -> DateFinding:
    """Compute the result for explicitly given dates and compare it with the text."""
    first, second = _parse_date(given.first), _parse_date(given.second) if given.second else None
    text, language, unit = given.text, given.language, given.unit
    if given.later is not None:
        target = shift_date(first, given.later, unit)
        if target is None:
            raise InputError("Expected a date within the years 1 to 9999, found one outside them.")
        finding, right = compare_stated_date(text, language, target), target.isoformat()
        dates: tuple[date, ...] = (first, target)
    elif second is None:
        finding, right, dates = (
            compare_weekday(text, language, first),
            name_weekday(first),
            (first,),
        )
    elif given.is_birth:
        age = compute_age(first, second)
        if age is None:
            raise InputError(f"Expected a day after the birth on {first}, found {second}.")
        finding = compare_figure(text, language, "year", str(age), lambda said: said == age)
        right, dates = format_count(age, "year"), (first, second)
    else:
        duration = measure_span(first, second, unit)
        days = abs((second - first).days) if unit in UNIT_DAYS else 0
        finding = compare_figure(
            text, language, unit, duration.words, duration.is_said_by, days=days
        )
        right, dates = duration.words, (first, second)
    return replace(finding or DateFinding(False, right, "", 0, 0), worked_out=right, dates=dates)


def _combine_claims(claims: Sequence[DateClaim], given: CalendarInput) -> ToolAnswer:
    """Combine claims: the first wrong one decides; right ones only if nothing else is said."""
    wrong = next((claim for claim in claims if not claim.finding.holds), None)
    first, text = wrong or claims[0], given.text
    for claim in claims:  # blank out other right claims: they are checked too
        if wrong is None and claim is not first:
            text = f"{text[: claim.start]}{' ' * (claim.end - claim.start)}{text[claim.end :]}"
    remaining = msgspec.structs.replace(given, text=text)
    answer = _make_answer(first.finding, remaining, said_in=(first.start, first.end))
    follows = [claim.follows for claim in claims if claim.finding.holds]
    return replace(answer, gave={**answer.gave, "claims": len(claims), "follows": follows})


def _parse_date(written: str) -> date:
    try:
        return date.fromisoformat(written)
    except ValueError as error:
        raise InputError(
            f"Expected a date of the calendar as 2014-02-06, found “{written}”."
        ) from error


def _make_answer(
    finding: DateFinding, given: CalendarInput, *, said_in: TextPlace | None = None
) -> ToolAnswer:
    dates, right = finding.dates, finding.worked_out
    start, end = finding.start, finding.end
    details: dict[str, Any] = {
        "dates": [{"date": day.isoformat(), "weekday": name_weekday(day)} for day in dates],
        "days_between": abs((dates[1] - dates[0]).days) if len(dates) > 1 else None,
        "worked_out": right,
        "said": finding.given,
        "holds": finding.holds if finding.given else None,
    }
    if not finding.given:
        return ToolAnswer("unclear", f"The calendar gives {right}.", details)
    if not finding.holds:
        words = f"The calendar gives {right}, but the text says “{finding.given}”."
        instead, p = translate_duration(right, given.language), 1.0 - ERROR_RATE
        return ToolAnswer("hallucinated", words, details, p, start, end, instead, "number_or_date")
    words = f"The calendar gives {right}, as the text says."
    if not _is_nothing_else(given.text, said_in or (start, end), given.question, given.language):
        return ToolAnswer("unclear", f"{words} What is said beside it was not checked.", details)
    return ToolAnswer("supported", words, details, ERROR_RATE, start, end)


def _is_nothing_else(text: str, place: TextPlace, question: str, language: str) -> bool:
    """Return True if the text is one short sentence that says nothing besides the claim.

    Words that the question has already say nothing new either.
    """
    if len(text) > MAX_SHORT_CHARS or len(split_sentences(text, language)) > 1:
        return False
    known = (
        FILLER_WORDS
        | RESULT_WORDS
        | WEEKDAY_LINKS
        | SIDE_WORDS
        | set(WORD_PATTERN.findall(question.lower()))
        | set("123456")
    )
    return has_only_words(f"{text[: place[0]]} {text[place[1] :]}", known)


def _read_statement(statement: Statement | None, case: Case) -> CalendarInput | None:
    if statement is None:
        has_both = case.question.strip() and case.response.strip()
        is_asked = has_both and check_question(case.question, case.response, case.language)
        return (
            CalendarInput(case.response, case.question, language=case.language)
            if is_asked
            else None
        )
    before = case.response[max(0, statement.start - CONTEXT_CHARS) : statement.start]
    if not find_claims(statement.text, case.language, before):
        return None
    return CalendarInput(statement.text, before=before, language=case.language)


TOOL = Tool(
    name="calendar",
    description=load_words("descriptions")["calendar"],
    takes=CalendarInput,
    work=_check_dates,
    examples=load_examples("calendar", CalendarInput),
    reads=_read_statement,
)
