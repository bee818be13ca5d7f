"""What the three built-in readers make of a statement, with the whole evidence before them.

The rule checker compares values and words, the overlap reader asks how much is carried, the
entailment reader says what the closest windows mean for the statement. Nothing is decided here.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.builtin.assess import Assessment, assess
from core.builtin.claims import Claim, claim_of
from core.builtin.entailment_reader import NAME as ENTAILMENT_READER
from core.builtin.entailment_reader import stance_of as entailment_stance
from core.builtin.overlap import Overlap, measure
from core.builtin.overlap import stance_of as overlap_stance
from core.builtin.overlap_reader import OverlapReader
from core.builtin.reading_windows import Said, StatementReading, read_statement, read_text
from core.builtin.rules import RuleChecker
from core.builtin.rules import stance_of as rule_stance
from core.concurrency import Stop
from core.models.encoder import Embedder
from core.models.reader import EntailmentReader
from core.records import Passage, ReaderView, Statement
from core.roles import JudgeView

SIMILAR_FROM = 0.35
COVERED_FROM = 0.4
CARRIED_FROM = 0.5
# Up to so many sentences are often one claim told at length, which evidence carries as a whole.
MOST_TOGETHER = 3
LONGEST_TOGETHER = 400  # characters, some 90 tokens: the reader needs room for the evidence


@dataclass(frozen=True)
class Look:
    """A statement with what each reader found, all passages given.

    `together` is the reading of the whole response where that is a few short sentences.
    """

    claim: Claim
    item: Assessment
    overlap: Overlap
    reading: StatementReading
    passages: tuple[Passage, ...]
    together: StatementReading | None = None

    @property
    def statement(self) -> Statement:
        """The statement that was looked at."""
        return self.claim.statement

    @property
    def widest_reading(self) -> StatementReading:
        """That of the whole response where there is one, else the statement's own."""
        together = self.together
        return together if together is not None and together.windows else self.reading

    @property
    def is_beside_the_point(self) -> bool:
        """True where the evidence is about something else: too poor to hold anything against it.

        No passage is like the statement, none holds much of it, no reader carries it and the rules
        name no contrast. What the entailment reader alone contradicts does not count here: it says
        so of much that is beside the point.
        """
        similarity = self.overlap.similarity
        return (
            (similarity is None or similarity < SIMILAR_FROM)
            and self.item.coverage < COVERED_FROM
            and self.overlap.carried < CARRIED_FROM
            and rule_stance(self.item) == "unclear"
            and self.reading.supported < CARRIED_FROM
        )

    @property
    def stances(self) -> tuple[ReaderView, ...]:
        """The readers by name, with what each calls the statement; the muted are left out."""
        found = [
            (RuleChecker.name, rule_stance(self.item)),
            (OverlapReader.name, overlap_stance(self.overlap)),
        ]
        if not self.reading.muted:
            found.insert(0, (ENTAILMENT_READER, entailment_stance(self.reading)))
        return tuple(ReaderView(name, self.statement.index, stance) for name, stance in found)


def looks_at(
    view: JudgeView, encoder: Embedder, reader: EntailmentReader, stop: Stop
) -> list[Look]:
    """What the readers make of every statement that says something to check."""
    found: list[Look] = []
    for statement in view.view.statements:
        stop.check()
        look = look_at(view, statement, encoder, reader, stop)
        if look is not None:
            found.append(look)
    together = _read_together(view, found, reader, stop)
    return [replace(look, together=together) for look in found]


def _read_together(
    view: JudgeView, looks: Sequence[Look], reader: EntailmentReader, stop: Stop
) -> StatementReading | None:
    """The response read as one text, over what was found for all its statements."""
    text = " ".join(view.view.case.response.split())
    if not 1 < len(looks) <= MOST_TOGETHER or len(text) > LONGEST_TOGETHER:
        return None
    ranked = itertools.chain.from_iterable(itertools.zip_longest(*(k.passages for k in looks)))
    passages = {passage.id: passage for passage in ranked if passage is not None}
    said = Said(text, view.view.case.language)
    return read_text(said, list(passages.values()), view.view.sources, reader, stop)


def look_at(
    view: JudgeView,
    statement: Statement,
    encoder: Embedder,
    reader: EntailmentReader,
    stop: Stop,
) -> Look | None:
    """All three readings; None for a statement that says nothing to check."""
    claim = claim_of(view.view.case, statement)
    if not claim.has_content:
        return None
    passages = view.view.evidence.of(statement.index)
    return Look(
        claim,
        assess(claim, passages, view.view.sources),
        measure(claim, passages, encoder),
        read_statement(claim, passages, view.view.sources, reader, stop),
        passages,
    )
