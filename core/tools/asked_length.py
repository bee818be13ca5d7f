"""Reads from a question which length its answer shall have, in English and Chinese.

Strict on purpose: a length that only describes a thing ("this 500-word article", "why titles should
be under 60 characters") is none that is asked for, so a clause must make a request and the figure
must hang on its verb or on a noun for the answer. Where two lengths do not agree none is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.tools.asked_bounds import agree, asked_range, asked_with_bound, both_ends
from core.tools.asked_figures import HAN, NUMBER, english_value, han_values
from core.tools.lengths import Length, LengthUnit

CLAUSE = re.compile(r"[.?!:](?=\s|$)|[。？！；;\n]")
LEADS: dict[str, str] = {
    "least": r"at least|no fewer than|no less than|not (?:less|fewer) than"
    r"|(?:an? )?min(?:imum|\.)?(?: of)?",
    "most": r"at most|no more than|not more than|no longer than|not (?:to )?exceed(?:ing)?"
    r"|not over|up to|(?:an? )?max(?:imum|\.)?(?: of)?|within|limit(?:ed)?(?: \w+){0,3} to",
    "more": r"more than|longer than|over|exceed(?:ing)?",
    "less": r"less than|fewer than|shorter than|under|below",
    "exact": r"exactly|precisely",
    "about": r"about|around|approximately|approx\.|roughly",
}
FLIPPED = {"more": "most", "less": "least"}  # what a bound becomes behind a "not"
LEAD = "|".join(f"(?P<{name}>{words})" for name, words in LEADS.items())
ENGLISH = re.compile(
    rf"(?<![\w,.-])(?:(?:{LEAD})\s+)?(?:(?P<between>between)\s+|from\s+)?(?P<low>{NUMBER})"
    rf"(?:\s*(?P<joint>-|–|\b(?:to|and|or)\b)\s*(?P<high>{NUMBER}))?(?P<gap>[\s-]+)"
    r"(?:(?:short|long|complete|full|simple|concise|clear|brief|english|chinese)\s+)?"
    r"(?P<unit>word|character|sentence|paragraph|line(?!s?\s+(?:of|from|in)\b))s?\b"
    r"(?P<tail>\s+(?:(?:or|and)\s+(?:less|fewer|under|more|above|so)|max(?:imum)?|min(?:imum)?)\b)?"
    r"(?P<two>\s+or\s+two\b)?(?P<each>\s*(?:each|per|apiece|an?\s+(?:day|week|page|line))\b)?",
    re.IGNORECASE,
)
EITHER = re.compile(rf"\s+or\s+(?:(?:{'|'.join(LEADS.values())})\s+)?{NUMBER}\b", re.IGNORECASE)
# "at least 3 but", with the unit to come.
OTHER_BOUND = re.compile(
    rf"(?:(?P<least>{LEADS['least']})|(?P<most>{LEADS['most']})|(?P<more>{LEADS['more']})"
    rf"|(?P<less>{LEADS['less']}))\s+(?P<low>{NUMBER})(?:\s+(?:word|character|sentence|paragraph)s?)?"
    r",?\s+(?:and|but)\s+$",
    re.IGNORECASE,
)
NOT = re.compile(
    r"(?:\b(?:not|never|no|without|cannot|avoid)|n['’]t)(?:\s+\w+){0,3}\s*$", re.IGNORECASE
)
MAKING = (
    r"write|give|compose|produce|draft|create|provide|generate|make|use|answer|respond|reply|need"
    r"|want|prepare|say"
)
ANSWER = (
    r"(?:answer|response|reply|review|essay|summary|description|story|poem|text|paragraph|article"
    r"|explanation|introduction|report|account|letter|email|e-mail|note|definition|overview|piece"
    r"|caption|abstract|outline|speech|passage|post|biography|bio|comment|statement|it|this)"
)
OPENING = r"(?:^|[,(])\s*(?:and\s+|but\s+|please\s+)?"
MODAL = r"(?:should|must|shall|may|can|needs?\s+to|has\s+to|is\s+to)(?:\s+(?:not|never))?"
HANGS = re.compile(
    # on the verb: "write [me] 50 words"
    rf"(?:\b(?:{MAKING})(?:\s+me|\s+us)?|{OPENING})\s*(?:just\s+|only\s+)?$"
    # in so many words, but not "a story told in"
    r"|(?<!written)(?<!told)(?<!said)(?<!expressed)(?<!spoken)(?<!composed)(?<!stated)(?:\s|^)"
    r"(?:in|using|into|with\s+(?:just|only))\s+(?:just\s+|only\s+)?$"
    # on a noun for the answer: "a review of", "your answer must be", "keep it"
    r"|\b(?:answer|respond|reply)\s+with\s+$"
    rf"|\b{ANSWER}(?:,|\s+(?:of|with|to|down\s+to|long|that\s+(?:is|has)))?\s+$"
    rf"|\b{ANSWER}\s+{MODAL}(?:\s+(?:be|have|contain|use))?\s+$",
    re.IGNORECASE,
)
IN_WORDS = re.compile(
    r"(?:\b(?:in|using|(?:answer|respond|reply)\s+with)\s+(?:just\s+|only\s+)?|,\s*)$",
    re.IGNORECASE,
)
A_THING = re.compile(r"\ban?\s+(?:\w+\s+)?$", re.IGNORECASE)
ASKS_FOR = re.compile(
    rf"(?:\b(?:{MAKING})(?:\s+me|\s+us)?|\b(?:in|into|as|with|using))\s+an?\s+(?:\w+\s+)?$",
    re.IGNORECASE,
)
OPENS = re.compile(r"(?:in|with|using|use|into|to)\s+(?:just\s+|only\s+)?", re.IGNORECASE)
REQUEST = re.compile(
    rf"\b(?:{MAKING}|describe|explain|summari[sz]e|tell|list|discuss|outline|translate|define"
    r"|do not|don['’]t|introduce|keep|limit|rewrite|paraphrase|compare|condense|shorten"
    r"|(?:should|must|shall)(?:\s+not)?\s+be|needs? to be)\b",
    re.IGNORECASE,
)
# What follows is what the question is about, and lengths of texts in it are not the answer's.
ABOUT = re.compile(
    r"\b(?:why|how|that|which|who|whose|what|whether|because|if|when)\b", re.IGNORECASE
)
OF_TEXTS = re.compile(
    r"\b(?:writ|wrote|stor(?:y|ies)\b|poem|haiku|title|essay|tweet|speech|sentence|word|sa(?:y|id)\b"
    r"|t(?:ell|old)\b|sp[eo]ak|summar|express|describ|explain|answer|limit|text|letter|headline|novel"
    r"|password|slogan|motto|should|must)",
    re.IGNORECASE,
)
OF_OTHERS = re.compile(r"\b(?:why|how|who|which|whether|did|does)\b(?!.*\byou\b)", re.IGNORECASE)
HOW_MANY = re.compile(r"\bhow many\b|多少个?[字词句]|几个?[字词句]", re.IGNORECASE)
FEW_WORDS = 20  # "three words that rhyme with cat" are things, "100 words on tea" a length

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
    r"\s*个?\s*(?P<unit>字符|汉字|字(?!母|典|节|眼|成语|词|诗)|单词|句话|句子|句|段落|段(?!时|路)|行(?![业为动人李程走星政]))"
    r"(?P<tail>以上|以内|以下|之内|左右|上下|内)?(?P<of>的)?"
)
HAN_INTO = re.compile(
    r"(?:用|以|限|写|作|撰|成|为|在|出|字数[:：]?|(?<![这该那本])(?:一篇|一段|一个|一份)|分)\s*$"
)
HAN_REQUEST = re.compile(
    "写|用|描述|介绍|概括|总结|说明|回答|解释|描写|撰|创作|控制|字数|生成|给出|评价|翻译|谈|讲|简述|以|请|限"
)
HAN_NOT = re.compile(r"(?:不|别|勿|莫|不要|不应该?|不可以?|不必)\s*$")
HAN_ABOUT = re.compile(r"(?:为什么|为何|如何|怎么|怎样|是否)[^，,]*$")
HAN_UNITS: dict[str, LengthUnit] = {
    "单": "word", "句": "sentence", "段": "paragraph", "行": "line"
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
    question = both_ends(question)
    things = [m for m in ENGLISH.finditer(question) if _is_thing(m, question)]
    found: dict[Length | None, None] = {}
    for index, clause in enumerate(CLAUSE.split(question)):
        found |= dict.fromkeys((*_english(clause, is_first=index == 0), *_chinese(clause)))
    lengths = tuple(length for length in found if length is not None)
    is_sure = len(lengths) == len(found) and len(things) <= 1
    return lengths if is_sure and agree(lengths) else ()


def _is_thing(match: re.Match[str], text: str) -> bool:
    """True for the length of "a 100-word" thing."""
    return "-" in match["gap"] and A_THING.search(text[: match.start()]) is not None


def _english(clause: str, *, is_first: bool) -> Iterator[Length | None]:
    """The lengths asked for; None for one that cannot be read for sure."""
    for match in ENGLISH.finditer(clause):
        before = clause[: match.start()]
        other = OTHER_BOUND.search(before)
        head = before[: other.start()] if other else before
        if match["each"] or not _is_asked(clause, head, match, is_first=is_first):
            continue
        unit: LengthUnit = match["unit"].lower()  # type: ignore[assignment]
        is_choice = EITHER.match(clause, match.end()) is not None
        yield None if is_choice else _english_length(unit, match, before)
        if other:
            bound = next(name for name in ("least", "most", "more", "less") if other[name])
            yield asked_with_bound(unit, english_value(other["low"]), bound)


def _is_asked(clause: str, head: str, match: re.Match[str], *, is_first: bool) -> bool:
    """Whether the figure hangs on a request for the answer; `head` is what stands before it."""
    is_led = bool(_bound_of(match)) and "-" not in match["gap"]
    request = REQUEST.search(clause)
    if request is None or OF_OTHERS.search(clause[: request.start()]):
        return request is None and _opens(head, is_led=is_led, is_first=is_first)
    if _is_of_the_matter(head[request.end() :], head):
        return False
    if "-" in match["gap"] and not match["high"]:
        return ASKS_FOR.search(head) is not None
    is_limit = (match["most"] or "").lower().startswith(("limit", "not exceed"))
    is_denied = bool(match["more"] or match["less"]) and NOT.search(head) is not None
    if is_limit or is_denied:
        return True
    low = english_value(match["low"])
    are_things = match["unit"].lower() == "word" and low <= FEW_WORDS and not is_led
    hangs = HANGS.search(head)
    if hangs and are_things and not match["high"]:
        return hangs.group().endswith("of ") or IN_WORDS.search(head) is not None
    return hangs is not None or (match["high"] is not None and ASKS_FOR.search(head) is not None)


def _is_of_the_matter(asked: str, head: str) -> bool:
    """Whether the figure stands in what the question is about: "why titles should be under …"."""
    about = ABOUT.search(asked)
    if about is None:
        return False
    return not IN_WORDS.search(head) or OF_TEXTS.search(asked, about.end()) is not None


def _opens(before: str, *, is_led: bool, is_first: bool) -> bool:
    """True for a request without a verb: "Max 20 words", "In 50 words: what is rust?"."""
    opening = before.lstrip()
    if not opening:
        return is_led
    # After "U.S." goes on in a small letter what is no clause of its own.
    return OPENS.fullmatch(opening) is not None and (is_first or opening[0].isupper())


def _english_length(unit: LengthUnit, match: re.Match[str], before: str) -> Length | None:
    low, bound = english_value(match["low"]), _bound_of(match)
    if NOT.search(before):
        if bound not in FLIPPED:
            return None
        # "not more than 50" allows 50.
        return asked_with_bound(unit, low, FLIPPED[bound])
    if match["two"]:
        return Length(unit, 1, 2) if low == 1 else None
    if match["high"]:
        high = english_value(match["high"])
        is_either = match["joint"].lower() == "or" and high != low + 1
        return None if is_either else asked_range(unit, low, high)
    return None if match["between"] else asked_with_bound(unit, low, bound)


def _chinese(clause: str) -> Iterator[Length | None]:
    if not HAN_REQUEST.search(clause):
        return
    for match in CHINESE.finditer(clause):
        before, bound = clause[: match.start()], _bound_of(match)
        unit = HAN_UNITS.get(match["unit"][:1], "character")
        values = han_values(match["low"])
        low = values[0] if values else 1
        is_shape = bool(match["of"]) and low <= SMALL_SHAPE and not bound
        is_led = bool(bound or match["high"] or HAN_INTO.search(before))
        if not low or (unit == "paragraph" and low == 1) or is_shape or not is_led:
            continue
        if HAN_ABOUT.search(before):
            continue
        yield _han_length(unit, match, before) if values else None


def _han_length(unit: LengthUnit, match: re.Match[str], before: str) -> Length | None:
    values, others = han_values(match["low"]), han_values(match["high"] or match["low"])
    if values is None or others is None:
        return None
    low, high, bound = values[0], others[1], _bound_of(match)
    if HAN_NOT.search(before):
        return asked_with_bound(unit, high, FLIPPED[bound]) if bound in FLIPPED else None
    if low != high:
        return asked_range(unit, low, high)
    return asked_with_bound(unit, low, bound)


def _bound_of(match: re.Match[str]) -> str:
    """Which bound the words before or after the figure set; "" for none."""
    tail = (match["tail"] or "").split()
    if tail:
        return TAILS.get(tail[-1].lower(), "")
    return next((name for name in LEADS if match[name]), "")
