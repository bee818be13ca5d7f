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
from core.documents.segmentation import fold, query_terms
from core.runtime.concurrency import Stop
from core.schema.events import Reach, Reconsidered, Remembered, ToolUse
from core.schema.records import Case, Label, Passage, Statement
from core.schema.roles import CaseView

RULE = """Local: a label that nothing stands behind, neither a tool that found something nor a
reason of the one who picked the tools, becomes unclear. A statement called hallucinated that stands
word for word in a passage is supported.
Global, in the order of the text: a statement that uses a number or name which a wrong one brought
in, or that opens with "therefore", "so" or "in total" right after a wrong one, is hallucinated too,
and spoils what follows it in its turn. It stands where a passage gives the number for the same
thing or where it states the corrected value. Of two statements about one thing of which the reader
finds each to contradict the other, the one that the evidence does not support is hallucinated, the
later one where it supports neither."""
CONTRADICTED_FROM = 0.9
SHARED_FROM = 0.6
"""Share of the shorter statement's terms from which two statements are about one thing."""
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
MOST_COMPARED = 40  # statements; beyond it pairs are too many to compare each with each


class BuiltInReflector:
    """Built-in reflector."""

    name = "Reflector"
    built_in = True
    rule = RULE

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
            change = self._local(view, by_statement[index], entry, own)
            if change is not None:
                found[index] = change
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

    def _local(
        self, view: CaseView, statement: Statement, entry: Remembered, own: Sequence[ToolUse]
    ) -> Reconsidered | None:
        if entry.label == "unclear":
            return None
        if not own and not entry.passages and not entry.evidence.strip():
            why = "Nothing was found that stands behind this label."
            return self._change(entry, "local", "unclear", why)
        worked = [u for u in own if u.label == "hallucinated" and not _is_reading(u)]
        said = " ".join(statement.text.split())
        if entry.label == "hallucinated" and not worked and len(said.split()) > 2:
            for passage in view.evidence.of(statement.index):
                if said in " ".join(passage.text.split()):
                    why = f"It stands word for word in {passage.source}."
                    return self._change(entry, "local", "supported", why)
        return None

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
                spoiled = spread.spoils(
                    statement, order[place - 1] if place else None, view.evidence.of(index)
                )
                if spoiled is not None:
                    labels[index] = "hallucinated"
                    yield Reconsidered(
                        index, "global", before, "hallucinated", spoiled.reason,
                        spoiled.because_of, self.name,
                    )  # fmt: skip
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

    def _change(self, entry: Remembered, reach: Reach, after: Label, why: str) -> Reconsidered:
        return Reconsidered(
            entry.statement,
            reach,
            entry.label,
            after,
            why,
            agent=self.name,
        )


def _is_reading(use: ToolUse) -> bool:
    return use.tool == "match"


@dataclass(frozen=True)
class Spoiled:
    """Why a statement cannot stand, and the wrong statements that it rests on."""

    reason: str
    because_of: tuple[int, ...]


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
    ) -> Spoiled | None:
        """Whether it rests on something wrong; `last` is the statement before it."""
        values, words = values_in(statement.text), self._words(statement.text)
        follows = concludes(statement.text, self.case.language)
        for value, shown in values.items():
            owner = self.owners.get(value)
            if owner is None or self._is_corrected(owner, values):
                continue
            if any(value in values_in(p.text) and words & self._words(p.text) for p in passages):
                continue
            if follows or words & self.meant[value] or _is_sum(statement.text):
                reason = f"It uses “{shown}”, which a wrong statement brought in."
                return Spoiled(reason, (owner,))
        is_next = last is not None and last.index in self.wrong
        if follows and last is not None and is_next and not self._is_corrected(last.index, values):
            reason = "It concludes from the statement before it, which is wrong."
            return Spoiled(reason, (last.index,))
        return None

    def take(self, statement: Statement, is_wrong: bool, uses: Sequence[ToolUse]) -> None:
        """Go past a statement; what a wrong one brought in new is followed from here on."""
        values = values_in(statement.text)
        if is_wrong:
            self.wrong.add(statement.index)
            named = [use for use in uses if use.label == "hallucinated" and use.start is not None]
            refuted = [
                statement.text[
                    (use.start or 0) - statement.start : (use.end or 0) - statement.start
                ]
                for use in named
            ]
            new = values_in(" ".join(refuted)) if named else values
            for value in new:
                if value not in self.known:
                    self.owners[value] = statement.index
                    self.meant[value] = self._words(statement.text)
            right = values_in(" ".join(use.instead for use in named))
            self.corrected[statement.index] = frozenset(right)
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


def _is_sum(text: str) -> bool:
    """True where it calculates: there a wrong number spoils whatever it is called."""
    return any(sign in text for sign in "=≈") and any(char.isdigit() for char in text)
