"""Plays an audit: statements with tools, reflection, a debate over what stays contested, an answer.

What the events so far hold is not done again: a run that was stopped goes on from its tool uses and
its memory. Source: HaluAgent 2.3; the debate is CEDA's (3.1), over contested statements alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core.agents.agent_runner import Play, calls_of, notes_of, part_played, why_unusable
from core.baseline.matching import answer_of
from core.concurrency import Stop, merged
from core.debate.ceda import debate
from core.debate.floor import Floor
from core.debate.turns import warned
from core.errors import ReplyError
from core.events import (
    Event,
    JudgementReached,
    MemoryUpdated,
    ProblemMet,
    ProgressMade,
    ReflectionChanged,
    Remembered,
)
from core.pipeline.audit_conclusion import Found, applied, judgement_of
from core.pipeline.audit_memory import cut_alike, is_cut_from
from core.pipeline.audit_steps import (
    Auditing,
    Reading,
    checked,
    closed,
    cut_down,
    labels_told,
    settled,
    waves,
)
from core.progress import Progress, total_cost
from core.records import Case, Context, Judgement, Label, Passage, Plan, Statement
from core.roles import CaseView, Evidence, EvidenceReader, JudgeView
from core.tools.registry import Answer, Bench, toolbox

AT_ONCE = 16  # statements; a model that is waited for costs no work here
Library = Callable[[str, int], Sequence[Passage]]


@dataclass
class AuditRun:
    """One audit under way. `view` shows the case with the evidence that there is by now.

    `bench` is what tools reach beside the case's own sources, which `library` searches (None:
    there are none).
    """

    play: Play
    progress: Progress
    view: Callable[[], CaseView]
    bench: Bench
    library: Library | None
    max_turns: int

    @property
    def memory(self) -> dict[int, Remembered]:
        """What is held of each statement by now."""
        return self.progress.memory

    def cost_since(self, before: frozenset[str]) -> float | None:
        """US dollars for the calls that are not among those; None where a part is not known."""
        calls = self.progress.calls
        return total_cost(call for i, call in calls.items() if i not in before)


def bare_bench(case: Case, stop: Stop) -> Bench:
    """What tools reach where there are only the case's own sources."""
    return Bench(stop)


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
        floor = Floor(run.play, cut, progress, Plan(max_turns=run.max_turns))
        yield from warned(floor)
        yield from debate(floor)
        began, before = run.play.now(), frozenset(progress.calls)
        found = yield from _judged(run, cut, contested)
        for entry in closed(final, found):
            final[entry.statement] = entry
            ending.append(MemoryUpdated(run.play.now(), entry))
        if any(label == "hallucinated" for label, _ in found.values()):
            ending += yield from _reflected(run, view, final)
            final |= {e.entry.statement: e.entry for e in ending if e.kind == "memory_updated"}
    judgement = judgement_of(Found(view, final, progress.tool_uses))
    now = run.play.now()
    yield (*ending, JudgementReached(now, judgement, now - began, run.cost_since(before)))


def seen_after(run: AuditRun) -> JudgeView:
    """What marks the words sees: the whole case, with the debate where there was one."""
    view, turns = run.view(), tuple(run.progress.turns)
    context = run.progress.context or Context((), tuple(view.evidence.passages), "")
    return JudgeView(view, context, turns, run.progress.reached_consensus)


def statements_checked(run: AuditRun, *, with_whole: bool = True) -> Iterator[Event]:
    """The whole response and every statement that has no conclusion yet, in waves."""
    view, play = run.view(), run.play
    spare = play.roster.spare
    audit = Auditing(
        view,
        play.roster.tool_picker,
        spare.tool_picker if spare else None,
        toolbox(),
        lambda statement, reading: _bench(run, view, statement, reading),
        play.stop,
        play.now,
        play.roster.calls_made,
    )
    told: set[int] = set()  # statements of the waves before
    for number, wave in enumerate(waves(view.statements, view.case.language)):
        memory = tuple(entry for i, entry in sorted(run.memory.items()) if i in told)
        told |= {statement.index for statement in wave}
        waiting: list[Statement | None] = [s for s in wave if s.index not in run.memory]
        if number == 0 and with_whole:
            waiting.insert(0, None)
        done, total = len(run.memory), len(view.statements)
        yield ProgressMade(play.now(), "auditing", "Checking the statements", done, total)
        yield from merged(
            [_stream(audit, statement, run, memory) for statement in waiting], workers=AT_ONCE
        )
    yield from notes_of(play, "auditing")


def _stream(
    audit: Auditing, statement: Statement | None, run: AuditRun, memory: tuple[Remembered, ...]
) -> Callable[[], Iterator[Event]]:
    index = statement.index if statement else None
    past = [use for use in run.progress.tool_uses if use.statement == index]
    return lambda: checked(audit, statement, past=past, memory=memory)


def _bench(run: AuditRun, view: CaseView, statement: Statement | None, reading: Reading) -> Bench:
    """What tools reach for this statement: what was retrieved for it is not searched for again."""
    case, roster = view.case, run.play.roster
    library = run.library
    judge = (roster.spare or roster).judge

    def search(query: str, count: int) -> Sequence[Passage]:
        known = view.evidence.of(statement.index) if statement else ()
        is_own = statement is not None and _asks_for(query, statement, case)
        found = known[:count] if known and is_own else (library(query, count) if library else ())
        reading.add(found)
        return found

    is_searchable = library is not None or bool(view.evidence.passages)
    base = replace(run.bench, stop=run.play.stop, library=search if is_searchable else None)
    if not isinstance(judge, EvidenceReader):
        return base
    reader: EvidenceReader = judge

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
        return answer_of(reader.read_statement(seen, place, run.play.stop), place)

    return replace(base, match=match)


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
    reflector = play.roster.reflector
    entries = tuple(entry for _, entry in sorted(memory.items()))
    if not entries:
        return []
    yield ProgressMade(play.now(), "auditing", "Looking over all statements together")
    changes, told = part_played(
        play,
        reflector,
        "auditing",
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
    """The judge's word on each contested statement, after the debate about them."""
    yield ProgressMade(run.play.now(), "judging", "Weighing the debate")
    whole = yield from _word_of_judge(run, cut)
    labels = labels_told(whole, contested)
    if labels is not None:
        return {index: (label, whole) for index, label in labels.items()}
    alone: dict[int, tuple[Label, Judgement]] = {}
    for index in contested:
        # It calls them wrong together and does not say which: so it is asked of each.
        only = cut_down(run.view(), [index], run.progress.tool_uses)
        own = yield from _word_of_judge(run, only)
        alone[index] = (own.label, own)
    return alone


def _word_of_judge(run: AuditRun, cut: CaseView) -> Generator[Event, None, Judgement]:
    """The finding on the statements of the view; unclear where the reply cannot be used."""
    play, progress = run.play, run.progress
    context = progress.context or Context((), tuple(cut.evidence.passages), "")
    turns = tuple(progress.turns)
    seen = JudgeView(cut, context, turns, progress.reached_consensus)
    judge = play.roster.judge
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
