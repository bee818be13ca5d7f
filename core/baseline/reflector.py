"""The built-in reflector of an audit: it revises labels without evidence, and propagates errors.

Source: HaluAgent 2.3 (local and global reflection; a statement that rests on a wrong result is
wrong even if it is correct in isolation).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from core.baseline.assessment import NAME_PATTERN, Assessor
from core.baseline.tool_picker import is_conclusion
from core.baseline.wording import AGENT_RULES
from core.documents.segmentation import extract_query_terms, fold_word
from core.runtime.concurrency import StopSignal
from core.schema.events import LabelRevision, MemoryEntry, ToolUse
from core.schema.records import Case, Label, Passage, Statement
from core.schema.roles import CaseView

CONTRADICTED_FROM = 0.9
SAME_SUBJECT_FROM = 0.6
"""Share of the shorter statement's terms from which two statements have the same subject."""
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
MAX_COMPARED_STATEMENTS = 40  # statements; with more there are too many pairs to compare


class BuiltInReflector:
    """The built-in reflector."""

    name = "Reflector"
    built_in = True
    rule = AGENT_RULES["reflector"]

    def __init__(self, assessor: Assessor) -> None:
        self._assessor = assessor

    def reflect(
        self,
        view: CaseView,
        memory: Sequence[MemoryEntry],
        uses: Sequence[ToolUse],
        stop: StopSignal,
    ) -> tuple[LabelRevision, ...]:
        """Return the changed labels: local changes first, then global ones over the result."""
        by_statement = {s.index: s for s in view.statements}
        entries = {m.statement: m for m in memory if m.is_checkable and m.statement in by_statement}
        by_statement = {index: by_statement[index] for index in entries}
        changes: dict[int, LabelRevision] = {}
        for index, entry in entries.items():
            stop.check()
            own_uses = [use for use in uses if use.statement == index and use.outcome == "found"]
            if local := _reflect_locally(view, by_statement[index], entry, own_uses):
                before, (after, why) = entry.label, local
                changes[index] = LabelRevision(index, "local", before, after, why, agent=self.name)
        labels = {
            i: changes[i].after if i in changes else entry.label for i, entry in entries.items()
        }
        supported = {i for i, change in changes.items() if change.after == "supported"}
        supported |= {
            use.statement
            for use in uses
            if _is_reading(use) and use.label == "supported" and use.statement is not None
        }
        for change in self._reflect_globally(view, by_statement, labels, uses, supported, stop):
            changes[change.statement] = change
        return tuple(change for _, change in sorted(changes.items()))

    def _reflect_globally(
        self,
        view: CaseView,
        statements: Mapping[int, Statement],
        labels: dict[int, Label],
        uses: Sequence[ToolUse],
        supported: set[int],
        stop: StopSignal,
    ) -> Iterator[LabelRevision]:
        propagation = ErrorPropagation(view.case)
        order = [statements[index] for index in sorted(statements)]
        for position, statement in enumerate(order):
            stop.check()
            index, before = statement.index, labels[statement.index]
            own_uses = [use for use in uses if use.statement == index]
            if before != "hallucinated" and index not in supported:
                last = order[position - 1] if position else None
                if error := propagation.spoils(statement, last, view.evidence.of(index)):
                    labels[index], (reason, owner) = "hallucinated", error
                    yield LabelRevision(
                        index, "global", before, "hallucinated", reason, (owner,), self.name
                    )
            propagation.take(statement, labels[index] == "hallucinated", own_uses)
        if len(order) <= MAX_COMPARED_STATEMENTS:
            yield from self._find_contradictions(view, order, labels, supported, stop)

    def _find_contradictions(
        self,
        view: CaseView,
        order: Sequence[Statement],
        labels: dict[int, Label],
        supported: set[int],
        stop: StopSignal,
    ) -> Iterator[LabelRevision]:
        for position, later in enumerate(order):
            for earlier in order[:position]:
                stop.check()
                pair = {labels[later.index], labels[earlier.index]}
                if "hallucinated" in pair or pair == {"supported"}:
                    continue
                if not self._contradict(view.case, later, earlier, stop):
                    continue
                wrong, other = (earlier, later) if later.index in supported else (later, earlier)
                before = labels[wrong.index]
                labels[wrong.index] = "hallucinated"
                reason = f"It contradicts “{other.text}”."
                basis = (other.index,)
                yield LabelRevision(
                    wrong.index, "global", before, "hallucinated", reason, basis, self.name
                )

    def _contradict(
        self, case: Case, later: Statement, earlier: Statement, stop: StopSignal
    ) -> bool:
        """Return True if both have the same subject and the reader says each denies the other."""
        one, other = (set(extract_query_terms(s.rewrite, case.language)) for s in (later, earlier))
        if "=" in later.text or len(one & other) < SAME_SUBJECT_FROM * min(len(one), len(other)):
            return False  # a step of a calculation has values of its own
        pairs = [(earlier.rewrite, later.rewrite), (later.rewrite, earlier.rewrite)]
        readings = self._assessor.reader.read(pairs, stop)
        return all(reading.contradicted >= CONTRADICTED_FROM for reading in readings)


def _reflect_locally(
    view: CaseView, statement: Statement, entry: MemoryEntry, uses: Sequence[ToolUse]
) -> tuple[Label, str] | None:
    """Return the label by the statement's tools and passages, and why; None to keep its label."""
    if entry.label == "unclear":
        return None
    if not uses and not entry.passages and not entry.evidence.strip():
        return "unclear", "Nothing was found that stands behind this label."
    refutations = [u for u in uses if u.label == "hallucinated" and not _is_reading(u)]
    text = " ".join(statement.text.split())
    if entry.label == "hallucinated" and not refutations and len(text.split()) > 2:
        for passage in view.evidence.of(statement.index):
            if text in " ".join(passage.text.split()):
                return "supported", f"It stands word for word in {passage.source}."
    return None


def _is_reading(use: ToolUse) -> bool:
    return use.tool == "match"


@dataclass
class ErrorPropagation:
    """Tracks what wrong statements introduced; statements are passed in the order of the text."""

    case: Case
    owners: dict[str, int] = field(default_factory=dict)
    """Value to the index of the wrong statement that introduced it."""
    meant: dict[str, frozenset[str]] = field(default_factory=dict)
    """Value to the words beside it there: 12 wrong apples do not affect 12 months."""
    corrected: dict[int, frozenset[str]] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    wrong: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.known |= set(extract_values(self.case.question))

    def spoils(
        self, statement: Statement, last: Statement | None, passages: Sequence[Passage] = ()
    ) -> tuple[str, int] | None:
        """Return why it is wrong, and the wrong statement it rests on; `last` is the one before."""
        values, words = extract_values(statement.text), self._terms(statement.text)
        follows = is_conclusion(statement.text, self.case.language)
        for value, shown in values.items():
            owner = self.owners.get(value)
            if owner is None or self._is_corrected(owner, values):
                continue
            if any(
                value in extract_values(p.text) and words & self._terms(p.text) for p in passages
            ):
                continue
            # In a calculation a wrong number counts whatever words are beside it.
            is_sum = re.search("[=≈]", statement.text) and any(map(str.isdigit, statement.text))
            if follows or words & self.meant[value] or is_sum:
                return f"It uses “{shown}”, which a wrong statement brought in.", owner
        is_next = last is not None and last.index in self.wrong
        if follows and last is not None and is_next and not self._is_corrected(last.index, values):
            return "It concludes from the statement before it, which is wrong.", last.index
        return None

    def take(self, statement: Statement, is_wrong: bool, uses: Sequence[ToolUse]) -> None:
        """Record a statement; values that a wrong one introduces are tracked from here on."""
        values = extract_values(statement.text)
        if is_wrong:
            self.wrong.add(statement.index)
            named = [use for use in uses if use.label == "hallucinated" and use.start is not None]
            start, text = statement.start, statement.text
            refuted = (text[(u.start or 0) - start : (u.end or 0) - start] for u in named)
            for value in extract_values(" ".join(refuted)) if named else values:
                if value not in self.known:
                    self.owners[value] = statement.index
                    self.meant[value] = self._terms(text)
            corrected = extract_values(" ".join(use.instead for use in named))
            self.corrected[statement.index] = frozenset(corrected)
        self.known |= set(values)

    def _terms(self, text: str) -> frozenset[str]:
        """Return a statement's terms without numbers."""
        content = extract_query_terms(text, self.case.language)
        return frozenset(term for term in content if not any(c.isdigit() for c in term))

    def _is_corrected(self, owner: int, values: Mapping[str, str]) -> bool:
        """Return True if the statement says what the wrong one should have said."""
        return not self.corrected.get(owner, frozenset()).isdisjoint(values)


def extract_values(text: str) -> dict[str, str]:
    """Return numbers and names as they are compared, each with the text as written.

    A single capitalised word that opens a sentence is left out: it may be any word.
    """
    values = {match.group().replace(",", ""): match.group() for match in NUMBER.finditer(text)}
    for match in NAME_PATTERN.finditer(text):
        if match.start() > 0 or " " in match.group():
            values[fold_word(match.group())] = match.group()
    return values
