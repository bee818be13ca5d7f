"""The built-in readers as members of a panel (MSA 3.3), and marks without one.

Each member marks words by itself and votes on the others'; who has nothing to say of a span gives
no vote, which is not one half. Without a panel the judge's points are marked, and in a wrong
statement without any the span reader's words; none in a statement that is supported.
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
"""Characters of all sources together up to which words are scored against all of them."""
SENTENCE_ENDS = ".!?。！？।؟:\n"
AS_SHIPPED = SpanThreshold()


class WordScoring:
    """What marks words by the span reader's scores, at a threshold that people may have taught."""

    built_in = True

    def __init__(self, assessor: Assessor, learned: SpanThreshold = AS_SHIPPED) -> None:
        self._assessor = assessor
        self._learned = learned

    def threshold(self, language: str) -> float:
        """The score from which words are marked: learned for the language, else the reader's."""
        found = self._learned.reader.at(language)
        return word_scorer(self._assessor.reader).threshold if found is None else found

    def score_words(self, view: CaseView, stop: Stop) -> tuple[WordScore, ...]:
        """Every word's probability of being wrong; none where there is no evidence."""
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
    """Built-in span extractor."""

    name = "Point span extractor"

    @property
    def rule(self) -> str:
        """The rule, with the thresholds where they were learned from people."""
        return self._with_thresholds(RULES["span extractor"])

    def propose(self, view: JudgeView, judgement: Judgement, stop: Stop) -> tuple[Span, ...]:
        """Spans in the statements that are wrong, in order of their place."""
        if judgement.label != "hallucinated":
            return ()
        case = view.view.case
        spans = [
            Span(
                point.start, point.end, point.text, max(KEPT_FROM, point.weight), point.category,
                judgement.agent, point.evidence, point.quote,
            )
            for point in _contested_points(view, judgement)
        ]  # fmt: skip
        statements = view.view.statements
        if any(_without_spans(statements, judgement, spans)):
            scores = self.score_words(view.view, stop)
            threshold = self.threshold(case.language)
            for words in free_words(statements, judgement, scores, spans):
                spans += [
                    _span_of_stretch(stretch, case.response)
                    for stretch in stretches(words, case.response, threshold)
                ]
        return tuple(sorted(spans, key=lambda span: span.start))


class ThresholdSpanAdjudicator(WordScoring):
    """Built-in span adjudicator."""

    name = "Span adjudicator"

    @property
    def rule(self) -> str:
        """The rule, with the thresholds where they were learned from people."""
        return self._with_thresholds(RULES["span adjudicator"])

    def adjudicate(self, view: JudgeView, span: Span, label: Label, stop: Stop) -> SpanRuling:
        """Kept or dropped, with its final probability."""
        if label != "hallucinated":
            return SpanRuling(span, False, f"The verdict is {label}.")
        is_reader = span.source == READER
        least = self.threshold(view.view.case.language) if is_reader else KEPT_FROM
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


def _wrong_statements(statements: Sequence[Statement], judgement: Judgement) -> list[Statement]:
    """The statements that the judge calls wrong; all where it labels none."""
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
    """The scored words that may be marked, statement by statement: of wrong ones without a span."""
    for statement in _without_spans(statements, judgement, named):
        yield [s for s in scores if statement.start <= s.start and s.end <= statement.end]


def _contested_points(view: JudgeView, judgement: Judgement) -> list[Point]:
    """The judge's points; debaters' where the judge is another's and names no places itself."""
    own = [point for point in judgement.points if point.finding != "carried"]
    if not own:
        wrong = {s.index for s in _wrong_statements(view.view.statements, judgement)}
        raised = [point for turn in view.turns for point in turn.points]
        own = [p for p in raised if p.finding == "contradicted" and p.statement in wrong]
    chosen: list[Point] = []
    for point in sorted(own, key=lambda p: (p.finding != "contradicted", -p.weight)):
        if not any(point.start < other.end and other.start < point.end for other in chosen):
            chosen.append(point)
    return chosen


def _span_of_stretch(stretch: ScoredStretch, response: str) -> Span:
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
        self.name, self.rule = name, rule
        self._finds, self._assessor = finds, assessor

    def extract(self, view: CaseView, stop: Stop) -> tuple[Span, ...]:
        """The places that are wrong more likely than not."""
        found, begins = [], {statement.start for statement in view.statements}
        for start, end, p in self._places(view, stop):
            if p >= DECIDED_FROM:
                text = view.case.response[start:end]
                category = category_of(text, start in begins)
                found.append(Span(start, end, text, round(p, 3), category, self.name))
        return tuple(found)

    def vote(self, view: CaseView, spans: Sequence[Span], stop: Stop) -> tuple[SpanVote, ...]:
        """The highest p of the places that a span meets; none where it meets none."""
        places, votes = self._places(view, stop), []
        for span in spans:
            met = [p for start, end, p in places if span.start < end and start < span.end]
            votes.append(_vote(max(met), "It stands so beside the sources.") if met else SILENT)
        return tuple(votes)

    def _places(self, view: CaseView, stop: Stop) -> list[Place]:
        return [p for item in self._assessor.assess(view, stop) for p in self._finds(item)]


def _value_places(item: Assessment) -> list[Place]:
    """Numbers and dates: wrong where they differ, right where the sources have them."""
    weights = {"same": LEAST, "derived": 0.2, "different": 0.8, "unmatched": DECIDED_FROM}
    found: list[Place] = []
    reading = item.measured.reading
    for value in item.measured.values if reading.windows else ():
        claim = reading.claim
        place = place_in_response(item.statement, claim, value.start, value.end)
        if place is not None:
            found.append((*place, weights[value.status]))
    return found


def _overlap_places(item: Assessment) -> list[Place]:
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


def _entailment_places(item: Assessment) -> list[Place]:
    """The whole statement, where the reader decides about it."""
    against, for_it = item.measured.reading.contradicting, item.measured.reading.supporting
    if against is None or for_it is None:
        return []
    wrong, right = against.reading.contradicted, for_it.reading.supported
    if max(wrong, right) < DECIDED_FROM:
        return []
    return [(item.statement.start, item.statement.end, wrong / (wrong + right))]


class WordPanelist(WordScoring):
    """The span reader: marks what people would mark, and scores every word."""

    name = READER
    rule = RULES["span reader"]

    def extract(self, view: CaseView, stop: Stop) -> tuple[Span, ...]:
        """Stretches of words that it scores at its threshold or more."""
        scores, response = self.score_words(view, stop), view.case.response
        found = stretches(scores, response, self.threshold(view.case.language))
        return tuple(_span_of_stretch(one, response) for one in found)

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
            _value_places,
        ),
        "overlap": ("Overlap reader", "Marks words that no source has.", _overlap_places),
        "entailment": (
            "Entailment reader",
            "Marks a whole statement that the sources contradict more than they support.",
            _entailment_places,
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


def _vote(p: float, reason: str) -> SpanVote:
    return SpanVote(round(min(MOST, max(LEAST, p)), 3), reason)
