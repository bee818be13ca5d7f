"""Checks the age that a text gives somebody whose birth it tells, in five languages.

Birth and the other date may be a year or a month only: an age is wrong where no days within them
make it right.
"""

from __future__ import annotations

import calendar
import re
from datetime import date

from core.tools.calendar import age_on
from core.tools.date_answers import OPEN, DateFinding
from core.tools.date_claims import LONGEST, DateClaim, date_claims
from core.tools.full_dates import FIRST_YEAR, tongue_of
from core.tools.later_claims import later_claims
from core.tools.values.dates import DateValue, find_dates
from core.tools.year_claims import year_claims

BORN_BEFORE = re.compile(
    r"(?:\b(?:born|geboren|née?|nacid[oa]|nació)\b|(?:出?生于|诞生于))"
    r"\s*(?:on|in|am|im|le|en|el|a\s+le)?\s*(?:the\s+|el\s+)?$",
    re.IGNORECASE,
)
BORN_BEHIND = re.compile(r"\s*(?:geboren|出生|诞生)(?!于)", re.IGNORECASE)
AGE = re.compile(
    r"\b(?:she|he|was|were|is)\s+(?:was\s+|only\s+|just\s+)?(?P<en>\d{1,3})\b"
    r"(?!\s*(?:%|per\b|[a-z]+s\b(?<!years)(?<!was)))(?:\s+years\s+old|\s+years\s+of\s+age)?"
    r"|\b(?:aged|turned|at\s+(?:the\s+)?age\s+(?:of\s+)?)\s*(?P<aged>\d{1,3})\b"
    r"|\b(?P<de>\d{1,3})\s+Jahre\s+alt\b|\b(?:wurde|wird)\s+(?:er\s+|sie\s+)?(?P<turned>\d{1,3})\b"
    r"|\b(?:avait|a|aura)\s+(?P<fr>\d{1,3})\s+ans\b"
    r"|\b(?:tenía|tiene|cumplió|tendrá)\s+(?P<es>\d{1,3})\s+años\b"
    r"|(?P<zh>\d{1,3})\s*周?岁",
    re.IGNORECASE,
)
# Another's age or another's birth.
OF_ANOTHER = re.compile(
    r"['’]s\b(?!\s*\d)|\b(?:his|their|its|whose|sein\w*|ihr\w+|sa|son|ses|leur|su|sus|cuy\w+)\b"
    r"|\bher\s+(?!age\b)\w|的(?:儿子|女儿|父亲|母亲|妻子|丈夫|哥哥|弟弟|姐姐|妹妹)",
    re.IGNORECASE,
)
WHEN_BEHIND = re.compile(r"\s+(?:in|on|im|am|en|le)?\s*(?:the\s+)?", re.IGNORECASE)
WHEN_BEFORE = re.compile(r"\s*(?:时|的时候)\s*[，,]?\s*")
OLDEST = 120


def age_claim(text: str, language: str) -> DateClaim | None:
    """The one age of a text that tells of one birth and one other date; mostly None."""
    if len(text) > LONGEST or OF_ANOTHER.search(text):
        return None
    ages = list(AGE.finditer(text))
    dates = [d for d in find_dates(text, language) if d.year is not None]
    births = [
        d for d in dates if BORN_BEFORE.search(text[: d.start]) or BORN_BEHIND.match(text, d.end)
    ]
    others = [d for d in dates if d not in births]
    if len(ages) != 1 or len(births) != 1 or len(others) != 1:
        return None
    born, day = _days_of(births[0]), _days_of(others[0])
    place = next(ages[0].span(name) for name, figure in ages[0].groupdict().items() if figure)
    start = min(births[0].start, others[0].start, place[0])
    end = max(births[0].end, others[0].end, place[1])
    if born is None or day is None or OPEN.search(text[start:end]):
        return None
    return _checked(text, born, day, place, (start, end), _told(text, ages[0].span(), others[0]))


def _told(text: str, age: tuple[int, int], day: DateValue) -> tuple[int, int]:
    """The words that tell the age, with a date that only says when: not “died in 2000, aged 23”."""
    if WHEN_BEHIND.fullmatch(text[age[1] : day.start]) and age[1] <= day.start:
        return age[0], day.end
    if WHEN_BEFORE.fullmatch(text[day.end : age[0]]) and day.end <= age[0]:
        return day.start, age[1]
    return age


def _checked(
    text: str,
    born: tuple[date, date],
    day: tuple[date, date],
    place: tuple[int, int],
    whole: tuple[int, int],
    told: tuple[int, int],
) -> DateClaim | None:
    least, most = age_on(born[1], day[0]), age_on(born[0], day[1])
    if most is None or most > OLDEST:
        return None
    least = least or 0
    said = int(text[place[0] : place[1]])
    right = str(most) if least == most else f"{least} or {most}" if most - least == 1 else ""
    worked_out = f"{right or f'{least} to {most}'} years"
    holds = least <= said <= most
    dates = (born[0], day[0]) if least == most else ()
    finding = DateFinding(holds, worked_out, text[place[0] : place[1]], *place, dates)
    return DateClaim(finding, *whole, told)


def _days_of(found: DateValue) -> tuple[date, date] | None:
    """The first and the last day that a date may mean; None for a stretch or a vague one."""
    is_point = found.kind == "point" and found.era == "ce" and not found.ambiguous
    if not is_point or found.year is None or not FIRST_YEAR <= found.year <= 9999 or found.season:
        return None
    if found.month is None:
        return date(found.year, 1, 1), date(found.year, 12, 31)
    last = calendar.monthrange(found.year, found.month)[1]
    if found.day is None:
        return date(found.year, found.month, 1), date(found.year, found.month, last)
    if found.day > last:
        return None
    day = date(found.year, found.month, found.day)
    return day, day


def claims_in(text: str, language: str, before: str = "") -> list[DateClaim]:
    """Every claim of a text about dates, years and ages, in order.

    `before` is what stands in front of the text, where a date may be that it leans on.
    """
    if not re.search(r"\d|[一二三四五六七八九十]", text):
        return []
    tongue = tongue_of(text, language)
    age = age_claim(text, tongue)
    found = [*date_claims(text, tongue), *year_claims(text, tongue)]
    found += later_claims(text, tongue, before)
    found += [age] if age else []
    return sorted(found, key=lambda claim: claim.start)
