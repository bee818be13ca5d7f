"""One judgement of the whole response from what is remembered of its statements.

The response is hallucinated if a statement is or if a tool refutes it as a whole, supported if all
statements that say something to check are, else unclear. Source: HaluAgent 2.3 (the final answer
lists the wrong sentences with their evidence).

Applies what a reflector changes, as far as it speaks of statements that there are. Source:
HaluAgent 2.3 (local and global reflection, memory updated accordingly).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core.baseline.evidence_model import load_evidence_model
from core.baseline.wording import DEGREES, capitalised, counted, listed, shortened
from core.events import Reconsidered, Remembered, ToolUse
from core.pipeline.audit_memory import READING, SEARCH, cause_of, measured_of, points_of, readers_of
from core.pipeline.audit_steps import CONDITIONS, confirming, refuting
from core.records import (
    CATEGORY_WORDS,
    Category,
    Cause,
    Judgement,
    Label,
    MeasuredShare,
    Point,
    Statement,
)
from core.roles import CaseView


def applied(
    changes: Sequence[Reconsidered], memory: Mapping[int, Remembered]
) -> Iterator[tuple[Reconsidered, Remembered]]:
    """Each change with what is remembered after it; of several to one statement the first counts.

    What changes nothing, or what speaks of a statement that is not there or that says nothing to
    check, is left out. What a person reads is the label that was held before, whatever the
    reflector took it to be.
    """
    done: set[int] = set()
    for change in changes:
        entry = memory.get(change.statement)
        is_new = change.statement not in done
        if entry is None or not is_new or not entry.is_checkable or entry.label == change.after:
            continue
        done.add(change.statement)
        causes = tuple(i for i in change.because_of if i in memory and i != change.statement)
        kept = replace(change, before=entry.label, because_of=causes)
        p = _p_after(kept, entry, memory)
        yield kept, replace(entry, label=kept.after, p=p, evidence=kept.reason, is_contested=False)


def _p_after(
    change: Reconsidered, entry: Remembered, memory: Mapping[int, Remembered]
) -> float | None:
    """What rests on wrong statements is as likely wrong as they are; else what fits the label."""
    known = [memory[i].p for i in change.because_of]
    if change.after == "hallucinated":
        wrong = [p for p in (*known, entry.p) if p is not None and p >= 0.5]
        return max(wrong, default=None)
    is_fitting = entry.p is not None and (change.after == "unclear" or entry.p < 0.5)
    return entry.p if is_fitting else None


NAME = "Audit"
SURELY = 0.9999
SHOWN = 120  # characters of a statement in the answer
NO_STATEMENT = "the text makes no statement that could be checked"


@dataclass(frozen=True)
class Found:
    """What the audit has come to: the memory after reflection and debate, and all tool uses."""

    view: CaseView
    memory: Mapping[int, Remembered]
    uses: Sequence[ToolUse]

    @property
    def checkable(self) -> list[tuple[Statement, Remembered]]:
        """The statements that say something to check, in order."""
        known = [(s, self.memory[s.index]) for s in self.view.statements if s.index in self.memory]
        return [(statement, entry) for statement, entry in known if entry.is_checkable]

    def with_label(self, label: Label) -> list[tuple[Statement, Remembered]]:
        """Those of that label."""
        return [(statement, entry) for statement, entry in self.checkable if entry.label == label]

    def of(self, statement: int) -> list[ToolUse]:
        """What tools found of a statement."""
        return [u for u in self.uses if u.statement == statement and u.outcome == "found"]


def judgement_of(found: Found) -> Judgement:
    """The finding over the whole response."""
    labels = tuple(_label_of(found, statement) for statement in found.view.statements)
    label, by_tool = _overall(found)
    told = [r for use in found.uses if use.statement is not None for r in readers_of(use)]
    # Statements are checked at the same time and answered in any order: people read them in theirs.
    readers = tuple(sorted(told, key=lambda reader: reader.statement))
    p = _p_of(found, label)
    cause, why = _cause(found) if label == "unclear" else (None, "")
    return Judgement(
        agent=NAME,
        label=label,
        text=f"No verdict: {why}." if label == "unclear" else _verdict(label, p),
        cause=cause,
        cause_words=f"{capitalised(why)}." if why else "",
        statement_labels=labels,
        points=tuple(_points(found)) if label == "hallucinated" else (),
        prose=_prose(found, label),
        p=p,
        readers=readers,
        by_tool=by_tool,
        measured=None if by_tool or label == "unclear" else _measured(found),
    )


def _measured(found: Found) -> MeasuredShare | None:
    """What the reading of the most doubtful statement was worth on material of its kind."""
    given = [(entry.p, entry) for _, entry in found.checkable if entry.p is not None]
    if not given:
        return None
    _, worst = max(given, key=lambda one: one[0])
    uses = [use for use in found.of(worst.statement) if use.label == worst.label]
    return next((share for use in uses if (share := measured_of(use))), None)


def _label_of(found: Found, statement: Statement) -> Label:
    entry = found.memory.get(statement.index)
    return entry.label if entry and entry.is_checkable else "unclear"


def _overall(found: Found) -> tuple[Label, str]:
    """The label, and the tool that decided where no statement did."""
    refuted, confirmed = refuting(found.uses), confirming(found.uses)
    if found.with_label("hallucinated"):
        return "hallucinated", ""
    if refuted:
        return "hallucinated", refuted[0].tool
    checkable = found.checkable
    if checkable and all(entry.label == "supported" for _, entry in checkable):
        return "supported", ""
    is_blind = bool(found.view.unreadable_images)
    is_answered = bool(confirmed) and confirmed[0].tool not in CONDITIONS
    # A kept length is only enough where there is nothing else to go by.
    is_bare = (
        bool(confirmed)
        and not found.view.evidence.passages
        and not any(entry.label == "supported" for _, entry in checkable)
    )
    if not is_blind and (is_answered or is_bare):
        return "supported", confirmed[0].tool
    return "unclear", ""


def _p_of(found: Found, label: Label) -> float | None:
    """P(the response is wrong) from its statements and from what was found of the whole.

    What readers say of several statements is joined as the built-in judge joins it; what was worked
    out is as sure among ten as alone. None where nobody gave a probability for what decides.
    """
    entries = [entry for _, entry in found.checkable]
    given = [(s, entry, entry.p) for s, entry in found.checkable if entry.p is not None]
    read = [p for statement, entry, p in given if _is_read(found, statement, entry)]
    known = [p for statement, entry, p in given if not _is_read(found, statement, entry)]
    if read:
        known.append(load_evidence_model().response(read))
    on_whole = [u.p for u in (*_beside(found), *confirming(found.uses)[:1])]
    known += [p for p in on_whole if p is not None]
    if not known:
        return None
    p = 1.0 - math.prod(1.0 - p for p in known)
    if label == "hallucinated":
        wrong = [entry.p for _, entry in found.with_label(label)]
        wrong += [use.p for use in refuting(found.uses)]
        decided = [q for q in wrong if q is not None]
        p = max(p, *decided) if decided else math.nan
    elif label == "supported":
        is_whole = all(entry.p is not None for entry in entries) or bool(on_whole)
        p = min(p, 0.49) if is_whole else math.nan
    return None if math.isnan(p) else round(min(SURELY, p), 4)


def _beside(found: Found) -> list[ToolUse]:
    """What refutes the whole and stands in no statement: one error is not counted twice."""
    wrong = [s for s, _ in found.with_label("hallucinated")]
    return [u for u in refuting(found.uses) if not any(_lies_in(u, s) for s in wrong)]


def _lies_in(use: ToolUse, statement: Statement) -> bool:
    return use.start is not None and statement.start <= use.start < statement.end


def _is_read(found: Found, statement: Statement, entry: Remembered) -> bool:
    """True where its label was read from evidence; what a tool worked out is none of a reading."""
    worked = [u for u in found.of(entry.statement) if u.tool not in READING]
    worked += [u for u in refuting(found.uses) if _lies_in(u, statement)]
    return not any(use.label == entry.label for use in worked)


def _verdict(label: Label, p: float | None) -> str:
    """What the classifier reads: the conclusion alone, for its reasons are not those it learned."""
    head = "INCORRECT" if label == "hallucinated" else "CORRECT"
    if p is None:
        return f"Verdict: {head}, the response is {label}."
    side = p if label == "hallucinated" else 1.0 - p
    degree = next((words for least, words in DEGREES if side >= least), DEGREES[-1][1])
    return f"Verdict: {head}, the response is {degree} {label}."


def _cause(found: Found) -> tuple[Cause, str]:
    """Why there is no verdict, with words for it."""
    if found.view.unreadable_images:
        names = listed(found.view.unreadable_images)
        return "image_not_readable", f"{names} could not be read here: no text was found in it"
    if not found.checkable:
        return "not_addressed", NO_STATEMENT
    left_open = found.with_label("unclear")
    causes = {cause_of(use) for statement, _ in left_open for use in found.of(statement.index)}
    if "sources_disagree" in causes:
        return "sources_disagree", "the sources contradict each other"
    share = f"{len(left_open)} of {counted(len(found.checkable), 'statement')}"
    first = f"first “{shortened(left_open[0][0].text, 80)}”" if left_open else ""
    open_ones = {statement.index for statement, _ in left_open}
    failed = [u.tool for u in found.uses if u.outcome == "failed" and u.statement in open_ones]
    if failed:
        first += f"; {counted(len(failed), 'call')} of {listed(sorted(set(failed)))} failed"
    is_found = any(
        u.tool == SEARCH for statement, _ in left_open for u in found.of(statement.index)
    )
    if not found.view.evidence.passages and not is_found:
        return "no_evidence", f"there is no evidence on {share}, {first}"
    return "not_addressed", f"nothing decides {share}, {first}"


def _prose(found: Found, label: Label) -> str:
    """The answer for people: the wrong statements and why (HaluAgent 2.3)."""
    checkable, wrong = found.checkable, found.with_label("hallucinated")
    total = counted(len(checkable), "statement")
    parts = [use.words for use in _beside(found)]
    if wrong:
        parts.append(f"{len(wrong)} of {total} {'is' if len(wrong) == 1 else 'are'} wrong.")
        parts += [f"“{shortened(s.text, SHOWN)}”: {entry.evidence}" for s, entry in wrong]
    elif label == "supported":
        holding = len(found.with_label("supported"))
        confirmed = confirming(found.uses)[:1]
        parts += [use.words for use in confirmed]
        if holding:
            parts.append(f"{holding} of {total} {'holds' if holding == 1 else 'hold'}.")
        elif confirmed and confirmed[0].tool in CONDITIONS:
            parts.append("Nothing else was checked: no evidence.")
    left_out = len(found.view.statements) - len(checkable)
    if left_out:
        verb = "says" if left_out == 1 else "say"
        parts.append(f"{counted(left_out, 'statement')} {verb} nothing that could be checked.")
    parts += [use.words for use in found.uses if use.outcome == "off" and use.statement is None]
    return " ".join(dict.fromkeys(parts))


def _points(found: Found) -> Iterator[Point]:
    """The wrong words: what tools name, or all of a wrong statement in which none names any."""
    for statement, entry in found.checkable:
        is_wrong = entry.label == "hallucinated"
        uses = [use for use in refuting(found.uses) if _lies_in(use, statement)]
        uses += [u for u in found.of(statement.index) if is_wrong and u.label == "hallucinated"]
        named = [
            point
            for use in uses
            for point in (points_of(use) or _point(found, statement, use))
            if statement.start <= point.start < point.end <= statement.end
        ]
        if is_wrong and not named:
            named = [_all_of(statement, entry)]
        yield from named


def _point(found: Found, statement: Statement, use: ToolUse) -> tuple[Point, ...]:
    """The words that a tool says do not hold; none where it names none."""
    if use.start is None or use.end is None:
        return ()
    category: Category = next((c for c in CATEGORY_WORDS if c == use.category), "number_or_date")
    return (
        Point(
            statement.index,
            "contradicted",
            use.start,
            use.end,
            found.view.case.response[use.start : use.end],
            category,
            use.instead,
            use.words,
            0.9 if use.p is None else use.p,
        ),
    )


def _all_of(statement: Statement, entry: Remembered) -> Point:
    return Point(
        statement.index,
        "contradicted",
        statement.start,
        statement.end,
        statement.text,
        "reasoning",
        "",
        entry.evidence,
        0.6 if entry.p is None else entry.p,
    )
