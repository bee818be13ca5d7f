"""Reads a statement against passages for the match tool, through the judge's own readers.

It answers as the built-in judge would, for one statement. Whether a statement answers a question
it does not say: how alike the two are tells too little (docs/search-and-match.md has the figures).
Source: HaluAgent 2.2 (semantic checker; the paper asks GPT-4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from core.builtin.entailment_reader import stance_of as entailment_stance
from core.builtin.judge import BuiltInJudge, Finding
from core.builtin.rules import stance_of as rule_stance
from core.concurrency import Stop
from core.records import Case, Context, Passage, Point, Statement
from core.roles import CaseView, Evidence, JudgeView
from core.tools.toolbox import Answer

NOTHING_SAID = "The words make no statement that a source could carry or contradict."
NOTHING_READ = "There is no passage to read it against."


@dataclass(frozen=True)
class BuiltInMatcher:
    """What `Bench.match` is where no language model is asked; deterministic.

    `question` is read with a short answer that cannot stand alone; `sources` maps ids to whole
    texts, from which a table's rows are added up.
    """

    judge: BuiltInJudge
    language: str
    stop: Stop
    question: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, statement: str, passages: Sequence[Passage]) -> Answer:
        """The statement's label; offsets lie in `statement`.

        `gave["finding"]` is holds, contradicted, unsupported or open: contradicted only where the
        rules name a contrast or the entailment reader sees a denial.

        Raises:
            Stopped: the person stopped the check.
        """
        if not passages:
            return Answer("unclear", NOTHING_READ, {"finding": "open"}, has_something=False)
        found = self.judge.findings(self._view(statement, passages), self.stop)
        if not found:
            return Answer("unclear", NOTHING_SAID, {"finding": "open"}, has_something=False)
        return _answer(found[0])

    def _view(self, statement: str, passages: Sequence[Passage]) -> JudgeView:
        """The statement as the only one of a response."""
        case = Case("", "", statement, self.question, language=self.language)
        whole = (Statement(0, 0, len(statement), statement, statement),)
        ids = tuple(passage.id for passage in passages)
        evidence = Evidence({p.id: p for p in passages}, {0: ids})
        view = CaseView(case, whole, evidence, self.sources)
        return JudgeView(view, Context((), ids, ""), (), reached_consensus=False)


def _answer(found: Finding) -> Answer:
    points = [point for point in found.points if point.finding != "carried"]
    worst = max(points, key=lambda point: point.weight, default=None)
    finding = _finding_of(found)
    return Answer(
        found.label,
        found.spoken.reason,
        {"finding": finding, "readers": msgspec.to_builtins(found.look.stances)},
        None if found.label == "unclear" else round(found.p, 4),
        worst.start if worst else None,
        worst.end if worst else None,
        _instead(worst, finding),
        worst.category if worst else "",
    )


def _finding_of(found: Finding) -> str:
    """A contrast that the rules name, or a denial that the entailment reader sees, contradicts."""
    if found.label != "hallucinated":
        return "holds" if found.label == "supported" else "open"
    is_denied = not found.look.reading.muted
    is_denied = is_denied and entailment_stance(found.look.reading) == "hallucinated"
    is_contradicted = is_denied or rule_stance(found.look.item) == "hallucinated"
    return "contradicted" if is_contradicted else "unsupported"


def _instead(point: Point | None, finding: str) -> str:
    """What the source has in the words' place; nothing where it only lacks them."""
    return point.evidence if point is not None and finding == "contradicted" else ""
