"""What a statement claims, as one text to compare, with the way back to the response's offsets.

A short answer is read together with its question; a "yes" or "no" answers for the question's own
words. Contrasts inside the question's words are not the answer's fault and have no place, except
where the answer is a plain yes or no, which then is marked itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.builtin.lexicon import lexicon
from core.builtin.reading import Reading, Unit, clauses, read
from core.evidence.terms import fold
from core.records import Case, Statement

SHORT_ANSWER_TOKENS = 8
LONGEST_ABSTENTION = 14
VERBS = frozenset("is are was were be been has have had does did will can".split())


@dataclass(frozen=True)
class Claim:
    """A statement as it is compared.

    `text[own_start:]` are the response's own words, which begin at `offset` in the response.
    `answer` is the `[start, end)` in the response of a yes or no; `denied` is True for a no.
    """

    statement: Statement
    text: str
    language: str
    own_start: int
    offset: int
    answer: tuple[int, int] | None = None
    denied: bool = False

    @property
    def reading(self) -> Reading:
        """The claim's text as read."""
        return read(self.text, self.language)

    @property
    def completes_question(self) -> bool:
        """True for a short answer, read as the end of its question."""
        return self.answer is None and self.own_start > 0

    def place(self, start: int, end: int) -> tuple[int, int] | None:
        """Where `[start, end)` of the claim's text stands in the response; None if nowhere."""
        if self.answer is not None:
            return self.answer
        if start < self.own_start:
            return None
        return self.offset + start - self.own_start, self.offset + end - self.own_start

    def own_units(self) -> list[Unit]:
        """The units in the response's own words."""
        return [unit for unit in self.reading.units if unit.start >= self.own_start]

    @property
    def has_content(self) -> bool:
        """False for greetings, "I don't know" and the like, which nothing could contradict."""
        said = fold(self.statement.text).lstrip(" \"'“(")
        abstains = said.startswith(lexicon(self.language).abstentions)
        if abstains and len(read(self.statement.text, self.language).tokens) <= LONGEST_ABSTENTION:
            return False
        return self.answer is not None or sum(u.weight for u in self.own_units()) >= 1.0

    @property
    def answer_words(self) -> str:
        """The yes or no itself."""
        start, end = self.answer or (0, 0)
        base = self.statement.start
        return self.statement.text[start - base : end - base]


def claim_of(case: Case, statement: Statement) -> Claim:
    """The statement as a claim, read with the case's question where it cannot stand alone."""
    language = case.language
    own = Claim(statement, statement.text, language, 0, statement.start)
    question = case.question.strip().rstrip("?？ ")
    if not question:
        return own
    reading = read(statement.text, language)
    if _answers_yes_or_no(reading, question):
        return _polar(statement, reading, question)
    if _stands_alone(reading):
        return own
    text = f"{question}? {statement.text}"
    return Claim(statement, text, language, len(question) + 2, statement.start)


def _answers_yes_or_no(reading: Reading, question: str) -> bool:
    words = lexicon(reading.language)
    if not reading.tokens:
        return False
    opener = next((t.norm for t in read(question, reading.language).tokens), "")
    polar = not words.polar_openers or opener in words.polar_openers
    first = reading.tokens[0].norm
    return polar and (first in words.yes or first in words.no)


def _polar(statement: Statement, reading: Reading, question: str) -> Claim:
    """A bare yes or no stands for the question's words; after "No, …" the rest speaks itself."""
    first, rest = reading.tokens[0], reading.tokens[1:]
    if any(not token.function for token in rest):
        start = rest[0].start
        text = statement.text[start:]
        return Claim(statement, text, reading.language, 0, statement.start + start)
    place = statement.start + first.start, statement.start + first.end
    denied = first.norm in lexicon(reading.language).no
    return Claim(statement, question, reading.language, len(question), 0, place, denied)


def _stands_alone(reading: Reading) -> bool:
    """True when the answer is long, or has a verb that shows."""
    if len(reading.tokens) > SHORT_ANSWER_TOKENS:
        return True
    has_verb = any(token.norm in VERBS for token in reading.tokens)
    return has_verb and len(reading.units) >= 2


def parts_of(claim: Claim) -> list[Reading]:
    """The claim's clauses, each with the subject of the first, so that each can be judged.

    "The bridge is 512 m long and was opened in 1932" is two claims about the bridge. A short
    answer stays whole with its question.
    """
    reading = claim.reading
    if claim.own_start:
        return [reading]
    parts = clauses(reading)
    subject = _subject(parts[0].units)
    whole = [parts[0]]
    for part in parts[1:]:
        units = (*subject, *part.units) if not _has_subject(part, subject) else part.units
        whole.append(Reading(part.text, part.language, part.tokens, tuple(units)))
    return whole


def _subject(units: tuple[Unit, ...]) -> tuple[Unit, ...]:
    """What the first clause opens with, up to its first name if that comes early."""
    for place, unit in enumerate(units[:3]):
        if unit.kind == "name":
            return units[: place + 1]
    return tuple(unit for unit in units[:1] if unit.kind in ("word", "name"))


def _has_subject(part: Reading, subject: tuple[Unit, ...]) -> bool:
    """A clause that opens with a name speaks of that."""
    opens = part.units[0].kind == "name" if part.units else True
    return not subject or opens
