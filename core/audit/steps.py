"""Checks one statement, or the response as a whole, tool by tool until its picker concludes.

Source: HaluAgent 2.3 (tool selection and verification), 2.4.1 (thought, action, observation).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from core.audit.placing import about_statement, placed
from core.audit.remembering import concluded
from core.audited import Remembered, ToolUse
from core.concurrency import Stop
from core.errors import InputError, ReplyError
from core.events import Event, MemoryUpdated, ModelCalled, PassagesFound, ProblemMet, ToolCalled
from core.records import ModelCall, Passage, Statement
from core.roles import AuditView, CaseView, Step, ToolPicker
from core.tools.registry import Bench, Tool, read_input, use

MOST_STEPS = 6
MOST_REFUSALS = 2  # of a call that was made before
REPEATED = (
    "This very call was made before and is not made again: what came of it stands above. Call "
    "another tool, give another input, or conclude."
)
TOO_MANY = "The picker came to no conclusion in {most} steps; what the tools said decides."


@dataclass(frozen=True)
class Auditing:
    """What all statements of one audit share; `bench` is what tools reach for a statement.

    `spare` is the picker that stands in where a reply is unusable.
    """

    view: CaseView
    picker: ToolPicker
    spare: ToolPicker | None
    tools: Mapping[str, Tool[Any]]
    bench: Callable[[Statement | None, Reading], Bench]
    stop: Stop
    now: Callable[[], float]
    calls_made: Callable[[], tuple[ModelCall, ...]] = tuple


class Reading:
    """The passages that tools were shown for one statement, in the order of their showing."""

    def __init__(self, known: Sequence[Passage]) -> None:
        self._known = {passage.id: passage for passage in known}
        self._shown: dict[str, Passage] = {}
        self._lock = threading.Lock()

    def add(self, passages: Sequence[Passage]) -> None:
        """These were shown."""
        with self._lock:
            self._shown |= {passage.id: passage for passage in passages}

    @property
    def ids(self) -> tuple[str, ...]:
        """Of all that were shown."""
        return tuple(self._shown)

    @property
    def all(self) -> tuple[Passage, ...]:
        """What was known before with what was shown since."""
        return tuple((self._known | self._shown).values())

    @property
    def has_grown(self) -> bool:
        """True where something was shown that was not known before."""
        return not set(self._shown) <= set(self._known)


def checked(
    audit: Auditing,
    statement: Statement | None,
    *,
    past: Sequence[ToolUse] = (),
    memory: Sequence[Remembered] = (),
) -> Iterator[Event]:
    """The events of one statement, to its conclusion; `past` are uses of an interrupted run.

    The response as a whole (None) is not remembered: its uses stand for themselves.

    Raises:
        ModelError: the picker's service failed; the run can be resumed at this step.
    """
    uses, picker = list(past), _picker_after(audit, past)
    index = statement.index if statement else None
    reading = Reading(audit.view.evidence.of(index) if index is not None else ())
    bench = audit.bench(statement, reading)
    end = Step(TOO_MANY.format(most=MOST_STEPS))
    while len(uses) < MOST_STEPS and _refusals(uses) < MOST_REFUSALS:
        audit.stop.check()
        seen = AuditView(audit.view, statement, tuple(uses), tuple(memory))
        step, told = _next(audit, picker, seen)
        yield from told
        if any(event.kind == "problem_met" for event in told) and audit.spare is not None:
            picker = audit.spare
        if not step.tool:
            end = step
            break
        made = _refused(audit, step, uses) or _used(audit, step, statement, bench)
        made = replace(made, statement=index, agent=picker.name, thought=step.thought)
        yield from (ModelCalled(audit.now(), call) for call in audit.calls_made())
        uses.append(made)
        yield ToolCalled(audit.now(), made)
    if statement is not None:
        if reading.has_grown:
            yield PassagesFound(audit.now(), statement.index, reading.all)
        read = reading.ids or tuple(p.id for p in audit.view.evidence.of(statement.index))
        yield MemoryUpdated(audit.now(), concluded(statement.index, uses, end, read))


def _picker_after(audit: Auditing, past: Sequence[ToolUse]) -> ToolPicker:
    """Who goes on with it: the spare where it had to stand in before."""
    spare = audit.spare
    stood_in = spare is not None and any(use.agent == spare.name for use in past)
    return spare if spare is not None and stood_in else audit.picker


def _next(audit: Auditing, picker: ToolPicker, seen: AuditView) -> tuple[Step, list[Event]]:
    """The picker's next step, or its spare's for an unusable reply; with what there is to tell."""
    try:
        step = picker.next_step(seen, audit.stop)
    except ReplyError as error:
        rest = "The built-in agent stands in." if audit.spare else "Nobody stands in."
        told_by = "" if str(error).startswith("Tool picker (") else f"Tool picker ({picker.name}): "
        words = f"{told_by}{error} {rest}"
        told = [*_calls(audit), ProblemMet(audit.now(), "auditing", words, reply=error.reply)]
        spare = audit.spare
        return (spare.next_step(seen, audit.stop) if spare else Step(words)), told
    return step, [*_calls(audit)]


def _calls(audit: Auditing) -> Iterator[Event]:
    yield from (ModelCalled(audit.now(), call) for call in audit.calls_made())


def _used(audit: Auditing, step: Step, statement: Statement | None, bench: Bench) -> ToolUse:
    """The tool called as the step says; a tool or an input that there is not has failed."""
    tool = audit.tools.get(step.tool)
    try:
        if tool is None:
            known = ", ".join(audit.tools)
            raise InputError(f"Expected one of the tools {known}, found “{step.tool}”.")
        made = use(tool, read_input(tool, step.given), bench)
        made = placed(made, statement, audit.view.case, tool.about)
        return about_statement(made, statement, tool.about)
    except InputError as error:
        words = str(error)
        return ToolUse(step.tool, None, step.given or "{}", "{}", "failed", "unclear", words, 0.0)


def _refused(audit: Auditing, step: Step, uses: Sequence[ToolUse]) -> ToolUse | None:
    """What a picker is told that makes the very call of an earlier step; None for a new call."""
    given = step.given or "{}"
    if tool := audit.tools.get(step.tool):
        with suppress(InputError):
            given = msgspec.json.encode(read_input(tool, given)).decode()
    if all((one.tool, one.given) != (step.tool, given) for one in uses):
        return None
    return ToolUse(step.tool, None, given, "{}", "nothing", "unclear", REPEATED, 0.0)


def _refusals(uses: Sequence[ToolUse]) -> int:
    return sum(one.words == REPEATED for one in uses)
