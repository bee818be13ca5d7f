"""Explains an assessment: the words that are wrong, what the source says instead, and where.

Wrong words are values that differ from the evidence's own, and those that a reader doubts which
marks words. A replacement is offered only where it is about the same thing: a table's labels say
so, or the reader finds the corrected claim supported by the very window that it is taken from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import regex

from core.baseline.assessment import Assessment
from core.baseline.entailment import Reader
from core.baseline.evidence import Window
from core.baseline.values import ValueFinding
from core.baseline.wording import cited, listed, quote_of
from core.concurrency import Stop
from core.documents.terms import IS_UNSPACED, WORD
from core.records import Category, Passage, Point, Statement

DOUBTED_FROM = 0.5
SUPPORTED_FROM = 0.6
"""A replacement is offered from this support of the corrected claim on."""
MOST_REPLACEMENTS = 12
MOST_MARKS = 2
LONGEST_REPLACEMENT = 60
NAME = regex.compile(r"\p{Lu}[\p{L}\p{M}'’-]*(?:[ ]\p{Lu}[\p{L}\p{M}'’-]*)*")
NUMBER = regex.compile(r"\p{Nd}+(?:[.,\u00a0 ]\p{Nd}+)*")
BLANK = regex.compile(r"\s+")


@dataclass(frozen=True)
class WrongWords:
    """Words of a claim that are wrong."""

    start: int
    """`[start, end)` in the claim."""
    end: int
    text: str
    doubt: float
    instead: str = ""
    """What the source says in their place; empty where nothing was found that fits."""
    passage: Passage | None = None
    worked: str = ""
    """How the source's figures come to `instead`; empty where it says it itself."""


def wrong_words(item: Assessment, reader: Reader, stop: Stop) -> tuple[WrongWords, ...]:
    """The words that make the statement wrong, gravest first; at most two places."""
    found = [
        *_values_that_differ(item),
        *(words for words in _doubted(item) if words.end > words.start),
    ]
    found.sort(key=lambda words: -words.doubt)
    chosen: list[WrongWords] = []
    for words in found:
        if not any(words.start < c.end and c.start < words.end for c in chosen):
            chosen.append(words)
    return tuple(_with_replacement(words, item, reader, stop) for words in chosen[:MOST_MARKS])


def points_of(item: Assessment, reader: Reader, stop: Stop) -> tuple[Point, ...]:
    """The explanation as points in the response: wrong words, or what supports the statement."""
    if item.label == "hallucinated":
        points = (_point(words, item) for words in wrong_words(item, reader, stop))
        return tuple(point for point in points if point is not None)
    window = item.measured.reading.supporting
    if item.label != "supported" or window is None:
        return ()
    own = item.statement
    best = best_passage(window, item)
    return (
        Point(
            own.index, "carried", own.start, own.end, own.text, "harmless_addition", best.text,
            "the passage says so", round(1.0 - item.p, 3), quote_of(best),
        ),
    )  # fmt: skip


def best_passage(window: Window, item: Assessment) -> Passage:
    """Of the passages of a window the one that shares most with the statement."""
    reading = item.measured.reading
    asked, own = (
        set(WORD.findall(part.casefold()))
        for part in (reading.claim[: reading.own_start], reading.claim[reading.own_start :])
    )

    def fit(passage: Passage) -> float:
        words = set(WORD.findall(passage.text.casefold()))
        shared = len(own & words) + len((asked - own) & words) / (1 + len(asked))
        return shared / (4.0 + math.sqrt(len(passage.text)))

    return max(window.passages, key=fit)


def reason_of(item: Assessment, points: Sequence[Point]) -> str:
    """The reason for the label in one sentence."""
    if item.label == "unclear":
        return UNCLEAR_REASONS.get(item.cause or "", UNCLEAR_REASONS["not_settled"])
    reading = item.measured.reading
    if item.label == "supported":
        window = reading.supporting
        where = cited(best_passage(window, item)) if window else "the evidence"
        return f"The source says so: {where}."
    named = [point for point in points if point.evidence]
    if named:
        first = named[0]
        where = f" ({cited(quoted)})" if (quoted := _quoted(first, item)) else ""
        return f"“{first.text}” is wrong: {first.explanation}{where}."
    against = reading.contradicting
    if against is not None and against.reading.contradicted >= 0.5:
        return f"The source says otherwise: {cited(best_passage(against, item))}."
    if points:
        verb = "is" if len(points) == 1 else "are"
        return f"{listed([point.text for point in points])} {verb} not in the sources."
    return "The sources do not say this."


UNCLEAR_REASONS = {
    "not_addressed": "The sources do not speak about this.",
    "sources_disagree": "One source supports this, another contradicts it.",
    "not_settled": "The sources neither plainly support nor plainly contradict this.",
    "language_not_known": "The reader does not know the language, and words and values do not "
    "settle this.",
}


def _quoted(point: Point, item: Assessment) -> Passage | None:
    quote = point.quote
    return next(
        (p for p in item.measured.passages
         if quote and (p.source_id, p.start) == (quote.source_id, quote.start)), None,
    )  # fmt: skip


def _values_that_differ(item: Assessment) -> Iterator[WrongWords]:
    """Values that the evidence has otherwise; as sure as the verdict."""
    for value in item.measured.values:
        if value.status == "different":
            doubt = max(item.p, _doubt_of(item, value))
            yield WrongWords(value.start, value.end, value.text, doubt)


def _doubt_of(item: Assessment, value: ValueFinding) -> float:
    doubts = item.measured.reading.doubts
    return max((d.p for d in doubts if d.start < value.end and value.start < d.end), default=0.0)


def _doubted(item: Assessment) -> Iterator[WrongWords]:
    """Runs of words that the reader doubts; where it doubts none by half, the likeliest one."""
    reading = item.measured.reading
    words = [m.span() for m in WORD.finditer(reading.claim) if m.start() >= reading.own_start]
    scored = [
        (start, end, max((d.p for d in reading.doubts if d.start < end and start < d.end),
                         default=0.0))
        for start, end in words
    ]  # fmt: skip
    most = max((p for _, _, p in scored), default=0.0)
    least = min(DOUBTED_FROM, most)
    run: list[tuple[int, int, float]] = []
    for place in [*scored, (0, 0, -1.0)]:
        if place[2] >= least > 0:
            run.append(place)
        elif run:
            start, end = run[0][0], run[-1][1]
            yield WrongWords(start, end, reading.claim[start:end], max(p for _, _, p in run))
            run = []


def _with_replacement(
    words: WrongWords, item: Assessment, reader: Reader, stop: Stop
) -> WrongWords:
    """With what the source says in their place, where the reader bears the corrected claim out."""
    reading = item.measured.reading
    window = reading.contradicting or reading.supporting
    if window is None:
        return words
    nearest = (value for value in _differing(words, item) if value.is_nearest)
    plain = (value for value in nearest if value.in_table or not reading.is_known)
    if (value := next(plain, None)) and value.instead:
        # without the unit of a table's header
        figure = (NUMBER.search(value.instead) or [value.instead])[0]
        passage = next((p for p in item.measured.passages if figure in p.text), None)
        found = replace(words, passage=passage or best_passage(window, item))
        if not value.is_worked:
            return replace(found, instead=value.instead)
        worked, _, total = value.instead.rpartition(" = ")
        return replace(found, instead=total, worked=worked)
    candidates = list(_candidates(words, item, window))[:MOST_REPLACEMENTS]
    claims = [
        reading.claim[: words.start] + candidate + reading.claim[words.end :]
        for candidate in candidates
    ]
    read = reader.read([(window.text, claim) for claim in claims], stop)
    ranked = sorted(zip(read, candidates, strict=True), key=lambda pair: -pair[0].supported)
    if not ranked or ranked[0][0].supported < SUPPORTED_FROM:
        return replace(words, passage=best_passage(window, item))
    instead = ranked[0][1]
    holding = [p for p in window.passages if instead in p.text]
    passage = holding[0] if holding else best_passage(window, item)
    return replace(words, instead=instead, passage=passage)


def _differing(words: WrongWords, item: Assessment) -> list[ValueFinding]:
    """The statement's values among the words that the evidence has otherwise."""
    return [
        value
        for value in item.measured.values
        if value.status == "different" and value.start < words.end and words.start < value.end
    ]


def _candidates(words: WrongWords, item: Assessment, window: Window) -> Iterator[str]:
    """What of the window could stand in the words' place: values for values, names for names."""
    seen = {words.text}
    values = [value.instead for value in _differing(words, item)]
    is_number = any(c.isdigit() for c in words.text)
    pattern = NUMBER if is_number else NAME
    alike = [] if values else [m.group() for m in pattern.finditer(window.text)]
    if not is_number:
        named = alike if NAME.fullmatch(words.text) else []
        in_place = _words_in_place(words, item.measured.reading.claim, window.text)
        single = [part for name in named for part in name.split() if " " not in words.text]
        alike = [*named, *in_place, *single]
    for candidate in (*values, *alike):
        text = BLANK.sub(" ", candidate).strip()
        if text and text not in seen and len(text) <= LONGEST_REPLACEMENT:
            seen.add(text)
            yield text


def _words_in_place(words: WrongWords, claim: str, text: str) -> list[str]:
    """What stands in the window between the same neighbours as the words have in the claim."""
    if IS_UNSPACED.search(claim):
        return []
    before = claim[: words.start].split()[-1:]
    after = claim[words.end :].split()[:1]
    if not before or not after:
        return []
    neighbours = (regex.escape(before[0]), regex.escape(after[0].rstrip(".,;")))
    pattern = rf"(?i){neighbours[0]}\s+((?:\S+\s+){{1,3}}?){neighbours[1]}"
    return [match.group(1).strip() for match in regex.finditer(pattern, text)]


def _point(words: WrongWords, item: Assessment) -> Point | None:
    """The words where they stand in the response; None where they only complete it."""
    place = place_in_response(item.statement, item.measured.reading.claim, words.start, words.end)
    if place is None:
        return None
    start, end = place
    own = item.statement
    text = own.text[start - own.start : end - own.start]
    says = f"the source says “{words.instead}”" if words.instead else "the sources do not say this"
    if words.worked:
        says = f"the source's figures come to {words.instead} ({words.worked})"
    return Point(
        own.index, "contradicted" if words.instead else "missing", start, end, text,
        category_of(text, start == own.start), words.instead, says, round(item.p, 3),
        quote_of(words.passage) if words.passage else None,
    )  # fmt: skip


def place_in_response(
    statement: Statement, claim: str, start: int, end: int
) -> tuple[int, int] | None:
    """Where words of the claim stand in the response: the same occurrence of the same words."""
    words = claim[start:end].strip()
    if not words:
        return None
    pattern = r"\s+".join(regex.escape(part) for part in words.split())
    inside = [match.span() for match in regex.finditer(pattern, statement.text)]
    if not inside:
        return None
    before = len(regex.findall(pattern, claim[:start]))
    in_claim = len(regex.findall(pattern, claim))
    which = min(max(0, before - (in_claim - len(inside))), len(inside) - 1)
    low, high = inside[which]
    return statement.start + low, statement.start + high


def category_of(text: str, opens_sentence: bool) -> Category:
    """What kind of words they are: a number or date, a name, or words that no source has."""
    if any(character.isnumeric() for character in text):
        return "number_or_date"
    words = WORD.findall(text)
    if any(word[:1].isupper() for word in words[int(opens_sentence) :]):
        return "wrong_entity"
    return "not_in_source"
