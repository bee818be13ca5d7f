"""The built-in readers as members of a panel: each marks words by itself and votes on the others'.

They are unlike: the value checker sees changed numbers and dates, the overlap reader what no source
has, the entailment reader what the sources deny in other words, the span reader what people would
mark. Who has nothing to say of a span gives no vote, which is not one half. Source: MSA 3.3.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from core.baseline.assessment import Assessment, Assessor
from core.baseline.explanation import category_of, place_in_response
from core.baseline.span_reader import stretches, word_scorer
from core.baseline.spans import AS_SHIPPED, evidence_texts, reader_threshold, span_of_stretch
from core.concurrency import Stop
from core.documents.terms import WORD, query_terms, terms
from core.errors import ConfigError
from core.events import SpanVote
from core.records import Levels, PanelRule, Span, SpanThreshold, WordScore
from core.roles import CaseView

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

    Raises:
        ConfigError: the weights are missing or of another form.
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
