"""Assesses statements: reads each against its evidence, measures it, and gives it a label.

Judge, debaters, span extractor and audit all ask here, so that they cannot disagree about what was
read; what differs between them is which passages they see and which features they go by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import regex

from core.baseline.entailment import Reader
from core.baseline.evidence import read_statement
from core.baseline.evidence_model import EvidenceModel, load_evidence_model
from core.baseline.features import StatementFeatures, measure
from core.concurrency import Stop
from core.documents.terms import query_terms
from core.records import Case, Cause, Label, Passage, Statement
from core.roles import CaseView

ASSESSMENTS_KEPT = 2048
ABSTENTION = regex.compile(
    r"i (?:do not|don['’]t) know|i(?:['’]m| am) not sure|i (?:cannot|can['’]t) (?:say|tell|answer)"
    r"|ich weiß (?:es )?nicht|je ne sais pas|no (?:lo )?sé|non (?:lo )?so\b|não sei|jag vet inte"
    r"|en tiedä|nie wiem|nevím|не знаю|bilmiyorum|لا أعرف|لا أعلم|नहीं पता|मुझे नहीं पता|我不知道"
    r"|不知道|不清楚|分かりません|わかりません|모르",
    regex.IGNORECASE,
)
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
        if conflict := _conflict(measured):
            return Assessment(measured, p, "unclear", "sources_disagree", conflict)
        if not is_known and not any(value.status == "different" for value in measured.values):
            return Assessment(measured, p, "unclear", "language_not_known")
        label = self.model.label(p)
        if label != "unclear":
            return Assessment(measured, p, label)
        return Assessment(measured, p, label, "not_settled" if is_known else "language_not_known")


def _conflict(measured: StatementFeatures) -> tuple[Passage, Passage] | None:
    """Passages of two sources of which one plainly supports and one plainly contradicts."""
    windows = [w for w in measured.reading.windows if not w.is_joined]
    for_it = [w for w in windows if w.reading.supported >= PLAINLY]
    against = [w for w in windows if w.reading.contradicted >= PLAINLY]
    return next(
        (
            (one.passage, other.passage)
            for one in for_it
            for other in against
            if one.passage.source_id != other.passage.source_id
        ),
        None,
    )


def says_something(statement: Statement, case: Case) -> bool:
    """True where there are words or figures that evidence could support or contradict."""
    if ABSTENTION.match(statement.text.strip()) and len(statement.text) < LONGEST_ABSTENTION:
        return False
    is_list_mark = LIST_MARK.fullmatch(statement.text.strip()) is not None
    if is_list_mark and statement.text.strip() != case.response.strip():
        return False
    found = query_terms(statement.text, case.language)
    return any(len(term) > 1 or term.isnumeric() for term in found)
