"""What questions and texts say of dates that a calendar can check, and the arithmetic for it.

Strict: only words that say nothing else may stand between the parts of a claim, and what the text
denies or leaves open is no claim. In English, Chinese, German, French and Spanish.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Literal

from core.documents.segmentation import UNKNOWN, language_of
from core.tools.date_values import DateValue
from core.tools.dates import find_dates, find_weekdays
from core.tools.numbers import value_of
from core.tools.quantities import Quantity, find_quantities
from core.tools.vocabulary import Patterns, read_words

TimeUnit = Literal["day", "week", "month", "year"]
Place = tuple[int, int]
FIRST_YEAR = 1583  # before it, which calendar is meant is open
LONGEST_QUESTION, LONGEST_TEXT, OLDEST = 300, 2_000, 120
SECONDS: dict[TimeUnit, float] = {
    "day": 86_400.0, "week": 604_800.0, "month": 2_629_800.0, "year": 31_557_600.0
}  # fmt: skip
DAYS: dict[TimeUnit, int] = {"day": 1, "week": 7}
# How such questions and statements are put, in all five languages together.
LISTS = read_words("calendar")
UNIT_WORDS: tuple[tuple[TimeUnit, str], ...] = tuple(LISTS["unit_words"].items())
SAID = Patterns("calendar")
# Words that may stand between the parts of a claim or beside a figure; Chinese by characters.
FILLER, TO, MAKES, LIES, IS_A, THEN, BESIDE = (
    frozenset([*LISTS[name].split(), *LISTS[f"han_{name}"]])
    for name in ("filler", "to", "makes", "lies", "is_a", "then", "beside")
)
# Whether both ends count is open, but for this wording, whose shared answers count one.
SETTLED = re.compile(r"从\s*到\s*共有多少天")
WORD = re.compile(r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+")


@dataclass(frozen=True)
class DateSpan:
    """A time between two dates in one unit: `whole` of them, and some days more or none."""

    unit: TimeUnit
    whole: int
    days_over: int

    def is_said_by(self, figure: float) -> bool:
        """Return True where a figure may stand for it: the whole count, or up to the next."""
        return self.whole - 1e-6 <= figure <= self.whole + (1 if self.days_over else 0) + 1e-6

    @property
    def words(self) -> str:
        """The period in words: "2 weeks and 3 days"."""
        over = f" and {counted(self.days_over, 'day')}" if self.days_over else ""
        return f"{counted(self.whole, self.unit)}{over}"


def counted(count: int, unit: str) -> str:
    """A count with its unit, in the plural but for one: "3 days"."""
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def between(one: date, other: date, unit: TimeUnit, *, is_inclusive: bool = False) -> DateSpan:
    """The time between two dates whichever is first; `is_inclusive` counts both end days."""
    first, last = min(one, other), max(one, other)
    if is_inclusive:
        last = moved(last, 1, "day") or last
    if unit in DAYS:
        return DateSpan(unit, *divmod((last - first).days, DAYS[unit]))
    months = 12 * (last.year - first.year) + last.month - first.month
    # A month is full on the same day of a later one: 31 January to 28 February is not a month.
    months -= int(months > 0 and last.day < first.day)
    size = 12 if unit == "year" else 1
    reached = moved(first, months // size * size, "month") or first
    return DateSpan(unit, months // size, max(0, (last - reached).days))


def moved(day: date, count: int, unit: TimeUnit) -> date | None:
    """The date so many units later, earlier for a negative count; None outside the calendar.

    A month without that day gives its last: 31 January plus one month is 28 or 29 February.
    """
    try:
        if unit in DAYS:
            return day + timedelta(days=count * DAYS[unit])
        months = count * (12 if unit == "year" else 1)
        year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
        return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))
    except (ValueError, OverflowError):
        return None


def weekday_name(day: date) -> str:
    """The weekday in English: "Friday"."""
    return calendar.day_name[day.weekday()]


def age_on(born: date, day: date) -> int | None:
    """Full years of life on a day; None before birth. Born on 29 February: a year on 1 March."""
    if day < born:
        return None
    return day.year - born.year - ((day.month, day.day) < (born.month, born.day))


def in_language(words: str, language: str) -> str:
    """A weekday or a time in English as a Chinese text says it: 星期一, 3天; else as it is."""
    if not language.casefold().startswith("zh"):
        return words
    if words in calendar.day_name:
        return f"星期{'一二三四五六日'[list(calendar.day_name).index(words)]}"
    units = {"day": "天", "week": "周", "month": "个月", "year": "年"}
    told = re.sub(r"([\d,]+) (day|week|month|year)s?\b", lambda m: f"{m[1]}{units[m[2]]}", words)
    return told.replace(" and ", "零").replace(" to ", "至")


def _full_date(found: DateValue) -> date | None:
    first, last = (found.is_point and found.day and found.interval) or (None, None)
    return first if first == last and first and first.year >= FIRST_YEAR else None


def _language_of(text: str, language: str) -> str:
    """The language in which a text's dates are read: Chinese by its script, else as the case is."""
    if re.search("[\u4e00-\u9fff]", text):
        return "ja" if language == "ja" else "zh"
    language = language_of(text) if language == UNKNOWN else language
    return "en" if language in (UNKNOWN, "zh") else language


def _unit_of(text: str) -> TimeUnit | None:
    return next((unit for unit, words in UNIT_WORDS if re.search(words, text, re.IGNORECASE)), None)


def is_only(text: str, words: frozenset[str]) -> bool:
    """Return True where the text has no word but these."""
    return all(word.lower() in words for word in WORD.findall(text))


def _joins(gap: str, words: frozenset[str]) -> bool:
    return len(gap) <= 60 and is_only(gap, words) and not re.search(r"[.!?。！？]\s", gap)


@dataclass(frozen=True)
class DateFinding:
    """The calendar's answer beside the one given, `[start, end)` in the text.

    `dates` are those that it was worked out from or came to, in the order in which they are told.
    """

    holds: bool
    worked_out: str
    given: str
    start: int
    end: int
    dates: tuple[date, ...] = ()


def figure_said(
    text: str, language: str, unit: TimeUnit, right: str, is_right: Callable[[float], bool],
    *, days: int = 0,
) -> DateFinding | None:  # fmt: skip
    """The text's own figure; durations count before bare numbers.

    `days` are those worked out where an end may count or not: one beside them is left open.
    """
    dates = find_dates(text, language)
    free = [q for q in find_quantities(text, language) if not q.ordinal and not _overlaps(q, dates)]
    lasting = [q for q in free if q.unit == "second"]
    if unit in DAYS and any(_unit_of(q.text) in ("month", "year") for q in lasting):
        return None  # months have no fixed number of days
    figures = [
        (round(q.low / SECONDS[unit], 6) if q.unit else q.low, q.start, q.end)
        for q in lasting or [q for q in free if not q.unit and not q.noun]
    ]
    if days and any(not is_right(f) and abs(f * DAYS[unit] - days) < 1.01 for f, _, _ in figures):
        return None
    return _chosen(text, [(is_right(f), start, end) for f, start, end in figures], right)


def _overlaps(found: Quantity, dates: Sequence[DateValue]) -> bool:
    return any(found.start < day.end and day.start < found.end for day in dates)


def weekday_said(text: str, language: str, target: date) -> DateFinding | None:
    """The weekday that a text names, against that of a date; None where it names none."""
    dated = [day for day in find_dates(text, language) if day.weekday is not None]
    # A weekday alone is written small at times: "friday".
    found = dated or find_weekdays(text, language)
    given = [(d.weekday == target.weekday(), d.start, d.end) for d in found]
    return _chosen(text, given, weekday_name(target))


def date_said(text: str, language: str, target: date) -> DateFinding | None:
    """The text's date beside the target; a year that it leaves out is taken for right."""
    found = [d for d in find_dates(text, language) if d.month and d.day and d.is_point]
    parts = (target.year, target.month, target.day)
    given = [
        ((d.year or target.year, d.month, d.day) == parts, d.start, d.end)
        for d in found if not d.ambiguous
    ]  # fmt: skip
    return _chosen(text, given, target.isoformat())


def _chosen(text: str, given: Sequence[tuple[bool, int, int]], right: str) -> DateFinding | None:
    """The answer among what the text says: its first or its last figure.

    A right figure in the middle of others may be a step of the working: that decides nothing.
    """
    if not given or SAID.open.search(text[max(0, given[0][1] - 40) : given[-1][2] + 40]):
        return None
    holds = given[0][0] or given[-1][0]
    if not holds and any(is_right for is_right, _, _ in given):
        return None
    _, start, end = given[0] if given[0][0] else given[-1]
    return DateFinding(holds, right, text[start:end], start, end)


def check_question(question: str, response: str, language: str = "en") -> DateFinding | None:
    """The response against the calendar; None where the question is not only about it.

    A question is taken only where nothing is left over once its dates and the words of such
    questions are taken away: "how many rainy days between …" asks for more than a calendar knows.
    """
    if len(question) > LONGEST_QUESTION:
        return None
    tongue = _language_of(question, language)
    found = find_dates(question, tongue)
    # Others stay among the words: "前10" is no year here, and a vague date is one word too many.
    dates = [(one, day) for one in found if (day := _full_date(one))]
    if not 1 <= len(dates) <= 2:
        return None
    rest = question
    for one, _ in reversed(dates):
        rest = f"{rest[: one.start]} {rest[one.end :]}"
    said_in = _language_of(response, tongue)
    if SAID.how_old.search(rest) and SAID.born.search(rest):
        return _age_answer(question, dates, response, said_in) if len(found) == len(dates) else None
    known = [day for _, day in dates]
    if len(known) == 2:
        return _difference_answer(rest, known, response, said_in)
    return _step_answer(rest, known[0], response, said_in)


def _asks_only(rest: str, *asked: re.Pattern[str]) -> bool:
    for pattern in asked:
        rest = pattern.sub(" ", rest)
    return is_only(rest, FILLER)


def _is_birth(text: str, found: DateValue) -> bool:
    return bool(
        SAID.born_before.search(text[: found.start]) or SAID.born_behind.match(text, found.end)
    )


def _age_answer(
    question: str, dates: Sequence[tuple[DateValue, date]], response: str, language: str
) -> DateFinding | None:
    births = [day for found, day in dates if _is_birth(question, found)]
    others = [day for _, day in dates if day not in births]
    is_other = SAID.of_another.search(question) or SAID.denied.search(question)
    if len(births) != 1 or len(others) != 1 or len(SAID.born.findall(question)) != 1 or is_other:
        return None
    age = age_on(births[0], others[0])
    if age is None:
        return None
    said = figure_said(response, language, "year", str(age), lambda figure: figure == age)
    return said and replace(said, dates=(births[0], others[0]))


def _difference_answer(
    rest: str, known: Sequence[date], response: str, language: str
) -> DateFinding | None:
    asked = SAID.how_long.search(rest)
    unit = _unit_of(asked.group()) if asked else None
    if unit is None or not _asks_only(rest, SAID.inclusive, SAID.how_long):
        return None
    is_inclusive = SAID.inclusive.search(rest) is not None
    found = between(known[0], known[1], unit, is_inclusive=is_inclusive)
    is_open = unit in DAYS and not is_inclusive and not SETTLED.search(rest)
    days = abs((known[1] - known[0]).days) if is_open else 0
    said = figure_said(response, language, unit, found.words, found.is_said_by, days=days)
    return said and replace(said, dates=(known[0], known[1]))


def _step_answer(rest: str, known: date, response: str, language: str) -> DateFinding | None:
    """A weekday, or the date so long before or after the one that is stated."""
    by_weekday = SAID.which_weekday.search(rest) is not None
    steps = list(SAID.step.finditer(SAID.which_date.sub(" ", SAID.which_weekday.sub(" ", rest))))
    after, before = SAID.after.search(rest), SAID.ahead_of.search(rest)
    is_asked = by_weekday or (steps and SAID.which_date.search(rest))
    if not is_asked or bool(steps) != bool(after or before) or (after and before):
        return None
    if not _asks_only(
        rest, SAID.which_weekday, SAID.which_date, SAID.step, SAID.after, SAID.ahead_of
    ):
        return None
    target = _moved_by(known, steps, -1 if before else 1)
    if target is None or target.year < FIRST_YEAR:
        return None
    said = (weekday_said if by_weekday else date_said)(response, language, target)
    return said and replace(said, dates=(known, target) if steps else (target,))


def _moved_by(day: date, steps: Sequence[re.Match[str]], sign: int) -> date | None:
    """The date all steps away; None where another order of them leads elsewhere."""
    read = [(_count_of(step), _unit_of(step.group())) for step in steps]
    if len(read) > 3 or len({unit for _, unit in read}) < len(read):
        return None
    reached: set[date | None] = set()
    for order in (read, read[::-1]):
        at: date | None = day
        for count, unit in order:
            at = moved(at, sign * count, unit) if at and count is not None and unit else None
        reached.add(at)
    return reached.pop() if len(reached) == 1 else None


def _count_of(step: re.Match[str]) -> int | None:
    written = (step["number"] or step["figure"]).lower()
    if written.isdigit() or step["number"]:
        return int(value_of(written))
    if written.split()[-1] in "a an ein eine einem einen einer un una une one".split():
        return 1
    readings = (find_quantities(f"{written} x", language) for language in ("en", "de", "fr", "es"))
    return next((int(q[0].low) for q in readings if q and q[0].low.is_integer()), None)


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


def claims_in(text: str, language: str, before: str = "") -> list[DateClaim]:
    """Every claim of a text about dates, years and ages that the calendar can check, in order.

    `before` is what stands in front of the text, where a date may be that it leans on.
    """
    if len(text) > LONGEST_TEXT or not re.search(r"\d|[一二三四五六七八九十]", text):
        return []
    tongue = _language_of(text, language)
    dates = find_dates(text, tongue)
    spans = [span for q in find_quantities(text, tongue) if (span := _span(q, dates))]
    told = find_dates(before[-LONGEST_TEXT:], tongue) if before and spans else []
    found = [*_weekday_claims(text, dates, tongue), *_difference_claims(text, dates, spans)]
    found += _later_claims(text, dates, spans, told)
    found = [claim for claim in found if not SAID.open.search(text[claim.start : claim.end])]
    age = _age_claim(text, dates)
    return sorted([*found, *([age] if age else [])], key=lambda claim: claim.start)


def _span(found: Quantity, dates: Sequence[DateValue]) -> TimeSpan | None:
    """A time in one unit: "428 days"; None for a bare number, a range, "about", or a date."""
    unit = _unit_of(found.text)
    is_exact = found.bound == "exact" and found.low == found.high and not found.ordinal
    if unit is None or found.unit != "second" or not is_exact or _overlaps(found, dates):
        return None
    return TimeSpan(round(found.low / SECONDS[unit], 6), unit, found.start, found.end)


def _weekday_claims(text: str, dates: Sequence[DateValue], language: str) -> Iterator[DateClaim]:
    whole = [one for one in dates if _full_date(one)]
    named = find_weekdays(text, language)
    for one in whole:
        beside = [day for day in named if one.start <= day.start and day.end <= one.end]
        if one.weekday is not None and beside:
            place = beside[0].start, beside[0].end
            yield _weekday_claim(text, one, one.weekday, place, (one.start, one.end), place)
    for other in named:
        day = next((one for one in reversed(dates) if one.end <= other.start), None)
        if day is None or day not in whole or day.weekday is not None:
            continue
        gap = text[day.end : other.start]
        # "… opened on 12 March 1998; that day was a …", where the text states no other date
        that_day = SAID.that_day.search(gap) if len(whole) == 1 and not _joins(gap, IS_A) else None
        at = that_day.start() if that_day else 0
        if gap.strip(" ,，") and _joins(gap[at:], IS_A):
            place, follows = (other.start, other.end), (day.end + at, other.end)
            yield _weekday_claim(text, day, other.weekday, place, (day.start, other.end), follows)


def _weekday_claim(
    text: str, found: DateValue, said: int | None, place: Place, whole: Place, follows: Place
) -> DateClaim:
    day = _full_date(found) or date.min
    holds, given = said == day.weekday(), text[slice(*place)]
    return DateClaim(DateFinding(holds, weekday_name(day), given, *place, (day,)), *whole, follows)


def _difference_claims(
    text: str, dates: Sequence[DateValue], spans: Sequence[TimeSpan]
) -> Iterator[DateClaim]:
    """The time between two dates or years: "from A to B are N days"."""
    pairs = [
        (one, other) for one, other in pairwise(dates)
        if text[one.end : other.start].strip() and _joins(text[one.end : other.start], TO)
    ]  # fmt: skip
    pairs += [(one, one) for one in dates if one.kind == "range" and _years(one)]
    for one, other in pairs:
        start, end, is_years = one.start, other.end, _full_date(one) is None
        lead = SAID.leads.search(text[:start])
        for span in spans:
            said = text[: span.start]
            is_first = SAID.lasts.search(said) or (is_years and not said.strip())
            gap = text[end : span.start]
            if span.start >= end and gap.strip(" ,，") and _joins(gap, MAKES):
                place, follows = (lead.start() if lead else start, span.end), (end, span.end)
            elif span.end <= start and is_first and _joins(text[span.end : start], LIES):
                place, follows = (span.start, end), (span.start, span.end)
            else:
                continue
            finding = _difference(text, one, other, span)
            # The count must end what is said of years: "3 years of drought" counts something else.
            if finding and (not is_years or SAID.ends.match(text, place[1])):
                yield DateClaim(finding, *place, follows)


def _years(found: DateValue) -> Place | None:
    """The years of a bare year or range of years of our era; None where more is said."""
    is_bare = found.era == "ce" and found.bound in ("exact", "since", "until")
    is_whole = found.kind in ("year", "range") and not (found.month or found.end_month)
    if not is_bare or not is_whole or found.weekday is not None:
        return None
    return found.year or 0, found.end_year or found.year or 0


def _difference(text: str, one: DateValue, other: DateValue, span: TimeSpan) -> DateFinding | None:
    """None where both ends counted would make the difference, or the dates are too coarse."""
    first, last = _full_date(one), _full_date(other)
    said = (text[span.start : span.end], span.start, span.end)
    if first and last:
        stretch, days = between(first, last, span.unit), abs((last - first).days)
        holds = stretch.is_said_by(span.count)
        if not holds and span.unit in DAYS and abs(span.count * DAYS[span.unit] - days) < 1.01:
            return None
        return DateFinding(holds, stretch.words, *said, (first, last))
    years = (_years(one), _years(other))
    if years[0] is None or years[1] is None or span.unit != "year":
        return None
    right = abs(years[1][1] - years[0][0])
    off = abs(span.count - right)
    return None if 0 < off <= 1 else DateFinding(off == 0, counted(right, "year"), *said)


def _later_claims(
    text: str, dates: Sequence[DateValue], spans: Sequence[TimeSpan], told: Sequence[DateValue]
) -> Iterator[DateClaim]:
    """A date so long after another: "ten years later, in 2031", "in 2031, ten years later".

    Of several dates before it, one that fits is taken, and none is called wrong.
    """
    for span in spans:
        later = SAID.later.match(text, span.end)
        if later is None or not span.count.is_integer():
            continue
        behind, sign, earlier = later.end(), 1 if later["after"] else -1, [
            day for day in dates if day.end <= span.start
        ]  # fmt: skip
        target = next((day for day in dates if day.start >= behind), None)
        if target and _joins(text[behind : target.start], THEN):
            gap = text[behind : target.start]
            comma = behind + len(gap) - len(gap.lstrip(" ,，"))
            if finding := _held(text, [*told, *earlier], target, span, sign):
                yield DateClaim(finding, span.start, target.end, (span.start, comma))
        # After "in 2000, five years later" the date that is meant may still come.
        is_end = re.match(r"\s*(?:$|[.;。；])", text[behind:])
        if earlier and is_end and not text[earlier[-1].end : span.start].strip(" ,，"):
            target = earlier[-1]
            if finding := _held(text, earlier[:-1], target, span, sign):
                yield DateClaim(finding, target.start, behind, (target.end, behind))


def _held(
    text: str, anchors: Sequence[DateValue], target: DateValue, span: TimeSpan, sign: int
) -> DateFinding | None:
    """What is found by the anchor that fits; a wrong one only where there is but one."""
    checked = [found for anchor in anchors if (found := _led(text, anchor, target, span, sign))]
    right = next((found for found in checked if found.holds), None)
    return right or (checked[0] if len(anchors) == len(checked) == 1 else None)


def _led(
    text: str, anchor: DateValue, target: DateValue, span: TimeSpan, sign: int
) -> DateFinding | None:
    """The date told against the one worked out; None where the dates are too coarse to say."""
    said, count = (text[target.start : target.end], target.start, target.end), int(span.count)
    one, other = _full_date(anchor), _full_date(target)
    if one and other:
        goal = moved(one, sign * count, span.unit)
        if goal is None:
            return None
        is_forward = (other >= one) == (sign > 0)
        holds = is_forward and (other == goal or between(one, other, span.unit).is_said_by(count))
        if not holds and span.unit in DAYS and abs((other - goal).days) <= 1:
            return None
        return DateFinding(holds, goal.isoformat(), *said, (one, goal))
    are_years = anchor.year and target.year and anchor.is_point and target.is_point
    are_sure = anchor.bound != "about" and target.bound == "exact"
    if span.unit != "year" or not are_years or not are_sure or "bce" in (anchor.era, target.era):
        return None
    year = (anchor.year or 0) + sign * count
    # One off is left open, for twelve months may lie across two New Years.
    off = abs((target.year or 0) - year)
    return None if off == 1 or year < FIRST_YEAR else DateFinding(off == 0, str(year), *said)


def _age_claim(text: str, dates: Sequence[DateValue]) -> DateClaim | None:
    """The one age of a text that tells of one birth and one other date; mostly None.

    Both may be a year or a month only: an age is wrong where no days within them make it right.
    """
    known = [day for day in dates if day.year is not None]
    births = [day for day in known if _is_birth(text, day)]
    others, ages = [day for day in known if day not in births], list(SAID.age.finditer(text))
    if not len(ages) == len(births) == len(others) == 1 or SAID.of_another.search(text):
        return None
    place = next(ages[0].span(name) for name, figure in ages[0].groupdict().items() if figure)
    ends = [(births[0].start, births[0].end), (others[0].start, others[0].end), place]
    whole = min(start for start, _ in ends), max(end for _, end in ends)
    born, day = (
        one.interval if one.is_point and (one.year or 0) >= FIRST_YEAR else None
        for one in (births[0], others[0])
    )
    if born is None or day is None or SAID.open.search(text[slice(*whole)]):
        return None
    least, most = age_on(born[1], day[0]) or 0, age_on(born[0], day[1])
    if most is None or most > OLDEST:
        return None
    said = int(text[slice(*place)])
    shown = str(most) if least == most else f"{least} {'or' if most - least == 1 else 'to'} {most}"
    sure = (born[0], day[0]) if least == most else ()
    holds, given = least <= said <= most, text[slice(*place)]
    finding = DateFinding(holds, f"{shown} years", given, *place, sure)
    return DateClaim(finding, *whole, _told(text, ages[0].span(), others[0]))


def _told(text: str, age: Place, day: DateValue) -> Place:
    """The words that tell the age, with a date that only says when: not “died in 2000, aged 23”."""
    behind, ahead = text[age[1] : day.start], text[day.end : age[0]]
    if age[1] <= day.start and SAID.at_age.fullmatch(behind):
        return age[0], day.end
    return (day.start, age[1]) if day.end <= age[0] and SAID.at_age.fullmatch(ahead) else age
