"""Reads from a question which words its answer shall have or lack, begin or end with.

Words in quotation marks, in English, Chinese, German, French and Spanish; without them only names
that are to be mentioned. Strict: a clause that asks whether a text has a word asks for none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.tools.asked_bounds import both_ends
from core.tools.asked_figures import HAN, NUMBER, english_value, han_values
from core.tools.wording import Wording, WordingKind

CLAUSE = re.compile(r"(?<=[.?!])\s+|(?<=[。？！；;\n])")
QUOTED = (
    r"(?:[“\"„«‹「『]\s?([^“”\"„«»‹›「」『』\n]{1,60}?)\s?[”\"“»›」』]"
    r"|(?<!\w)['‘]([^'‘’\n]{1,60})['’](?!\w))"
)
ANY = re.compile(QUOTED)
JOINED = r"(?:,\s*and|,\s*or|,|、|和|与|或|and|or|und|oder|et|ou|y|o)"
SEVERAL = rf"(?P<words>{QUOTED}(?:\s*{JOINED}\s*{QUOTED}){{0,7}})"
OR = re.compile(r"[”\"“»›」』'’]\s*(?:,\s*)?(?:或者?|or|oder|ou|o)\s*[“\"„«‹「『'‘]", re.IGNORECASE)
NOUN = (
    r"(?:(?:the\s+|any\s+of\s+the\s+|each\s+of\s+the\s+|all\s+of\s+the\s+)?(?:exact\s+|following\s+)?"
    r"(?:words?|key\s?words?|phrases?|terms?|expressions?|sentence)\s*:?\s*)?"
)
# A question about words, not a request: "Does the text use 'sea'?"
OF_OTHERS = re.compile(
    r"^\W*(?:do(?!\s+not\b)|does|did|is|are|was|were|has|have|who|what|which|when|where|why|how)\b"
    r"|^\W*(?:warum|wieso|was|welche\w*|wie|wer|pourquoi|comment|est-ce|qui)\b"
    r"|^\W*(?:por qué|qué|quién|cómo)\b"
    r"|为什么|是否|什么意思|吗\s*$|\bmeans?\b|\bmeaning\b|\bhow many\b|function|code|代码|函数",
    re.IGNORECASE,
)
POLITE = re.compile(r"\b(?:can|could|would|will)\s+you\b|\bplease\b|请", re.IGNORECASE)
NOT = (
    r"(?:do\s+not|don['’]t|never|without|avoid|must\s+not|mustn['’]t|should\s+not|shouldn['’]t"
    r"|may\s+not|cannot|can['’]t)"
)
TIMES = (
    r"(?:,?\s*(?P<bound>at\s+least|exactly|at\s+most|no\s+more\s+than)?"
    rf"\s*(?P<count>once|twice|{NUMBER}\s+times))?"
)
USING = (
    r"(?:us(?:e|es|ing)|includ(?:e|es|ing)|mention(?:s|ing)?|contain(?:s|ing)?|say(?:ing)?"
    r"|writ(?:e|ing))"
)
LACKS = (
    rf"\b{NOT}(?:\s+(?:ever\s+)?{USING})?\s+{NOUN}{SEVERAL}",
    rf"(?:不要|不得|不能|不可以?|不许|禁止|避免|别|请勿|勿)(?:再)?(?:使用|出现|提到|提及|包含|用|说|写)"
    rf"(?:任何)?(?:词语?|字|短语|单词|关键词)?{SEVERAL}",
    rf"\bohne\s+(?:das\s+Wort|die\s+W(?:ö|o)rter|den\s+Begriff)\s+{SEVERAL}",
    rf"\b(?:verwende|benutze|nutze|schreibe)n?(?:\s+Sie)?\s+(?:nicht|nie)\s+(?:das\s+Wort|die\s+Wörter"
    rf"|den\s+Begriff)\s+{SEVERAL}",
    rf"\b(?:verwende|benutze|nutze)n?(?:\s+Sie)?\s+(?:das\s+Wort|die\s+Wörter|den\s+Begriff)\s+{SEVERAL}"
    rf"\s+nicht\b",
    rf"\bvermeide[nt]?(?:\s+Sie)?\s+(?:das\s+Wort|die\s+Wörter|den\s+Begriff)\s+{SEVERAL}",
    rf"\b(?:n['’]utilise[zr]?|n['’]emploie|n['’]employez|ne\s+mentionne[zr]?)\s+(?:pas|jamais)"
    rf"\s+(?:les?\s+mots?|l['’]expression|le\s+terme)\s+{SEVERAL}",
    rf"\b(?:sans\s+(?:utiliser|employer|mentionner)|évite[zr]?(?:\s+d['’]utiliser)?)"
    rf"\s+(?:les?\s+mots?|l['’]expression|le\s+terme)\s+{SEVERAL}",
    rf"\b(?:no\s+(?:us(?:es?|ar)|utilices?|menciones?)|sin\s+(?:usar|utilizar|mencionar)|evita[r]?"
    rf"|evite)\s+(?:las?\s+palabras?|el\s+término|la\s+expresión)\s+{SEVERAL}",
)
LETTER = re.compile(rf"\b{NOT}(?:\s+{USING})?\s+(?:the\s+)?letters?\s+{SEVERAL}", re.IGNORECASE)
HAS = (
    rf"\b(?:{USING}|incorporat(?:e|es|ing))\s+{NOUN}{SEVERAL}{TIMES}",
    rf"(?:包含|包括|出现|使用|提到|提及|含有|用到|用上)(?:以下|这些|下列)?(?:关键词|词语|单词|词|短语|字)?[:：]?{SEVERAL}"
    rf"(?:[这两三一个]{{0,2}}[个]?(?:词语?|字|短语))?(?:(?P<least>至少)?(?P<han>{HAN})次)?",
    rf"\b(?:verwende|benutze|nutze|erwähne|nenne)n?(?:\s+Sie)?\s+(?:(?:das\s+Wort|die\s+Wörter"
    rf"|den\s+Begriff)\s+)?{SEVERAL}(?!\s+nicht)",
    rf"\b(?:utilise[zr]?|emploie|employez|mentionne[zr]?|inclus|incluez)\s+(?:(?:les?\s+mots?"
    rf"|l['’]expression|le\s+terme)\s+)?{SEVERAL}",
    rf"\b(?:usa|use|utilice|utiliza|menciona|mencione|incluye|incluya)\s+(?:(?:las?\s+palabras?"
    rf"|el\s+término|la\s+expresión)\s+)?{SEVERAL}",
)
YOUR = r"(?:\s+(?:it|(?:your|the|every|each)\s+\w+))?"
STARTS = (
    rf"\b(?:begin|start|open)(?:s|ning|ing)?{YOUR}\s+with\s+{NOUN}{SEVERAL}",
    rf"以{SEVERAL}(?:为|作为?)?(?:开头|开始|起头)",
)
ENDS = (
    rf"\b(?:end|finish|conclude|close)(?:s|ing)?{YOUR}\s+with\s+{NOUN}{SEVERAL}",
    rf"以{SEVERAL}(?:为|作为?)?(?:结尾|结束|收尾)",
)
# The surer first: words that one of them took are not read again.
PATTERNS: tuple[tuple[WordingKind, tuple[re.Pattern[str], ...]], ...] = (
    ("lacks", tuple(re.compile(pattern, re.IGNORECASE) for pattern in LACKS)),
    ("lacks", (LETTER,)),
    ("starts", tuple(re.compile(pattern, re.IGNORECASE) for pattern in STARTS)),
    ("ends", tuple(re.compile(pattern, re.IGNORECASE) for pattern in ENDS)),
    ("has", tuple(re.compile(pattern, re.IGNORECASE) for pattern in HAS)),
)
ASKS = re.compile(
    rf"\b(?:end|finish|conclude|close)(?:s|ing)?{YOUR}\s+with\s+an?\s+(?:\w+\s+)?question\b"
    r"|以(?:一个)?(?:问题|问句|疑问句|反问句)(?:为|作为?)?(?:结尾|结束|收尾)"
    r"|\b(?:beende|schließe)\b[^.?!]{0,40}\bmit einer Frage\b"
    r"|\btermine[zr]?\b[^.?!]{0,40}\bpar une question\b"
    r"|\btermin[ae]\b[^.?!]{0,40}\bcon una pregunta\b",
    re.IGNORECASE,
)
# "Mention Mount Fuji": a name needs no quotation marks.
NAMED = re.compile(
    r"(?:^\W*|\b(?:and|also|please|must|should|to)\s+)(?i:mention)\s+(?:the\s+)?"
    r"(?P<name>[A-Z][\w’'-]+(?:\s+[A-Z][\w’'-]+){0,3})(?=\s*(?:$|[.,;!])|\s+(?:and|in|at|somewhere)\b)"
)
DENIED = re.compile(rf"(?:\b{NOT}|不要|不得|不能|别|勿|不)\s*$", re.IGNORECASE)


def asked_wordings(question: str) -> tuple[Wording, ...]:
    """Every word that the question asks to be there, or not to be."""
    found: list[Wording] = []
    for clause in CLAUSE.split(both_ends(question)):
        is_question = clause.rstrip().endswith(("?", "？")) and not POLITE.search(clause)
        if clause and not is_question and not OF_OTHERS.search(clause):
            found += _in_clause(clause)
    wanted = {word.casefold() for one in found if one.kind == "has" for word in one.words}
    barred = {word.casefold() for one in found if one.kind == "lacks" for word in one.words}
    return () if wanted & barred else tuple(dict.fromkeys(found))


def _in_clause(clause: str) -> Iterator[Wording]:
    taken: set[int] = set()
    for kind, patterns in PATTERNS:
        for match in (match for pattern in patterns for match in pattern.finditer(clause)):
            places = set(range(*match.span("words")))
            if taken & places:
                continue
            taken |= places
            if kind != "has":
                yield Wording(kind, _words(match), is_letter=match.re is LETTER)
            elif not DENIED.search(clause[: match.start()]):
                yield from _wanted(match)
    if ASKS.search(clause):
        yield Wording("asks")
    yield from (Wording("has", (match["name"],)) for match in NAMED.finditer(clause))


def _words(match: re.Match[str]) -> tuple[str, ...]:
    found = ("".join(part for part in words if part) for words in ANY.findall(match["words"]))
    # In American writing the comma or stop of the sentence stands within.
    return tuple(word.strip().rstrip(",.") or word for word in found)


def _wanted(match: re.Match[str]) -> Iterator[Wording]:
    """Words that shall be there: any of them after an "or", else each."""
    words = _words(match)
    least, most = _times(match)
    if OR.search(match["words"]):
        yield Wording("has", words, least, most)
    else:
        yield from (Wording("has", (word,), least, most) for word in words)


def _times(match: re.Match[str]) -> tuple[int, int | None]:
    """How often at least and at most; once and without a bound where nothing is said."""
    groups = match.groupdict()
    if groups.get("han"):
        values = han_values(groups["han"])
        count = values[0] if values else 1
        return count, None
    if not groups.get("count"):
        return 1, None
    said = groups["count"].lower()
    count = {"once": 1, "twice": 2}.get(said) or english_value(said.removesuffix("times").strip())
    bound = " ".join((groups.get("bound") or "").lower().split())
    if bound in ("at most", "no more than"):
        return 0, count
    return (count, None) if bound == "at least" else (count, count if bound == "exactly" else None)
