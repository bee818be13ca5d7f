"""Reads from a question which format its answer shall have, in English and Chinese.

Strict: a question for a program, or how and why something is done, asks for no format of its own
answer ("a function that returns JSON", "why titles come first").
"""

from __future__ import annotations

import re

from core.tools.asked_bounds import both_ends
from core.tools.asked_figures import HAN, NUMBER, english_value, han_values
from core.tools.formats import Format, FormatName

OF_OTHERS = re.compile(
    r"\b(?:function|code|script|program|python|java(?:script)?|sql|regex|class|api|method|query"
    r"|how (?:do|can|to|would|should|does|did|many)|why|what(?:'s|’s| is| are| does| do)|difference"
    r"|which|who|did|explain)\b|代码|函数|程序|脚本|如何|怎么|怎样|为什么|什么是|是什么|区别|多少",
    re.IGNORECASE,
)
MAKING = r"(?:use|using|as|in|into|with|output|produce|provide|return|give|generate|create|make)"
KIND = r"(?:valid|raw|single|well-formed|simple|markdown|short|plain|comparison|clear)"
DETERMINED = rf"(?:\s+(?:me|us))?(?:\s+(?:only|just))?(?:\s+(?:an?|the))?(?:\s+{KIND}){{0,2}}"
COUNT = rf"(?:exactly\s+)?(?P<count>{NUMBER})"
ENDING = (
    r"(?=\s*(?:$|[.,;:!?\n])|\s+(?:only|format|form|object|array|and|of|that|with|about|on|for))"
)
ENGLISH: tuple[tuple[FormatName, str], ...] = (
    ("json", rf"\b{MAKING}{DETERMINED}\s+json(?:\s+(?:object|array|format|list))?{ENDING}"),
    ("csv", rf"\b(?:as|in|into){DETERMINED}\s+csv(?:\s+format)?{ENDING}"),
    (
        "table",
        rf"\b(?:as|in|into|make|create|draw|produce|generate|use|using|with){DETERMINED}"
        rf"\s+table(?!\s+(?:of contents|tennis|top))(?:\s+form(?:at)?)?{ENDING}",
    ),
    (
        "bullets",
        rf"\b(?:{MAKING}|list|write|answer|respond)(?:\s+(?:\w+\s+){{0,2}}(?:in|with|as|using|into))?"
        rf"(?:\s+an?)?(?:\s+{COUNT})?(?:\s+(?:short|brief|concise))?"
        rf"\s+(?:bullet(?:ed)?[ -](?:points?|list|items?)|bullets)\b",
    ),
    (
        "numbers",
        rf"\b(?:as|in|into|make|create|produce|generate|use|using|with|give){DETERMINED}"
        rf"\s+numbered\s+list(?:\s+of\s+{COUNT})?\b",
    ),
    (
        "upper",
        r"\b(?:in|use|using)\s+(?:(?:only|just)\s+)?(?:all[ -](?:caps|capitals?(?: letters)?"
        r"|upper[- ]?case)|(?:only )(?:capital letters|upper[- ]?case))\b"
        r"|\b(?:entire|whole)\s+(?:answer|response|reply)[^.?!]{0,40}\b(?:capital letters"
        r"|upper[- ]?case)\b",
    ),
    (
        "lower",
        r"\b(?:in|use|using)\s+(?:(?:only|just)\s+)?all[ -]lower[- ]?case\b"
        r"|\b(?:entire|whole)\s+(?:answer|response|reply)[^.?!]{0,40}\blower[- ]?case\b"
        r"|\bno\s+capital\s+letters\b",
    ),
    (
        "title",
        r"\b(?:begin|start)(?:\s+(?:it|your\s+\w+|the\s+\w+))?\s+with\s+a\s+(?:\w+\s+)?"
        r"(?:title|heading|headline)\b"
        r"|\b(?:answer|response|text|essay|story|poem|article)\s+(?:must|should)\s+"
        r"(?:have|contain|include)\s+a\s+title\b|\bput\s+a\s+title\s+(?:first|at\s+the\s+top)\b",
    ),
    (
        "no_commas",
        r"\b(?:without(?: using)?(?: any)?|(?:do not|don['’]t|never) use(?: any)?"
        r"|avoid(?: using)?(?: any| all)?|refrain from (?:using|the use of)(?: any)?|use no)"
        r"\s+commas?\b",
    ),
)
HAN_MAKING = "(?:用|以|按|按照|输出|返回|采用|使用|生成|整理成|写成|做成|列成|转换?[为成])"
CHINESE: tuple[tuple[FormatName, str], ...] = (
    ("json", rf"{HAN_MAKING}\s*(?:合法|有效|一个)?的?\s*JSON"),
    ("csv", rf"{HAN_MAKING}\s*CSV"),
    ("table", rf"{HAN_MAKING}(?:一个|一张|Markdown|markdown)?\s*(?:表格|Markdown表格)"),
    ("bullets", rf"{HAN_MAKING}(?:(?P<count>{HAN})个)?(?:要点列表|无序列表|项目符号)"),
    ("numbers", rf"{HAN_MAKING}(?:带?编号列表|有序列表|带编号的列表)"),
    ("upper", "(?:全部?|都|只)(?:使用|用)?大写"),
    ("lower", "(?:全部?|都|只)(?:使用|用)?小写"),
    ("title", "以标题(?:开头|开始)|(?:先|首先)(?:写|给)出?标题|第一行(?:是|写|为)标题"),
    ("no_commas", "(?:不要|不得|不能|不可以?|别|不|避免)(?:使用|用|出现|带|含)?(?:任何)?逗号"),
)
DENIED = re.compile(r"(?:\b(?:not|never|no|without|avoid)|n['’]t|不要?|别|勿)(?:\s+\w+)?\s*$", re.I)
PATTERNS = tuple(
    (name, re.compile(pattern, re.IGNORECASE)) for name, pattern in (*ENGLISH, *CHINESE)
)
CONTRARY = ({"upper", "lower"}, {"json", "table"}, {"json", "bullets"}, {"csv", "table"})


def asked_formats(question: str) -> tuple[Format, ...]:
    """Every format that the question asks of its answer; none where two exclude each other."""
    shown = both_ends(question)
    if OF_OTHERS.search(shown):
        return ()
    found: dict[FormatName, Format] = {}
    for name, pattern in PATTERNS:
        match = pattern.search(shown)
        # What is denied is read only where the pattern itself says no.
        if match and not (name != "no_commas" and DENIED.search(shown[: match.start()])):
            found.setdefault(name, Format(name, _count(match)))
    if any(pair <= set(found) for pair in CONTRARY):
        return ()
    return tuple(found.values())


def _count(match: re.Match[str]) -> int | None:
    """How many entries are asked for, None for no figure."""
    written = match.groupdict().get("count")
    if not written:
        return None
    if written[0].isascii():
        return english_value(written) or None
    values = han_values(written)
    return values[0] if values and values[0] == values[1] else None
