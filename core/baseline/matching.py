"""Reads a statement against passages for the match tool, through a judge's own readers.

Whether a statement answers a question it does not say: how alike the two are tells too little
(docs/search-and-match.md has the figures). Source: HaluAgent 2.2 (semantic checker; the paper asks
GPT-4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from core.baseline.debaters import ENTAILMENT, VALUES
from core.runtime.concurrency import Stop
from core.schema.records import Case, Judgement, Passage, Statement
from core.schema.roles import CaseView, Evidence, EvidenceReader
from core.tools.registry import Answer

# What these call hallucinated they saw denied; the overlap reader only misses it.
DENYING = (ENTAILMENT.name, VALUES.name)


@dataclass(frozen=True)
class BuiltInMatcher:
    """What `Bench.match` is where no language model is asked; deterministic.

    `question` is read with a short answer that cannot stand alone; `sources` maps ids to whole
    texts, from which a table's rows are added up.
    """

    judge: EvidenceReader
    language: str
    stop: Stop
    question: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, statement: str, passages: Sequence[Passage]) -> Answer:
        """The statement's label; offsets lie in `statement`.

        Raises Stopped if the person stopped the check.
        """
        case = Case("", "", statement, self.question, language=self.language)
        alone = Statement(0, 0, len(statement), statement, statement)
        evidence = Evidence({passage.id: passage for passage in passages}, {})
        view = CaseView(case, (alone,), evidence, self.sources)
        found = self.judge.read_statement(view, alone, self.stop)
        answer = answer_of(found, alone)
        # Where no label follows, a number beside it would be taken for one.
        p = None if found.label == "unclear" else answer.p
        return replace(answer, p=p, has_something=bool(found.readers))


def answer_of(found: Judgement, statement: Statement) -> Answer:
    """A judge's finding on one statement as the match tool gives it.

    `gave["finding"]` is holds, contradicted, unsupported or open: contradicted only where a reader
    saw the statement denied. The place of the wrong words is that of the strongest point, in the
    statement's text, contradicted words before missing ones.
    """
    gave: dict[str, Any] = {
        "finding": _finding_of(found),
        "readers": msgspec.to_builtins(found.readers),
        "measured": msgspec.to_builtins(found.measured),
        "points": msgspec.to_builtins(found.points),
        "cause": found.cause,
    }
    answer = Answer(found.label, found.prose or found.text, gave, found.p)
    wrong = [point for point in found.points if point.finding == "contradicted"] or found.points
    if found.label != "hallucinated" or not wrong:
        return answer
    point = max(wrong, key=lambda point: point.weight)
    return replace(
        answer,
        start=point.start - statement.start,
        end=point.end - statement.start,
        instead=point.evidence if point.finding == "contradicted" else "",
        category=point.category,
    )


def _finding_of(found: Judgement) -> str:
    """In the words of the tool `match`."""
    if found.label != "hallucinated":
        return "holds" if found.label == "supported" else "open"
    is_denied = any(v.stance == "hallucinated" and v.reader in DENYING for v in found.readers)
    is_denied = is_denied or any(point.finding == "contradicted" for point in found.points)
    return "contradicted" if is_denied else "unsupported"
