"""The built-in readers as members of a panel: each marks words by itself and votes on the others'.

They are unlike: rules see changed values and denials, overlap sees what nothing carries, the
entailment reader what the evidence denies in other words, the span reader what people would mark.
Who has nothing to say of a span gives no vote, which is not one half. Source: MSA 3.3.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

from core.builtin.assess import Assessment, assess
from core.builtin.claims import claim_of
from core.builtin.overlap import Overlap, measure
from core.builtin.overlap import points_of as points_of_overlap
from core.builtin.reading_windows import StatementReading, read_statement
from core.builtin.rules import points_of, stance_of
from core.builtin.span_reader import load_span_reader, stretches
from core.builtin.word_spans import category_of, evidence_texts
from core.concurrency import Stop
from core.errors import ConfigError
from core.learned_marks import Levels, PanelRule, SpanThreshold
from core.models.encoder import Embedder
from core.models.reader import EntailmentReader
from core.records import Point, Span, Statement, WordScore
from core.roles import CaseView
from core.voted import SpanVote

Read = TypeVar("Read")
WEIGHTS = Path(__file__).with_name("panel_weights.json")
LEAST, MOST = 0.05, 0.95
DECIDED_FROM = 0.5
MISSING_P = 0.6  # of words that no passage carries, as the overlap reader weighs them
AS_SHIPPED = SpanThreshold()
SILENT = SpanVote(None, "It has nothing to say of these words.")
Found = tuple[Statement, Read]


class _Readings(Generic[Read]):
    """What a reader makes of each statement, worked out once for all votes of a run."""

    def __init__(self, read: Callable[[CaseView, Statement, Stop], Read | None]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._view: CaseView | None = None
        self._found: list[Found[Read]] = []

    def of(self, view: CaseView, stop: Stop) -> list[Found[Read]]:
        """Every statement that it could read."""
        with self._lock:
            if self._view is not view:
                read = ((s, self._read(view, s, stop)) for s in view.statements)
                self._found = [(s, made) for s, made in read if made is not None]
                self._view = view
            return self._found


class RulePanelist:
    """Marks what a rule contradicts; else it knows only which statements are carried."""

    name = "Rule checker"
    built_in = True
    rule = """Marks the words of every contrast that its rules name: numbers, dates, names, denials.
Votes with the contrast's weight where it meets the words, with what is missing of the statement
where it calls that supported, else not at all."""

    def __init__(self) -> None:
        self._readings = _Readings(_assessed)

    def extract(self, view: CaseView, stop: Stop) -> tuple[Span, ...]:
        """The words of its contrasts."""
        found = (point for _, item in self._readings.of(view, stop) for point in _contrary(item))
        return tuple(_of_point(point, view, self.name) for point in found)

    def vote(self, view: CaseView, spans: Sequence[Span], stop: Stop) -> tuple[SpanVote, ...]:
        """A vote on each span, or none."""
        found = self._readings.of(view, stop)
        return tuple(self._vote(span, found) for span in spans)

    def _vote(self, span: Span, found: Sequence[Found[Assessment]]) -> SpanVote:
        points = [p for _, item in found for p in _contrary(item) if _meet(span, p.start, p.end)]
        if points:
            worst = max(points, key=lambda point: point.weight)
            return _vote(worst.weight, worst.explanation)
        held = [item for statement, item in found if _lies_in(span, statement)]
        if held and all(stance_of(item) == "supported" for item in held):
            return _vote(1 - min(item.weakest for item in held), "The statement is carried.")
        return SILENT


class OverlapPanelist:
    """Marks words that no passage on the topic carries."""

    name = "Overlap reader"
    built_in = True
    rule = """Marks words that no passage carries, in itself or in one close to it. Votes with the
share of a span's words, by weight, that nothing carries, where the evidence is on the topic."""

    def __init__(self, encoder: Embedder) -> None:
        self._encoder = encoder
        self._readings = _Readings(self._measured)

    def _measured(self, view: CaseView, statement: Statement, stop: Stop) -> Overlap | None:
        stop.check()
        claim = claim_of(view.case, statement)
        passages = view.evidence.of(statement.index)
        return measure(claim, passages, self._encoder) if claim.has_content and passages else None

    def extract(self, view: CaseView, stop: Stop) -> tuple[Span, ...]:
        """The words that nothing carries; neighbours with only blanks between as one."""
        places: list[tuple[int, int]] = []
        for _, item in self._readings.of(view, stop):
            for start, end in sorted(_missing(item)):
                if places and not view.case.response[places[-1][1] : start].strip():
                    places[-1] = (places[-1][0], max(end, places[-1][1]))
                else:
                    places.append((start, end))
        return tuple(_span(view, start, end, MISSING_P, self.name) for start, end in places)

    def vote(self, view: CaseView, spans: Sequence[Span], stop: Stop) -> tuple[SpanVote, ...]:
        """A vote on each span, or none."""
        found = self._readings.of(view, stop)
        return tuple(self._vote(span, [i for s, i in found if _lies_in(span, s)]) for span in spans)

    def _vote(self, span: Span, held: Sequence[Overlap]) -> SpanVote:
        missing = total = 0.0
        for item in held:
            units = [(u, item.claim.place(u.start, u.end)) for u in item.claim.own_units()]
            inside = [u for u, place in units if place and _meet(span, *place)]
            if item.carried:
                total += sum(u.weight for u in inside)
                missing += sum(u.weight for u in inside if u in item.missing)
        if not total:
            return SILENT
        return _vote(missing / total, f"{missing / total:.0%} of the words stand in no passage.")


class EntailmentPanelist:
    """Marks statements that the evidence contradicts by its meaning."""

    name = "Entailment reader"
    built_in = True
    rule = """Marks a whole statement that the evidence contradicts at one half or more. Votes with
the share of contradiction in what it decides about the span's statement; not at all where it
decides less than half, or does not know the language."""

    def __init__(self, reader: EntailmentReader) -> None:
        self._reader = reader
        self._readings = _Readings(self._read)

    def _read(self, view: CaseView, statement: Statement, stop: Stop) -> StatementReading | None:
        claim = claim_of(view.case, statement)
        passages = view.evidence.of(statement.index)
        if not claim.has_content or not passages:
            return None
        found = read_statement(claim, passages, view.sources, self._reader, stop)
        return None if found.muted else found

    def extract(self, view: CaseView, stop: Stop) -> tuple[Span, ...]:
        """The statements that do not hold together with the evidence."""
        return tuple(
            _span(view, s.start, s.end, found.contradicted, self.name, "contradicted")
            for s, found in self._readings.of(view, stop)
            if found.contradicted >= DECIDED_FROM
        )

    def vote(self, view: CaseView, spans: Sequence[Span], stop: Stop) -> tuple[SpanVote, ...]:
        """A vote on each span, or none."""
        found = self._readings.of(view, stop)
        return tuple(self._vote([r for s, r in found if _lies_in(span, s)]) for span in spans)

    def _vote(self, held: Sequence[StatementReading]) -> SpanVote:
        decided = [r for r in held if r.supported + r.contradicted >= DECIDED_FROM]
        if not decided:
            return SILENT
        p = max(r.contradicted / (r.supported + r.contradicted) for r in decided)
        return _vote(p, "So far the evidence denies or carries the whole statement.")


class WordPanelist:
    """The span reader: marks what people would mark, and scores every word."""

    name = "Span reader"
    built_in = True
    rule = """Scores every word by how likely people would mark it; marks stretches of words at its
threshold or more. Votes with the mean score of a span's words."""

    def __init__(self, learned: SpanThreshold = AS_SHIPPED) -> None:
        self._learned = learned

    def threshold(self, language: str) -> float:
        """The score from which it marks a word of a text in that language."""
        found = self._learned.reader.at(language)
        return load_span_reader().threshold if found is None else found

    def score_words(self, view: CaseView, stop: Stop) -> tuple[WordScore, ...]:
        """Every word's probability of not holding; none where there is no evidence."""
        stop.check()
        case = view.case
        texts = evidence_texts(view)
        return load_span_reader().read(case.response, case.question, texts, case.language)

    def extract(self, view: CaseView, stop: Stop) -> tuple[Span, ...]:
        """Stretches of words that it scores at its threshold or more."""
        scores = self.score_words(view, stop)
        found = stretches(scores, view.case.response, self.threshold(view.case.language))
        return tuple(_span(view, one.start, one.end, one.p, self.name) for one in found)

    def vote(self, view: CaseView, spans: Sequence[Span], stop: Stop) -> tuple[SpanVote, ...]:
        """The mean score of each span's words."""
        scores = self.score_words(view, stop)
        votes = []
        for span in spans:
            inside = [s.p for s in scores if _meet(span, s.start, s.end)]
            mean = sum(inside) / len(inside) if inside else None
            votes.append(SILENT if mean is None else _vote(mean, "So people mark such words."))
        return tuple(votes)


@lru_cache(maxsize=1)
def shipped_rule() -> PanelRule:
    """How votes among all four readers are weighed, fitted by core/evaluation/span_voting.py.

    Raises:
        ConfigError: the weights are missing or of another form.
    """
    try:
        body = json.loads(WEIGHTS.read_text(encoding="utf-8"))
        weights = tuple((str(e), str(a), float(weight)) for e, a, weight in body["weights"])
        return PanelRule(Levels(otherwise=float(body["threshold"])), weights=weights)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"Expected the panel's weights in {WEIGHTS.name}, found: {error!r}. Restore the file, "
            "or fit it again: python -m core.evaluation.span_voting --write."
        ) from error


def _assessed(view: CaseView, statement: Statement, stop: Stop) -> Assessment | None:
    stop.check()
    claim = claim_of(view.case, statement)
    passages = view.evidence.of(statement.index)
    return assess(claim, passages, view.sources) if claim.has_content and passages else None


def _contrary(item: Assessment) -> list[Point]:
    return [p for p in points_of(item) if p.finding == "contradicted" and p.start < p.end]


def _missing(item: Overlap) -> set[tuple[int, int]]:
    """The places of the words that nothing carries, also in a statement that it leaves open."""
    told = {
        (point.start, point.end) for point in points_of_overlap(item) if point.finding == "missing"
    }
    placed = (item.claim.place(unit.start, unit.end) for unit in item.missing)
    return told | {place for place in placed if place}


def _of_point(point: Point, view: CaseView, name: str) -> Span:
    text = view.case.response[point.start : point.end]
    return Span(
        point.start,
        point.end,
        text,
        point.weight,
        point.category,
        name,
        point.evidence,
        point.quote,
    )


def _span(view: CaseView, start: int, end: int, p: float, name: str, category: str = "") -> Span:
    case = view.case
    text = case.response[start:end]
    opens = any(statement.start == start for statement in view.statements)
    return Span(
        start, end, text, round(p, 3), category or category_of(text, opens, case.language), name
    )


def _vote(p: float, reason: str) -> SpanVote:
    return SpanVote(round(min(MOST, max(LEAST, p)), 3), reason)


def _meet(span: Span, start: int, end: int) -> bool:
    return span.start < end and start < span.end


def _lies_in(span: Span, statement: Statement) -> bool:
    return _meet(span, statement.start, statement.end)
