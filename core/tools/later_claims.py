"""Checks dates that a text places so long after another: "ten years later, in 2031".

Or the other way round: "in 2031, ten years later". Of several dates before it, it is not known
which is meant: one that fits is taken, and none is called wrong. Source: HaluAgent 3.4 (calendar).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from core.tools.calendar import between, moved
from core.tools.date_answers import DAYS, DateFinding
from core.tools.date_claims import (
    ARTICLE,
    LONGEST,
    YEAR,
    DateClaim,
    TimeSpan,
    is_sure,
    spans_in,
)
from core.tools.full_dates import FIRST_YEAR, full_date
from core.tools.values.dates import DateValue, find_dates

LATER = re.compile(
    r"\s*(?:(?P<after>later|afterwards|after\s+that|später|danach|plus\s+tard|después|más\s+tarde"
    r"|之后|以后|后)|(?P<before>earlier|before\s+that|früher|zuvor|plus\s+tôt|auparavant|antes"
    r"|之前|以前|前))",
    re.IGNORECASE,
)
THEN = re.compile(
    rf"\s*[,(，（]?\s*(?:that\s+is\s*,?\s*|namely\s+|即|也就是|的)?"
    rf"(?:(?:in|on|im\s+Jahre?|am|en|à|在|于)\s*)?{ARTICLE}",
    re.IGNORECASE,
)
COMMA = re.compile(r"\s*[,，]?\s*")
# After "in 2000, five years later" the date that is meant may still come.
ENDS = re.compile(r"\s*(?:$|[.;。；])")


def later_claims(text: str, language: str, before: str = "") -> list[DateClaim]:
    """All claims of a text about a date so long after another, in order.

    `before` is what stands in front of the text, where a date may be that it leans on.
    """
    if len(text) > LONGEST or not YEAR.search(f"{before}{text}"):
        return []
    dates = find_dates(text, language)
    told = find_dates(before[-LONGEST:], language) if before else []
    found = (
        claim
        for span in spans_in(text, language, dates)
        if span.count.is_integer() and (later := LATER.match(text, span.end)) is not None
        for claim in (*_ahead(text, dates, span, later, told), *_behind(text, dates, span, later))
    )
    return [claim for claim in found if is_sure(text, claim)]


def _ahead(
    text: str,
    dates: Sequence[DateValue],
    span: TimeSpan,
    later: re.Match[str],
    told: Sequence[DateValue],
) -> Iterator[DateClaim]:
    """The date behind, as in "ten years later, in 2031", held against those before the span."""
    target = next((day for day in dates if day.start >= later.end()), None)
    if target is None or not THEN.fullmatch(text[later.end() : target.start]):
        return
    anchors = [*told, *(day for day in dates if day.end <= span.start)]
    comma = COMMA.match(text, later.end())
    follows = (span.start, comma.end() if comma else later.end())
    finding, is_only = _held(text, anchors, target, span, 1 if later["after"] else -1)
    if finding is not None and (finding.holds or is_only):
        yield DateClaim(finding, span.start, target.end, follows)


def _behind(
    text: str, dates: Sequence[DateValue], span: TimeSpan, later: re.Match[str]
) -> Iterator[DateClaim]:
    """The date in front, as in "in 2031, ten years later", held against those before it."""
    target = next((day for day in reversed(dates) if day.end <= span.start), None)
    if target is None or not COMMA.fullmatch(text[target.end : span.start]):
        return
    anchors = [day for day in dates if day.end <= target.start]
    finding, is_only = _held(text, anchors, target, span, 1 if later["after"] else -1)
    is_end = ENDS.match(text, later.end()) is not None
    if finding is not None and is_end and (finding.holds or is_only):
        yield DateClaim(finding, target.start, later.end(), (target.end, later.end()))


def _held(
    text: str, anchors: Sequence[DateValue], target: DateValue, span: TimeSpan, sign: int
) -> tuple[DateFinding | None, bool]:
    """What is found by the anchor that fits, else by the first; True where there is but one."""
    checked = [
        finding
        for anchor in anchors
        if (finding := _led(text, anchor, target, span, sign)) is not None
    ]
    right = [finding for finding in checked if finding.holds]
    return next(iter((*right, *checked)), None), len(anchors) == len(checked) == 1


def _led(
    text: str, anchor: DateValue, target: DateValue, span: TimeSpan, sign: int
) -> DateFinding | None:
    """The date told against the one worked out; None where the dates are too coarse to say."""
    said = text[target.start : target.end]
    one, other = full_date(anchor), full_date(target)
    count = int(span.count)
    if one and other:
        goal = moved(one, sign * count, span.unit)
        if goal is None:
            return None
        stretch = between(one, other, span.unit)
        is_forward = (other >= one) == (sign > 0)
        holds = is_forward and (other == goal or stretch.is_said_by(count))
        if not holds and span.unit in DAYS and abs((other - goal).days) <= 1:
            return None
        worked_out = goal.isoformat()
        return DateFinding(holds, worked_out, said, target.start, target.end, (one, goal))
    return _led_by_years(anchor, target, span, sign, said)


def _led_by_years(
    anchor: DateValue, target: DateValue, span: TimeSpan, sign: int, said: str
) -> DateFinding | None:
    """Years alone: one off is left open, for twelve months may lie across two New Years."""
    years = (anchor.year, target.year)
    are_points = anchor.kind == target.kind == "point" and anchor.era == target.era == "ce"
    are_plain = anchor.bound in ("exact", "since", "until") and target.bound == "exact"
    if span.unit != "year" or not are_points or not are_plain or None in years:
        return None
    goal = (anchor.year or 0) + sign * int(span.count)
    off = abs((target.year or 0) - goal)
    if off == 1 or goal < FIRST_YEAR:
        return None
    return DateFinding(off == 0, str(goal), said, target.start, target.end, ())
