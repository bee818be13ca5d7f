"""Applies what a reflector changes, as far as it speaks of statements that there are.

Source: HaluAgent 2.3 (local and global reflection, memory updated accordingly).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from core.audited import Reconsidered, Remembered


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
