"""Questions and claims about dates that a calendar can check, and the arithmetic for it.

Strict: only words without meaning of their own may stand between the parts of a claim, and what the
text denies or leaves open is no claim. In English, Chinese, German, French and Spanish.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Literal

from core.documents.segmentation import UNKNOWN_LANGUAGE, detect_language
from core.tools.date_values import DateValue
from core.tools.dates import TextPlace, find_dates, find_weekdays
from core.tools.numbers import parse_numeral
from core.tools.quantities import Quantity, find_quantities
from core.tools.vocabulary import ListPatterns, load_words

TimeUnit = Literal["day", "week", "month", "year"]
FIRST_YEAR = 1583  # before it the calendar that is meant is uncertain
MAX_QUESTION_CHARS, MAX_TEXT_CHARS, MAX_AGE_YEARS = 300, 2_000, 120
UNIT_SECONDS: dict[TimeUnit, float] = {
    "day": 86_400.0, "week": 604_800.0, "month": 2_629_800.0, "year": 31_557_600.0
}  # fmt: skip
UNIT_DAYS: dict[TimeUnit, int] = {"day": 1, "week": 7}
# The wording of such questions and statements, in all five languages.
CALENDAR_LISTS = load_words("calendar")
UNIT_WORDS: tuple[tuple[TimeUnit, str], ...] = tuple(CALENDAR_LISTS["unit_words"].items())
CALENDAR_PATTERNS = ListPatterns("calendar")
# Words allowed between the parts of a claim or beside a figure; Chinese as single characters.
(
    FILLER_WORDS,
    RANGE_WORDS,
    RESULT_WORDS,
    POSITION_WORDS,
    WEEKDAY_LINKS,
    SEQUENCE_WORDS,
    SIDE_WORDS,
) = (
    frozenset([*CALENDAR_LISTS[name].split(), *CALENDAR_LISTS[f"han_{name}"]])
    for name in ("filler", "to", "makes", "lies", "is_a", "then", "beside")
)
# Whether both end days count is uncertain, except in this wording, whose answers count one.
EXCLUSIVE_WORDING = re.compile(r"从\s*到\s*共有多少天")
WORD_PATTERN = re.compile(r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+")


@dataclass(frozen=True)
class DateSpan:
    """The time between two dates in one unit: `whole` units, and some further days."""

    unit: TimeUnit
    whole: int
    days_over: int

    def is_said_by(self, figure: float) -> bool:
        """Return True if a figure may stand for it: the whole count, or up to the next."""
        return self.whole - 1e-6 <= figure <= self.whole + (1 if self.days_over else 0) + 1e-6

    @property
    def words(self) -> str:
        """The period in words: "2 weeks and 3 days"."""
        rest = f" and {format_count(self.days_over, 'day')}" if self.days_over else ""
        return f"{format_count(self.whole, self.unit)}{rest}"


def format_count(count: int, unit: str) -> str:
    """Format a count with its unit, in the plural except for one: "3 days"."""
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def measure_span(one: date, other: date, unit: TimeUnit, *, is_inclusive: bool = False) -> DateSpan:
    """Return the time between two dates in either order; `is_inclusive` counts both end days."""
    first, last = min(one, other), max(one, other)
    if is_inclusive:
        last = shift_date(last, 1, "day") or last
    if unit in UNIT_DAYS:
        return DateSpan(unit, *divmod((last - first).days, UNIT_DAYS[unit]))
    months = 12 * (last.year - first.year) + last.month - first.month
    # A month is complete on the same day: 31 January to 28 February is not a month.
    months -= int(months > 0 and last.day < first.day)
    size = 12 if unit == "year" else 1
    reached = shift_date(first, months // size * size, "month") or first
    return DateSpan(unit, months // size, max(0, (last - reached).days))


def shift_date(day: date, count: int, unit: TimeUnit) -> date | None:
    """Return the date so many units later, earlier for a negative count; None outside the calendar.

    In a month without that day it is the last one: 31 January plus one month is 28 or 29 February.
    """
    try:
        if unit in UNIT_DAYS:
            return day + timedelta(days=count * UNIT_DAYS[unit])
        months = count * (12 if unit == "year" else 1)
        year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
        return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))
    except (ValueError, OverflowError):
        return None


def name_weekday(day: date) -> str:
    """Return the weekday in English: "Friday"."""
    return calendar.day_name[day.weekday()]


def compute_age(born: date, day: date) -> int | None:
    """Return completed years on a day, None before birth; born on 29 February counts on 1 March."""
    if day < born:
        return None
    return day.year - born.year - ((day.month, day.day) < (born.month, born.day))


def translate_duration(words: str, language: str) -> str:
    """Translate a weekday or a time from English for a Chinese text: 星期一, 3天; else keep it."""
    if not language.casefold().startswith("zh"):
        return words
    if words in calendar.day_name:
        return f"星期{'一二三四五六日'[list(calendar.day_name).index(words)]}"
    units = {"day": "天", "week": "周", "month": "个月", "year": "年"}
    translated = re.sub(
        r"([\d,]+) (day|week|month|year)s?\b", lambda m: f"{m[1]}{units[m[2]]}", words
    )
    return translated.replace(" and ", "零").replace(" to ", "至")


def _exact_date(value: DateValue) -> date | None:
    first, last = (value.is_point and value.day and value.interval) or (None, None)
    return first if first == last and first and first.year >= FIRST_YEAR else None


def _choose_language(text: str, language: str) -> str:
    """Return the language for a text's dates: Chinese by its script, else the case's."""
    if re.search("[\u4e00-\u9fff]", text):
        return "ja" if language == "ja" else "zh"
    language = detect_language(text) if language == UNKNOWN_LANGUAGE else language
    return "en" if language in (UNKNOWN_LANGUAGE, "zh") else language


def _find_unit(text: str) -> TimeUnit | None:
    return next((unit for unit, words in UNIT_WORDS if re.search(words, text, re.IGNORECASE)), None)


def has_only_words(text: str, words: frozenset[str]) -> bool:
    """Return True if the text has no other words than these."""
    return all(word.lower() in words for word in WORD_PATTERN.findall(text))


def _is_link(gap: str, words: frozenset[str]) -> bool:
    return len(gap) <= 60 and has_only_words(gap, words) and not re.search(r"[.!?。！？]\s", gap)


@dataclass(frozen=True)
class DateFinding:
    """The calendar's result beside the stated one, at `[start, end)` in the text.

    `dates` are those that the result was computed from or came to, in the order of their mention.
    """

    holds: bool
    worked_out: str
    given: str
    start: int
    end: int
    dates: tuple[date, ...] = ()


def compare_figure(
    text: str,
    language: str,
    unit: TimeUnit,
    right: str,
    is_right: Callable[[float], bool],
    *,
    days: int = 0,
) -> DateFinding | None:
    """Compare the text's own figure; durations count before bare numbers.

    `days` is the true number if an end day may or may not count: a figure next to it stays open.
    """
    dates = find_dates(text, language)
    rest = [q for q in find_quantities(text, language) if not q.ordinal and not _overlaps(q, dates)]
    durations = [q for q in rest if q.unit == "second"]
    if unit in UNIT_DAYS and any(_find_unit(q.text) in ("month", "year") for q in durations):
        return None  # months have no fixed number of days
    figures = [
        (round(q.low / UNIT_SECONDS[unit], 6) if q.unit else q.low, q.start, q.end)
        for q in durations or [q for q in rest if not q.unit and not q.noun]
    ]
    if days and any(
        not is_right(f) and abs(f * UNIT_DAYS[unit] - days) < 1.01 for f, _, _ in figures
    ):
        return None
    return _pick_finding(text, [(is_right(f), start, end) for f, start, end in figures], right)


def _overlaps(quantity: Quantity, dates: Sequence[DateValue]) -> bool:
    return any(quantity.start < day.end and day.start < quantity.end for day in dates)


def compare_weekday(text: str, language: str, target: date) -> DateFinding | None:
    """Compare the weekday that a text names with that of a date; None if it names none."""
    with_date = [day for day in find_dates(text, language) if day.weekday is not None]
    # A weekday alone may be in lower case: "friday".
    weekdays = with_date or find_weekdays(text, language)
    candidates = [(d.weekday == target.weekday(), d.start, d.end) for d in weekdays]
    return _pick_finding(text, candidates, name_weekday(target))


def compare_stated_date(text: str, language: str, target: date) -> DateFinding | None:
    """Compare the text's date with the target; a missing year counts as right."""
    dates = [d for d in find_dates(text, language) if d.month and d.day and d.is_point]
    parts = (target.year, target.month, target.day)
    candidates = [
        ((d.year or target.year, d.month, d.day) == parts, d.start, d.end)
        for d in dates
        if not d.ambiguous
    ]
    return _pick_finding(text, candidates, target.isoformat())


def _pick_finding(
    text: str, options: Sequence[tuple[bool, int, int]], right: str
) -> DateFinding | None:
    """Choose the answer among what the text says: its first or its last figure.

    A right figure between others may be a step of the working: it decides nothing.
    """
    if not options or CALENDAR_PATTERNS.open.search(
        text[max(0, options[0][1] - 40) : options[-1][2] + 40]
    ):
        return None
    holds = options[0][0] or options[-1][0]
    if not holds and any(is_right for is_right, _, _ in options):
        return None
    _, start, end = options[0] if options[0][0] else options[-1]
    return DateFinding(holds, right, text[start:end], start, end)


def check_question(question: str, response: str, language: str = "en") -> DateFinding | None:
    """Compare the response with the calendar; None if the question asks for anything else.

    A question only qualifies if nothing remains after removing its dates and the words of such
    questions: "how many rainy days between …" asks for more than a calendar knows.
    """
    if len(question) > MAX_QUESTION_CHARS:
        return None
    code = _choose_language(question, language)
    found_dates = find_dates(question, code)
    # Vague dates stay in the rest, where they count as extra words: "前10" is no year here.
    dates = [(one, day) for one in found_dates if (day := _exact_date(one))]
    if not 1 <= len(dates) <= 2:
        return None
    rest = question
    for one, _ in reversed(dates):
        rest = f"{rest[: one.start]} {rest[one.end :]}"
    response_code = _choose_language(response, code)
    if CALENDAR_PATTERNS.how_old.search(rest) and CALENDAR_PATTERNS.born.search(rest):
        return (
            _answer_age(question, dates, response, response_code)
            if len(found_dates) == len(dates)
            else None
        )
    known = [day for _, day in dates]
    if len(known) == 2:
        return _answer_difference(rest, known, response, response_code)
    return _answer_step(rest, known[0], response, response_code)


def _asks_nothing_else(rest: str, *patterns: re.Pattern[str]) -> bool:
    for pattern in patterns:
        rest = pattern.sub(" ", rest)
    return has_only_words(rest, FILLER_WORDS)


def _is_birth(text: str, value: DateValue) -> bool:
    return bool(
        CALENDAR_PATTERNS.born_before.search(text[: value.start])
        or CALENDAR_PATTERNS.born_behind.match(text, value.end)
    )


def _answer_age(
    question: str, dates: Sequence[tuple[DateValue, date]], response: str, language: str
) -> DateFinding | None:
    births = [day for value, day in dates if _is_birth(question, value)]
    others = [day for _, day in dates if day not in births]
    is_other = CALENDAR_PATTERNS.of_another.search(question) or CALENDAR_PATTERNS.denied.search(
        question
    )
    if (
        len(births) != 1
        or len(others) != 1
        or len(CALENDAR_PATTERNS.born.findall(question)) != 1
        or is_other
    ):
        return None
    age = compute_age(births[0], others[0])
    if age is None:
        return None
    finding = compare_figure(response, language, "year", str(age), lambda figure: figure == age)
    return finding and replace(finding, dates=(births[0], others[0]))


def _answer_difference(
    rest: str, known: Sequence[date], response: str, language: str
) -> DateFinding | None:
    match = CALENDAR_PATTERNS.how_long.search(rest)
    unit = _find_unit(match.group()) if match else None
    if unit is None or not _asks_nothing_else(
        rest, CALENDAR_PATTERNS.inclusive, CALENDAR_PATTERNS.how_long
    ):
        return None
    is_inclusive = CALENDAR_PATTERNS.inclusive.search(rest) is not None
    span = measure_span(known[0], known[1], unit, is_inclusive=is_inclusive)
    is_open = unit in UNIT_DAYS and not is_inclusive and not EXCLUSIVE_WORDING.search(rest)
    days = abs((known[1] - known[0]).days) if is_open else 0
    finding = compare_figure(response, language, unit, span.words, span.is_said_by, days=days)
    return finding and replace(finding, dates=(known[0], known[1]))


def _answer_step(rest: str, known: date, response: str, language: str) -> DateFinding | None:
    """Check a weekday, or the date some time before or after the stated one."""
    by_weekday = CALENDAR_PATTERNS.which_weekday.search(rest) is not None
    steps = list(
        CALENDAR_PATTERNS.step.finditer(
            CALENDAR_PATTERNS.which_date.sub(" ", CALENDAR_PATTERNS.which_weekday.sub(" ", rest))
        )
    )
    after, before = CALENDAR_PATTERNS.after.search(rest), CALENDAR_PATTERNS.ahead_of.search(rest)
    is_asked = by_weekday or (steps and CALENDAR_PATTERNS.which_date.search(rest))
    if not is_asked or bool(steps) != bool(after or before) or (after and before):
        return None
    if not _asks_nothing_else(
        rest,
        CALENDAR_PATTERNS.which_weekday,
        CALENDAR_PATTERNS.which_date,
        CALENDAR_PATTERNS.step,
        CALENDAR_PATTERNS.after,
        CALENDAR_PATTERNS.ahead_of,
    ):
        return None
    target = _move_by_steps(known, steps, -1 if before else 1)
    if target is None or target.year < FIRST_YEAR:
        return None
    finding = (compare_weekday if by_weekday else compare_stated_date)(response, language, target)
    return finding and replace(finding, dates=(known, target) if steps else (target,))


def _move_by_steps(day: date, steps: Sequence[re.Match[str]], sign: int) -> date | None:
    """Return the date all steps away; None if their order changes the result."""
    moves = [(_parse_count(step), _find_unit(step.group())) for step in steps]
    if len(moves) > 3 or len({unit for _, unit in moves}) < len(moves):
        return None
    targets: set[date | None] = set()
    for order in (moves, moves[::-1]):
        goal: date | None = day
        for count, unit in order:
            goal = (
                shift_date(goal, sign * count, unit)
                if goal and count is not None and unit
                else None
            )
        targets.add(goal)
    return targets.pop() if len(targets) == 1 else None


def _parse_count(step: re.Match[str]) -> int | None:
    written = (step["number"] or step["figure"]).lower()
    if written.isdigit() or step["number"]:
        return int(parse_numeral(written))
    if written.split()[-1] in "a an ein eine einem einen einer un una une one".split():
        return 1
    readings = (find_quantities(f"{written} x", language) for language in ("en", "de", "fr", "es"))
    return next((int(q[0].low) for q in readings if q and q[0].low.is_integer()), None)


@dataclass(frozen=True)
class DateClaim:
    """The finding for one claim; `[start, end)` in the text is the whole claim.

    `follows` is the place of the words that follow from the dates beside them: if the claim holds,
    no source has to state them.
    """

    finding: DateFinding
    start: int
    end: int
    follows: TextPlace


@dataclass(frozen=True)
class StatedDuration:
    """A stated duration: `count` of `unit`, at `[start, end)`."""

    count: float
    unit: TimeUnit
    start: int
    end: int


def find_claims(text: str, language: str, before: str = "") -> list[DateClaim]:
    """Return every claim about dates, years and ages that the calendar can check, in order.

    `before` is the text in front, where a date may be that the claim refers to.
    """
    if len(text) > MAX_TEXT_CHARS or not re.search(r"\d|[一二三四五六七八九十]", text):
        return []
    code = _choose_language(text, language)
    dates = find_dates(text, code)
    spans = [span for q in find_quantities(text, code) if (span := _parse_span(q, dates))]
    earlier = find_dates(before[-MAX_TEXT_CHARS:], code) if before and spans else []
    claims = [
        *_find_weekday_claims(text, dates, code),
        *_find_difference_claims(text, dates, spans),
    ]
    claims += _find_later_claims(text, dates, spans, earlier)
    claims = [
        claim
        for claim in claims
        if not CALENDAR_PATTERNS.open.search(text[claim.start : claim.end])
    ]
    age = _find_age_claim(text, dates)
    return sorted([*claims, *([age] if age else [])], key=lambda claim: claim.start)


def _parse_span(quantity: Quantity, dates: Sequence[DateValue]) -> StatedDuration | None:
    """Return a time in one unit: "428 days"; None for a bare number, range, "about", or date."""
    unit = _find_unit(quantity.text)
    is_exact = quantity.bound == "exact" and quantity.low == quantity.high and not quantity.ordinal
    if unit is None or quantity.unit != "second" or not is_exact or _overlaps(quantity, dates):
        return None
    return StatedDuration(
        round(quantity.low / UNIT_SECONDS[unit], 6), unit, quantity.start, quantity.end
    )


def _find_weekday_claims(
    text: str, dates: Sequence[DateValue], language: str
) -> Iterator[DateClaim]:
    exact = [one for one in dates if _exact_date(one)]
    weekdays = find_weekdays(text, language)
    for one in exact:
        inside = [day for day in weekdays if one.start <= day.start and day.end <= one.end]
        if one.weekday is not None and inside:
            place = inside[0].start, inside[0].end
            yield _make_weekday_claim(text, one, one.weekday, place, (one.start, one.end), place)
    for other in weekdays:
        day = next((one for one in reversed(dates) if one.end <= other.start), None)
        if day is None or day not in exact or day.weekday is not None:
            continue
        gap = text[day.end : other.start]
        # "… opened on 12 March 1998; that day was a …", if the text states no other date
        that_day = (
            CALENDAR_PATTERNS.that_day.search(gap)
            if len(exact) == 1 and not _is_link(gap, WEEKDAY_LINKS)
            else None
        )
        offset = that_day.start() if that_day else 0
        if gap.strip(" ,，") and _is_link(gap[offset:], WEEKDAY_LINKS):
            place, follows = (other.start, other.end), (day.end + offset, other.end)
            yield _make_weekday_claim(
                text, day, other.weekday, place, (day.start, other.end), follows
            )


def _make_weekday_claim(
    text: str,
    value: DateValue,
    weekday: int | None,
    place: TextPlace,
    whole: TextPlace,
    follows: TextPlace,
) -> DateClaim:
    day = _exact_date(value) or date.min
    start, end = place
    holds = weekday == day.weekday()
    finding = DateFinding(holds, name_weekday(day), text[start:end], start, end, (day,))
    return DateClaim(finding, *whole, follows)


def _find_difference_claims(
    text: str, dates: Sequence[DateValue], spans: Sequence[StatedDuration]
) -> Iterator[DateClaim]:
    """Yield times between two dates or years: "from A to B are N days"."""
    pairs = []
    for one, other in pairwise(dates):
        between_dates = text[one.end : other.start]
        if between_dates.strip() and _is_link(between_dates, RANGE_WORDS):
            pairs.append((one, other))
    pairs += [(one, one) for one in dates if one.kind == "range" and _bare_years(one)]
    for one, other in pairs:
        start, end, is_years = one.start, other.end, _exact_date(one) is None
        lead = CALENDAR_PATTERNS.leads.search(text[:start])
        for span in spans:
            before = text[: span.start]
            is_first = CALENDAR_PATTERNS.lasts.search(before) or (is_years and not before.strip())
            gap = text[end : span.start]
            if span.start >= end and gap.strip(" ,，") and _is_link(gap, RESULT_WORDS):
                place, follows = (lead.start() if lead else start, span.end), (end, span.end)
            elif (
                span.end <= start and is_first and _is_link(text[span.end : start], POSITION_WORDS)
            ):
                place, follows = (span.start, end), (span.start, span.end)
            else:
                continue
            finding = _check_difference(text, one, other, span)
            # For years the count must end the clause: "3 years of drought" counts something else.
            if finding and (not is_years or CALENDAR_PATTERNS.ends.match(text, place[1])):
                yield DateClaim(finding, *place, follows)


def _bare_years(value: DateValue) -> TextPlace | None:
    """Return first and last year of a bare year or range of years CE; None if more is said."""
    is_bare = value.era == "ce" and value.bound in ("exact", "since", "until")
    is_whole = value.kind in ("year", "range") and not (value.month or value.end_month)
    if not is_bare or not is_whole or value.weekday is not None:
        return None
    return value.year or 0, value.end_year or value.year or 0


def _check_difference(
    text: str, one: DateValue, other: DateValue, span: StatedDuration
) -> DateFinding | None:
    """Check the difference; None if counting both ends matters, or dates are too coarse."""
    first, last = _exact_date(one), _exact_date(other)
    place = (text[span.start : span.end], span.start, span.end)
    if first and last:
        true_span, days = measure_span(first, last, span.unit), abs((last - first).days)
        holds = true_span.is_said_by(span.count)
        if (
            not holds
            and span.unit in UNIT_DAYS
            and abs(span.count * UNIT_DAYS[span.unit] - days) < 1.01
        ):
            return None
        return DateFinding(holds, true_span.words, *place, (first, last))
    years = (_bare_years(one), _bare_years(other))
    if years[0] is None or years[1] is None or span.unit != "year":
        return None
    right = abs(years[1][1] - years[0][0])
    miss = abs(span.count - right)
    return None if 0 < miss <= 1 else DateFinding(miss == 0, format_count(right, "year"), *place)


def _find_later_claims(
    text: str,
    dates: Sequence[DateValue],
    spans: Sequence[StatedDuration],
    previous: Sequence[DateValue],
) -> Iterator[DateClaim]:
    """Yield dates so long after others: "ten years later, in 2031", "in 2031, ten years later".

    If several dates precede, one that fits is used, and none is called wrong.
    """
    for span in spans:
        later = CALENDAR_PATTERNS.later.match(text, span.end)
        if later is None or not span.count.is_integer():
            continue
        after, sign = later.end(), 1 if later["after"] else -1
        earlier = [day for day in dates if day.end <= span.start]
        target = next((day for day in dates if day.start >= after), None)
        if target and _is_link(text[after : target.start], SEQUENCE_WORDS):
            gap = text[after : target.start]
            comma = after + len(gap) - len(gap.lstrip(" ,，"))
            if finding := _check_anchors(text, [*previous, *earlier], target, span, sign):
                yield DateClaim(finding, span.start, target.end, (span.start, comma))
        # After "in 2000, five years later" the other date may still follow.
        is_end = re.match(r"\s*(?:$|[.;。；])", text[after:])
        if earlier and is_end and not text[earlier[-1].end : span.start].strip(" ,，"):
            target = earlier[-1]
            if finding := _check_anchors(text, earlier[:-1], target, span, sign):
                yield DateClaim(finding, target.start, after, (target.end, after))


def _check_anchors(
    text: str, anchors: Sequence[DateValue], target: DateValue, span: StatedDuration, sign: int
) -> DateFinding | None:
    """Return the finding for the anchor that fits; a wrong one only if there is just one."""
    findings = [
        finding
        for anchor in anchors
        if (finding := _check_distance(text, anchor, target, span, sign))
    ]
    right = next((finding for finding in findings if finding.holds), None)
    return right or (findings[0] if len(anchors) == len(findings) == 1 else None)


def _check_distance(
    text: str, anchor: DateValue, target: DateValue, span: StatedDuration, sign: int
) -> DateFinding | None:
    """Compare the stated date with the computed one; None if the dates are too coarse."""
    place, count = (text[target.start : target.end], target.start, target.end), int(span.count)
    one, other = _exact_date(anchor), _exact_date(target)
    if one and other:
        goal = shift_date(one, sign * count, span.unit)
        if goal is None:
            return None
        is_forward = (other >= one) == (sign > 0)
        holds = is_forward and (
            other == goal or measure_span(one, other, span.unit).is_said_by(count)
        )
        if not holds and span.unit in UNIT_DAYS and abs((other - goal).days) <= 1:
            return None
        return DateFinding(holds, goal.isoformat(), *place, (one, goal))
    are_years = anchor.year and target.year and anchor.is_point and target.is_point
    are_exact = anchor.bound != "about" and target.bound == "exact"
    if span.unit != "year" or not are_years or not are_exact or "bce" in (anchor.era, target.era):
        return None
    year = (anchor.year or 0) + sign * count
    # A difference of one is left open: twelve months may span two New Years.
    miss = abs((target.year or 0) - year)
    return None if miss == 1 or year < FIRST_YEAR else DateFinding(miss == 0, str(year), *place)


def _find_age_claim(text: str, dates: Sequence[DateValue]) -> DateClaim | None:
    """Return the one age of a text with one birth and one other date; mostly None.

    Both may be a year or a month only: an age is wrong if no days within them make it right.
    """
    with_year = [day for day in dates if day.year is not None]
    births = [day for day in with_year if _is_birth(text, day)]
    others, ages = (
        [day for day in with_year if day not in births],
        list(CALENDAR_PATTERNS.age.finditer(text)),
    )
    if not len(ages) == len(births) == len(others) == 1 or CALENDAR_PATTERNS.of_another.search(
        text
    ):
        return None
    place = next(ages[0].span(name) for name, figure in ages[0].groupdict().items() if figure)
    ends = [(births[0].start, births[0].end), (others[0].start, others[0].end), place]
    whole = min(start for start, _ in ends), max(end for _, end in ends)
    born, day = (
        one.interval if one.is_point and (one.year or 0) >= FIRST_YEAR else None
        for one in (births[0], others[0])
    )
    if born is None or day is None or CALENDAR_PATTERNS.open.search(text[whole[0] : whole[1]]):
        return None
    least, most = compute_age(born[1], day[0]) or 0, compute_age(born[0], day[1])
    if most is None or most > MAX_AGE_YEARS:
        return None
    stated = text[place[0] : place[1]]
    age = int(stated)
    joint = "or" if most - least == 1 else "to"
    right = str(most) if least == most else f"{least} {joint} {most}"
    known_days = (born[0], day[0]) if least == most else ()
    holds = least <= age <= most
    finding = DateFinding(holds, f"{right} years", stated, *place, known_days)
    return DateClaim(finding, *whole, _locate_age(text, ages[0].span(), others[0]))


def _locate_age(text: str, age: TextPlace, day: DateValue) -> TextPlace:
    """Return the place of the words that state the age, with a date that only says when."""
    after, before = text[age[1] : day.start], text[day.end : age[0]]
    if age[1] <= day.start and CALENDAR_PATTERNS.at_age.fullmatch(after):
        return age[0], day.end
    return (
        (day.start, age[1])
        if day.end <= age[0] and CALENDAR_PATTERNS.at_age.fullmatch(before)
        else age
    )
