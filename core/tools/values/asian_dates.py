"""Chinese, Japanese and Korean dates: 2019年3月12日, 二〇一九年, 令和元年, 5월 3일, 下午5点半."""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.tools.values.han_numbers import value_of
from core.tools.values.kinds import DateValue
from core.tools.values.numeric_dates import is_day

ERAS = {"令和": 2018, "平成": 1988, "昭和": 1925, "大正": 1911, "明治": 1867}
BEFORE = frozenset(["公元前", "西元前", "紀元前", "기원전"])
LED = r"公元前|西元前|紀元前|기원전|公元|西元|西暦|서기|令和|平成|昭和|大正|明治"
ONES = "〇零○一二三四五六七八九"
SMALL = r"\d{1,2}|[一二三四五六七八九十]{1,3}"
REST = rf"(?:\s?(?P<month>{SMALL})\s?[月월](?:份)?(?:\s?(?P<day>{SMALL})\s?[日号號일](?![間间]))?)?"
WHOLE = re.compile(
    rf"(?:(?P<led>{LED})\s?)?(?P<year>\d{{1,4}}|[{ONES}]{{4}}|元)\s?[年년](?![代级级])(?!以上|間|间|来|多){REST}"
)
RANGE = re.compile(
    rf"(?P<led>{LED})?(?P<year>\d{{3,4}})\s?[年년]?\s?[-–—~～〜至到]\s?(?:{LED})?(?P<last>\d{{3,4}})\s?[年년](?![代间間])"
)
MONTH = re.compile(
    rf"(?<![\d个個.])(?<![{ONES}十])(?P<month>{SMALL})\s?[月월](?![球亮光])"
    rf"(?:\s?(?P<day>{SMALL})\s?[日号號일](?![間间]))?"
)
CENTURY_DECADE = re.compile(
    rf"(?P<century>{SMALL})\s?世[纪紀]\s?(?P<decade>\d0|[一二三四五六七八九]十)年代"
)
DECADE = re.compile(r"(?<!\d)(?P<decade>(?:1[0-9]|20)?\d0|[二三四五六七八九]十)\s?(?:年代|년대)")
WEEKDAY = re.compile(
    r"(?:星期|礼拜|禮拜|周|週)(?P<han>[一二三四五六日天])|(?P<day>[月火水木金土日])曜日?|(?P<ko>[월화수목금토일])요일"
)
CLOCK = re.compile(
    r"(?:(?P<half>上午|下午|晚上|早上|早晨|凌晨|中午|傍晚|午前|午後|오전|오후)\s?)?(?P<hour>\d{1,2}|[一二两三四五六七八九十]{1,3})"
    r"\s?(?:点钟|点|點|時(?![間代期])|时(?![间代期])|시(?![가-힣]))(?:\s?(?P<minute>\d{1,2})\s?[分분]?|(?P<mid>半|반))?"
)
LATE = frozenset(["下午", "晚上", "午後", "오후", "傍晚"])
DAYS = "一二三四五六日"
LEADS_YEAR = re.compile(r"(?:^|[于於在自从從至到，。、（(；：「《 ]|約|约)$")
THREE_DIGITS = 3


def asian_dates(text: str) -> Iterator[DateValue]:
    """All dates and times with East Asian signs in a plain text."""
    if text.isascii():
        return
    yield from _stretches(text)
    for match in WHOLE.finditer(text):
        found = _whole(match, text)
        if found:
            yield found
    for match in MONTH.finditer(text):
        month, day = int(value_of(match["month"])), _number(match["day"])
        if 1 <= month <= 12 and (day is None or is_day(month, day)):
            yield DateValue(*match.span(), "", month=month, day=day)
    for match in WEEKDAY.finditer(text):
        given = match["han"] or match["day"] or match["ko"]
        order = DAYS if match["han"] else "月火水木金土日" if match["day"] else "월화수목금토일"
        yield DateValue(*match.span(), "", weekday=order.index("日" if given == "天" else given))
    yield from _clocks(text)


def _stretches(text: str) -> Iterator[DateValue]:
    for match in CENTURY_DECADE.finditer(text):
        century = int(value_of(match["century"]))
        year = 100 * (century - 1) + int(value_of(match["decade"]))
        yield DateValue(*match.span(), "", year=year, end_year=year + 9, kind="decade")
    for match in DECADE.finditer(text):
        year = int(value_of(match["decade"]))
        year += 0 if year > 99 else 1900 if year > 10 else 2000
        yield DateValue(*match.span(), "", year=year, end_year=year + 9, kind="decade")
    for match in RANGE.finditer(text):
        year, last = int(match["year"]), int(match["last"])
        bce = match["led"] in BEFORE
        if (year < last) != bce:
            yield DateValue(
                *match.span(),
                "",
                year=year,
                end_year=last,
                kind="range",
                era="bce" if bce else "ce",
            )


def _number(written: str | None) -> int | None:
    return int(value_of(written)) if written else None


def _whole(match: re.Match[str], text: str) -> DateValue | None:
    """A year with its month and day, unless it is a number of years."""
    led, written = match["led"], match["year"]
    year = 1 if written == "元" else int(value_of(written))
    month, day = _number(match["month"]), _number(match["day"])
    if month is not None and not (1 <= month <= 12 and (day is None or is_day(month, day))):
        return None
    if led in ERAS:
        year += ERAS[led]
    elif written == "元" or (not led and not _is_year(written, year, month, match.start(), text)):
        return None
    if not led and len(written) <= 2:
        year += 1900 if year > 40 else 2000
    return DateValue(
        *match.span(), "", year=year, month=month, day=day, era="bce" if led in BEFORE else "ce"
    )


def _is_year(written: str, year: int, month: int | None, start: int, text: str) -> bool:
    if len(written) == 4 and written[0] not in "〇零0":
        return 1000 <= year <= 2100
    if month is not None:
        return len(written) != 1
    return len(written) == THREE_DIGITS and bool(LEADS_YEAR.search(text, max(0, start - 4), start))


def _clocks(text: str) -> Iterator[DateValue]:
    for match in CLOCK.finditer(text):
        half = match["half"]
        hour = int(value_of(match["hour"]))
        minute = 30 if match["mid"] else _number(match["minute"])
        if hour > 24 or (minute or 0) > 59 or (half is None and minute is None):
            continue
        if half in LATE and hour < 12:
            hour += 12
        yield DateValue(
            *match.span(), "", hour=hour % 24, minute=minute, ambiguous=half is None and hour <= 12
        )
