"""Run an audit: tools on each statement, reflection, debate on what is contested, a conclusion.

What the events so far hold is not done again. The response is hallucinated if a statement is or a
tool refutes it as a whole, supported if all statements that say something to check are, else
unclear. Source: HaluAgent 2.3; the debate is CEDA's (3.1), over contested statements alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from core.agents.agent_runner import RunContext, calls_of, notes_of, part_played, why_unusable
from core.baseline.evidence_model import load_evidence_model
from core.baseline.judge import answer_of
from core.baseline.wording import DEGREES, capitalised, counted, listed, shortened
from core.debate.sequential import debate_ceda as debate
from core.debate.state import DebateState, warned
from core.pipeline.audit_steps import (
    CONDITIONS,
    READING,
    SEARCH,
    ShownPassages,
    checked,
    closed,
    confirming,
    cut_alike,
    cut_down,
    is_cut_from,
    labels_told,
    refuting,
    settled,
    told_by,
    waves,
)
from core.runtime.concurrency import merged
from core.runtime.errors import ReplyError
from core.schema.events import (
    Event,
    JudgementReached,
    MemoryUpdated,
    ProblemMet,
    ProgressMade,
    Reconsidered,
    ReflectionChanged,
    Remembered,
    ToolUse,
)
from core.schema.progress import Progress, total_cost
from core.schema.records import (
    CATEGORY_WORDS,
    Case,
    Category,
    Cause,
    Context,
    Judgement,
    Label,
    MeasuredShare,
    Passage,
    Plan,
    Point,
    Statement,
)
from core.schema.roles import CaseView, Evidence, EvidenceReader, JudgeView
from core.tools.registry import Answer, Bench


def applied(
    changes: Sequence[Reconsidered], memory: Mapping[int, Remembered]
) -> Iterator[tuple[Reconsidered, Remembered]]:
    """Each change with what is remembered after it; of several to one statement the first counts.

    Left out is what changes nothing, or speaks of a statement that is not there or says nothing to
    check. People read the label that was held before, whatever the reflector took it for.
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
class AuditResult:
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
        """The checkable statements that have that label."""
        return [(statement, entry) for statement, entry in self.checkable if entry.label == label]

    def of(self, statement: int) -> list[ToolUse]:
        """What tools found of a statement."""
        return [u for u in self.uses if u.statement == statement and u.outcome == "found"]


def judgement_of(found: AuditResult) -> Judgement:
    """The finding over the whole response."""
    label, by_tool = _overall(found)
    told = [r for use in found.uses if use.statement is not None for r in told_by(use).readers]
    p = _p_of(found, label)
    cause, why = _cause(found) if label == "unclear" else (None, "")
    checkable = {statement.index: entry.label for statement, entry in found.checkable}
    return Judgement(
        agent=NAME,
        label=label,
        text=f"No verdict: {why}." if label == "unclear" else _verdict(label, p),
        cause=cause,
        cause_words=f"{capitalised(why)}." if why else "",
        statement_labels=tuple(checkable.get(s.index, "unclear") for s in found.view.statements),
        points=tuple(_points(found)) if label == "hallucinated" else (),
        prose=_prose(found, label),
        p=p,
        # Statements are checked at the same time and answered in any order.
        readers=tuple(sorted(told, key=lambda reader: reader.statement)),
        by_tool=by_tool,
        measured=None if by_tool or label == "unclear" else _measured(found),
    )


def _measured(found: AuditResult) -> MeasuredShare | None:
    """What the reading of the most doubtful statement was worth on material of its kind."""
    given = [(entry.p, entry) for _, entry in found.checkable if entry.p is not None]
    if not given:
        return None
    worst = max(given, key=lambda one: one[0])[1]
    uses = [use for use in found.of(worst.statement) if use.label == worst.label]
    return next((share for use in uses if (share := told_by(use).measured)), None)


def _overall(found: AuditResult) -> tuple[Label, str]:
    if found.with_label("hallucinated"):
        return "hallucinated", ""
    if refuted := refuting(found.uses):
        return "hallucinated", refuted[0].tool
    labels = {entry.label for _, entry in found.checkable}
    if labels == {"supported"}:
        return "supported", ""
    confirmed = confirming(found.uses)
    if confirmed and not found.view.unreadable_images:
        # A kept length is only enough where there is nothing else to go by.
        is_bare = not found.view.evidence.passages and "supported" not in labels
        if is_bare or confirmed[0].tool not in CONDITIONS:
            return "supported", confirmed[0].tool
    return "unclear", ""


def _p_of(found: AuditResult, label: Label) -> float | None:
    """P(the response is wrong) from its statements and from what was found of the whole.

    What readers say of several statements is joined as the built-in judge joins it; what was worked
    out is as sure among ten as alone. None where nobody gave a probability for what decides.
    """
    read: list[float] = []
    known: list[float] = []
    for statement, entry in found.checkable:
        if entry.p is not None:
            (read if _is_read(found, statement, entry) else known).append(entry.p)
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
        is_whole = on_whole or all(entry.p is not None for _, entry in found.checkable)
        p = min(p, 0.49) if is_whole else math.nan
    return None if math.isnan(p) else round(min(SURELY, p), 4)


def _beside(found: AuditResult) -> list[ToolUse]:
    """What refutes the whole and stands in no statement: one error is not counted twice."""
    wrong = [s for s, _ in found.with_label("hallucinated")]
    return [u for u in refuting(found.uses) if not any(_lies_in(u, s) for s in wrong)]


def _lies_in(use: ToolUse, statement: Statement) -> bool:
    return use.start is not None and statement.start <= use.start < statement.end


def _is_read(found: AuditResult, statement: Statement, entry: Remembered) -> bool:
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


def _cause(found: AuditResult) -> tuple[Cause, str]:
    if found.view.unreadable_images:
        names = listed(found.view.unreadable_images)
        return "image_not_readable", f"{names} could not be read here: no text was found in it"
    if not found.checkable:
        return "not_addressed", NO_STATEMENT
    left_open = found.with_label("unclear")
    uses = [use for statement, _ in left_open for use in found.of(statement.index)]
    if any(told_by(use).cause == "sources_disagree" for use in uses):
        return "sources_disagree", "the sources contradict each other"
    share = f"{len(left_open)} of {counted(len(found.checkable), 'statement')}"
    first = f"first “{shortened(left_open[0][0].text, 80)}”" if left_open else ""
    open_ones = {statement.index for statement, _ in left_open}
    failed = [u.tool for u in found.uses if u.outcome == "failed" and u.statement in open_ones]
    if failed:
        first += f"; {counted(len(failed), 'call')} of {listed(sorted(set(failed)))} failed"
    if not found.view.evidence.passages and all(use.tool != SEARCH for use in uses):
        return "no_evidence", f"there is no evidence on {share}, {first}"
    return "not_addressed", f"nothing decides {share}, {first}"


def _prose(found: AuditResult, label: Label) -> str:
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


def _points(found: AuditResult) -> Iterator[Point]:
    for statement, entry in found.checkable:
        is_wrong = entry.label == "hallucinated"
        uses = [use for use in refuting(found.uses) if _lies_in(use, statement)]
        uses += [u for u in found.of(statement.index) if is_wrong and u.label == "hallucinated"]
        named = [
            point
            for use in uses
            for point in (told_by(use).points or _point(found, statement, use))
            if statement.start <= point.start < point.end <= statement.end
        ]
        if is_wrong and not named:
            p = 0.6 if entry.p is None else entry.p
            all_of = (statement.start, statement.end, statement.text)
            named = [
                Point(statement.index, "contradicted", *all_of, "reasoning", "", entry.evidence, p)
            ]
        yield from named


def _point(found: AuditResult, statement: Statement, use: ToolUse) -> tuple[Point, ...]:
    """The words that a tool says do not hold; none where it names none."""
    if use.start is None or use.end is None:
        return ()
    category: Category = next((c for c in CATEGORY_WORDS if c == use.category), "number_or_date")
    place = (use.start, use.end, found.view.case.response[use.start : use.end], category)
    p = 0.9 if use.p is None else use.p
    return (Point(statement.index, "contradicted", *place, use.instead, use.words, p),)


AT_ONCE = 16  # statements; a model that is waited for costs no work here
Library = Callable[[str, int], Sequence[Passage]]


@dataclass
class AuditRun:
    """One audit under way; `view` shows the case by now, `library` searches its sources."""

    play: RunContext
    progress: Progress
    view: Callable[[], CaseView]
    bench: Bench
    library: Library | None
    max_turns: int

    @property
    def memory(self) -> dict[int, Remembered]:
        """What is held of each statement by now."""
        return self.progress.memory


def audited(run: AuditRun) -> Iterator[Event | tuple[Event, ...]]:
    """The events up to the judgement; those of a tuple are to be stored together."""
    progress = run.progress
    if progress.judgement is not None:
        return
    has_reflected = progress.reconsidered or progress.context or progress.turns
    if progress.is_reopened or not has_reflected:
        yield from statements_checked(run)
        view = run.view()
        for entry in list(settled(view.statements, run.memory, progress.tool_uses)):
            yield MemoryUpdated(run.play.now(), entry)
        yield tuple((yield from _reflected(run, view, run.memory)))
    view, began = run.view(), run.play.now()
    contested = [i for i, entry in sorted(run.memory.items()) if entry.is_contested]
    before = frozenset(progress.calls)
    final = dict(run.memory)
    ending: list[Event] = []
    if contested:
        cut = cut_down(view, contested, progress.tool_uses)
        state = DebateState(run.play, cut, progress, Plan(max_turns=run.max_turns))
        yield from warned(state)
        yield from debate(state)
        began, before = run.play.now(), frozenset(progress.calls)
        found = yield from _judged(run, cut, contested)
        for entry in closed(final, found):
            final[entry.statement] = entry
            ending.append(MemoryUpdated(run.play.now(), entry))
        if any(label == "hallucinated" for label, _ in found.values()):
            ending += yield from _reflected(run, view, final)
            final |= {e.entry.statement: e.entry for e in ending if e.kind == "memory_updated"}
    judgement = judgement_of(AuditResult(view, final, progress.tool_uses))
    now = run.play.now()
    cost = total_cost(call for i, call in progress.calls.items() if i not in before)
    yield (*ending, JudgementReached(now, judgement, now - began, cost))


def seen_after(run: AuditRun) -> JudgeView:
    """What marks the words sees: the whole case, with the debate where there was one."""
    return _seen(run, run.view())


def _seen(run: AuditRun, view: CaseView) -> JudgeView:
    progress = run.progress
    context = progress.context or Context((), tuple(view.evidence.passages), "")
    return JudgeView(view, context, tuple(progress.turns), progress.reached_consensus)


def statements_checked(run: AuditRun, *, with_whole: bool = True) -> Iterator[Event]:
    """The whole response and every statement that has no conclusion yet, in waves."""
    view, play = run.view(), run.play

    def bench_for(statement: Statement | None, reading: ShownPassages) -> Bench:
        return _bench(run, view, statement, reading)

    past: dict[int | None, list[ToolUse]] = defaultdict(list)
    for use in run.progress.tool_uses:
        past[use.statement].append(use)
    told: set[int] = set()  # statements of the waves before
    for number, wave in enumerate(waves(view.statements, view.case.language)):
        memory = tuple(entry for i, entry in sorted(run.memory.items()) if i in told)
        told |= {statement.index for statement in wave}
        streams = [
            partial(checked, play, view, s, bench_for, past=past[s.index], memory=memory)
            for s in wave
            if s.index not in run.memory
        ]
        if number == 0 and with_whole:
            whole = partial(checked, play, view, None, bench_for, past=past[None], memory=memory)
            streams.insert(0, whole)
        done, total = len(run.memory), len(view.statements)
        yield ProgressMade(play.now(), "auditing", "Checking the statements", done, total)
        yield from merged(streams, workers=AT_ONCE)
    yield from notes_of(play, "auditing")


def _bench(
    run: AuditRun, view: CaseView, statement: Statement | None, reading: ShownPassages
) -> Bench:
    """What tools reach for this statement: what was retrieved for it is not searched for again."""
    case, roster, library = view.case, run.play.roster, run.library
    judge = (roster.spare or roster).judge

    def search(query: str, count: int) -> Sequence[Passage]:
        known = view.evidence.of(statement.index) if statement else ()
        is_own = statement is not None and _asks_for(query, statement, case)
        found = known[:count] if known and is_own else (library(query, count) if library else ())
        reading.add(found)
        return found

    def match(text: str, passages: Sequence[Passage]) -> Answer:
        reading.add([p for p in passages if p.id in view.evidence.passages])
        place = statement if statement and text in (statement.text, statement.rewrite) else None
        if statement and is_cut_from(text, statement.text):
            place = cut_alike(text, statement)
        # Only what opens a response can be the short answer that is read with its question.
        is_opening = statement is None or statement.index == 0
        asked = case if is_opening else replace(case, question="")
        own = asked if place else replace(asked, response=text)
        place = place or Statement(0, 0, len(text), text, text)
        evidence = Evidence({p.id: p for p in passages}, {})
        seen = replace(view, case=own, statements=(place,), evidence=evidence)
        reader = cast(EvidenceReader, judge)
        return answer_of(reader.read_statement(seen, place, run.play.stop), place)

    is_searchable = library is not None or bool(view.evidence.passages)
    base = replace(run.bench, stop=run.play.stop, library=search if is_searchable else None)
    return replace(base, match=match) if isinstance(judge, EvidenceReader) else base


def _asks_for(query: str, statement: Statement, case: Case) -> bool:
    """True for the words that the statement's passages were retrieved by."""
    plain = query.removeprefix(case.question).strip() if case.question else query.strip()
    own = statement.text
    if plain in (own, statement.rewrite):
        return True
    before = range(len(own) - len(plain) + 1)  # blanks at its ends are gone from a query
    return any(is_cut_from(f"{' ' * n}{plain}".ljust(len(own)), own) for n in before)


def _reflected(
    run: AuditRun, view: CaseView, memory: Mapping[int, Remembered]
) -> Generator[Event, None, list[Event]]:
    """Tells of the reflector's work; returns what it changed, to be stored together."""
    play, uses = run.play, tuple(run.progress.tool_uses)
    entries = tuple(entry for _, entry in sorted(memory.items()))
    if not entries:
        return []
    yield ProgressMade(play.now(), "auditing", "Looking over all statements together")
    reflector = play.roster.reflector
    changes, told = part_played(
        *(play, reflector, "auditing"),
        lambda: reflector.reflect(view, entries, uses, play.stop),
        lambda spare: spare.reflector.reflect(view, entries, uses, play.stop),
        role="Reflector",
    )
    yield from told
    events: list[Event] = []
    for change, entry in applied(changes or (), memory):
        now = play.now()
        events += [ReflectionChanged(now, change), MemoryUpdated(now, entry)]
    return events


def _judged(
    run: AuditRun, cut: CaseView, contested: Sequence[int]
) -> Generator[Event, None, dict[int, tuple[Label, Judgement]]]:
    yield ProgressMade(run.play.now(), "judging", "Weighing the debate")
    whole = yield from _word_of_judge(run, cut)
    labels = labels_told(whole, contested)
    if labels is not None:
        return {index: (label, whole) for index, label in labels.items()}
    alone: dict[int, tuple[Label, Judgement]] = {}
    for index in contested:  # it calls them wrong together and does not say which
        only = cut_down(run.view(), [index], run.progress.tool_uses)
        own = yield from _word_of_judge(run, only)
        alone[index] = (own.label, own)
    return alone


def _word_of_judge(run: AuditRun, cut: CaseView) -> Generator[Event, None, Judgement]:
    """The finding on the statements of the view; unclear where the reply cannot be used."""
    play, judge = run.play, run.play.roster.judge
    seen = _seen(run, cut)
    play.stop.check()
    try:
        word = judge.read(seen, play.stop) if isinstance(judge, EvidenceReader) else None
        word = word or judge.decide(seen, play.stop)
    except ReplyError as error:
        yield from calls_of(play)
        words = f"{why_unusable(judge, 'Judge', error)} So what is contested stays open."
        yield ProblemMet(play.now(), "judging", words, reply=error.reply)
        return Judgement(judge.name, "unclear", words, cause="unreadable_reply", cause_words=words)
    yield from calls_of(play)
    return word
