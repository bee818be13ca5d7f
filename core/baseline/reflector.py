"""Looks over all statements: labels without evidence, and what wrong statements spoil.

Source: HaluAgent 2.3 (local and global reflection; what rests on a wrong result is wrong though it
is correct in isolation).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from core.baseline.assessment import NAME, Assessor
from core.baseline.tool_picker import concludes
from core.baseline.wording import RULES
from core.documents.segmentation import fold, query_terms
from core.runtime.concurrency import Stop
from core.schema.events import Reconsidered, Remembered, ToolUse
from core.schema.records import Case, Label, Passage, Statement
from core.schema.roles import CaseView

CONTRADICTED_FROM = 0.9
SHARED_FROM = 0.6
"""Share of the shorter statement's terms from which two statements are about one thing."""
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
MOST_COMPARED = 40  # statements; beyond it pairs are too many to compare each with each


class BuiltInReflector:
    """Built-in reflector."""

    name = "Reflector"
    built_in = True
    rule = RULES["reflector"]

    def __init__(self, assessor: Assessor) -> None:
        self._assessor = assessor

    def reflect(
        self, view: CaseView, memory: Sequence[Remembered], uses: Sequence[ToolUse], stop: Stop
    ) -> tuple[Reconsidered, ...]:
        """Local changes first; global ones over what then holds."""
        by_statement = {s.index: s for s in view.statements}
        held = {m.statement: m for m in memory if m.is_checkable and m.statement in by_statement}
        by_statement = {index: by_statement[index] for index in held}
        found: dict[int, Reconsidered] = {}
        for index, entry in held.items():
            stop.check()
            own = [use for use in uses if use.statement == index and use.outcome == "found"]
            if local := _local(view, by_statement[index], entry, own):
                before, (after, why) = entry.label, local
                found[index] = Reconsidered(index, "local", before, after, why, agent=self.name)
        labels = {i: found[i].after if i in found else entry.label for i, entry in held.items()}
        carried = {i for i, change in found.items() if change.after == "supported"}
        carried |= {
            use.statement
            for use in uses
            if _is_reading(use) and use.label == "supported" and use.statement is not None
        }
        for change in self._global(view, by_statement, labels, uses, carried, stop):
            found[change.statement] = change
        return tuple(change for _, change in sorted(found.items()))

    def _global(
        self,
        view: CaseView,
        statements: Mapping[int, Statement],
        labels: dict[int, Label],
        uses: Sequence[ToolUse],
        carried: set[int],
        stop: Stop,
    ) -> Iterator[Reconsidered]:
        spread = ErrorPropagation(view.case)
        order = [statements[index] for index in sorted(statements)]
        for place, statement in enumerate(order):
            stop.check()
            index, before = statement.index, labels[statement.index]
            own = [use for use in uses if use.statement == index]
            if before != "hallucinated" and index not in carried:
                last = order[place - 1] if place else None
                if spoiled := spread.spoils(statement, last, view.evidence.of(index)):
                    labels[index], (reason, owner) = "hallucinated", spoiled
                    yield Reconsidered(
                        index, "global", before, "hallucinated", reason, (owner,), self.name
                    )
            spread.take(statement, labels[index] == "hallucinated", own)
        if len(order) <= MOST_COMPARED:
            yield from self._contradictory(view, order, labels, carried, stop)

    def _contradictory(
        self,
        view: CaseView,
        order: Sequence[Statement],
        labels: dict[int, Label],
        carried: set[int],
        stop: Stop,
    ) -> Iterator[Reconsidered]:
        for place, later in enumerate(order):
            for earlier in order[:place]:
                stop.check()
                pair = {labels[later.index], labels[earlier.index]}
                if "hallucinated" in pair or pair == {"supported"}:
                    continue
                if not self._contradict(view.case, later, earlier, stop):
                    continue
                wrong, other = (earlier, later) if later.index in carried else (later, earlier)
                before = labels[wrong.index]
                labels[wrong.index] = "hallucinated"
                reason = f"It contradicts “{other.text}”."
                yield Reconsidered(
                    wrong.index, "global", before, "hallucinated", reason,
                    (other.index,), self.name,
                )  # fmt: skip

    def _contradict(self, case: Case, later: Statement, earlier: Statement, stop: Stop) -> bool:
        """True where both are about one thing and the reader finds each to deny the other."""
        one, other = (set(query_terms(s.rewrite, case.language)) for s in (later, earlier))
        if "=" in later.text or len(one & other) < SHARED_FROM * min(len(one), len(other)):
            return False  # a step of a calculation has values of its own
        pairs = [(earlier.rewrite, later.rewrite), (later.rewrite, earlier.rewrite)]
        readings = self._assessor.reader.read(pairs, stop)
        return all(reading.contradicted >= CONTRADICTED_FROM for reading in readings)


def _local(
    view: CaseView, statement: Statement, entry: Remembered, own: Sequence[ToolUse]
) -> tuple[Label, str] | None:
    """The label that a statement's own tools and passages leave it, and why; None for its own."""
    if entry.label == "unclear":
        return None
    if not own and not entry.passages and not entry.evidence.strip():
        return "unclear", "Nothing was found that stands behind this label."
    worked = [u for u in own if u.label == "hallucinated" and not _is_reading(u)]
    said = " ".join(statement.text.split())
    if entry.label == "hallucinated" and not worked and len(said.split()) > 2:
        for passage in view.evidence.of(statement.index):
            if said in " ".join(passage.text.split()):
                return "supported", f"It stands word for word in {passage.source}."
    return None


def _is_reading(use: ToolUse) -> bool:
    return use.tool == "match"


@dataclass
class ErrorPropagation:
    """What wrong statements brought in so far; statements are taken in the order of the text."""

    case: Case
    owners: dict[str, int] = field(default_factory=dict)
    """A value to the wrong statement that brought it in."""
    meant: dict[str, frozenset[str]] = field(default_factory=dict)
    """A value to the words beside it there: 12 apples spoil no 12 months."""
    corrected: dict[int, frozenset[str]] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    wrong: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.known |= set(values_in(self.case.question))

    def spoils(
        self, statement: Statement, last: Statement | None, passages: Sequence[Passage] = ()
    ) -> tuple[str, int] | None:
        """Why it cannot stand, with the wrong statement that it rests on; `last` is before it."""
        values, words = values_in(statement.text), self._words(statement.text)
        follows = concludes(statement.text, self.case.language)
        for value, shown in values.items():
            owner = self.owners.get(value)
            if owner is None or self._is_corrected(owner, values):
                continue
            if any(value in values_in(p.text) and words & self._words(p.text) for p in passages):
                continue
            # Where it calculates a wrong number spoils whatever it is called.
            is_sum = re.search("[=≈]", statement.text) and any(map(str.isdigit, statement.text))
            if follows or words & self.meant[value] or is_sum:
                return f"It uses “{shown}”, which a wrong statement brought in.", owner
        is_next = last is not None and last.index in self.wrong
        if follows and last is not None and is_next and not self._is_corrected(last.index, values):
            return "It concludes from the statement before it, which is wrong.", last.index
        return None

    def take(self, statement: Statement, is_wrong: bool, uses: Sequence[ToolUse]) -> None:
        """Go past a statement; what a wrong one brought in new is followed from here on."""
        values = values_in(statement.text)
        if is_wrong:
            self.wrong.add(statement.index)
            named = [use for use in uses if use.label == "hallucinated" and use.start is not None]
            start, text = statement.start, statement.text
            refuted = (text[(u.start or 0) - start : (u.end or 0) - start] for u in named)
            for value in values_in(" ".join(refuted)) if named else values:
                if value not in self.known:
                    self.owners[value] = statement.index
                    self.meant[value] = self._words(text)
            corrected = values_in(" ".join(use.instead for use in named))
            self.corrected[statement.index] = frozenset(corrected)
        self.known |= set(values)

    def _words(self, text: str) -> frozenset[str]:
        """What a statement speaks of, beside its numbers."""
        found = query_terms(text, self.case.language)
        return frozenset(term for term in found if not any(c.isdigit() for c in term))

    def _is_corrected(self, owner: int, values: Mapping[str, str]) -> bool:
        """True where the statement says what the wrong one should have said."""
        return not self.corrected.get(owner, frozenset()).isdisjoint(values)


def values_in(text: str) -> dict[str, str]:
    """Numbers and names by what they are compared as, with the words that show them.

    The name that opens a sentence is left out where it is a single word: it may be any word.
    """
    found = {match.group().replace(",", ""): match.group() for match in NUMBER.finditer(text)}
    for match in NAME.finditer(text):
        if match.start() > 0 or " " in match.group():
            found[fold(match.group())] = match.group()
    return found
