"""Built-in span marking: the members of a panel (MSA 3.3), and span extraction without a panel.

Each member marks words by itself and votes on the others' spans; a member with no opinion on a span
abstains, which differs from a vote of one half. Without a panel the judge's points are marked, and
in wrong statements without points the span reader's words; supported statements get no marks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from core.baseline.assessment import Assessment, Assessor, category_of, place_in_response
from core.baseline.span_reader import ScoredStretch, stretches, word_scorer
from core.baseline.wording import RULES
from core.documents.segmentation import WORD, query_terms, terms
from core.runtime.concurrency import Stop
from core.runtime.errors import ConfigError
from core.schema.events import SpanVote
from core.schema.records import (
    Judgement,
    Label,
    Levels,
    PanelRule,
    Point,
    Span,
    SpanThreshold,
    Statement,
    WordScore,
)
from core.schema.roles import CaseView, JudgeView, SpanRuling

READER = "Span reader"
KEPT_FROM = 0.5
WHOLE_UP_TO = 12_000
"""Total characters of the sources up to which words are scored against all of them."""
SENTENCE_ENDS = ".!?。！？।؟:\n"
AS_SHIPPED = SpanThreshold()
WEIGHTS = Path(__file__).parent / "weights" / "panel.json"
LEAST, MOST = 0.05, 0.95
DECIDED_FROM = 0.5
MISSING_P = 0.6
"""Probability of being wrong for words that no source has."""
SILENT = SpanVote(None, "It has nothing to say of these words.")
Place = tuple[int, int, float]
"""`[start, end)` in the response and the probability that it is wrong."""
Finds = Callable[[Assessment], list[Place]]


class WordScoring:
    """Base of agents that mark words by span reader scores, at a threshold people may tune."""

    built_in = True

    def __init__(self, assessor: Assessor, learned: SpanThreshold = AS_SHIPPED) -> None:
        self._assessor = assessor
        self._learned = learned

    def threshold(self, language: str) -> float:
        """Return the score from which words are marked: the language's or the reader's own."""
        learned = self._learned.reader.at(language)
        return word_scorer(self._assessor.reader).threshold if learned is None else learned

    def score_words(self, view: CaseView, stop: Stop) -> tuple[WordScore, ...]:
        """Return each word's probability of being wrong; empty without evidence."""
        stop.check()
        case = view.case
        scorer = word_scorer(self._assessor.reader)
        return scorer.read(case.response, case.question, evidence_texts(view), case.language)

    def _with_thresholds(self, rule: str) -> str:
        words = self._learned.reader.words
        if not words:
            return rule
        return f"{rule}\nThresholds learned from people (no. {self._learned.number}): {words}."


class PointSpanExtractor(WordScoring):
    """The built-in span extractor."""

    name = "Point span extractor"

    @property
    def rule(self) -> str:
        """The rule, with the thresholds where they were learned from people."""
        return self._with_thresholds(RULES["span extractor"])

    def propose(self, view: JudgeView, judgement: Judgement, stop: Stop) -> tuple[Span, ...]:
        """Return the spans of wrong statements, in order of their offsets."""
        if judgement.label != "hallucinated":
            return ()
        case = view.view.case
        spans = [
            Span(
                start=point.start,
                end=point.end,
                text=point.text,
                p=max(KEPT_FROM, point.weight),
                category=point.category,
                source=judgement.agent,
                instead=point.evidence,
                quote=point.quote,
            )
            for point in _contested_points(view, judgement)
        ]
        statements = view.view.statements
        if any(_without_spans(statements, judgement, spans)):
            scores = self.score_words(view.view, stop)
            threshold = self.threshold(case.language)
            for words in free_words(statements, judgement, scores, spans):
                spans += [
                    _make_span(stretch, case.response)
                    for stretch in stretches(words, case.response, threshold)
                ]
        return tuple(sorted(spans, key=lambda span: span.start))


class ThresholdSpanAdjudicator(WordScoring):
    """The built-in span adjudicator."""

    name = "Span adjudicator"

    @property
    def rule(self) -> str:
        """The rule, with the thresholds where they were learned from people."""
        return self._with_thresholds(RULES["span adjudicator"])

    def adjudicate(self, view: JudgeView, span: Span, label: Label, stop: Stop) -> SpanRuling:
        """Keep or drop a span by its probability."""
        if label != "hallucinated":
            return SpanRuling(span, False, f"The verdict is {label}.")
        is_reader = span.source == READER
        least = self.threshold(view.view.case.language) if is_reader else KEPT_FROM
        if span.p < least:
            return SpanRuling(span, False, f"p = {span.p:.2f} is below {least:.2f}.")
        why = "people mark such words" if is_reader else "the sources say it otherwise"
        return SpanRuling(span, True, f"p = {span.p:.2f}: {why}.")


def evidence_texts(view: CaseView) -> tuple[str, ...]:
    """Return the texts to score words against: short sources whole, of long ones the passages."""
    if sum(len(text) for text in view.sources.values()) <= WHOLE_UP_TO:
        return tuple(view.sources.values())
    passages = sorted(view.evidence.passages.values(), key=lambda p: (p.source_id, p.start))
    texts = (text for p in passages for text in (p.before, p.text, p.after) if text.strip())
    return tuple(dict.fromkeys(texts))


def _wrong_statements(statements: Sequence[Statement], judgement: Judgement) -> list[Statement]:
    """Return the statements that the judge calls wrong; all if it labels none."""
    labels = judgement.statement_labels or ["hallucinated"] * len(statements)
    return [s for s, label in zip(statements, labels, strict=False) if label == "hallucinated"]


def _without_spans(
    statements: Sequence[Statement], judgement: Judgement, spans: Sequence[Span]
) -> Iterator[Statement]:
    for statement in _wrong_statements(statements, judgement):
        if not any(statement.start <= span.start < statement.end for span in spans):
            yield statement


def free_words(
    statements: Sequence[Statement],
    judgement: Judgement,
    scores: Sequence[WordScore],
    named: Sequence[Span],
) -> Iterator[list[WordScore]]:
    """Yield, for each wrong statement without a span, its scored words."""
    for statement in _without_spans(statements, judgement, named):
        yield [s for s in scores if statement.start <= s.start and s.end <= statement.end]


def _contested_points(view: JudgeView, judgement: Judgement) -> list[Point]:
    """Return the judge's points, or the debaters' if the judge names no places itself."""
    points = [point for point in judgement.points if point.finding != "carried"]
    if not points:
        wrong = {s.index for s in _wrong_statements(view.view.statements, judgement)}
        raised = [point for turn in view.turns for point in turn.points]
        points = [p for p in raised if p.finding == "contradicted" and p.statement in wrong]
    distinct: list[Point] = []
    for point in sorted(points, key=lambda p: (p.finding != "contradicted", -p.weight)):
        if not any(point.start < other.end and other.start < point.end for other in distinct):
            distinct.append(point)
    return distinct


def _make_span(stretch: ScoredStretch, response: str) -> Span:
    text = response[stretch.start : stretch.end]
    before = response[: stretch.start].rstrip()
    category = category_of(text, not before or before[-1] in SENTENCE_ENDS)
    return Span(stretch.start, stretch.end, text, stretch.p, category, READER)


class AssessedPanelist:
    """A panel member that marks places of each statement by its assessment."""

    built_in = True

    def __init__(self, name: str, rule: str, finds: Finds, assessor: Assessor) -> None:
        self.name, self.rule = name, rule
        self._finds, self._assessor = finds, assessor

    def extract(self, view: CaseView, stop: Stop) -> tuple[Span, ...]:
        """Return spans for the places that are more likely wrong than not."""
        spans: list[Span] = []
        statement_starts = {statement.start for statement in view.statements}
        for start, end, p in self._find_places(view, stop):
            if p >= DECIDED_FROM:
                text = view.case.response[start:end]
                category = category_of(text, start in statement_starts)
                spans.append(Span(start, end, text, round(p, 3), category, self.name))
        return tuple(spans)

    def vote(self, view: CaseView, spans: Sequence[Span], stop: Stop) -> tuple[SpanVote, ...]:
        """Vote with the highest p of the places that a span overlaps; abstain if there are none."""
        places = self._find_places(view, stop)
        votes: list[SpanVote] = []
        for span in spans:
            ps = [p for start, end, p in places if span.start < end and start < span.end]
            votes.append(_vote(max(ps), "It stands so beside the sources.") if ps else SILENT)
        return tuple(votes)

    def _find_places(self, view: CaseView, stop: Stop) -> list[Place]:
        return [p for item in self._assessor.assess(view, stop) for p in self._finds(item)]


def _rate_values(item: Assessment) -> list[Place]:
    """Rate numbers and dates: wrong if they differ, right if the sources have them."""
    weights = {"same": LEAST, "derived": 0.2, "different": 0.8, "unmatched": DECIDED_FROM}
    places: list[Place] = []
    reading = item.measured.reading
    for value in item.measured.values if reading.windows else ():
        claim = reading.claim
        place = place_in_response(item.statement, claim, value.start, value.end)
        if place is not None:
            places.append((*place, weights[value.status]))
    return places


def _rate_words(item: Assessment) -> list[Place]:
    """Rate each content word: wrong if no window has it."""
    source_terms = {term for window in item.measured.reading.windows for term in terms(window.text)}
    statement = item.statement
    places: list[Place] = []
    for match in WORD.finditer(statement.text):
        word_terms = query_terms(match.group())
        if word_terms and source_terms:
            is_missing = not any(term in source_terms for term in word_terms)
            p = MISSING_P if is_missing else LEAST
            places.append((statement.start + match.start(), statement.start + match.end(), p))
    return places


def _rate_statement(item: Assessment) -> list[Place]:
    """Rate the whole statement, if the reader decides about it."""
    contradicting = item.measured.reading.contradicting
    supporting = item.measured.reading.supporting
    if contradicting is None or supporting is None:
        return []
    wrong, right = contradicting.reading.contradicted, supporting.reading.supported
    if max(wrong, right) < DECIDED_FROM:
        return []
    return [(item.statement.start, item.statement.end, wrong / (wrong + right))]


class WordPanelist(WordScoring):
    """The span reader as a member: it scores every word by whether people would mark it."""

    name = READER
    rule = RULES["span reader"]

    def extract(self, view: CaseView, stop: Stop) -> tuple[Span, ...]:
        """Return the runs of words with scores at or above the threshold."""
        scores, response = self.score_words(view, stop), view.case.response
        runs = stretches(scores, response, self.threshold(view.case.language))
        return tuple(_make_span(run, response) for run in runs)

    def vote(self, view: CaseView, spans: Sequence[Span], stop: Stop) -> tuple[SpanVote, ...]:
        """Vote with the mean score of each span's words."""
        scores = self.score_words(view, stop)
        votes = []
        for span in spans:
            inside = [s.p for s in scores if span.start < s.end and s.start < span.end]
            mean = sum(inside) / len(inside) if inside else None
            votes.append(SILENT if mean is None else _vote(mean, "People mark such words."))
        return tuple(votes)


def panelist(
    name: str, assessor: Assessor, learned: SpanThreshold = AS_SHIPPED
) -> AssessedPanelist | WordPanelist:
    """Make the built-in panel member of that name: words, rules, overlap or entailment."""
    if name == "words":
        return WordPanelist(assessor, learned)
    title, rule, finds = {
        "rules": (
            "Value checker",
            "Marks numbers and dates that differ from the sources', or that no source has.",
            _rate_values,
        ),
        "overlap": ("Overlap reader", "Marks words that no source has.", _rate_words),
        "entailment": (
            "Entailment reader",
            "Marks a whole statement that the sources contradict more than they support.",
            _rate_statement,
        ),
    }[name]
    return AssessedPanelist(title, rule, finds, assessor)


@lru_cache(maxsize=1)
def shipped_rule() -> PanelRule:
    """Load the rule that weighs the four members' votes, as `training.train_panel` fitted it.

    Raises ConfigError if the weights are missing or of another form.
    """
    try:
        body = json.loads(WEIGHTS.read_text(encoding="utf-8"))
        weights = tuple(
            (str(extractor), str(adjudicator), float(weight))
            for extractor, adjudicator, weight in body["weights"]
        )
        return PanelRule(Levels(otherwise=float(body["threshold"])), weights=weights)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"Expected the panel's weights in {WEIGHTS.name}, found: {error!r}. Restore the file "
            "from the repository."
        ) from error


def _vote(p: float, reason: str) -> SpanVote:
    return SpanVote(round(min(MOST, max(LEAST, p)), 3), reason)
