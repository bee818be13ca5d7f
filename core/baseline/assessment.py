"""Assesses statements: reads each against its evidence, measures it, gives it a label, explains it.

Judge, debaters, span extractor and audit all ask here; what differs between them is which passages
they see and which features they go by. A replacement of wrong words is offered only where a table's
labels or the reader bear the corrected claim out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import regex

from core.baseline.entailment import Reader
from core.baseline.evidence import Window, read_statement
from core.baseline.evidence_model import (
    EvidenceModel,
    StatementFeatures,
    load_evidence_model,
    measure,
)
from core.baseline.values import ValueFinding
from core.baseline.wording import cited, listed, quote_of
from core.documents.segmentation import IS_UNSPACED, WORD, query_terms
from core.runtime.concurrency import Stop
from core.schema.records import Case, Category, Cause, Label, Passage, Point, Statement
from core.schema.roles import CaseView
from core.tools.vocabulary import PatternTable

WRITTEN = PatternTable("assessment", regex.compile)
ASSESSMENTS_KEPT = 2048
LIST_MARK = regex.compile(r"\W*\p{N}+[.)、．）]")
"""The number before a list's item, which is cut off as a sentence of its own."""
LONGEST_ABSTENTION = 80
"""Characters; a longer text that begins so goes on to say something."""
PLAINLY = 0.8
"""Support and contradiction from which two sources are held to disagree."""


@dataclass(frozen=True)
class Assessment:
    """A statement with its calibrated probability of not being supported, and its label."""

    measured: StatementFeatures
    p: float
    label: Label
    cause: Cause | None = None
    """Why it is unclear."""

    conflict: tuple[Passage, Passage] | None = None
    """Passages of two sources, the first for the statement and the second against it."""

    @property
    def statement(self) -> Statement:
        """The statement itself."""
        return self.measured.statement


@dataclass(frozen=True)
class _Question:
    """All that an assessment depends on; equal questions have equal answers."""

    case: Case
    statement: Statement
    passages: tuple[Passage, ...]
    texts: tuple[tuple[str, str], ...]
    stop: Stop = field(compare=False)


class Assessor:
    """Assesses statements by one reader and one evidence model; keeps what it has assessed."""

    def __init__(self, reader: Reader, model: EvidenceModel | None = None) -> None:
        self.reader = reader
        self._model = model
        self._kept = lru_cache(ASSESSMENTS_KEPT)(self._measure)

    @property
    def model(self) -> EvidenceModel:
        """What weighs the features; loaded when it is first asked for."""
        return self._model or load_evidence_model()

    @property
    def id(self) -> str:
        """Changes whenever the same statement could be assessed otherwise."""
        return f"{self.reader.id} {self.model.id}"

    def assess(
        self,
        view: CaseView,
        stop: Stop,
        *,
        allowed: frozenset[str] | None = None,
        statements: Iterable[Statement] | None = None,
    ) -> list[Assessment]:
        """One for each statement that says something, over its passages (those in `allowed`)."""
        found = []
        for statement in statements if statements is not None else view.statements:
            stop.check()
            if says_something(statement, view.case):
                passages = view.evidence.of(statement.index, allowed)
                found.append(self._labelled(self.measure(view, statement, passages, stop)))
        return found

    def measure(
        self,
        view: CaseView,
        statement: Statement,
        passages: Sequence[Passage],
        stop: Stop | None = None,
    ) -> StatementFeatures:
        """The features of one statement over these passages, best first."""
        used = {passage.source_id for passage in passages}
        texts = tuple((i, text) for i, text in view.sources.items() if i in used)
        return self._kept(_Question(view.case, statement, tuple(passages), texts, stop or Stop()))

    def _measure(self, asked: _Question) -> StatementFeatures:
        sources: Mapping[str, str] = dict(asked.texts)
        read = read_statement(
            asked.case, asked.statement, asked.passages, sources, self.reader, asked.stop
        )
        return measure(asked.case, asked.statement, asked.passages, read)

    def _labelled(self, measured: StatementFeatures) -> Assessment:
        p = self.model.probability(measured)
        is_known = measured.reading.is_known
        if not measured.passages or (is_known and not self.model.is_addressed(measured)):
            return Assessment(measured, p, "unclear", "not_addressed")
        if not measured.reading.is_comparable:
            return Assessment(measured, p, "unclear", "language_not_known")
        windows = [w for w in measured.reading.windows if not w.is_joined]
        for_it = [w.passage for w in windows if w.reading.supported >= PLAINLY]
        against = [w.passage for w in windows if w.reading.contradicted >= PLAINLY]
        pairs = ((one, other) for one in for_it for other in against)
        conflict = next((pair for pair in pairs if pair[0].source_id != pair[1].source_id), None)
        if conflict:
            return Assessment(measured, p, "unclear", "sources_disagree", conflict)
        if not is_known and not any(value.status == "different" for value in measured.values):
            return Assessment(measured, p, "unclear", "language_not_known")
        label = self.model.label(p)
        cause: Cause = "not_settled" if is_known else "language_not_known"
        return Assessment(measured, p, label, cause if label == "unclear" else None)


def says_something(statement: Statement, case: Case) -> bool:
    """True where there are words or figures that evidence could support or contradict."""
    if (
        WRITTEN.abstention.match(statement.text.strip())
        and len(statement.text) < LONGEST_ABSTENTION
    ):
        return False
    is_list_mark = LIST_MARK.fullmatch(statement.text.strip()) is not None
    if is_list_mark and statement.text.strip() != case.response.strip():
        return False
    found = query_terms(statement.text, case.language)
    return any(len(term) > 1 or term.isnumeric() for term in found)


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
        # As sure as the verdict.
        WrongWords(v.start, v.end, v.text, max(item.p, _doubt(item, v.start, v.end)))
        for v in item.measured.values
        if v.status == "different"
    ]
    found += (words for words in _doubted(item) if words.end > words.start)
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
        place = first.quote and (first.quote.source_id, first.quote.start)
        quoted = [p for p in item.measured.passages if (p.source_id, p.start) == place]
        where = f" ({cited(quoted[0])})" if quoted else ""
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


def _doubt(item: Assessment, start: int, end: int) -> float:
    doubts = item.measured.reading.doubts
    return max((d.p for d in doubts if d.start < end and start < d.end), default=0.0)


def _doubted(item: Assessment) -> Iterator[WrongWords]:
    """Runs of words that the reader doubts; where it doubts none by half, the likeliest one."""
    reading = item.measured.reading
    words = [m.span() for m in WORD.finditer(reading.claim) if m.start() >= reading.own_start]
    scored = [(*place, _doubt(item, *place)) for place in words]
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
    holding = next((p for p in window.passages if instead in p.text), None)
    return replace(words, instead=instead, passage=holding or best_passage(window, item))


def _differing(words: WrongWords, item: Assessment) -> list[ValueFinding]:
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
    before, after = claim[: words.start].split()[-1:], claim[words.end :].split()[:1]
    if not before or not after:
        return []
    first, last = regex.escape(before[0]), regex.escape(after[0].rstrip(".,;"))
    pattern = rf"(?i){first}\s+((?:\S+\s+){{1,3}}?){last}"
    return [match.group(1).strip() for match in regex.finditer(pattern, text)]


def _point(words: WrongWords, item: Assessment) -> Point | None:
    own = item.statement
    place = place_in_response(own, item.measured.reading.claim, words.start, words.end)
    if place is None:
        return None
    start, end = place
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
    pattern = r"\s+".join(regex.escape(part) for part in claim[start:end].split())
    inside = [match.span() for match in regex.finditer(pattern, statement.text)]
    if not pattern or not inside:
        return None
    before, in_claim = (len(regex.findall(pattern, text)) for text in (claim[:start], claim))
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
