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

from core.baseline.assessment import Assessment, Assessor, categorise_words, locate_in_response
from core.baseline.span_reader import ScoredRun, choose_word_scorer, merge_scored_words
from core.baseline.wording import AGENT_RULES
from core.documents.segmentation import WORD_TOKEN, extract_query_terms, extract_terms
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ConfigError
from core.schema.events import SpanVote
from core.schema.records import (
    DebatePoint,
    Judgement,
    Label,
    MarkingLevels,
    PanelRule,
    Span,
    SpanThresholds,
    Statement,
    WordScore,
)
from core.schema.roles import CaseView, JudgeView, SpanRuling

SPAN_READER_NAME = "Span reader"
SPAN_KEPT_FROM = 0.5
WHOLE_SOURCES_MAX_CHARS = 12_000
"""Total characters of the sources up to which words are scored against all of them."""
SENTENCE_ENDS = ".!?。！？।؟:\n"
SHIPPED_THRESHOLD = SpanThresholds()
PANEL_WEIGHTS_FILE = Path(__file__).parent / "weights" / "panel.json"
MIN_VOTE, MAX_VOTE = 0.05, 0.95
WRONG_FROM = 0.5
MISSING_WORD_P = 0.6
"""Probability of being wrong for words that no source has."""
ABSTENTION = SpanVote(None, "It has nothing to say of these words.")
RatedPlace = tuple[int, int, float]
"""`[start, end)` in the response and the probability that it is wrong."""
PlaceRater = Callable[[Assessment], list[RatedPlace]]


class WordScoringAgent:
    """Base of agents that mark words by span reader scores, at a threshold people may tune."""

    built_in = True

    def __init__(self, assessor: Assessor, learned: SpanThresholds = SHIPPED_THRESHOLD) -> None:
        self._assessor = assessor
        self._learned = learned

    def threshold(self, language: str) -> float:
        """Return the score from which words are marked: the language's or the reader's own."""
        learned = self._learned.reader.at(language)
        return choose_word_scorer(self._assessor.reader).threshold if learned is None else learned

    def score_words(self, view: CaseView, stop: StopSignal) -> tuple[WordScore, ...]:
        """Return each word's probability of being wrong; empty without evidence."""
        stop.check()
        case = view.case
        scorer = choose_word_scorer(self._assessor.reader)
        return scorer.read(case.response, case.question, choose_evidence_texts(view), case.language)

    def _with_thresholds(self, rule: str) -> str:
        words = self._learned.reader.words
        if not words:
            return rule
        return f"{rule}\nThresholds learned from people (no. {self._learned.number}): {words}."


class PointSpanExtractor(WordScoringAgent):
    """The built-in span extractor."""

    name = "Point span extractor"

    @property
    def rule(self) -> str:
        """The rule, with the thresholds where they were learned from people."""
        return self._with_thresholds(AGENT_RULES["span extractor"])

    def propose(self, view: JudgeView, judgement: Judgement, stop: StopSignal) -> tuple[Span, ...]:
        """Return the spans of wrong statements, in order of their offsets."""
        if judgement.label != "hallucinated":
            return ()
        case = view.case_view.case
        spans = [
            Span(
                start=point.start,
                end=point.end,
                text=point.text,
                p=max(SPAN_KEPT_FROM, point.weight),
                category=point.category,
                source=judgement.agent,
                instead=point.evidence,
                quote=point.quote,
            )
            for point in _contested_points(view, judgement)
        ]
        statements = view.case_view.statements
        if any(_without_spans(statements, judgement, spans)):
            scores = self.score_words(view.case_view, stop)
            threshold = self.threshold(case.language)
            for words in iterate_unmarked_words(statements, judgement, scores, spans):
                spans += [
                    make_scored_span(stretch, case.response)
                    for stretch in merge_scored_words(words, case.response, threshold)
                ]
        return tuple(sorted(spans, key=lambda span: span.start))


class ThresholdSpanAdjudicator(WordScoringAgent):
    """The built-in span adjudicator."""

    name = "Span adjudicator"

    @property
    def rule(self) -> str:
        """The rule, with the thresholds where they were learned from people."""
        return self._with_thresholds(AGENT_RULES["span adjudicator"])

    def adjudicate(self, view: JudgeView, span: Span, label: Label, stop: StopSignal) -> SpanRuling:
        """Keep or drop a span by its probability."""
        if label != "hallucinated":
            return SpanRuling(span, False, f"The verdict is {label}.")
        is_reader = span.source == SPAN_READER_NAME
        least = self.threshold(view.case_view.case.language) if is_reader else SPAN_KEPT_FROM
        if span.p < least:
            return SpanRuling(span, False, f"p = {span.p:.2f} is below {least:.2f}.")
        why = "people mark such words" if is_reader else "the sources say it otherwise"
        return SpanRuling(span, True, f"p = {span.p:.2f}: {why}.")


def choose_evidence_texts(view: CaseView) -> tuple[str, ...]:
    """Return the texts to score words against: short sources whole, of long ones the passages."""
    if sum(len(text) for text in view.sources.values()) <= WHOLE_SOURCES_MAX_CHARS:
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


def iterate_unmarked_words(
    statements: Sequence[Statement],
    judgement: Judgement,
    scores: Sequence[WordScore],
    named: Sequence[Span],
) -> Iterator[list[WordScore]]:
    """Yield, for each wrong statement without a span, its scored words."""
    for statement in _without_spans(statements, judgement, named):
        yield [s for s in scores if statement.start <= s.start and s.end <= statement.end]


def _contested_points(view: JudgeView, judgement: Judgement) -> list[DebatePoint]:
    """Return the judge's points, or the debaters' if the judge names no places itself."""
    points = [point for point in judgement.points if point.finding != "carried"]
    if not points:
        wrong = {s.index for s in _wrong_statements(view.case_view.statements, judgement)}
        raised = [point for turn in view.turns for point in turn.points]
        points = [p for p in raised if p.finding == "contradicted" and p.statement in wrong]
    distinct: list[DebatePoint] = []
    for point in sorted(points, key=lambda p: (p.finding != "contradicted", -p.weight)):
        if not any(point.start < other.end and other.start < point.end for other in distinct):
            distinct.append(point)
    return distinct


def make_scored_span(stretch: ScoredRun, response: str) -> Span:
    """Return the span of words that were scored, with the category that their form tells."""
    text = response[stretch.start : stretch.end]
    before = response[: stretch.start].rstrip()
    category = categorise_words(text, not before or before[-1] in SENTENCE_ENDS)
    return Span(stretch.start, stretch.end, text, stretch.p, category, SPAN_READER_NAME)


class AssessmentPanelist:
    """A panel member that marks places of each statement by its assessment."""

    built_in = True

    def __init__(self, name: str, rule: str, finds: PlaceRater, assessor: Assessor) -> None:
        self.name, self.rule = name, rule
        self._finds, self._assessor = finds, assessor

    def extract(self, view: CaseView, stop: StopSignal) -> tuple[Span, ...]:
        """Return spans for the places that are more likely wrong than not."""
        spans: list[Span] = []
        statement_starts = {statement.start for statement in view.statements}
        for start, end, p in self._find_places(view, stop):
            if p >= WRONG_FROM:
                text = view.case.response[start:end]
                category = categorise_words(text, start in statement_starts)
                spans.append(Span(start, end, text, round(p, 3), category, self.name))
        return tuple(spans)

    def vote(self, view: CaseView, spans: Sequence[Span], stop: StopSignal) -> tuple[SpanVote, ...]:
        """Vote with the highest p of the places that a span overlaps; abstain if there are none."""
        places = self._find_places(view, stop)
        votes: list[SpanVote] = []
        for span in spans:
            ps = [p for start, end, p in places if span.start < end and start < span.end]
            votes.append(_vote(max(ps), "It stands so beside the sources.") if ps else ABSTENTION)
        return tuple(votes)

    def _find_places(self, view: CaseView, stop: StopSignal) -> list[RatedPlace]:
        return [p for item in self._assessor.assess(view, stop) for p in self._finds(item)]


def _rate_values(item: Assessment) -> list[RatedPlace]:
    """Rate numbers and dates: wrong if they differ, right if the sources have them."""
    weights = {"same": MIN_VOTE, "derived": 0.2, "different": 0.8, "unmatched": WRONG_FROM}
    places: list[RatedPlace] = []
    reading = item.measured.reading
    for value in item.measured.values if reading.windows else ():
        claim = reading.claim
        place = locate_in_response(item.statement, claim, value.start, value.end)
        if place is not None:
            places.append((*place, weights[value.status]))
    return places


def _rate_words(item: Assessment) -> list[RatedPlace]:
    """Rate each content word: wrong if no window has it."""
    source_terms = {
        term for window in item.measured.reading.windows for term in extract_terms(window.text)
    }
    statement = item.statement
    places: list[RatedPlace] = []
    for match in WORD_TOKEN.finditer(statement.text):
        word_terms = extract_query_terms(match.group())
        if word_terms and source_terms:
            is_missing = not any(term in source_terms for term in word_terms)
            p = MISSING_WORD_P if is_missing else MIN_VOTE
            places.append((statement.start + match.start(), statement.start + match.end(), p))
    return places


def _rate_statement(item: Assessment) -> list[RatedPlace]:
    """Rate the whole statement, if the reader decides about it."""
    contradicting = item.measured.reading.contradicting
    supporting = item.measured.reading.supporting
    if contradicting is None or supporting is None:
        return []
    wrong, right = contradicting.reading.contradicted, supporting.reading.supported
    if max(wrong, right) < WRONG_FROM:
        return []
    return [(item.statement.start, item.statement.end, wrong / (wrong + right))]


class WordPanelist(WordScoringAgent):
    """The span reader as a member: it scores every word by whether people would mark it."""

    name = SPAN_READER_NAME
    rule = AGENT_RULES["span reader"]

    def extract(self, view: CaseView, stop: StopSignal) -> tuple[Span, ...]:
        """Return the runs of words with scores at or above the threshold."""
        scores, response = self.score_words(view, stop), view.case.response
        runs = merge_scored_words(scores, response, self.threshold(view.case.language))
        return tuple(make_scored_span(run, response) for run in runs)

    def vote(self, view: CaseView, spans: Sequence[Span], stop: StopSignal) -> tuple[SpanVote, ...]:
        """Vote with the mean score of each span's words."""
        scores = self.score_words(view, stop)
        votes = []
        for span in spans:
            inside = [s.p for s in scores if span.start < s.end and s.start < span.end]
            mean = sum(inside) / len(inside) if inside else None
            votes.append(ABSTENTION if mean is None else _vote(mean, "People mark such words."))
        return tuple(votes)


def make_panelist(
    name: str, assessor: Assessor, learned: SpanThresholds = SHIPPED_THRESHOLD
) -> AssessmentPanelist | WordPanelist:
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
    return AssessmentPanelist(title, rule, finds, assessor)


@lru_cache(maxsize=1)
def load_shipped_rule() -> PanelRule:
    """Load the rule that weighs the four members' votes, as `training.train_panel` fitted it.

    Raises ConfigError if the weights are missing or of another form.
    """
    try:
        body = json.loads(PANEL_WEIGHTS_FILE.read_text(encoding="utf-8"))
        weights = tuple(
            (str(extractor), str(adjudicator), float(weight))
            for extractor, adjudicator, weight in body["weights"]
        )
        return PanelRule(MarkingLevels(otherwise=float(body["threshold"])), weights=weights)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"Expected the panel's weights in {PANEL_WEIGHTS_FILE.name}, found: {error!r}. "
            f"Restore the file "
            "from the repository."
        ) from error


def _vote(p: float, reason: str) -> SpanVote:
    return SpanVote(round(min(MAX_VOTE, max(MIN_VOTE, p)), 3), reason)
