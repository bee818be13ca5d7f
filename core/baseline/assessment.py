"""Assessment of statements: features over the evidence, probability, label and explanation.

Judge, debaters, span extractor and audit all use it; they differ in the passages they see and the
features they go by. A replacement for wrong words is offered only if a table's labels or the reader
confirm the corrected claim.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import regex

from core.baseline.entailment import EntailmentReader
from core.baseline.evidence_model import (
    EvidenceModel,
    StatementFeatures,
    load_evidence_model,
    measure_statement,
)
from core.baseline.evidence_windows import (
    COPY_READING,
    UNREAD_WINDOW,
    EvidenceWindow,
    build_claim,
    build_windows,
    is_copy,
    read_statement,
)
from core.baseline.source_conflicts import find_conflict
from core.baseline.value_comparison import ValueFinding
from core.baseline.wording import capitalise, cite_passage, join_quoted, quote_passage
from core.documents.segmentation import IS_UNSPACED, WORD_TOKEN, extract_query_terms
from core.runtime.concurrency import StopSignal
from core.schema.records import Case, Category, DebatePoint, Label, Passage, Statement, UnclearCause
from core.schema.roles import CaseView
from core.tools.vocabulary import PatternTable

WORDING_PATTERNS = PatternTable("assessment", regex.compile)
MEASUREMENT_CACHE_SIZE = 2048
LIST_NUMBER = regex.compile(r"\W*\p{N}+[.)、．）]")
"""The number before a list item, which segmentation makes a sentence of its own."""
MAX_ABSTENTION_CHARS = 80
"""Characters; a longer text that begins with an abstention goes on to say something."""
DOUBTED_FROM = 0.5
P_IF_VALUES_AGREE, P_IF_VALUE_DIFFERS = 0.1, 0.9
"""Bounds of the probability where a range, bound or labelled row decides about a value."""
CONFIRMED_FROM = 0.3
"""Probability of support for the restated claim from which such a value decides.

The shipped reader is seldom sure of restated ranges and rows: 0.5 would leave 21 more of the
176 test rows unclear, 0.3 leaves none.
"""
SUPPORTED_FROM = 0.6
"""Probability of support for the corrected claim from which a replacement is offered."""
MAX_REPLACEMENTS = 12
MAX_WRONG_PLACES = 2
MAX_REPLACEMENT_CHARS = 60
NAME_PATTERN = regex.compile(r"\p{Lu}[\p{L}\p{M}'’-]*(?:[ ]\p{Lu}[\p{L}\p{M}'’-]*)*")
NUMBER_PATTERN = regex.compile(r"\p{Nd}+(?:[.,\u00a0 ]\p{Nd}+)*")
WHITESPACE = regex.compile(r"\s+")
UNCLEAR_REASONS = {
    "not_addressed": "The sources do not speak about this.",
    "not_settled": "The sources neither plainly support nor plainly contradict this.",
    "language_not_known": "The reader does not know the language, and words and values do not "
    "settle this.",
}


@dataclass(frozen=True)
class Assessment:
    """A statement with its calibrated probability of not being supported, and its label."""

    measured: StatementFeatures
    p: float
    label: Label
    cause: UnclearCause | None = None
    """The reason for an unclear label."""

    conflict: tuple[Passage, Passage] | None = None
    """Passages that disagree: the first supports the statement, the second contradicts it."""

    @property
    def statement(self) -> Statement:
        """Return the statement itself."""
        return self.measured.statement

    @property
    def deciding(self) -> EvidenceWindow | None:
        """Return the window of the table cell that decides, if one does."""
        texts = {value.cell_window for value in self.measured.values if value.cell_window}
        return next((w for w in self.measured.reading.windows if w.text in texts), None)


class Assessor:
    """Assesses statements with one reader and one evidence model, and caches their features."""

    def __init__(self, reader: EntailmentReader, model: EvidenceModel | None = None) -> None:
        self.reader = reader
        self._model = model
        self._features: OrderedDict[Hashable, StatementFeatures] = OrderedDict()

    @property
    def model(self) -> EvidenceModel:
        """Return the model that weighs the features; loaded on first use."""
        return self._model or load_evidence_model()

    @property
    def id(self) -> str:
        """Return an id that changes whenever the same statement could be assessed differently."""
        return f"{self.reader.id} {self.model.id}"

    def assess(
        self,
        view: CaseView,
        stop: StopSignal,
        *,
        allowed: frozenset[str] | None = None,
        statements: Iterable[Statement] | None = None,
    ) -> list[Assessment]:
        """Assess each statement that says something, over its passages (those in `allowed`)."""
        assessments = []
        for statement in statements if statements is not None else view.statements:
            stop.check()
            if has_checkable_content(statement, view.case):
                passages = view.evidence.of(statement.index, allowed)
                measured = self.measure(view, statement, passages, stop)
                assessments.append(self._label(measured, view.case.language, stop))
        return assessments

    def measure(
        self,
        view: CaseView,
        statement: Statement,
        passages: Sequence[Passage],
        stop: StopSignal | None = None,
    ) -> StatementFeatures:
        """Return the features of one statement over these passages, best first."""
        # The key holds windows, not sources: it would keep whole documents alive after their run.
        windows = tuple(build_windows(passages, view.sources))
        claim, language = build_claim(view.case, statement), view.case.language
        copies = tuple(is_copy(view.case, statement, passage) for passage in passages)
        key = (statement, tuple(passages), windows, claim, language, copies)
        features = self._features.get(key)
        if features is None:
            reading = read_statement(
                view.case, statement, passages, view.sources, self.reader, stop
            )
            features = measure_statement(view.case, statement, passages, reading)
            self._features[key] = features
            if len(self._features) > MEASUREMENT_CACHE_SIZE:
                self._features.popitem(last=False)
        return features

    def _apply_decided_values(
        self, measured: StatementFeatures, p: float, stop: StopSignal
    ) -> float:
        """Return p, bounded where ranges, bounds or labelled rows decide about the values.

        They do if the statement only names a table cell, or if the reader supports it with their
        values in place of its own. A statement that the evidence has word for word is not wrong.
        """
        values, claim = measured.values, measured.reading.claim
        decided = [value for value in values if value.decided_by]
        is_wrong = any(value.status == "different" for value in decided)
        is_settled = is_wrong or all(value.status in ("same", "derived") for value in values)
        is_date = all(value.is_date for value in decided)
        is_copied = any(w.reading == COPY_READING for w in measured.reading.windows)
        if is_date or not is_settled or not measured.reading.is_known or (is_wrong and is_copied):
            return p
        bounded = max(p, P_IF_VALUE_DIFFERS) if is_wrong else min(p, P_IF_VALUES_AGREE)
        if all(value.cell_window for value in decided) and not measured.numbers["denials"]:
            return bounded
        for value in reversed(decided):
            claim = claim[: value.phrase_start] + value.decided_by + claim[value.end :]
        if claim == measured.reading.claim:
            return p
        texts = [
            window.text
            for window in measured.reading.windows
            if all(value.decided_by in window.text for value in decided)
        ]
        readings = self.reader.read([(text, claim) for text in texts], stop)
        best = max(readings, key=lambda reading: reading.supported, default=UNREAD_WINDOW)
        is_confirmed = best.supported >= max(CONFIRMED_FROM, best.contradicted)
        return bounded if is_confirmed else p

    def _label(self, measured: StatementFeatures, language: str, stop: StopSignal) -> Assessment:
        p = self.model.probability(measured)
        is_known = measured.reading.is_known
        if not measured.passages or (is_known and not self.model.is_addressed(measured)):
            return Assessment(measured, p, "unclear", "not_addressed")
        if not measured.reading.is_comparable:
            return Assessment(measured, p, "unclear", "language_not_known")
        conflict = find_conflict(measured, language)
        if conflict:
            return Assessment(measured, p, "unclear", "sources_disagree", conflict)
        p = self._apply_decided_values(measured, p, stop)
        if not is_known and not any(value.status == "different" for value in measured.values):
            return Assessment(measured, p, "unclear", "language_not_known")
        label = self.model.label(p)
        cause: UnclearCause = "not_settled" if is_known else "language_not_known"
        return Assessment(measured, p, label, cause if label == "unclear" else None)


def has_checkable_content(statement: Statement, case: Case) -> bool:
    """Return True if it has words or figures that evidence could support or contradict."""
    text = statement.text.strip()
    if WORDING_PATTERNS.abstention.match(text) and len(statement.text) < MAX_ABSTENTION_CHARS:
        return False
    if LIST_NUMBER.fullmatch(text) and text != case.response.strip():
        return False
    content = extract_query_terms(statement.text, case.language)
    return any(len(term) > 1 or term.isnumeric() for term in content)


@dataclass(frozen=True)
class WrongWords:
    """Wrong words of a claim."""

    start: int
    """`[start, end)` in the claim."""
    end: int
    text: str
    doubt: float
    instead: str = ""
    """The source's words in their place; empty if none fit."""
    passage: Passage | None = None
    worked: str = ""
    """The calculation of `instead` from the source's figures; empty if the source states it."""


def find_wrong_words(
    item: Assessment, reader: EntailmentReader, stop: StopSignal
) -> tuple[WrongWords, ...]:
    """Return the words that make the statement wrong, most doubted first; at most two places."""
    candidates = [
        # A value that differs is doubted at least as much as the statement.
        WrongWords(v.start, v.end, v.text, max(item.p, _max_doubt(item, v.start, v.end)))
        for v in item.measured.values
        if v.status == "different"
    ]
    candidates += (words for words in _find_doubted(item) if words.end > words.start)
    candidates.sort(key=lambda words: -words.doubt)
    chosen: list[WrongWords] = []
    for words in candidates:
        if not any(words.start < other.end and other.start < words.end for other in chosen):
            chosen.append(words)
    return tuple(_add_replacement(words, item, reader, stop) for words in chosen[:MAX_WRONG_PLACES])


def explain_assessment(
    item: Assessment, reader: EntailmentReader, stop: StopSignal
) -> tuple[DebatePoint, ...]:
    """Return points in the response: wrong words, or the passage that supports the statement."""
    if item.label == "hallucinated":
        points = (_make_point(words, item) for words in find_wrong_words(item, reader, stop))
        return tuple(point for point in points if point is not None)
    window = item.deciding or item.measured.reading.supporting
    if item.label != "supported" or window is None:
        return ()
    statement = item.statement
    best = choose_best_passage(window, item)
    point = DebatePoint(
        statement=statement.index,
        finding="carried",
        start=statement.start,
        end=statement.end,
        text=statement.text,
        category="harmless_addition",
        evidence=best.text,
        explanation="the passage says so",
        weight=round(1.0 - item.p, 3),
        quote=quote_passage(best),
    )
    return (point,)


def choose_best_passage(window: EvidenceWindow, item: Assessment) -> Passage:
    """Return the passage of a window that shares most words with the statement."""
    reading = item.measured.reading
    asked, own = (
        set(WORD_TOKEN.findall(part.casefold()))
        for part in (reading.claim[: reading.own_start], reading.claim[reading.own_start :])
    )

    def fit(passage: Passage) -> float:
        words = set(WORD_TOKEN.findall(passage.text.casefold()))
        shared = len(own & words) + len((asked - own) & words) / (1 + len(asked))
        return shared / (4.0 + math.sqrt(len(passage.text)))

    return max(window.passages, key=fit)


def explain_label(item: Assessment, points: Sequence[DebatePoint]) -> str:
    """Return the reason for the label in one sentence."""
    if item.conflict:
        return f"{capitalise(describe_conflict(item.conflict))}."
    if item.label == "unclear":
        return UNCLEAR_REASONS.get(item.cause or "", UNCLEAR_REASONS["not_settled"])
    reading = item.measured.reading
    if item.label == "supported":
        window = item.deciding or reading.supporting
        where = cite_passage(choose_best_passage(window, item)) if window else "the evidence"
        return f"The source says so: {where}."
    with_evidence = [point for point in points if point.evidence]
    if with_evidence:
        first = with_evidence[0]
        place = first.quote and (first.quote.source_id, first.quote.start)
        quoted = [p for p in item.measured.passages if (p.source_id, p.start) == place]
        where = f" ({cite_passage(quoted[0])})" if quoted else ""
        return f"“{first.text}” is wrong: {first.explanation}{where}."
    against = item.deciding or reading.contradicting
    if against is not None and (item.deciding or against.reading.contradicted >= 0.5):
        return f"The source says otherwise: {cite_passage(choose_best_passage(against, item))}."
    if points:
        verb = "is" if len(points) == 1 else "are"
        return f"{join_quoted([point.text for point in points])} {verb} not in the sources."
    return "The sources do not say this."


def describe_conflict(conflict: tuple[Passage, Passage]) -> str:
    """Return a clause that quotes both passages."""
    one, other = conflict
    is_one_source = one.source_id == other.source_id
    subject = "the source contradicts itself" if is_one_source else "the sources disagree"
    return f"{subject}: {cite_passage(one)} contradicts {cite_passage(other)}"


def _max_doubt(item: Assessment, start: int, end: int) -> float:
    doubts = item.measured.reading.doubts
    return max((d.p for d in doubts if d.start < end and start < d.end), default=0.0)


def _find_doubted(item: Assessment) -> Iterator[WrongWords]:
    """Yield runs of words that the reader doubts; if none reach the limit, the most doubted."""
    reading = item.measured.reading
    words = [m.span() for m in WORD_TOKEN.finditer(reading.claim) if m.start() >= reading.own_start]
    scored = [(*place, _max_doubt(item, *place)) for place in words]
    highest = max((p for _, _, p in scored), default=0.0)
    threshold = min(DOUBTED_FROM, highest)
    run: list[tuple[int, int, float]] = []
    for place in [*scored, (0, 0, -1.0)]:
        if place[2] >= threshold > 0:
            run.append(place)
        elif run:
            start, end = run[0][0], run[-1][1]
            yield WrongWords(start, end, reading.claim[start:end], max(p for _, _, p in run))
            run = []


def _add_replacement(
    words: WrongWords, item: Assessment, reader: EntailmentReader, stop: StopSignal
) -> WrongWords:
    """Add the source's replacement if the reader supports the claim corrected by it."""
    reading = item.measured.reading
    window = reading.contradicting or reading.supporting
    if window is None:
        return words
    near_values = (value for value in _different_values(words, item) if value.is_nearest)
    confirmed = (value for value in near_values if value.in_table or not reading.is_known)
    if (value := next(confirmed, None)) and value.instead:
        # the figure without the unit of a table's header
        figure = (NUMBER_PATTERN.search(value.instead) or [value.instead])[0]
        passage = next((p for p in item.measured.passages if figure in p.text), None)
        placed = replace(words, passage=passage or choose_best_passage(window, item))
        if not value.is_worked:
            return replace(placed, instead=value.instead)
        calculation, _, total = value.instead.rpartition(" = ")
        return replace(placed, instead=total, worked=calculation)
    candidates = list(_find_replacements(words, item, window))[:MAX_REPLACEMENTS]
    claims = [
        reading.claim[: words.start] + candidate + reading.claim[words.end :]
        for candidate in candidates
    ]
    readings = reader.read([(window.text, claim) for claim in claims], stop)
    ranked = sorted(zip(readings, candidates, strict=True), key=lambda pair: -pair[0].supported)
    if not ranked or ranked[0][0].supported < SUPPORTED_FROM:
        return replace(words, passage=choose_best_passage(window, item))
    instead = ranked[0][1]
    source = next((p for p in window.passages if instead in p.text), None)
    return replace(words, instead=instead, passage=source or choose_best_passage(window, item))


def _different_values(words: WrongWords, item: Assessment) -> list[ValueFinding]:
    return [
        value
        for value in item.measured.values
        if value.status == "different" and value.start < words.end and words.start < value.end
    ]


def _find_replacements(
    words: WrongWords, item: Assessment, window: EvidenceWindow
) -> Iterator[str]:
    """Yield possible replacements from the window: values for values, names for names."""
    seen = {words.text}
    values = [value.instead for value in _different_values(words, item)]
    is_number = any(c.isdigit() for c in words.text)
    pattern = NUMBER_PATTERN if is_number else NAME_PATTERN
    alike = [] if values else [m.group() for m in pattern.finditer(window.text)]
    if not is_number:
        names = alike if NAME_PATTERN.fullmatch(words.text) else []
        between = _words_between_neighbours(words, item.measured.reading.claim, window.text)
        parts = [part for name in names for part in name.split() if " " not in words.text]
        alike = [*names, *between, *parts]
    for candidate in (*values, *alike):
        text = WHITESPACE.sub(" ", candidate).strip()
        if text and text not in seen and len(text) <= MAX_REPLACEMENT_CHARS:
            seen.add(text)
            yield text


def _words_between_neighbours(words: WrongWords, claim: str, text: str) -> list[str]:
    """Return the window's words between the same neighbours as the words have in the claim."""
    if IS_UNSPACED.search(claim):
        return []
    before, after = claim[: words.start].split()[-1:], claim[words.end :].split()[:1]
    if not before or not after:
        return []
    first, last = regex.escape(before[0]), regex.escape(after[0].rstrip(".,;"))
    pattern = rf"(?i){first}\s+((?:\S+\s+){{1,3}}?){last}"
    return [match.group(1).strip() for match in regex.finditer(pattern, text)]


def _make_point(words: WrongWords, item: Assessment) -> DebatePoint | None:
    statement = item.statement
    place = locate_in_response(statement, item.measured.reading.claim, words.start, words.end)
    if place is None:
        return None
    start, end = place
    text = statement.text[start - statement.start : end - statement.start]
    why = f"the source says “{words.instead}”" if words.instead else "the sources do not say this"
    if words.worked:
        why = f"the source's figures come to {words.instead} ({words.worked})"
    return DebatePoint(
        statement=statement.index,
        finding="contradicted" if words.instead else "missing",
        start=start,
        end=end,
        text=text,
        category=categorise_words(text, start == statement.start),
        evidence=words.instead,
        explanation=why,
        weight=round(item.p, 3),
        quote=quote_passage(words.passage) if words.passage else None,
    )


def locate_in_response(
    statement: Statement, claim: str, start: int, end: int
) -> tuple[int, int] | None:
    """Return the offsets in the response of the same occurrence of the claim's words."""
    pattern = r"\s+".join(regex.escape(part) for part in claim[start:end].split())
    inside = [match.span() for match in regex.finditer(pattern, statement.text)]
    if not pattern or not inside:
        return None
    before, in_claim = (len(regex.findall(pattern, text)) for text in (claim[:start], claim))
    which = min(max(0, before - (in_claim - len(inside))), len(inside) - 1)
    low, high = inside[which]
    return statement.start + low, statement.start + high


def categorise_words(text: str, opens_sentence: bool) -> Category:
    """Return the category of wrong words: number or date, name, or words not in a source."""
    if any(character.isnumeric() for character in text):
        return "number_or_date"
    words = WORD_TOKEN.findall(text)
    if any(word[:1].isupper() for word in words[int(opens_sentence) :]):
        return "wrong_entity"
    return "not_in_source"
