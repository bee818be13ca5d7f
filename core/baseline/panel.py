"""The built-in readers as members of a panel: each marks words by itself and votes on the others'.

They are unlike: the value checker sees changed numbers and dates, the overlap reader what no source
has, the entailment reader what the sources deny in other words, the span reader what people would
mark. Who has nothing to say of a span gives no vote, which is not one half. Source: MSA 3.3.

Spans, built in: the smallest words that are wrong in statements that the judge calls wrong. The
judge's own points come first: they have the source's words beside the response's. In a wrong
statement without any, the span reader's words are marked. A word is never marked because it is
merely absent from the sources while its statement is supported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from core.baseline.assessment import Assessment, Assessor, category_of, place_in_response
from core.baseline.span_reader import Stretch, stretches, word_scorer
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
"""Characters of all sources together up to which words are scored against all of them."""
SENTENCE_ENDS = ".!?。！？।؟:\n"
AS_SHIPPED = SpanThreshold()
EXTRACTOR_RULE = """In each statement that the judge calls hallucinated: the words that it found
wrong, with what the source says instead where there is something; else the words that the span
reader scores at its threshold or more. No word of another statement."""
ADJUDICATOR_RULE = """Under the verdict hallucinated a span is kept at p of 0.5 or more, the span
reader's at its threshold; under other verdicts none."""


class PointSpanExtractor:
    """Built-in span extractor."""

    name = "Point span extractor"
    built_in = True

    def __init__(self, assessor: Assessor, learned: SpanThreshold = AS_SHIPPED) -> None:
        self._assessor = assessor
        self._learned = learned

    @property
    def rule(self) -> str:
        """The rule, with the thresholds where they were learned from people."""
        return _with_thresholds(EXTRACTOR_RULE, self._learned)

    def threshold(self, language: str) -> float:
        """The score from which the span reader marks a word of a text in that language."""
        return reader_threshold(self._learned, language, self._assessor)

    def score_words(self, view: CaseView, stop: Stop) -> tuple[WordScore, ...]:
        """Every word's probability of being wrong; none where there is no evidence."""
        stop.check()
        case = view.case
        scorer = word_scorer(self._assessor.reader)
        return scorer.read(case.response, case.question, evidence_texts(view), case.language)

    def propose(self, view: JudgeView, judgement: Judgement, stop: Stop) -> tuple[Span, ...]:
        """Spans in the statements that are wrong, in order of their place."""
        if judgement.label != "hallucinated":
            return ()
        case = view.view.case
        spans = [_of_point(point, judgement.agent) for point in _contested(view, judgement)]
        statements = view.view.statements
        if any(without_spans(wrong_statements(statements, judgement), spans)):
            scores = self.score_words(view.view, stop)
            threshold = self.threshold(case.language)
            for words in free_words(statements, judgement, scores, spans):
                spans += [
                    span_of_stretch(stretch, case.response)
                    for stretch in stretches(words, case.response, threshold)
                ]
        return tuple(sorted(spans, key=lambda span: span.start))


class ThresholdSpanAdjudicator:
    """Built-in span adjudicator."""

    name = "Span adjudicator"
    built_in = True

    def __init__(self, assessor: Assessor, learned: SpanThreshold = AS_SHIPPED) -> None:
        self._assessor = assessor
        self._learned = learned

    @property
    def rule(self) -> str:
        """The rule, with the thresholds where they were learned from people."""
        return _with_thresholds(ADJUDICATOR_RULE, self._learned)

    def adjudicate(self, view: JudgeView, span: Span, label: Label, stop: Stop) -> SpanRuling:
        """Kept or dropped, with its final probability."""
        if label != "hallucinated":
            return SpanRuling(span, False, f"The verdict is {label}.")
        is_reader = span.source == READER
        language = view.view.case.language
        least = (
            reader_threshold(self._learned, language, self._assessor) if is_reader else KEPT_FROM
        )
        if span.p < least:
            return SpanRuling(span, False, f"p = {span.p:.2f} is below {least:.2f}.")
        why = "people mark such words" if is_reader else "the sources say it otherwise"
        return SpanRuling(span, True, f"p = {span.p:.2f}: {why}.")


def evidence_texts(view: CaseView) -> tuple[str, ...]:
    """What words are scored against: short sources whole, of long ones what was retrieved."""
    if sum(len(text) for text in view.sources.values()) <= WHOLE_UP_TO:
        return tuple(view.sources.values())
    found = sorted(view.evidence.passages.values(), key=lambda p: (p.source_id, p.start))
    around = (text for p in found for text in (p.before, p.text, p.after) if text.strip())
    return tuple(dict.fromkeys(around))


def wrong_statements(statements: Sequence[Statement], judgement: Judgement) -> list[Statement]:
    """The statements that the judge calls wrong; all where it labels none."""
    labels = judgement.statement_labels
    if not labels:
        return list(statements)
    labelled = zip(statements, labels, strict=False)
    return [statement for statement, label in labelled if label == "hallucinated"]


def without_spans(statements: Sequence[Statement], spans: Sequence[Span]) -> Iterator[Statement]:
    """The statements in which no span begins."""
    for statement in statements:
        if not any(statement.start <= span.start < statement.end for span in spans):
            yield statement


def free_words(
    statements: Sequence[Statement],
    judgement: Judgement,
    scores: Sequence[WordScore],
    named: Sequence[Span],
) -> Iterator[list[WordScore]]:
    """The scored words that may be marked, statement by statement: of wrong ones without a span."""
    for statement in without_spans(wrong_statements(statements, judgement), named):
        yield [s for s in scores if statement.start <= s.start and s.end <= statement.end]


def reader_threshold(learned: SpanThreshold, language: str, assessor: Assessor) -> float:
    """The one learned for the language, else the span reader's own."""
    found = learned.reader.at(language)
    return word_scorer(assessor.reader).threshold if found is None else found


def _with_thresholds(rule: str, learned: SpanThreshold) -> str:
    words = learned.reader.words
    if not words:
        return rule
    return f"{rule}\nThresholds learned from people (no. {learned.number}): {words}."


def _contested(view: JudgeView, judgement: Judgement) -> list[Point]:
    """The judge's points; debaters' where the judge is another's and names no places itself."""
    own = [point for point in judgement.points if point.finding != "carried"]
    if not own:
        wrong = {s.index for s in wrong_statements(view.view.statements, judgement)}
        raised = [point for turn in view.turns for point in turn.points]
        own = [p for p in raised if p.finding == "contradicted" and p.statement in wrong]
    chosen: list[Point] = []
    for point in sorted(own, key=lambda p: (p.finding != "contradicted", -p.weight)):
        if not any(point.start < other.end and other.start < point.end for other in chosen):
            chosen.append(point)
    return chosen


def _of_point(point: Point, agent: str) -> Span:
    return Span(
        point.start,
        point.end,
        point.text,
        max(KEPT_FROM, point.weight),
        point.category,
        agent,
        point.evidence,
        point.quote,
    )


def span_of_stretch(stretch: Stretch, response: str) -> Span:
    """The words of a stretch as a span of the span reader's."""
    text = response[stretch.start : stretch.end]
    before = response[: stretch.start].rstrip()
    category = category_of(text, not before or before[-1] in SENTENCE_ENDS)
    return Span(stretch.start, stretch.end, text, stretch.p, category, READER)


WEIGHTS = Path(__file__).parent / "weights" / "panel.json"
LEAST, MOST = 0.05, 0.95
DECIDED_FROM = 0.5
MISSING_P = 0.6
"""Of words that no source has."""
SILENT = SpanVote(None, "It has nothing to say of these words.")
Place = tuple[int, int, float]
"""`[start, end)` in the response and how likely it is wrong."""
Finds = Callable[[Assessment], list[Place]]


class AssessedPanelist:
    """A member that marks places of each statement by what was measured of it."""

    built_in = True

    def __init__(self, name: str, rule: str, finds: Finds, assessor: Assessor) -> None:
        self.name = name
        self.rule = rule
        self._finds = finds
        self._assessor = assessor

    def extract(self, view: CaseView, stop: Stop) -> tuple[Span, ...]:
        """The places that are wrong more likely than not."""
        return tuple(
            _span(view, start, end, p, self.name)
            for item in self._assessor.assess(view, stop)
            for start, end, p in self._finds(item)
            if p >= DECIDED_FROM
        )

    def vote(self, view: CaseView, spans: Sequence[Span], stop: Stop) -> tuple[SpanVote, ...]:
        """The highest p of the places that a span meets; none where it meets none."""
        places = [p for item in self._assessor.assess(view, stop) for p in self._finds(item)]
        return tuple(_vote_of(span, places) for span in spans)


def value_places(item: Assessment) -> list[Place]:
    """Numbers and dates: wrong where they differ, right where the sources have them."""
    weights = {"same": LEAST, "derived": 0.2, "different": 0.8, "unmatched": DECIDED_FROM}
    found: list[Place] = []
    if not item.measured.reading.windows:
        return found
    for value in item.measured.values:
        claim = item.measured.reading.claim
        place = place_in_response(item.statement, claim, value.start, value.end)
        if place is not None:
            found.append((*place, weights[value.status]))
    return found


def overlap_places(item: Assessment) -> list[Place]:
    """Words: wrong where no window has them; neighbours as one."""
    held = {term for window in item.measured.reading.windows for term in terms(window.text)}
    own, places = item.statement, []
    for match in WORD.finditer(own.text):
        wanted = query_terms(match.group())
        if wanted and held:
            is_missing = not any(term in held for term in wanted)
            p = MISSING_P if is_missing else LEAST
            places.append((own.start + match.start(), own.start + match.end(), p))
    return places


def entailment_places(item: Assessment) -> list[Place]:
    """The whole statement, where the reader decides about it."""
    against, for_it = item.measured.reading.contradicting, item.measured.reading.supporting
    if against is None or for_it is None:
        return []
    wrong, right = against.reading.contradicted, for_it.reading.supported
    if max(wrong, right) < DECIDED_FROM:
        return []
    return [(item.statement.start, item.statement.end, wrong / (wrong + right))]


class WordPanelist:
    """The span reader: marks what people would mark, and scores every word."""

    name = "Span reader"
    built_in = True
    rule = """Scores every word by how likely people would mark it; marks stretches of words at its
threshold or more. Votes with the mean score of a span's words."""

    def __init__(self, assessor: Assessor, learned: SpanThreshold = AS_SHIPPED) -> None:
        self._assessor = assessor
        self._learned = learned

    def threshold(self, language: str) -> float:
        """The score from which it marks a word of a text in that language."""
        return reader_threshold(self._learned, language, self._assessor)

    def score_words(self, view: CaseView, stop: Stop) -> tuple[WordScore, ...]:
        """Every word's probability of being wrong; none where there is no evidence."""
        stop.check()
        case = view.case
        texts = evidence_texts(view)
        scorer = word_scorer(self._assessor.reader)
        return scorer.read(case.response, case.question, texts, case.language)

    def extract(self, view: CaseView, stop: Stop) -> tuple[Span, ...]:
        """Stretches of words that it scores at its threshold or more."""
        scores, response = self.score_words(view, stop), view.case.response
        found = stretches(scores, response, self.threshold(view.case.language))
        return tuple(span_of_stretch(one, response) for one in found)

    def vote(self, view: CaseView, spans: Sequence[Span], stop: Stop) -> tuple[SpanVote, ...]:
        """The mean score of each span's words."""
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
    """The built-in member of a panel of that name: words, rules, overlap or entailment."""
    if name == "words":
        return WordPanelist(assessor, learned)
    told, rule, finds = {
        "rules": (
            "Value checker",
            "Marks numbers and dates that differ from the sources', or that no source has.",
            value_places,
        ),
        "overlap": ("Overlap reader", "Marks words that no source has.", overlap_places),
        "entailment": (
            "Entailment reader",
            "Marks a whole statement that the sources contradict more than they support.",
            entailment_places,
        ),
    }[name]
    return AssessedPanelist(told, rule, finds, assessor)


@lru_cache(maxsize=1)
def shipped_rule() -> PanelRule:
    """How votes among all four readers are weighed, as `training.train_panel` fitted it.

    Raises ConfigError if the weights are missing or of another form.
    """
    try:
        body = json.loads(WEIGHTS.read_text(encoding="utf-8"))
        weights = tuple((str(e), str(a), float(weight)) for e, a, weight in body["weights"])
        return PanelRule(Levels(otherwise=float(body["threshold"])), weights=weights)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"Expected the panel's weights in {WEIGHTS.name}, found: {error!r}. Restore the file "
            "from the repository."
        ) from error


def _vote_of(span: Span, places: Sequence[Place]) -> SpanVote:
    met = [p for start, end, p in places if span.start < end and start < span.end]
    return _vote(max(met), "It stands so beside the sources.") if met else SILENT


def _span(view: CaseView, start: int, end: int, p: float, name: str) -> Span:
    text = view.case.response[start:end]
    opens = any(statement.start == start for statement in view.statements)
    return Span(start, end, text, round(p, 3), category_of(text, opens), name)


def _vote(p: float, reason: str) -> SpanVote:
    return SpanVote(round(min(MOST, max(LEAST, p)), 3), reason)
