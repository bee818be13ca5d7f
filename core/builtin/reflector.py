"""Looks over all statements by rule: labels without evidence, and what wrong statements spoil.

Source: HaluAgent 2.3 (local and global reflection; what rests on a wrong result is wrong though it
is correct in isolation).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from core.audited import Reach, Reconsidered, Remembered, ToolUse
from core.builtin.self_contradiction import contradiction
from core.builtin.tainted import Taint
from core.concurrency import Stop
from core.records import Label, Statement
from core.roles import CaseView

RULE = """Local: a label that nothing stands behind, neither a tool that found something nor a
reason of the one who picked the tools, becomes unclear. A statement called hallucinated that stands
word for word in a passage is supported.
Global, in the order of the text: a statement that uses a number or name which a wrong one brought
in, or that opens with "therefore", "so" or "in total" right after a wrong one, is hallucinated too,
and spoils what follows it in its turn. It stands where the evidence itself carries it or gives the
number for the same thing, where it states the corrected value, or where it uses the number for
another thing. Of two statements that contradict each other the one that the evidence does not carry
is hallucinated, the later one where it carries neither."""
MOST_COMPARED = 40  # statements; beyond it pairs are too many to compare each with each


class BuiltInReflector:
    """Built-in reflector."""

    name = "Reflector"
    built_in = True
    rule = RULE

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
        taint = Taint(view.case)
        order = [statements[index] for index in sorted(statements)]
        for place, statement in enumerate(order):
            stop.check()
            index, before = statement.index, labels[statement.index]
            own = [use for use in uses if use.statement == index]
            if before != "hallucinated" and index not in carried:
                spoiled = taint.spoils(
                    statement, order[place - 1] if place else None, view.evidence.of(index)
                )
                if spoiled is not None:
                    labels[index] = "hallucinated"
                    yield Reconsidered(
                        index, "global", before, "hallucinated", spoiled.reason,
                        spoiled.because_of, self.name,
                    )  # fmt: skip
            taint.take(statement, labels[index] == "hallucinated", own)
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
                why = contradiction(view.case, later, earlier)
                if not why:
                    continue
                wrong, other = (earlier, later) if later.index in carried else (later, earlier)
                before = labels[wrong.index]
                labels[wrong.index] = "hallucinated"
                reason = f"It contradicts “{other.text}”: {why}."
                yield Reconsidered(
                    wrong.index, "global", before, "hallucinated", reason,
                    (other.index,), self.name,
                )  # fmt: skip

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
