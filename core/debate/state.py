"""The state of a debate, and the turns taken in it; every debate protocol builds on this.

A protocol yields events from the first turn to the judgement. It repeats nothing that the run's
progress already holds, so that an interrupted run resumes where it stopped. Turns are taken one
after the other or several in parallel, and code checks every quote.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from core.agents.agent_runner import RunContext, drain_notes, write_context
from core.documents.quotes import verify_quote
from core.runtime.concurrency import merge_streams, stream_call
from core.runtime.errors import ModelError, ReplyError
from core.schema.events import (
    DebateNoted,
    Event,
    JudgementReached,
    ModelCalled,
    PersonSpoke,
    ProblemMet,
    TurnDelta,
    TurnFinished,
    TurnStarted,
)
from core.schema.records import EvidenceContext, Judgement, ModelCall, Plan, Stance, Turn
from core.schema.roles import CaseView, DebateView, JudgeView, SpeakCallback
from core.schema.rosters import JudgeMode, ProtocolOption, TurnMode
from core.schema.run_state import RunState, sum_costs
from core.store.ledger import RETRY_SLOT_SUFFIX

MAX_PARALLEL_TURNS = 16  # turns in parallel; waiting for models costs no work here
ALL_LOST_NOTE = (
    "All turns of a round were lost, so the debate ended there: another round would have asked the "
    "same again."
)


@dataclass(frozen=True)
class DebateState:
    """A case with its evidence, the agents that argue about it, and their progress.

    `progress` grows as the protocol's events are yielded. `heard` returns what people have said
    into the debate since its last call, each remark once.
    """

    run: RunContext
    view: CaseView
    progress: RunState
    plan: Plan
    heard: Callable[[], tuple[PersonSpoke, ...]] = tuple
    _reported: list[ModelCall] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def calls_made(self, slot: str) -> tuple[tuple[ModelCall, ...], list[ModelCall]]:
        """Return (calls not reported before, all calls of that slot), as turns run in parallel."""
        with self._lock:
            new = self.run.roster.calls_made()
            self._reported.extend(new)
            return new, [
                call for call in self._reported if call.slot.split(RETRY_SLOT_SUFFIX)[0] == slot
            ]

    @property
    def debaters(self) -> tuple[str, ...]:
        """The debaters' names in the order in which they speak."""
        names = tuple(self.run.roster.debaters)
        return names[::-1] if self.plan.options.is_swapped else names

    @property
    def context(self) -> EvidenceContext:
        """The context of agent C; without one, all passages for everybody."""
        return self.progress.context or EvidenceContext((), tuple(self.view.evidence.passages), "")

    @property
    def remarks(self) -> tuple[tuple[str, str], ...]:
        """What people said into the debate so far, as (author, text)."""
        return tuple((remark.by, remark.text) for remark in self.progress.remarks)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All turns taken, by number, whichever finished first."""
        return tuple(sorted(self.progress.turns, key=lambda turn: turn.number))

    def turns_before(self, number: int) -> tuple[Turn, ...]:
        """Return the turns before turn `number`, in order; the same after a Resume."""
        return tuple(turn for turn in self.turns if turn.number < number)

    def drain_calls(self) -> Iterator[Event]:
        """Yield an event for each call that was not reported before."""
        calls, _ = self.calls_made("")
        yield from (ModelCalled(self.run.now(), call) for call in calls)

    def turn(self, number: int) -> Turn | None:
        """Return the turn of that number, or None if it was not taken or was lost."""
        return next((turn for turn in self.progress.turns if turn.number == number), None)


@dataclass(frozen=True)
class TurnRequest:
    """A turn to take: its debater, its manner, and the earlier turns that the debater reads.

    The protocol's schedule fixes the numbers, even if an earlier turn was lost, so that they name
    the same turn after a Resume. `about` is the debater whose answer the turn is about.
    """

    number: int
    debater: str
    round: int
    manner: TurnMode
    hears: tuple[Turn, ...] = ()
    about: str = ""
    assigned: Stance | None = None
    summary: str = ""


def count_rounds(plan: Plan, usual: int = 2) -> int:
    """Return the plan's number of rounds, or the protocol's default if none was chosen."""
    return plan.options.rounds or usual


@dataclass(frozen=True)
class ProtocolCalls:
    """The most calls that a protocol makes of each role, and how many run in sequence.

    `chain` is the longest sequence of calls of all roles that wait for each other; the others run
    in parallel. `heard` is the sum over all debaters' prompts of the earlier turns that each shows,
    which are paid for each time; a last message alone does not count.
    """

    turns: int
    judgements: int
    chain: int
    context: int = 0
    summaries: int = 0
    revisions: int = 0
    heard: int = 0

    @property
    def total(self) -> int:
        """The number of calls of all roles."""
        return self.turns + self.judgements + self.context + self.summaries + self.revisions


@dataclass(frozen=True)
class DebateProtocol:
    """A debate protocol. `calls(debaters, plan)` returns the most calls that `argue` makes.

    `turn_modes` are the ways in which it asks debaters, `judge_modes` those in which it asks the
    judge;
    `options` are what can be chosen: pages offer these, and the command line accepts no others.
    `is_judged_by_first`: the first debater's model judges if a roster of models names no judge.
    `writing` names the prompts of the context writer. `debater_count`: how many of the debaters
    speak, from the first; None: all. `is_weighed`: the roster's weigher weighs the answers.
    """

    name: str
    argue: Callable[[DebateState], Iterator[Event]]
    calls: Callable[[int, Plan], ProtocolCalls]
    turn_modes: tuple[TurnMode, ...] = ()
    judge_modes: tuple[JudgeMode, ...] = ()
    options: tuple[ProtocolOption, ...] = ()
    is_judged_by_first: bool = False
    writing: tuple[str, ...] = ("context",)
    debater_count: int | None = None
    is_weighed: bool = False


def report_notices(state: DebateState) -> Iterator[Event]:
    """Yield what people should know about the material before the first turn."""
    run, progress = state.run, state.progress
    if not (progress.context or progress.turns or progress.samples):
        for notice in run.roster.notices(state.view):
            yield ProblemMet(run.now(), "searching", notice)


def add_debate_note(state: DebateState, words: str) -> Iterator[Event]:
    """Yield a note on how the debate is held, once per run."""
    if words not in state.progress.notes:
        yield DebateNoted(state.run.now(), words)


def end_lost_round(state: DebateState, turns: Iterable[int]) -> Generator[Event, None, bool]:
    """Return True, with a note, if all these turns were lost: the next round would ask the same."""
    if any(state.turn(number) is not None for number in turns):
        return False
    yield from add_debate_note(state, ALL_LOST_NOTE)
    return True


def require_context(state: DebateState) -> Iterator[Event]:
    """Have agent C build the context, unless that is done already (CEDA 3.3)."""
    if state.progress.context is None:
        yield from write_context(state.run, state.view, list(state.run.roster.debaters))
    if state.progress.context is None:
        raise ModelError("The run has no context after the stage that makes it.")


def conclude_debate(
    state: DebateState, judgement: Judgement, began: float | None = None
) -> Iterator[Event]:
    """Yield the judgement as an event; it lasted from `began`, or 0 seconds without it."""
    now = state.run.now()
    yield JudgementReached(now, judgement, 0.0 if began is None else now - began)


def take_turns(state: DebateState, requests: Sequence[TurnRequest]) -> Iterator[Event]:
    """Take the requested turns that are still missing, in parallel; first yield people's remarks.

    A turn with an unusable reply is lost and reported; the debate goes on without it. A turn that
    was lost before a later one was taken stays lost when the run is resumed.
    """
    yield from state.heard()
    last = max((request.number for request in requests), default=0)
    if any(turn.number > last for turn in state.progress.turns):
        return
    pending = [request for request in requests if state.turn(request.number) is None]
    streams = [partial(_take_turn, state, request) for request in pending]
    yield from merge_streams(streams, workers=MAX_PARALLEL_TURNS)
    yield from drain_notes(state.run, "debating")


def collect_turns(state: DebateState, requests: Sequence[TurnRequest]) -> tuple[Turn, ...]:
    """Return the requested turns that were not lost, in the order of the requests."""
    turns = (state.turn(request.number) for request in requests)
    return tuple(turn for turn in turns if turn is not None)


def build_judge_view(
    state: DebateState,
    turns: Sequence[Turn] | None = None,
    *,
    mode: JudgeMode = "debate",
    number: int = 1,
    is_sampled: bool = False,
    summary: str = "",
) -> JudgeView:
    """Return what the judge sees; `turns` defaults to all turns in order."""
    return JudgeView(
        state.view,
        state.context,
        state.turns if turns is None else tuple(turns),
        state.progress.reached_consensus,
        mode,
        number,
        is_sampled,
        state.remarks,
        summary,
    )


def _take_turn(state: DebateState, request: TurnRequest) -> Iterator[Event]:
    """Take a turn; report it as lost if the reply is unusable."""
    run, number = state.run, request.number
    run.stop.check()
    try:
        yield from _stream_turn(state, request)
    except ReplyError as error:
        yield from state.drain_calls()
        message = f"{request.debater}'s turn {number} is lost: {error}"
        yield ProblemMet(run.now(), "debating", message, reply=error.reply, turn=number)


def _stream_turn(state: DebateState, request: TurnRequest) -> Iterator[Event]:
    run = state.run
    debater, seen = run.roster.debaters[request.debater], _build_view(state, request)
    started = run.now()
    manner, about, assigned = request.manner, request.about, request.assigned
    yield TurnStarted(
        started,
        request.debater,
        debater.name,
        request.number,
        request.round,
        manner,
        about,
        assigned,
    )

    def argue(speak: SpeakCallback) -> Turn:
        return debater.argue(seen, speak, run.stop)

    speech = stream_call(argue)
    while True:
        try:
            piece = next(speech)
        except StopIteration as ended:
            reply = replace(ended.value, manner=manner, about=about, assigned=assigned)
            turn = verify_turn_quotes(reply, state.view)
            break
        run.stop.check()
        yield TurnDelta(run.now(), request.number, piece)
    finished = run.now()
    new_calls, turn_calls = state.calls_made(f"turn {request.number}")
    yield from (ModelCalled(finished, call) for call in new_calls)
    yield TurnFinished(finished, turn, finished - started, sum_costs(turn_calls))


def _build_view(state: DebateState, request: TurnRequest) -> DebateView:
    about = next((t for t in reversed(request.hears) if t.debater == request.about), None)
    last = about or (request.hears[-1] if request.hears else None)
    context = state.context
    shares = {share.debater: share.passages for share in context.shares}
    return DebateView(
        case_view=state.view,
        debater=request.debater,
        share=frozenset(shares.get(request.debater, context.whole)),
        turns=request.hears,
        number=request.number,
        round=request.round,
        last_message=last.text if last else state.view.case.response,
        conflicts=context.conflicts,
        manner=request.manner,
        about=request.about,
        assigned=request.assigned,
        remarks=state.remarks,
        summary=request.summary,
    )


def verify_turn_quotes(turn: Turn, view: CaseView) -> Turn:
    """Return the turn with every quote checked by code, whatever the debater claimed."""
    passages = list(view.evidence.passages.values())
    quotes = [*turn.quotes, *(point.quote for point in turn.points if point.quote)]
    checked = {
        text: verify_quote(text, passages, view.sources)
        for text in dict.fromkeys(quote.text for quote in quotes)
    }
    points = tuple(
        replace(point, quote=checked[point.quote.text]) if point.quote else point
        for point in turn.points
    )
    return replace(turn, quotes=tuple(checked[q.text] for q in turn.quotes), points=points)
