"""Reads from a question which length its answer shall have, in English and Chinese.

Strict on purpose: a length that only describes a thing ("this 500-word article") is none that is
asked for, so a clause must make a request and the figure must follow a word that leads to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.builtin.values.han_numbers import value_of
from core.builtin.values.quantities import find_quantities
from core.tools.conditions import Length, LengthUnit

LONGEST = 600  # a longer question holds a text; what is asked stands at its beginning or its end
ENDS = 300
CLAUSE = re.compile(r"[.?!:](?=\s|$)|[。？！；;\n]")
ONES_TO_FIFTEEN = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
)
TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
ONES = "|".join(ONES_TO_FIFTEEN.split()) + "|sixteen|seventeen|eighteen|nineteen"
NUMBER = (
    rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,6}}|(?:(?:a|{ONES})[ ])?(?:hundred|thousand)"
    rf"|(?:{TENS})(?:[- ](?:{ONES}))?|{ONES}|a(?:[ ]single)?(?=[ ](?:sentence|paragraph)))"
)
LEADS: dict[str, str] = {
    "least": r"at least|no fewer than|no less than|not less than|(?:an? )?min(?:imum|\.)?(?: of)?",
    "most": r"at most|no more than|not more than|no longer than|not (?:to )?exceed(?:ing)?"
    r"|exceed(?:ing)?|up to|(?:an? )?max(?:imum|\.)?(?: of)?|within|limit(?:ed)?(?: \w+){0,3} to",
    "more": r"more than|over",
    "less": r"less than|fewer than|under|below",
    "exact": r"exactly|precisely",
    "about": r"about|around|approximately|approx\.|roughly",
}
LEAD = "|".join(f"(?P<{name}>{words})" for name, words in LEADS.items())
ENGLISH = re.compile(
    rf"(?<![\w,.-])(?:(?:{LEAD})\s+)?(?:between\s+|from\s+)?(?P<low>{NUMBER})"
    rf"(?:\s*(?:-|–|\bto\b|\band\b)\s*(?P<high>{NUMBER}))?(?P<gap>[\s-]+)"
    r"(?:(?:short|long|complete|full|simple|concise|clear|brief|english|chinese)\s+)?"
    r"(?P<unit>word|character|sentence|paragraph)s?\b"
    r"(?P<tail>\s+(?:(?:or|and)\s+(?:less|fewer|under|more|above|so)|max(?:imum)?|min(?:imum)?)\b)?"
    r"(?P<each>\s*(?:each|per|apiece)\b)?",
    re.IGNORECASE,
)
INTO = re.compile(
    r"\b(?:in|with|using|use|into|to|of|(?:write|give|compose|produce|draft)(?:\s+me|\s+us)?)"
    r"\s+(?:just\s+|only\s+)?$",
    re.IGNORECASE,
)
A_THING = re.compile(r"\ban?\s+(?:\w+\s+)?$", re.IGNORECASE)
REQUEST = re.compile(
    r"\b(?:write|describe|explain|summari[sz]e|give|answer|respond|reply|compose|draft|tell|create"
    r"|provide|generate|list|discuss|outline|translate|define|introduce|keep|limit|use|make|produce"
    r"|rewrite|paraphrase|compare|condense|shorten|(?:should|must|shall) be|needs? to be)\b",
    re.IGNORECASE,
)
HOW_MANY = re.compile(r"\bhow many\b|多少个?[字词句]|几个?[字词句]", re.IGNORECASE)

HAN = r"(?:\d{1,6}|[一二三四五六七八九十百千两零〇]{1,9})"
HAN_LEADS: dict[str, str] = {
    "least": "不少于|不得少于|至少|不低于|最少",
    "most": "不超过|不得超过|不多于|不能超过|至多|最多|不大于|控制在",
    "more": "超过|多于|大于",
    "less": "少于|不足|低于",
    "exact": "正好|恰好|刚好",
    "about": "大约|大概|约|差不多",
}
HAN_LEAD = "|".join(f"(?P<{name}>{words})" for name, words in HAN_LEADS.items())
CHINESE = re.compile(
    rf"(?:(?:{HAN_LEAD})\s*(?:为|是|有)?\s*)?(?P<low>{HAN})"
    rf"(?:\s*个?字?\s*[-–—~～到至]\s*(?P<high>{HAN}))?"
    r"\s*个?\s*(?P<unit>字符|汉字|字(?!母|典|节|眼|成语|词|诗)|单词|句话|句子|句|段落|段(?!时|路))"
    r"(?P<tail>以上|以内|以下|之内|左右|上下|内)?(?P<of>的)?"
)
HAN_INTO = re.compile(
    r"(?:用|以|限|写|作|撰|成|为|在|出|字数[:：]?|(?<![这该那本])(?:一篇|一段|一个|一份)|分)\s*$"
)
HAN_REQUEST = re.compile(
    "写|用|描述|介绍|概括|总结|说明|回答|解释|描写|撰|创作|控制|字数|生成|给出|评价|翻译|谈|讲|简述|以|请|限"
)
HAN_UNITS: dict[str, LengthUnit] = {
    "单": "word", "句": "sentence", "段": "paragraph"
}  # fmt: skip
TAILS: dict[str, str] = {
    "less": "most", "fewer": "most", "under": "most", "more": "least", "above": "least",
    "so": "about", "max": "most", "maximum": "most", "min": "least", "minimum": "least",
    "以上": "least", "以内": "most", "以下": "most", "之内": "most", "内": "most",
    "左右": "about", "上下": "about",
}  # fmt: skip
SMALL_SHAPE = 4  # "words of two characters": the shape of what is sought, not the answer's length


def asked_lengths(question: str) -> tuple[Length, ...]:
    """Every length that the question asks of its answer; most ask for none."""
    if HOW_MANY.search(question):
        return ()
    if len(question) > LONGEST:
        question = f"{question[:ENDS]}\n{question[-ENDS:]}"
    found: dict[Length, None] = {}
    for index, clause in enumerate(CLAUSE.split(question)):
        lengths = (*_english(clause, is_first=index == 0), *_chinese(clause))
        found |= dict.fromkeys(lengths)
    return tuple(found)


def _english(clause: str, *, is_first: bool) -> Iterator[Length]:
    for match in ENGLISH.finditer(clause):
        before = clause[: match.start()]
        is_hyphened = "-" in match["gap"]
        is_led = match.lastgroup is not None and bool(_bound_of(match)) and not is_hyphened
        asks = REQUEST.search(clause) is not None
        if match["each"] or not (asks or _opens(before, is_led=is_led, is_first=is_first)):
            continue
        is_thing = is_hyphened and A_THING.search(before) is not None and asks
        is_range = match["high"] is not None
        if is_led or is_thing or is_range or (not is_hyphened and INTO.search(before)):
            unit: LengthUnit = match["unit"].lower()  # type: ignore[assignment]
            low, high = _english_value(match["low"]), _english_value(match["high"])
            if low:
                yield _length(unit, low, match, high)


def _opens(before: str, *, is_led: bool, is_first: bool) -> bool:
    """True for a request without a verb: "Max 20 words", "In 50 words: what is rust?"."""
    opening = before.lstrip()
    if not opening:
        return is_led
    # After "U.S." goes on in a small letter what is no clause of its own.
    return INTO.fullmatch(opening) is not None and (is_first or opening[0].isupper())


def _english_value(written: str | None) -> int | None:
    if written is None:
        return None
    if written.lower() in ("a", "a single"):
        return 1
    values = find_quantities(f"{written.lower()} words", "en")
    return int(values[0].low) if values else None


def _chinese(clause: str) -> Iterator[Length]:
    if not HAN_REQUEST.search(clause):
        return
    for match in CHINESE.finditer(clause):
        unit = HAN_UNITS.get(match["unit"][:1], "character")
        low = int(value_of(match["low"]))
        bound = _bound_of(match)
        is_shape = bool(match["of"]) and low <= SMALL_SHAPE and not bound
        if not low or (unit == "paragraph" and low == 1) or is_shape:
            continue
        if bound or match["high"] or HAN_INTO.search(clause[: match.start()]):
            high = int(value_of(match["high"])) if match["high"] else None
            yield _length(unit, low, match, high)


def _bound_of(match: re.Match[str]) -> str:
    """Which bound the words before or after the figure set; "" for none."""
    tail = (match["tail"] or "").split()
    if tail:
        return TAILS.get(tail[-1].lower(), "")
    return next((name for name in LEADS if match[name]), "")


def _length(unit: LengthUnit, wanted: int, match: re.Match[str], high: int | None) -> Length:
    if high is not None and high > wanted:
        return Length(unit, wanted, high)
    bounds = {
        "least": Length(unit, wanted, None),
        "more": Length(unit, wanted + 1, None),
        "most": Length(unit, None, wanted),
        "less": Length(unit, None, max(0, wanted - 1)),
        "about": Length(unit, wanted, wanted, "about"),
    }
    return bounds.get(_bound_of(match), Length(unit, wanted, wanted))
