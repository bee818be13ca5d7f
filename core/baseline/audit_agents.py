"""Cuts a response into statements; what opens a sentence and refers back is completed.

Source: HaluAgent 2.3 (sentence segmentation completes pronouns and omitted content). Only what
opens a sentence is completed, and only from the last subject that shows: the wrong name in a
statement would be worse than none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import regex

from core.documents.segmentation import FUNCTION_WORDS, UNKNOWN, WORD, fold, sentences
from core.runtime.concurrency import Stop
from core.schema.records import Case, Statement
from core.tools.code import code_blocks, is_code

# Sentencex takes a full-width stop before a digit for none; in Chinese it ends a sentence.
BEFORE_A_DIGIT = regex.compile(r"(?<=[。！？])(?=\d)")
PRONOUNS: Mapping[str, frozenset[str]] = {
    "en": frozenset("it he she they this these that his her its their".split()),
    "de": frozenset("er sie".split()),
    "fr": frozenset("il elle ils elles".split()),
    "es": frozenset("él ella ellos ellas".split()),
    "it": frozenset("egli lui lei esso essa loro".split()),
    "pt": frozenset("ele ela eles elas".split()),
    "nl": frozenset("hij zij ze".split()),
}
NAME = regex.compile(
    r"\p{Lu}[\p{L}\p{M}'’.-]*"
    r"(?: (?:of|de|la|von|van|der|du|di|da|al|el|the|\p{Lu}[\p{L}\p{M}'’.-]*|\p{N}+))*"
)
POSSESSIVES = frozenset("his her its their".split())
# "Il y a", "il faut": a pronoun that stands for nothing.
EMPTY = regex.compile(r"il (?:y a|faut|pleut|est (?:possible|vrai|important))\b", regex.I)
KIND = (
    "company|firm|city|town|village|country|state|island|band|film|movie|book|novel|song|album|show"
    "|series|game|university|school|river|mountain|bridge|tower|building|museum|team|club|author"
    "|organi[sz]ation|actor|actress|singer|painter|scientist|bank|airline|airport|hospital|castle"
)
THE_KIND = regex.compile(rf"(?:the|this) (?P<kind>{KIND})\b(?! of\b)", regex.I)
VERB = "is|was|are|were|has|had|have|will|can|does|did"
NAMED_THING = regex.compile(
    rf"(?:The )?\p{{Lu}}[\p{{L}}'’.-]*(?: (?:of|de|von|van|\p{{Lu}}[\p{{L}}'’.-]*))*"
    rf"(?: \p{{Ll}}+){{1,2}}(?= (?:{VERB})\b)"
)
PARTICIPLE = regex.compile(
    r"(?:Founded|Born|Built|Located|Opened|Established|Released|Published|Completed|Died)"
    r" (?:in|on|at|by|near) [^,;]*\.?$"
)
HAN = r"\p{Han}"
HAN_VERB = (
    "是|于|在|位于|有|为|长|高|宽|由|被|拥有|包括|成立|建成|建于"
    "|出生|毕业|获得|发明|发现|创立|开业|的"
)
HAN_SUBJECT = regex.compile(rf"(?P<name>(?:{HAN}|[A-Za-z·]){{2,12}}?)(?={HAN_VERB})")
HAN_NO_SUBJECT = frozenset("在从自当因所如但而对把被由为以及若虽不没这那该此其他她它我你您")
HAN_PRONOUN = regex.compile(
    r"(?P<own>他们|她们|它们|他|她|它)(?P<of>的)?|(?P<its>其)(?!他|她|它|实|中|余|次|间|后)"
    r"|(?:该|这家|这座|这部|这位|这本|这条|这所|此)"
    r"(?:公司|大学|学校|城市|国家|电影|小说|组织|机构|产品|建筑|作品|乐队|品牌|银行|医院|桥|塔|市|省|河|山|书|人)"
)
HAN_BARE = regex.compile(r"(?:位于|建于|成立于|建成于|出生于|毕业于|创立于|于\d)")
RULE = """Sentences by sentencex, with offsets in the response as it was given; a Chinese one also
ends before a digit, and a program is one statement. For searching and reading alone,
a statement that opens with a pronoun, with "the company" and the like, or without its subject, is
completed with what the one before is about."""


class BuiltInSegmenter:
    """Built-in segmenter."""

    name = "Segmenter"
    built_in = True
    rule = RULE

    def segment(self, case: Case, stop: Stop) -> tuple[Statement, ...]:
        """All statements in order."""
        return Cutter().take(case.response, case.language)


class Cutter:
    """Cuts a text that may still grow: what is cut once stays as it is."""

    def __init__(self) -> None:
        self._end = self._count = 0
        self._subject = ""

    def take(self, text: str, language: str) -> tuple[Statement, ...]:
        """The statements after those taken before; `text` is all that there is by now."""
        found: list[Statement] = []
        low = self._end
        for start, end in places(text[low:], language):
            found.append(self._statement(text, low + start, low + end, language))
        return tuple(found)

    def _statement(self, text: str, start: int, end: int, language: str) -> Statement:
        own = text[start:end]
        rewrite = own
        if not is_code(own):
            rewrite = completed(own, self._subject, language)
            # A sentence that only refers back is about what the one before was about.
            self._subject = (subject_of(own, language) if rewrite == own else "") or self._subject
        self._end, self._count = end, self._count + 1
        return Statement(self._count - 1, start, end, own, rewrite)


def places(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Sentences between the programs, and each program as one."""
    position = 0
    for start, end in [*code_blocks(text), (len(text), -1)]:
        yield from _sentences(text, position, start, language)
        if end > start:
            yield start, end
            position = end


def _sentences(text: str, low: int, high: int, language: str) -> Iterator[tuple[int, int]]:
    for item in sentences(text[low:high], language):
        start, end = low + item.start, low + item.end
        if language == "zh":
            for cut in BEFORE_A_DIGIT.finditer(text, start, end):
                yield start, cut.start()
                start = cut.start()
        yield start, end


def subject_of(text: str, language: str) -> str:
    """What the sentence is about, as far as it shows; empty where it does not."""
    if language == "zh":
        found = HAN_SUBJECT.match(text)
        is_one = found is not None and found["name"][0] not in HAN_NO_SUBJECT
        return found["name"] if found is not None and is_one else ""
    named = _first_name(text)
    thing = NAMED_THING.match(text) if language == "en" else None
    if thing is not None and named is not None and named.start() < thing.end():
        return thing.group()
    return named.group().rstrip(".") if named is not None else ""


def _first_name(text: str) -> regex.Match[str] | None:
    """The first name: of one word at the sentence's start only if no function word stands there."""
    for found in NAME.finditer(text):
        word = fold(found.group())
        if found.start() > 0 or " " in word or word not in FUNCTION_WORDS:
            return found
    return None


def completed(text: str, subject: str, language: str) -> str:
    """The sentence with its opening reference filled in; as it is where it has none."""
    if not subject:
        return text
    if language == "zh":
        return _completed_in_chinese(text, subject)
    first = WORD.search(text)
    if first is None:
        return text
    word = fold(first.group())
    pronouns = PRONOUNS.get("en" if language == UNKNOWN else language, frozenset())
    if word in pronouns and not EMPTY.match(text):
        is_possessive = language == "en" and word in POSSESSIVES
        owner = f"{subject}'s" if is_possessive else subject
        return text[: first.start()] + owner + text[first.end() :]
    if language != "en":
        return text
    if PARTICIPLE.match(text):
        return f"{subject}, {text[0].lower()}{text[1:]}"
    kind = THE_KIND.match(text)
    if kind is not None and fold(kind["kind"]) not in fold(subject):
        return f"{subject}, the {kind['kind']},{text[kind.end() :]}"
    return text


def _completed_in_chinese(text: str, subject: str) -> str:
    found = HAN_PRONOUN.match(text)
    if found is not None:
        owned = "的" if found["its"] or found["of"] else ""
        return f"{subject}{owned}{text[found.end() :]}"
    return f"{subject}{text}" if HAN_BARE.match(text) else text
