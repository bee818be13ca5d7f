"""Compares the times of a statement about weekdays with the rows of a timetable.

“Tuesday to Thursday: 10–18 h” is about Wednesday too, and says nothing of Friday. “9–5” ends in the
afternoon; another bare hour may be of the morning or the afternoon.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from babel.dates import get_day_names

from core.baseline.exclusions import SENTENCE_END
from core.baseline.value_comparison import ValueFinding, ValueStatus
from core.tools.dates import DASH_PATTERN, find_weekdays
from core.tools.vocabulary import (
    WORD_PATTERN,
    PatternTable,
    PhraseTable,
    get_locale,
    load_vocabulary,
    lower_text,
    make_phrase_set,
    normalize_chars,
    skip_blank_back,
)

PATTERNS = PatternTable("opening_times")
HALF_DAY, DAY = 12 * 60, 24 * 60


@dataclass(frozen=True)
class _Time:
    """A time of day at `[start, end)`, or a range of times.

    `low` and `high` are in minutes; a range past midnight ends after 24 hours.
    """

    start: int
    end: int
    low: int
    high: int
    side: Literal["from", "until", ""] = ""
    """The end of a range that the word before the time names."""
    is_bare: bool = False
    """True if it may be of the morning or the afternoon: “2”, “2–6”."""


@dataclass(frozen=True)
class _Days:
    """Weekdays at `[start, end)`, Monday is 0: “Monday”, “Tue–Thu”, “Saturday and Sunday”."""

    start: int
    end: int
    days: frozenset[int]


@dataclass(frozen=True)
class _Row:
    """The times of some weekdays, each with its text; without times they are closed or unknown."""

    label: str
    days: frozenset[int]
    times: tuple[tuple[_Time, str], ...]
    rest: str = ""
    """The row's text if it has no times: “closed”."""


def compare_opening_times(
    claim: str, own_start: int, evidence: Sequence[str], language: str
) -> tuple[ValueFinding, ...]:
    """Return a finding for each weekday and time of the claim if the evidence is a timetable."""
    named = list(_find_days(claim, language))
    rows = [row for text in evidence for row in _read_rows(text, language)] if named else []
    if not any(row.times for row in rows):
        return ()
    wanted = frozenset[int]().union(*(group.days for group in named))
    about = [time for row in rows if row.days & wanted for time in row.times]
    closed = next((row.rest for row in rows if row.days & wanted and row.rest), "")
    findings = [_compare_days(claim, group, rows) for group in named]
    times = _find_times(claim, language)
    stated = _find_stated_times(evidence, wanted, language)
    findings += [
        finding
        for time in times
        if (finding := _compare_time(claim, time, about, closed)).status != "different"
        or not any(_relate(time, replace(other, side=""), DAY) == "equal" for other in stated)
    ]
    return tuple(finding for finding in findings if finding.start >= own_start)


def _compare_days(claim: str, own: _Days, rows: Sequence[_Row]) -> ValueFinding:
    """Compare weekdays with the rows' labels; “Tuesday to Thursday” decides about Wednesday."""
    row = next((row for row in rows if own.days <= row.days), None)
    return ValueFinding(
        own.start,
        own.end,
        claim[own.start : own.end],
        is_date=True,
        status="same" if row else "unmatched",
        decided_by=row.label if row and own.days < row.days else "",
        phrase_start=own.start,
    )


def _compare_time(
    claim: str, own: _Time, about: Sequence[tuple[_Time, str]], closed: str
) -> ValueFinding:
    """Compare a time with those of its weekdays; only the end of a range settles it.

    `closed` is what the row of these weekdays says if it has no times.
    """
    status: ValueStatus = "different" if about or closed else "unmatched"
    instead, decided_by = (about[0][1],) * 2 if about else (closed, "")
    for time, text in about:
        if relation := _relate(own, time, DAY):
            status, instead, decided_by = "same", "", text if relation == "equal" else ""
            break
        if (own.is_bare or time.is_bare) and _relate(own, time, HALF_DAY):
            status, instead, decided_by = "unmatched", "", ""
    return ValueFinding(
        own.start,
        own.end,
        claim[own.start : own.end],
        is_date=False,
        status=status,
        instead=instead,
        in_table=bool(instead),
        decided_by=decided_by,
        phrase_start=own.start,
    )


def _relate(own: _Time, other: _Time, period: int) -> Literal["equal", "inside", ""]:
    """Return how a time relates to another one, give or take whole periods."""
    pairs = [(own.low + shift, own.high + shift) for shift in range(-2 * DAY, 2 * DAY, period)]
    if own.low == own.high:
        ends = {"from": (other.low,), "until": (other.high,)}.get(own.side, (other.low, other.high))
        if any(low in ends for low, _ in pairs):
            return "equal"
    elif (other.low, other.high) in pairs:
        return "equal"
    is_inside = any(other.low <= low and high <= other.high for low, high in pairs)
    return "inside" if is_inside and not own.side else ""


def _find_stated_times(evidence: Sequence[str], days: frozenset[int], language: str) -> list[_Time]:
    """Return the times that sentences, not rows, state about these weekdays."""
    return [
        time
        for text in evidence
        for sentence in SENTENCE_END.split(text)
        if not _read_rows(sentence, language)
        and any(group.days & days for group in _find_days(sentence, language))
        for time in _find_times(sentence, language)
    ]


@lru_cache(maxsize=20_000)
def _read_rows(text: str, language: str) -> tuple[_Row, ...]:
    """Return the timetable's rows: weekdays with a colon or a time right behind them."""
    groups = list(_find_days(text, language, with_short=True))
    times = list(_find_times(text, language))
    rows = []
    for group, end in zip(groups, [*(g.start for g in groups[1:]), len(text)], strict=False):
        own = tuple((t, text[t.start : t.end]) for t in times if group.end <= t.start < end)
        tail = text[group.end : own[0][0].start if own else end]
        label = text[group.start : group.end]
        if own and PATTERNS.row_tail.match(tail):
            rows.append(_Row(label, group.days, own))
        elif not own and (colon := PATTERNS.colon.match(tail)):
            rest = tail[colon.end() :].splitlines()[:1]
            rows.append(_Row(label, group.days, (), "".join(rest).strip(" -–—*•,;.")))
    return tuple(rows)


def _find_days(text: str, language: str, *, with_short: bool = False) -> Iterator[_Days]:
    """Yield groups of weekdays; short names ("Mon") count only in timetables."""
    low, words = lower_text(normalize_chars(text)), load_vocabulary(language)
    places = {day.start: (day.end, day.weekday or 0) for day in find_weekdays(text, language)}
    names = _load_day_names(language, with_short=with_short)
    for token in WORD_PATTERN.finditer(low):
        day = names.get(token.group(), names.get(token.group().removesuffix("s")))
        if day is not None and text[token.start()].isupper():
            places.setdefault(token.start(), (token.end(), day))
    found: _Days | None = None
    for start, (end, day) in sorted(places.items()):
        gap = low[found.end : start].strip(" .") if found else ""
        is_range = bool(DASH_PATTERN.fullmatch(gap)) or gap in words.listed("to") - {"and"}
        if found and is_range and gap not in words.listed("and"):
            first = next(iter(found.days))
            days = frozenset((first + i) % 7 for i in range((day - first) % 7 + 1))
            found = _Days(found.start, end, days)
        elif found and gap in {*words.listed("and"), "and", "&", ",", "/", "+"}:
            found = replace(found, end=end, days=found.days | {day})
        else:
            if found:
                yield found
            found = _Days(start, end, frozenset([day]))
    if found:
        yield found


@lru_cache(maxsize=64)
def _load_day_names(language: str, *, with_short: bool) -> dict[str, int]:
    locale = get_locale(language)
    forms = [get_day_names("wide", locale=locale)]
    if with_short:
        forms += [
            get_day_names("abbreviated", locale=locale),
            get_day_names("short", locale=locale),
        ]
    return {
        lower_text(normalize_chars(str(name))).rstrip("."): day
        for names in forms
        for day, name in names.items()
    }


def _find_times(text: str, language: str) -> Iterator[_Time]:
    """Yield the times: “9:30”, “2 pm”, “10–14 h”, “until 12”; other bare numbers are none."""
    low = lower_text(normalize_chars(text))
    until, since, to = _load_leads(language)
    matches = list(PATTERNS.time.finditer(low))
    place = 0
    while place < len(matches):
        match = matches[place]
        following = matches[place + 1] if place + 1 < len(matches) else None
        gap = low[match.end() : following.start()].strip() if following else ""
        is_range = bool(DASH_PATTERN.fullmatch(gap)) or gap in to
        before = skip_blank_back(low, match.start())
        side: Literal["from", "until", ""] = ""
        side = "until" if until.before(low, before) else "from" if since.before(low, before) else ""
        place += 1
        if (
            following
            and is_range
            and not (match["mark"] and not following["mark"] and not following["m"])
        ):
            place += 1
            high = _to_minutes(following, "")
            low_time = _to_minutes(match, following["mark"] or "")
            if low_time > high and not match["mark"]:
                low_time = _to_minutes(match, "")
            is_bare = _is_bare(match) and _is_bare(following)
            if high <= low_time:
                is_afternoon = low_time <= HALF_DAY and _is_bare(following)
                high += HALF_DAY if is_afternoon else DAY
            yield _Time(match.start(), following.end(), low_time, high, is_bare=is_bare)
        elif match["m"] or match["mark"] or side:
            minutes = _to_minutes(match, "")
            is_bare = _is_bare(match)
            yield _Time(match.start(), match.end(), minutes, minutes, side, is_bare)


def _is_bare(match: re.Match[str]) -> bool:
    """Return True if nothing shows which half of the day a time is in; “09” is a 24-hour time."""
    hour = match["h"]
    return not match["mark"] and hour[0] != "0" and int(hour) * 60 <= HALF_DAY


@lru_cache(maxsize=64)
def _load_leads(language: str) -> tuple[PhraseTable[bool], PhraseTable[bool], frozenset[str]]:
    """Return the words before a closing time, before an opening time, and within a range."""
    words = load_vocabulary(language)
    to = words.listed("to") - words.listed("and") - {"and"}
    return make_phrase_set(to), make_phrase_set(words.listed("from") - words.listed("between")), to


def _to_minutes(match: re.Match[str], other_mark: str) -> int:
    """Return minutes since midnight; a time without "am" or "pm" may take its neighbour's."""
    minutes = 60 * int(match["h"]) + int(match["m"] or 0)
    mark = match["mark"] or other_mark
    if mark[:1] in ("a", "p") and mark.endswith(("m", "m.")):
        minutes = minutes % HALF_DAY + (HALF_DAY if mark[0] == "p" else 0)
    return minutes
