"""Run an audit: tools on each statement, reflection, debate on contested statements, a conclusion.

Steps that earlier events contain are not repeated. The response is hallucinated if a statement is
or a tool refutes the whole response, supported if all statements with something to check are, else
unclear. Source: HaluAgent 2.3; the debate is CEDA's (3.1), over contested statements alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from core.agents.agent_runner import (
    RunContext,
    drain_calls,
    drain_notes,
    play_role,
    unusable_reply_message,
)
from core.baseline.evidence_model import load_evidence_model
from core.baseline.judge import convert_to_answer
from core.baseline.wording import CERTAINTY_WORDS, capitalise, format_count, join_quoted, shorten
from core.debate.sequential import run_ceda_turns as debate
from core.debate.state import DebateState, report_notices
from core.pipeline.audit_steps import (
    CONDITION_TOOLS,
    READING_TOOLS,
    SEARCH_TOOL,
    ShownPassages,
    blank_same_words,
    check_statement,
    close_contested,
    decode_reading_report,
    find_confirming_uses,
    find_refuting_uses,
    group_into_waves,
    is_blanked_copy,
    restrict_view,
    settle_refuted,
    split_labels,
)
from core.runtime.concurrency import merge_streams
from core.runtime.errors import ReplyError
from core.schema.events import (
    Event,
    JudgementReached,
    LabelRevision,
    MemoryEntry,
    MemoryUpdated,
    ProblemMet,
    ProgressMade,
    ReflectionChanged,
    ToolUse,
)
from core.schema.records import (
    CATEGORY_WORDS,
    Case,
    Category,
    DebatePoint,
    EvidenceContext,
    Judgement,
    Label,
    MeasuredAccuracy,
    Passage,
    Plan,
    Statement,
    UnclearCause,
)
from core.schema.roles import CaseView, Evidence, EvidenceReader, JudgeView
from core.schema.run_state import RunState, sum_costs
from core.tools.registry import ToolAnswer, ToolContext

AUDIT_AGENT_NAME = "Audit"
MAX_P = 0.9999  # the highest p
SHOWN_STATEMENT_CHARACTERS = 120  # characters of a statement in the answer
NO_STATEMENT_REASON = "the text makes no statement that could be checked"
CONCURRENT_STATEMENTS = 16  # concurrent statements; waiting for a model costs no computation here
LibrarySearch = Callable[[str, int], Sequence[Passage]]


def apply_revisions(
    changes: Sequence[LabelRevision], memory: Mapping[int, MemoryEntry]
) -> Iterator[tuple[LabelRevision, MemoryEntry]]:
    """Yield each effective change with the memory entry after it; the first for a statement counts.

    Changes without effect are left out, and those to statements that do not exist or have nothing
    to check. `before` becomes the label in memory, whatever the reflector took it for.
    """
    changed: set[int] = set()
    for change in changes:
        entry = memory.get(change.statement)
        is_new = change.statement not in changed
        if entry is None or not is_new or not entry.is_checkable or entry.label == change.after:
            continue
        changed.add(change.statement)
        causes = tuple(i for i in change.because_of if i in memory and i != change.statement)
        valid = replace(change, before=entry.label, because_of=causes)
        p = _compute_p_after(valid, entry, memory)
        entry = replace(entry, label=valid.after, p=p, evidence=valid.reason, is_contested=False)
        yield valid, entry


def _compute_p_after(
    change: LabelRevision, entry: MemoryEntry, memory: Mapping[int, MemoryEntry]
) -> float | None:
    """Return the highest p of wrong causes, or the entry's own p if that fits the label."""
    cause_ps = [memory[i].p for i in change.because_of]
    if change.after == "hallucinated":
        wrong_ps = [p for p in (*cause_ps, entry.p) if p is not None and p >= 0.5]
        return max(wrong_ps, default=None)
    is_fitting = entry.p is not None and (change.after == "unclear" or entry.p < 0.5)
    return entry.p if is_fitting else None


@dataclass(frozen=True)
class AuditResult:
    """The result of the audit: the memory after reflection and debate, and all tool uses."""

    view: CaseView
    memory: Mapping[int, MemoryEntry]
    uses: Sequence[ToolUse]

    @property
    def checkable(self) -> list[tuple[Statement, MemoryEntry]]:
        """The statements that have something to check, in order."""
        known = [(s, self.memory[s.index]) for s in self.view.statements if s.index in self.memory]
        return [(statement, entry) for statement, entry in known if entry.is_checkable]

    def with_label(self, label: Label) -> list[tuple[Statement, MemoryEntry]]:
        """Return the checkable statements with that label."""
        return [(statement, entry) for statement, entry in self.checkable if entry.label == label]

    def of(self, statement: int) -> list[ToolUse]:
        """Return the tool uses for a statement that found something."""
        return [u for u in self.uses if u.statement == statement and u.outcome == "found"]


def build_audit_judgement(found: AuditResult) -> Judgement:
    """Return the judgement of the whole response."""
    label, by_tool = _decide_label(found)
    readers = [
        r
        for use in found.uses
        if use.statement is not None
        for r in decode_reading_report(use).readers
    ]
    p = _compute_p(found, label)
    cause, reason = _find_cause(found) if label == "unclear" else (None, "")
    checkable = {statement.index: entry.label for statement, entry in found.checkable}
    return Judgement(
        agent=AUDIT_AGENT_NAME,
        label=label,
        text=f"No verdict: {reason}." if label == "unclear" else _format_verdict(label, p),
        cause=cause,
        cause_words=f"{capitalise(reason)}." if reason else "",
        statement_labels=tuple(checkable.get(s.index, "unclear") for s in found.view.statements),
        points=tuple(_find_points(found)) if label == "hallucinated" else (),
        prose=_write_prose(found, label),
        p=p,
        # Statements are checked concurrently, so their order is arbitrary.
        readers=tuple(sorted(readers, key=lambda reader: reader.statement)),
        by_tool=by_tool,
        measured=None if by_tool or label == "unclear" else _find_measured_share(found),
    )


def _find_measured_share(result: AuditResult) -> MeasuredAccuracy | None:
    """Return how reliable the reading of the most doubtful statement was on similar material."""
    entries = [(entry.p, entry) for _, entry in result.checkable if entry.p is not None]
    if not entries:
        return None
    worst_entry = max(entries, key=lambda pair: pair[0])[1]
    uses = [use for use in result.of(worst_entry.statement) if use.label == worst_entry.label]
    return next(filter(None, (decode_reading_report(use).measured for use in uses)), None)


def _decide_label(result: AuditResult) -> tuple[Label, str]:
    if result.with_label("hallucinated"):
        return "hallucinated", ""
    if refuted := find_refuting_uses(result.uses):
        return "hallucinated", refuted[0].tool
    labels = {entry.label for _, entry in result.checkable}
    if labels == {"supported"}:
        return "supported", ""
    confirmed = find_confirming_uses(result.uses)
    if confirmed and not result.view.unreadable_images:
        # A length as requested is enough only if nothing else was checked.
        is_bare = not result.view.evidence.passages and "supported" not in labels
        if is_bare or confirmed[0].tool not in CONDITION_TOOLS:
            return "supported", confirmed[0].tool
    return "unclear", ""


def _compute_p(result: AuditResult, label: Label) -> float | None:
    """Return P(the response is wrong), from its statements and the findings about the whole.

    Probabilities that readers gave to several statements are combined as in the built-in judge;
    computed results are as certain among ten as alone. None if nothing that decides has a
    probability.
    """
    read: list[float] = []
    known: list[float] = []
    for statement, entry in result.checkable:
        if entry.p is not None and _is_read(result, statement, entry):
            read.append(entry.p)
        elif entry.p is not None:
            known.append(entry.p)
    if read:
        known.append(load_evidence_model().response(read))
    on_whole = [u.p for u in (*_find_outside_uses(result), *find_confirming_uses(result.uses)[:1])]
    known += [p for p in on_whole if p is not None]
    if not known:
        return None
    p = 1.0 - math.prod(1.0 - p for p in known)
    if label == "hallucinated":
        wrong = [entry.p for _, entry in result.with_label(label)]
        wrong += [use.p for use in find_refuting_uses(result.uses)]
        decided = [q for q in wrong if q is not None]
        p = max(p, *decided) if decided else math.nan
    elif label == "supported":
        is_whole = on_whole or all(entry.p is not None for _, entry in result.checkable)
        p = min(p, 0.49) if is_whole else math.nan
    return None if math.isnan(p) else round(min(MAX_P, p), 4)


def _find_outside_uses(result: AuditResult) -> list[ToolUse]:
    """Return the uses that refute the whole outside wrong statements: no error counts twice."""
    wrong = [s for s, _ in result.with_label("hallucinated")]
    return [u for u in find_refuting_uses(result.uses) if not any(_lies_in(u, s) for s in wrong)]


def _lies_in(use: ToolUse, statement: Statement) -> bool:
    return use.start is not None and statement.start <= use.start < statement.end


def _is_read(result: AuditResult, statement: Statement, entry: MemoryEntry) -> bool:
    """Return True if the label was read from evidence, False if a tool computed it."""
    computed = [u for u in result.of(entry.statement) if u.tool not in READING_TOOLS]
    computed += [u for u in find_refuting_uses(result.uses) if _lies_in(u, statement)]
    return not any(use.label == entry.label for use in computed)


def _format_verdict(label: Label, p: float | None) -> str:
    """Return the text for the classifier: only the conclusion, as it was not trained on reasons."""
    head = "INCORRECT" if label == "hallucinated" else "CORRECT"
    if p is None:
        return f"Verdict: {head}, the response is {label}."
    side = p if label == "hallucinated" else 1.0 - p
    degree = next(
        (words for least, words in CERTAINTY_WORDS if side >= least), CERTAINTY_WORDS[-1][1]
    )
    return f"Verdict: {head}, the response is {degree} {label}."


def _find_cause(result: AuditResult) -> tuple[UnclearCause, str]:
    if result.view.unreadable_images:
        names = join_quoted(result.view.unreadable_images)
        return "image_not_readable", f"{names} could not be read here: no text was found in it"
    if not result.checkable:
        return "not_addressed", NO_STATEMENT_REASON
    left_open = result.with_label("unclear")
    uses = [use for statement, _ in left_open for use in result.of(statement.index)]
    for use in uses:
        if decode_reading_report(use).cause == "sources_disagree":
            return "sources_disagree", use.words[:1].lower() + use.words[1:].removesuffix(".")
    open_share = f"{len(left_open)} of {format_count(len(result.checkable), 'statement')}"
    details = f"first “{shorten(left_open[0][0].text, 80)}”" if left_open else ""
    open_ones = {statement.index for statement, _ in left_open}
    failed = [u.tool for u in result.uses if u.outcome == "failed" and u.statement in open_ones]
    if failed:
        details += (
            f"; {format_count(len(failed), 'call')} of {join_quoted(sorted(set(failed)))} failed"
        )
    if not result.view.evidence.passages and all(use.tool != SEARCH_TOOL for use in uses):
        return "no_evidence", f"there is no evidence on {open_share}, {details}"
    return "not_addressed", f"nothing decides {open_share}, {details}"


def _write_prose(result: AuditResult, label: Label) -> str:
    """Return the answer for people: the wrong statements and why (HaluAgent 2.3)."""
    checkable, wrong = result.checkable, result.with_label("hallucinated")
    total = format_count(len(checkable), "statement")
    parts = [use.words for use in _find_outside_uses(result)]
    if wrong:
        parts.append(f"{len(wrong)} of {total} {'is' if len(wrong) == 1 else 'are'} wrong.")
        parts += [
            f"“{shorten(s.text, SHOWN_STATEMENT_CHARACTERS)}”: {entry.evidence}"
            for s, entry in wrong
        ]
    elif label == "supported":
        holding = len(result.with_label("supported"))
        confirmed = find_confirming_uses(result.uses)[:1]
        parts += [use.words for use in confirmed]
        if holding:
            parts.append(f"{holding} of {total} {'holds' if holding == 1 else 'hold'}.")
        elif confirmed and confirmed[0].tool in CONDITION_TOOLS:
            parts.append("Nothing else was checked: no evidence.")
    left_out = len(result.view.statements) - len(checkable)
    if left_out:
        verb = "says" if left_out == 1 else "say"
        parts.append(f"{format_count(left_out, 'statement')} {verb} nothing that could be checked.")
    parts += [use.words for use in result.uses if use.outcome == "off" and use.statement is None]
    return " ".join(dict.fromkeys(parts))


def _find_points(result: AuditResult) -> Iterator[DebatePoint]:
    for statement, entry in result.checkable:
        is_wrong = entry.label == "hallucinated"
        uses = [use for use in find_refuting_uses(result.uses) if _lies_in(use, statement)]
        uses += [u for u in result.of(statement.index) if is_wrong and u.label == "hallucinated"]
        named = [
            point
            for use in uses
            for point in (decode_reading_report(use).points or _make_points(result, statement, use))
            if statement.start <= point.start < point.end <= statement.end
        ]
        if is_wrong and not named:
            p = 0.6 if entry.p is None else entry.p
            named = [
                DebatePoint(
                    statement=statement.index,
                    finding="contradicted",
                    start=statement.start,
                    end=statement.end,
                    text=statement.text,
                    category="reasoning",
                    evidence="",
                    explanation=entry.evidence,
                    weight=p,
                )
            ]
        yield from named


def _make_points(
    result: AuditResult, statement: Statement, use: ToolUse
) -> tuple[DebatePoint, ...]:
    """Return a point for the words that a tool found wrong; empty if it names none."""
    if use.start is None or use.end is None:
        return ()
    category: Category = next((c for c in CATEGORY_WORDS if c == use.category), "number_or_date")
    point = DebatePoint(
        statement=statement.index,
        finding="contradicted",
        start=use.start,
        end=use.end,
        text=result.view.case.response[use.start : use.end],
        category=category,
        evidence=use.instead,
        explanation=use.words,
        weight=0.9 if use.p is None else use.p,
    )
    return (point,)


@dataclass
class AuditRun:
    """An audit in progress; `view` returns the current view, `library` searches its sources."""

    play: RunContext
    progress: RunState
    view: Callable[[], CaseView]
    tool_context: ToolContext
    library: LibrarySearch | None
    max_turns: int

    @property
    def memory(self) -> dict[int, MemoryEntry]:
        """The present memory of each statement."""
        return self.progress.memory


def run_audit(run: AuditRun) -> Iterator[Event | tuple[Event, ...]]:
    """Yield the events up to the judgement; those of a tuple are to be stored together."""
    progress = run.progress
    if progress.judgement is not None:
        return
    has_reflected = progress.reconsidered or progress.context or progress.turns
    if progress.is_reopened or not has_reflected:
        yield from check_statements(run)
        view = run.view()
        for entry in list(settle_refuted(view.statements, run.memory, progress.tool_uses)):
            yield MemoryUpdated(run.play.now(), entry)
        yield tuple((yield from _reflect(run, view, run.memory)))
    view, began = run.view(), run.play.now()
    contested = [i for i, entry in sorted(run.memory.items()) if entry.is_contested]
    earlier_calls = frozenset(progress.calls)
    memory = dict(run.memory)
    last_events: list[Event] = []
    if contested:
        contested_view = restrict_view(view, contested, progress.tool_uses)
        state = DebateState(run.play, contested_view, progress, Plan(max_turns=run.max_turns))
        yield from report_notices(state)
        yield from debate(state)
        began, earlier_calls = run.play.now(), frozenset(progress.calls)
        judgements = yield from _judge_contested(run, contested_view, contested)
        for entry in close_contested(memory, judgements):
            memory[entry.statement] = entry
            last_events.append(MemoryUpdated(run.play.now(), entry))
        if any(label == "hallucinated" for label, _ in judgements.values()):
            last_events += yield from _reflect(run, view, memory)
            memory |= {
                event.entry.statement: event.entry
                for event in last_events
                if event.kind == "memory_updated"
            }
    judgement = build_audit_judgement(AuditResult(view, memory, progress.tool_uses))
    now = run.play.now()
    cost = sum_costs(call for i, call in progress.calls.items() if i not in earlier_calls)
    yield (*last_events, JudgementReached(now, judgement, now - began, cost))


def build_marking_view(run: AuditRun) -> JudgeView:
    """Return the whole case for marking words, with the debate if there was one."""
    return _build_judge_view(run, run.view())


def _build_judge_view(run: AuditRun, view: CaseView) -> JudgeView:
    progress = run.progress
    context = progress.context or EvidenceContext((), tuple(view.evidence.passages), "")
    return JudgeView(view, context, tuple(progress.turns), progress.reached_consensus)


def check_statements(run: AuditRun, *, with_whole: bool = True) -> Iterator[Event]:
    """Check the whole response and every statement without a conclusion yet, in waves."""
    view, play = run.view(), run.play

    def bench_for(statement: Statement | None, reading: ShownPassages) -> ToolContext:
        return _make_bench(run, view, statement, reading)

    past_uses: dict[int | None, list[ToolUse]] = defaultdict(list)
    for use in run.progress.tool_uses:
        past_uses[use.statement].append(use)
    finished: set[int] = set()  # statements of earlier waves
    for number, wave in enumerate(group_into_waves(view.statements, view.case.language)):
        memory = tuple(entry for i, entry in sorted(run.memory.items()) if i in finished)
        finished |= {statement.index for statement in wave}
        streams = [
            partial(
                check_statement, play, view, s, bench_for, past=past_uses[s.index], memory=memory
            )
            for s in wave
            if s.index not in run.memory
        ]
        if number == 0 and with_whole:
            past = past_uses[None]
            whole = partial(check_statement, play, view, None, bench_for, past=past, memory=memory)
            streams.insert(0, whole)
        done, total = len(run.memory), len(view.statements)
        yield ProgressMade(play.now(), "auditing", "Checking the statements", done, total)
        yield from merge_streams(streams, workers=CONCURRENT_STATEMENTS)
    yield from drain_notes(play, "auditing")


def _make_bench(
    run: AuditRun, view: CaseView, statement: Statement | None, reading: ShownPassages
) -> ToolContext:
    """Return a statement's tool context: passages retrieved for it are not searched again."""
    case, roster, library = view.case, run.play.roster, run.library
    judge = (roster.spare or roster).judge

    def search(query: str, count: int) -> Sequence[Passage]:
        known = view.evidence.of(statement.index) if statement else ()
        if known and statement is not None and _asks_for(query, statement, case):
            passages: Sequence[Passage] = known[:count]
        else:
            passages = library(query, count) if library else ()
        reading.add(passages)
        return passages

    def match(text: str, passages: Sequence[Passage]) -> ToolAnswer:
        reading.add([p for p in passages if p.id in view.evidence.passages])
        target: Statement | None = None
        if statement and text in (statement.text, statement.rewrite):
            target = statement
        if statement and is_blanked_copy(text, statement.text):
            target = blank_same_words(text, statement)
        # Only the opening of a response can be a short answer that is read with its question.
        is_opening = statement is None or statement.index == 0
        asked = case if is_opening else replace(case, question="")
        shown_case = asked if target else replace(asked, response=text)
        target = target or Statement(0, 0, len(text), text, text)
        evidence = Evidence({p.id: p for p in passages}, {})
        seen = replace(view, case=shown_case, statements=(target,), evidence=evidence)
        reader = cast(EvidenceReader, judge)
        return convert_to_answer(reader.read_statement(seen, target, run.play.stop), target)

    is_searchable = library is not None or bool(view.evidence.passages)
    base = replace(run.tool_context, stop=run.play.stop, library=search if is_searchable else None)
    return replace(base, match=match) if isinstance(judge, EvidenceReader) else base


def _asks_for(query: str, statement: Statement, case: Case) -> bool:
    """Return True for the query by which the statement's passages were retrieved."""
    text = query.removeprefix(case.question).strip() if case.question else query.strip()
    whole = statement.text
    if text in (whole, statement.rewrite):
        return True
    offsets = range(len(whole) - len(text) + 1)  # queries have lost the spaces at their ends
    return any(is_blanked_copy(f"{' ' * n}{text}".ljust(len(whole)), whole) for n in offsets)


def _reflect(
    run: AuditRun, view: CaseView, memory: Mapping[int, MemoryEntry]
) -> Generator[Event, None, list[Event]]:
    """Yield events of the reflector's work; return its changes, to be stored together."""
    play, uses = run.play, tuple(run.progress.tool_uses)
    entries = tuple(entry for _, entry in sorted(memory.items()))
    if not entries:
        return []
    yield ProgressMade(play.now(), "auditing", "Looking over all statements together")
    reflector = play.roster.reflector
    changes, emitted = play_role(
        play,
        reflector,
        "auditing",
        lambda: reflector.reflect(view, entries, uses, play.stop),
        lambda spare: spare.reflector.reflect(view, entries, uses, play.stop),
        role="Reflector",
    )
    yield from emitted
    events: list[Event] = []
    for change, entry in apply_revisions(changes or (), memory):
        now = play.now()
        events += [ReflectionChanged(now, change), MemoryUpdated(now, entry)]
    return events


def _judge_contested(
    run: AuditRun, contested_view: CaseView, contested: Sequence[int]
) -> Generator[Event, None, dict[int, tuple[Label, Judgement]]]:
    yield ProgressMade(run.play.now(), "judging", "Weighing the debate")
    judgement = yield from _ask_judge(run, contested_view)
    labels = split_labels(judgement, contested)
    if labels is not None:
        return {index: (label, judgement) for index, label in labels.items()}
    by_statement: dict[int, tuple[Label, Judgement]] = {}
    for index in contested:  # the judge called them wrong together without saying which
        single_view = restrict_view(run.view(), [index], run.progress.tool_uses)
        single = yield from _ask_judge(run, single_view)
        by_statement[index] = (single.label, single)
    return by_statement


def _ask_judge(run: AuditRun, view: CaseView) -> Generator[Event, None, Judgement]:
    """Return the judgement of the view's statements; unclear if the reply is unusable."""
    play, judge = run.play, run.play.roster.judge
    seen = _build_judge_view(run, view)
    play.stop.check()
    try:
        if isinstance(judge, EvidenceReader):
            judgement = judge.read(seen, play.stop)
        else:
            judgement = judge.decide(seen, play.stop)
    except ReplyError as error:
        yield from drain_calls(play)
        words = f"{unusable_reply_message(judge, 'Judge', error)} So what is contested stays open."
        yield ProblemMet(play.now(), "judging", words, reply=error.reply)
        return Judgement(judge.name, "unclear", words, cause="unreadable_reply", cause_words=words)
    yield from drain_calls(play)
    return judgement
