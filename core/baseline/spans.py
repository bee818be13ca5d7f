"""Spans, built in: the smallest words that are wrong in statements that the judge calls wrong.

The judge's own points come first: they have the source's words beside the response's. In a wrong
statement without any, the span reader's words are marked. A word is never marked because it is
merely absent from the sources while its statement is supported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.baseline.assessment import Assessor
from core.baseline.explanation import category_of
from core.baseline.span_reader import Stretch, stretches, word_scorer
from core.concurrency import Stop
from core.records import Judgement, Label, Point, Span, SpanThreshold, Statement, WordScore
from core.roles import CaseView, JudgeView, SpanRuling

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
