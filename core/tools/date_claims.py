"""Finds in a text what it states of dates that the calendar can check, in five languages.

Weekdays of dates and the time between two dates; the other kinds are gathered in `age_claims`.
Strict: only words that say nothing else may stand between the parts of a claim, and what the text
denies or leaves open is no claim. Source: HaluAgent 3.4 (calendar).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from core.tools.calendar import TimeUnit, between, weekday_name
from core.tools.date_answers import DAYS, OPEN, SECONDS, DateFinding, stretch_words
from core.tools.full_dates import full_date
from core.tools.values.dates import DateValue, find_dates, find_weekdays
from core.tools.values.quantities import Quantity, find_quantities

Place = tuple[int, int]
LONGEST = 2_000  # characters of a statement with what stands before it
YEAR = re.compile(r"\d{3}|[〇零一二三四五六七八九]{3}")
ARTICLE = r"(?:the\s+|dem\s+|den\s+|le\s+|el\s+|zum\s+|zu\s+)?"
TO = re.compile(
    rf"\s*(?:to|until|till|through|and|bis|und|au|et|jusqu['’]au|al|hasta|y|a|到|至|与|和|[-–—~])"
    rf"\s*{ARTICLE}",
    re.IGNORECASE,
)
LEADS = re.compile(
    rf"(?:\b(?:from|between|vom|von|zwischen|entre|du|de|del|desde)\s+{ARTICLE}|[从自由]\s*)$",
    re.IGNORECASE,
)
EXACTLY = r"(?:(?:exactly|a\s+total\s+of|genau|insgesamt|exactement|exactamente|整整)\s*)?"
# "… to 5 May 2021 are 428 days"
MAKES = re.compile(
    r",?\s*(?:之间|期间)?(?:(?:there|it|that|which)\s+)?(?:is|are|was|were|makes|equals|="
    r"|sind\s+es|es\s+sind|sind|waren\s+es|liegen|lagen|vergehen|vergingen"
    r"|il\s+y\s+a(?:vait)?|cela\s+fait|ce\s+sont|il\s+s['’]écoule|on\s+compte|soit"
    r"|hay|son|pasan|pasaron|transcurren|transcurrieron"
    rf"|(?:一共|总共|共计|共)?(?:有|是|为|相隔|间隔|相差|经过了?|过了)|一共|总共|共计|共)\s*{EXACTLY}",
    re.IGNORECASE,
)
# "There are 428 days from …", "it lasted 428 days, from …"
LASTS = re.compile(
    r"(?:there\s+(?:are|is|were|was)|lasted|es\s+(?:sind|liegen|lagen)|dauerte|il\s+y\s+a|(?:a\s+)?duré"
    rf"|hay|duró|持续了?|历时)\s*{EXACTLY}$",
    re.IGNORECASE,
)
LIES = re.compile(
    rf",?\s*(?:(?:passed|elapsed)\s+)?(?:between|from|zwischen|vom|von|entre|du|del?|desde)\s+{ARTICLE}",
    re.IGNORECASE,
)
IS_A = re.compile(
    r"[,，]?\s*(?:(?:which|ce\s+qui|lo\s+que|que)\s+)?(?:was|is|will\s+be|fell\s+on|falls\s+on|war|ist|fiel\s+auf|fällt\s+auf"
    r"|était|est|fut|tombait|tombe|fue|es|era|será|cayó\s+en|cae\s+en|(?:那天|当天)?正?好?(?:是|为))"
    r"\s*(?:an?\s+|ein(?:en|em)?\s+|une?\s+)?",
    re.IGNORECASE,
)
# "… opened on 12 March 1998; that day was a …", where the text states no other date
THAT_DAY = re.compile(
    r"[^.。!！?？]{0,80}?(?P<said>[,，;；]?\s*(?:and\s+)?(?:(?:that|this)\s+(?:day\s+)?(?:was|is)\s+an?\s+"
    r"|(?:那一?天|当天|这一?天)正?好?(?:是|为)))",
    re.IGNORECASE,
)
UNIT_WORDS: tuple[tuple[TimeUnit, str], ...] = (
    ("day", r"\bdays?\b|\btage?n?\b|\bjours?\b|\bdías?\b|[天日]"),
    ("week", r"\bweeks?\b|\bwochen?\b|\bsemaines?\b|\bsemanas?\b|周|星期|礼拜"),
    ("month", r"\bmonths?\b|\bmonate?n?\b|\bmois\b|\bmes(?:es)?\b|月"),
    ("year", r"\byears?\b|\bjahre?n?\b|\bans?\b|\bannées?\b|\baños?\b|年"),
)


@dataclass(frozen=True)
class DateClaim:
    """What the calendar says to one claim; `[start, end)` in the text is all of the claim.

    `follows` is the place of the words that follow from the dates beside them: where the claim
    holds no source has to say them.
    """

    finding: DateFinding
    start: int
    end: int
    follows: Place


@dataclass(frozen=True)
class TimeSpan:
    """A stated time: `count` of `unit`, at `[start, end)`."""

    count: float
    unit: TimeUnit
    start: int
    end: int


def date_claims(text: str, language: str) -> list[DateClaim]:
    """All claims of a text about dates stated in full, in order, those that hold among them."""
    if len(text) > LONGEST or not YEAR.search(text):
        return []
    dates = find_dates(text, language)
    found = [
        *_weekdays(text, dates, language),
        *_differences(text, dates, spans_in(text, language, dates)),
    ]
    sure = [claim for claim in found if is_sure(text, claim)]
    return sorted(sure, key=lambda claim: claim.start)


def is_sure(text: str, claim: DateClaim) -> bool:
    """False where its words deny it or leave it open."""
    return OPEN.search(text[claim.start : claim.end]) is None


def spans_in(text: str, language: str, dates: Sequence[DateValue]) -> list[TimeSpan]:
    """The times that a text states in one unit, in order."""
    return [span for q in find_quantities(text, language) if (span := _span(q, dates))]


def _span(found: Quantity, dates: Sequence[DateValue]) -> TimeSpan | None:
    """A time in one unit: "428 days"; None for a bare number, a range, "about", or a date."""
    is_date = any(found.start < day.end and day.start < found.end for day in dates)
    unit = next((unit for unit, words in UNIT_WORDS if re.search(words, found.text, re.I)), None)
    is_exact = found.bound == "exact" and found.low == found.high and not found.ordinal
    if unit is None or is_date or found.unit != "second" or not is_exact:
        return None
    return TimeSpan(round(found.low / SECONDS[unit], 6), unit, found.start, found.end)


def _said_from(between: str, dates: Sequence[DateValue]) -> int | None:
    """Where in the words between a date and a weekday they begin to say that it is one."""
    if IS_A.fullmatch(between):
        return 0
    is_only_one = sum(full_date(day) is not None for day in dates) == 1
    that_day = THAT_DAY.fullmatch(between) if is_only_one else None
    return that_day.start("said") if that_day else None


def _weekdays(text: str, dates: Sequence[DateValue], language: str) -> Iterator[DateClaim]:
    """A weekday that stands with its date, or is said of it."""
    for named in dates:
        day = full_date(named)
        if day and named.weekday is not None:
            place = _weekday_in(named)
            yield _weekday(text, day, named.weekday, place, (named.start, named.end), place)
    # After "was a" even a word that is a name elsewhere is a weekday.
    for other in find_weekdays(text, language):
        found = next((day for day in reversed(dates) if day.end <= other.start), None)
        day = full_date(found) if found and found.weekday is None else None
        said_from = _said_from(text[found.end : other.start], dates) if found and day else None
        if found and day and said_from is not None:
            place, follows = (other.start, other.end), (found.end + said_from, other.end)
            yield _weekday(text, day, other.weekday, place, (found.start, other.end), follows)


def _weekday(
    text: str, day: date, said: int | None, place: Place, whole: Place, follows: Place
) -> DateClaim:
    start, end = place
    right = weekday_name(day)
    finding = DateFinding(said == day.weekday(), right, text[start:end], start, end, (day,))
    return DateClaim(finding, *whole, follows)


def _weekday_in(found: DateValue) -> Place:
    """The place of the weekday's name in a date: its first or its last word."""
    words = list(re.finditer(r"[^\W\d_]{2,}", found.text))
    is_last = re.match(r"\W*\d", found.text) is not None
    if not words:
        return found.start, found.end
    word = words[-1] if is_last else words[0]
    return found.start + word.start(), found.start + word.end()


def _differences(
    text: str, dates: Sequence[DateValue], spans: Sequence[TimeSpan]
) -> Iterator[DateClaim]:
    """The time between two dates: "from A to B are N days", "there are N days from A to B"."""
    for one, other in itertools.pairwise(dates):
        first, last = full_date(one), full_date(other)
        if first is None or last is None or not TO.fullmatch(text[one.end : other.start]):
            continue
        lead = LEADS.search(text[: one.start])
        start = lead.start() if lead else one.start
        for span in spans:
            is_behind = MAKES.fullmatch(text[other.end : span.start]) is not None
            is_ahead = LIES.fullmatch(text[span.end : one.start]) is not None
            if is_behind and span.start >= other.end:
                place, follows = (start, span.end), (other.end, span.end)
            elif is_ahead and span.end <= one.start and LASTS.search(text[: span.start]):
                place, follows = (span.start, other.end), (span.start, span.end)
            else:
                continue
            if finding := _difference(text, first, last, span):
                yield DateClaim(finding, *place, follows)


def _difference(text: str, first: date, last: date, span: TimeSpan) -> DateFinding | None:
    """None where both ends counted would make the difference."""
    stretch = between(first, last, span.unit)
    holds = stretch.is_said_by(span.count)
    days = abs((last - first).days)
    if not holds and span.unit in DAYS and abs(span.count * DAYS[span.unit] - days) < 1.01:
        return None
    said = text[span.start : span.end]
    dates = (first, last)
    return DateFinding(holds, stretch_words(stretch), said, span.start, span.end, dates)
