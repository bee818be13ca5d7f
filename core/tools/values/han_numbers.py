"""Numbers with Chinese, Japanese or Korean numerals: 四百一十二, 1200万, 百分之十五, 3만 5천.

A numeral is also part of many words (一般, 万一, 三亚). It is taken for a number where it holds a
digit with a multiplier, three digits or more, or where a measure word or unit follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.tools.values.digits import Number

ONES: dict[str, int] = {
    c: i
    for i, chars in enumerate(
        "〇零○ 一壹弌 二贰貳两兩弐 三叁參参 四肆 五伍 六陆陸 七柒 八捌 九玖".split()
    )
    for c in chars
}
SMALL = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000, "천": 1000, "백": 100}
SMALL |= {"廿": 20, "卅": 30}
BIG = {
    "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "兆": 10**12, "만": 10**4, "억": 10**8,
    "조": 10**12,
}  # fmt: skip
HAN = "".join([*ONES, *(c for c in (SMALL | BIG) if "\u3400" < c < "\u9fff")])
ARABIC = r"(?>\d[\d,]{0,20}(?:\.\d{1,12})?)"
KOREAN = (
    rf"{ARABIC}\s?[천백]?[조억만](?:\s?{ARABIC}[천백]?[조억만]?){{0,9}}+|{ARABIC}[천백](?![가-힣])"
)
MIXED = rf"(?:{ARABIC}\s?)?[{HAN}](?:[{HAN}]|{ARABIC}){{0,40}}+"
NUMERAL = re.compile(rf"(?P<rank>第)?(?P<number>{MIXED}|{KOREAN}|(?<=第){ARABIC})")
PART = re.compile(rf"(?P<bottom>[{HAN}]{{1,20}}|\d{{1,12}})分[之の](?P<top>{MIXED}|{ARABIC})")
TENTHS = re.compile(
    rf"(?P<number>[{HAN}]|{ARABIC})(?:成(?![立功为為员員都就长長果绩績年])|割(?![りっ引合]))"
)
TIMES = re.compile(rf"(?P<number>{MIXED}|{ARABIC})\s?[倍배]")
FIXED = {"一半": 50.0, "半数": 50.0, "半數": 50.0, "절반": 50.0, "半分": 50.0}
BARE_MULTIPLIERS = frozenset("百千万萬亿億兆廿卅")
HALF = re.compile("|".join(FIXED))
ITEM = re.compile(rf"{ARABIC}|.")
MEASURES = re.compile(
    r"\s?(?:[个個名位人次条條只隻头頭匹张張座本种種部辆輛艘架届屆岁歲歳棵颗枚台臺件把双雙对對层層"
    r"楼樓章节節期轮輪项項所间間支队隊组組级級场場句遍步口户戶代集卷首幅块塊朵滴杯瓶碗袋箱包封株尊"
    r"篇道顶頂冊匹杯軒足着羽回篇粒束]|つ|명|개|번|살|세(?![가-힣])|마리|권|대(?![가-힣])|곳)"
)
WORDS_WITH_NUMERALS = re.compile(
    r"一(?:些|般|起|直|定|样|樣|旦|切|致|共|向|同|边|邊|部分|方|面|体|時|时|概|生|带|帶|度|位于|番)"
    r"|万一|萬一|千万(?:别|不|要|富翁)|百姓|万物|十分(?!钟|鐘|之|間)|三明治|四川|三亚|九江|五台|百科|"
    r"百度|千古|百万富翁|八卦|六合|十足|十字|统一|唯一|之一|第一手|一时|万岁|五花八门|四面八方|四周(?![年岁])"
)


def han_numbers(text: str) -> Iterator[Number]:
    """All numbers with East Asian numerals in a plain text, parts and ranks included."""
    if text.isascii():
        return
    parts = list(_parts(text))
    yield from parts
    spans = [m.span() for m in WORDS_WITH_NUMERALS.finditer(text)]
    spans += [(part.start, part.end) for part in parts]
    taken = {place for start, end in spans for place in range(start, end)}
    for number in (*_tenths(text), *_plain(text)):
        places = range(number.start, number.end)
        if taken.isdisjoint(places):
            taken.update(places)
            yield number


def _parts(text: str) -> Iterator[Number]:
    """百分之十五, 三分之二, 一半 in per cent."""
    for match in PART.finditer(text):
        bottom, top = value_of(match["bottom"]), value_of(match["top"])
        if bottom:
            step = 100 / bottom * (_step(match["top"]) if bottom >= 100 else 0.05 * top)
            value = 100 * top / bottom
            yield Number(*match.span(), value, value, step, _digits(match["top"]), share=True)
    for match in HALF.finditer(text):
        value = FIXED[match.group()]
        yield Number(*match.span(), value, value, 5.0, 1, share=True, spelled=True)


def _tenths(text: str) -> Iterator[Number]:
    for match in TENTHS.finditer(text):
        value = 10 * value_of(match["number"])
        if 0 < value <= 100:
            yield Number(*match.span(), value, value, 10 * _step(match["number"]), 1, share=True)
    for match in TIMES.finditer(text):
        value = value_of(match["number"])
        start, end = match.span()
        if start and text[start - 1] in "0123456789.":
            continue
        yield Number(start, end, value, value, _step(match["number"]), 1, noun="time")


def _plain(text: str) -> Iterator[Number]:
    for match in NUMERAL.finditer(text):
        written = match["number"]
        start, end = match.span("number")
        if text[start - 1 : start] in (".", ",") and text[start - 2 : start - 1].isdigit():
            continue
        rank = match["rank"] is not None
        if not rank and not _counts(written, text, end):
            continue
        needs = "" if rank or _is_sure(written) or MEASURES.match(text, end) else "unit"
        if needs and text[end : end + 1] == "多":
            needs = ""
        if written in "一" and not rank:
            needs = "unit"
        value = float(value_of(written))
        step = _step(written)
        first = match.start() if rank else start
        yield Number(
            first, end, value, value, step, _digits(written), ordinal=rank, needs=needs,
            spelled=not written[0].isdigit(),
        )  # fmt: skip


def _counts(written: str, text: str, end: int) -> bool:
    """Whether numerals may be a number at all: not two digits side by side, "三四"."""
    digits = [c for c in written if c in ONES]
    if all(ONES.get(c) == 0 for c in written):
        return False
    if len(digits) == len(written) and 1 < len(written) < 3:
        return False
    return written not in BARE_MULTIPLIERS or MEASURES.match(text, end) is not None


def _is_sure(written: str) -> bool:
    """Whether the numerals alone make a number: a digit and a multiplier, or a long row."""
    multiplied = any(c in SMALL or c in BIG for c in written)
    counted = any(c in ONES or c.isdigit() for c in written)
    if multiplied and counted:
        return True
    return (len(written) > 2 and counted) or (
        len(written) > 1 and multiplied and written[0] == "十"
    )


def value_of(written: str) -> float:
    """The value of a numeral in Han, Arabic or mixed writing; 0 where it has none."""
    written = re.sub(r"\s", "", written)
    if written and all(c in ONES for c in written):
        return float("".join(str(ONES[c]) for c in written)) if len(written) < 16 else 0.0
    total = section = 0.0
    current: float | None = None
    smallest = float("inf")
    for item in ITEM.findall(written):
        if item in BIG:
            factor = BIG[item]
            section += current or 0.0
            if factor > smallest:
                total, section = (total + (section or 0.0)) * factor, 0.0
            else:
                total, section = total + (section or (1.0 if not total else 0.0)) * factor, 0.0
            current, smallest = None, factor
        elif item in SMALL:
            section += (1.0 if current is None else current) * SMALL[item]
            current = None
        elif item in ONES:
            current = 10 * current + ONES[item] if current else float(ONES[item])
        else:
            current = float(item.replace(",", "")) if len(item) < 16 else 0.0
    return total + section + (current or 0.0)


def _step(written: str) -> float:
    """The size of the last written digit: 10,000 for 1200万, 0.1 for 1.5, 1 for 四百."""
    scale = 1.0
    for char in reversed(written):
        if char in BIG:
            scale *= BIG[char]
        elif char in "千仟천" and (scale > 1 or written[0].isdigit()):
            scale *= 1000
        else:
            break
    decimals = re.search(r"\.(\d+)\D*$", written)
    return float(scale / 10 ** len(decimals[1])) if decimals else float(scale)


def _digits(written: str) -> int:
    return max(1, sum(c in ONES or c.isdigit() for c in written))
