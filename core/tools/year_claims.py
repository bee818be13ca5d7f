"""Checks the years that a text counts between two others: "From 1998 to 2023 are 25 years".

Strict: the count must end what is said, for "3 years of drought" counts something else. One off is
left open, for a year of the two may count or not. Source: HaluAgent 3.4 (calendar).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from core.tools.date_answers import DateFinding, counted
from core.tools.date_claims import (
    LASTS,
    LEADS,
    LIES,
    LONGEST,
    MAKES,
    TO,
    DateClaim,
    TimeSpan,
    is_sure,
    spans_in,
)
from core.tools.values.dates import DateValue, find_dates

# Nothing more is said of the years after these: not "3 years of drought".
ENDS = re.compile(
    r"\s*(?:in\s+(?:total|all)|altogether|apart|long|later|insgesamt|lang|au\s+total|en\s+tout|en\s+total"
    r"|时间|之久|的时间)?\s*(?:$|[.,;:!?)。，；：！？）])",
    re.IGNORECASE,
)
# "25 years lie between …", where nothing stands before the count.
LIE = re.compile(
    rf"(?:\s*(?:lie|lay|liegen|lagen|séparent|séparaient)\b)?{LIES.pattern}", re.IGNORECASE
)


def year_claims(text: str, language: str) -> list[DateClaim]:
    """All claims of a text about the time between two years, in order."""
    if len(text) > LONGEST:
        return []
    dates = find_dates(text, language)
    spans = [span for span in spans_in(text, language, dates) if span.unit == "year"]
    found = [
        claim
        for first, last, start, end in _stretches(text, dates)
        for span in spans
        if (claim := _claim(text, (first, last), (start, end), span)) is not None
    ]
    return [claim for claim in found if is_sure(text, claim)]


def _stretches(text: str, dates: Sequence[DateValue]) -> Iterator[tuple[int, int, int, int]]:
    """Two years with the place of both: first year, last year, start, end."""
    for found in dates:
        if found.kind == "range" and found.end_year is not None and _is_bare(found):
            yield found.year or 0, found.end_year, found.start, found.end
    for one, other in itertools.pairwise(dates):
        are_points = one.kind == other.kind == "point" and _is_bare(one) and _is_bare(other)
        if are_points and TO.fullmatch(text[one.end : other.start]):
            yield one.year or 0, other.year or 0, one.start, other.end


def _is_bare(found: DateValue) -> bool:
    """A year of our era and nothing else of a date."""
    is_plain = found.era == "ce" and found.bound in ("exact", "since", "until")
    others = (found.month, found.end_month, found.weekday, found.hour)
    return is_plain and found.year is not None and not found.season and not any(others)


def _claim(
    text: str, years: tuple[int, int], place: tuple[int, int], span: TimeSpan
) -> DateClaim | None:
    """The claim that the span makes of the two years; None where it says something else."""
    start, end = place
    lead = LEADS.search(text[:start])
    start = lead.start() if lead else start
    is_first = not text[: span.start].strip() or LASTS.search(text[: span.start])
    if span.start >= end and MAKES.fullmatch(text[end : span.start]):
        is_whole, whole, confirmed = ENDS.match(text, span.end), (start, span.end), (end, span.end)
    elif span.end <= start and is_first and LIE.fullmatch(text[span.end : place[0]]):
        is_whole, whole = ENDS.match(text, end), (span.start, end)
        confirmed = (span.start, span.end)
    else:
        return None
    finding = _finding(text, years, span)
    if not is_whole or finding is None:
        return None
    return DateClaim(finding, *whole, confirmed)


def _finding(text: str, years: tuple[int, int], span: TimeSpan) -> DateFinding | None:
    right = abs(years[1] - years[0])
    off = abs(span.count - right)
    if 0 < off <= 1:
        return None
    said = text[span.start : span.end]
    return DateFinding(off == 0, counted(right, "year"), said, span.start, span.end)
