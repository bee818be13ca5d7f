"""Cuts a response into statements; what opens a sentence and refers back is completed.

Source: HaluAgent 2.3 (sentence segmentation completes pronouns and omitted content). Only what
opens a sentence is completed, and only from the last subject that shows: the wrong name in a
statement would be worse than none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import regex

from core.baseline.wording import RULES
from core.documents.segmentation import FUNCTION_WORDS, UNKNOWN, WORD, fold, sentences
from core.runtime.concurrency import Stop
from core.schema.records import Case, Statement
from core.tools.code import code_blocks, is_code
from core.tools.vocabulary import PatternTable, read_words

WRITTEN = PatternTable("audit_agents", regex.compile)
# Sentencex takes a full-width stop before a digit for none; in Chinese it ends a sentence.
BEFORE_A_DIGIT = regex.compile(r"(?<=[。！？])(?=\d)")
PRONOUNS: Mapping[str, list[str]] = read_words("openings")["pronouns"]
POSSESSIVES = frozenset("his her its their".split())
HAN_NO_SUBJECT = frozenset("在从自当因所如但而对把被由为以及若虽不没这那该此其他她它我你您")


class BuiltInSegmenter:
    """Built-in segmenter."""

    name = "Segmenter"
    built_in = True
    rule = RULES["segmenter"]

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
            own = rewrite = text[low + start : low + end]
            if not is_code(own):
                rewrite = completed(own, self._subject, language)
                # A sentence that only refers back is about what the one before was about.
                subject = subject_of(own, language) if rewrite == own else ""
                self._subject = subject or self._subject
            self._end = low + end
            found.append(Statement(self._count, low + start, self._end, own, rewrite))
            self._count += 1
        return tuple(found)


def places(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Sentences between the programs, and each program as one."""
    position = 0
    for code, code_end in [*code_blocks(text), (len(text), -1)]:
        for item in sentences(text[position:code], language):
            start, end = position + item.start, position + item.end
            for cut in BEFORE_A_DIGIT.finditer(text, start, end) if language == "zh" else ():
                yield start, cut.start()
                start = cut.start()
            yield start, end
        if code_end > code:
            yield code, code_end
            position = code_end


def subject_of(text: str, language: str) -> str:
    """What the sentence is about, as far as it shows; empty where it does not."""
    if language == "zh":
        found = WRITTEN.han_subject.match(text)
        is_one = found is not None and found["name"][0] not in HAN_NO_SUBJECT
        return found["name"] if found is not None and is_one else ""
    # A name of one word at the sentence's start is one only if no function word stands there.
    names = (n for n in WRITTEN.name.finditer(text) if n.start() > 0 or " " in n.group()
             or fold(n.group()) not in FUNCTION_WORDS)  # fmt: skip
    named = next(names, None)
    thing = WRITTEN.named_thing.match(text) if language == "en" else None
    if thing is not None and named is not None and named.start() < thing.end():
        return thing.group()
    return named.group().rstrip(".") if named is not None else ""


def completed(text: str, subject: str, language: str) -> str:
    """The sentence with its opening reference filled in; as it is where it has none."""
    if not subject:
        return text
    if language == "zh":
        if found := WRITTEN.han_pronoun.match(text):
            owned = "的" if found["its"] or found["of"] else ""
            return f"{subject}{owned}{text[found.end() :]}"
        return f"{subject}{text}" if WRITTEN.han_bare.match(text) else text
    first = WORD.search(text)
    if first is None:
        return text
    word = fold(first.group())
    pronouns = PRONOUNS.get("en" if language == UNKNOWN else language, ())
    if word in pronouns and not WRITTEN.empty.match(text):
        is_possessive = language == "en" and word in POSSESSIVES
        owner = f"{subject}'s" if is_possessive else subject
        return text[: first.start()] + owner + text[first.end() :]
    if language != "en":
        return text
    if WRITTEN.participle.match(text):
        return f"{subject}, {text[0].lower()}{text[1:]}"
    kind = WRITTEN.the_kind.match(text)
    if kind is not None and fold(kind["kind"]) not in fold(subject):
        return f"{subject}, the {kind['kind']},{text[kind.end() :]}"
    return text
