"""What a protocol of debate works with: the state of the debate, and turns taken in it.

A protocol yields events from the first word to the judgement. What the run's progress holds of
them is not done again, so that a run that was cut off goes on where it was. Turns are taken one
after the other or several at once, with every quote checked in code.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from core.agents.agent_runner import RunContext, context_built, notes_of
from core.documents.quotes import verify_quote
from core.runtime.concurrency import merged, streamed
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
from core.schema.progress import Progress, total_cost
from core.schema.records import Context, Judgement, ModelCall, Plan, Stance, Turn
from core.schema.roles import CaseView, DebateView, JudgeView, Speak
from core.schema.rosters import JudgeManner, Manner, Option
from core.store.ledger import AGAIN


@dataclass(frozen=True)
class DebateState:
    """A case with its evidence, those who argue about it, and how far they have come.

    `progress` grows as the protocol's events are yielded. `heard` hands over, once each, what
    people have said into the debate since it was last asked.
    """

    run: RunContext
    view: CaseView
    progress: Progress
    plan: Plan
    heard: Callable[[], tuple[PersonSpoke, ...]] = tuple
    _told: list[ModelCall] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def calls_made(self, slot: str) -> tuple[tuple[ModelCall, ...], list[ModelCall]]:
        """(calls nobody has told of yet; all calls of that slot): turns are taken side by side."""
        with self._lock:
            new = self.run.roster.calls_made()
            self._told.extend(new)
            return new, [call for call in self._told if call.slot.split(AGAIN)[0] == slot]

    @property
    def debaters(self) -> tuple[str, ...]:
        """Their names in the order in which they speak."""
        names = tuple(self.run.roster.debaters)
        return names[::-1] if self.plan.options.is_swapped else names

    @property
    def context(self) -> Context:
        """What agent C wrote; where nobody was asked, all passages for everybody."""
        return self.progress.context or Context((), tuple(self.view.evidence.passages), "")

    @property
    def remarks(self) -> tuple[tuple[str, str], ...]:
        """What people said into the debate so far, as (who, words)."""
        return tuple((said.by, said.text) for said in self.progress.remarks)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All that were taken, in the order in which they were asked for, whoever was quicker."""
        return tuple(sorted(self.progress.turns, key=lambda turn: turn.number))

    def turns_before(self, number: int) -> tuple[Turn, ...]:
        """The turns before that one, in order; the same after a Resume."""
        return tuple(turn for turn in self.turns if turn.number < number)

    def told_calls(self) -> Iterator[Event]:
        """The calls nobody has told of yet."""
        calls, _ = self.calls_made("")
        yield from (ModelCalled(self.run.now(), call) for call in calls)

    def turn(self, number: int) -> Turn | None:
        """The turn of that number, if it was taken and not lost."""
        return next((turn for turn in self.progress.turns if turn.number == number), None)


@dataclass(frozen=True)
class TurnRequest:
    """A turn that is to be taken: by whom, in which manner, and which turns they hear before it.

    Numbers are fixed by the protocol's schedule, also where an earlier turn was lost, so that they
    name the same turn after a Resume. `about` is the debater whose answer is spoken of.
    """

    number: int
    debater: str
    round: int
    manner: Manner
    hears: tuple[Turn, ...] = ()
    about: str = ""
    assigned: Stance | None = None
    summary: str = ""


def rounds_of(plan: Plan, usual: int = 2) -> int:
    """How many rounds of debate the plan has, the protocol's usual ones unless some were chosen."""
    return plan.options.rounds or usual


@dataclass(frozen=True)
class Calls:
    """The most calls that a protocol makes of each role, and the longest chain that must wait.

    `chain` counts calls in a row, of all roles; the rest goes out at the same time as others.
    `heard` counts the earlier turns that all prompts of debaters show together, which are paid for
    each time; a last message alone is none.
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
        """The number of all calls."""
        return self.turns + self.judgements + self.context + self.summaries + self.revisions


@dataclass(frozen=True)
class DebateProtocol:
    """A way to argue. `calls(debaters, plan)` counts what `argue` asks for at most.

    `manners` are those that its debaters are asked in, `judging` those that its judge is;
    `options` are what can be chosen of it: pages offer these, and the command line takes no others.
    `is_judged_by_first`: the first debater's model judges where a roster of models seats no judge.
    `writing` names the prompts of the context writer's seat. `seats`: how many of the debaters
    speak, the first so many; None: all. `is_weighed`: the roster's weigher weighs the answers.
    """

    name: str
    argue: Callable[[DebateState], Iterator[Event]]
    calls: Callable[[int, Plan], Calls]
    manners: tuple[Manner, ...] = ()
    judging: tuple[JudgeManner, ...] = ()
    options: tuple[Option, ...] = ()
    is_judged_by_first: bool = False
    writing: tuple[str, ...] = ("context",)
    seats: int | None = None
    is_weighed: bool = False


AT_ONCE = 16  # a model that is waited for costs no work here


def warned(state: DebateState) -> Iterator[Event]:
    """What people should know of the material before anybody speaks."""
    run, progress = state.run, state.progress
    if not (progress.context or progress.turns or progress.samples):
        yield from (ProblemMet(run.now(), "searching", w) for w in run.roster.notices(state.view))


def noted(state: DebateState, words: str) -> Iterator[Event]:
    """A quiet line about how the debate is held, told once."""
    if words not in state.progress.notes:
        yield DebateNoted(state.run.now(), words)


def with_context(state: DebateState) -> Iterator[Event]:
    """Agent C's part, where it is not done yet (CEDA 3.3)."""
    if state.progress.context is None:
        yield from context_built(state.run, state.view, list(state.run.roster.debaters))
    if state.progress.context is None:
        raise ModelError("The run has no context after the stage that makes it.")


def concluded(
    state: DebateState, judgement: Judgement, began: float | None = None
) -> Iterator[Event]:
    """The judgement as an event, which took the time since `began`; by itself it takes none."""
    now = state.run.now()
    yield JudgementReached(now, judgement, 0.0 if began is None else now - began)


def spoken(state: DebateState, requests: Sequence[TurnRequest]) -> Iterator[Event]:
    """The turns of these requests that are not taken yet, all at once; first what people said.

    A turn whose reply is unusable is lost and counted; the debate goes on with what was said. What
    was lost before a later turn was taken stays lost when the run is resumed.
    """
    yield from state.heard()
    last = max((request.number for request in requests), default=0)
    if any(turn.number > last for turn in state.progress.turns):
        return
    waiting = [request for request in requests if state.turn(request.number) is None]
    streams = [partial(_speaking, state, request) for request in waiting]
    yield from merged(streams, workers=AT_ONCE)
    yield from notes_of(state.run, "debating")


def taken(state: DebateState, requests: Sequence[TurnRequest]) -> tuple[Turn, ...]:
    """The turns that are requested here that were not lost, in their order."""
    found = (state.turn(request.number) for request in requests)
    return tuple(turn for turn in found if turn is not None)


def judge_view(
    state: DebateState,
    turns: Sequence[Turn] | None = None,
    *,
    manner: JudgeManner = "debate",
    number: int = 1,
    is_sampled: bool = False,
    summary: str = "",
) -> JudgeView:
    """What the judge sees; all turns in their order, unless given."""
    return JudgeView(
        state.view,
        state.context,
        state.turns if turns is None else tuple(turns),
        state.progress.reached_consensus,
        manner,
        number,
        is_sampled,
        state.remarks,
        summary,
    )


def _speaking(state: DebateState, request: TurnRequest) -> Iterator[Event]:
    run, number = state.run, request.number
    run.stop.check()
    try:
        yield from _one_turn(state, request)
    except ReplyError as error:
        yield from state.told_calls()
        message = f"{request.debater}'s turn {number} is lost: {error}"
        yield ProblemMet(run.now(), "debating", message, reply=error.reply, turn=number)


def _one_turn(state: DebateState, request: TurnRequest) -> Iterator[Event]:
    run = state.run
    debater, seen = run.roster.debaters[request.debater], _view_of(state, request)
    started = run.now()
    manner, about, assigned = request.manner, request.about, request.assigned
    name, place = (request.debater, debater.name), (request.number, request.round)
    yield TurnStarted(started, *name, *place, manner, about, assigned)

    def argue(speak: Speak) -> Turn:
        return debater.argue(seen, speak, run.stop)

    speech = streamed(argue)
    while True:
        try:
            piece = next(speech)
        except StopIteration as ended:
            said = replace(ended.value, manner=manner, about=about, assigned=assigned)
            turn = with_checked_quotes(said, state.view)
            break
        run.stop.check()
        yield TurnDelta(run.now(), request.number, piece)
    finished = run.now()
    calls, own = state.calls_made(f"turn {request.number}")
    yield from (ModelCalled(finished, call) for call in calls)
    yield TurnFinished(finished, turn, finished - started, total_cost(own))


def _view_of(state: DebateState, request: TurnRequest) -> DebateView:
    about = next((t for t in reversed(request.hears) if t.debater == request.about), None)
    last = about or (request.hears[-1] if request.hears else None)
    context = state.context
    shares = {share.debater: share.passages for share in context.shares}
    return DebateView(
        view=state.view,
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


def with_checked_quotes(turn: Turn, view: CaseView) -> Turn:
    """The turn with every quote's status decided in code, whatever the debater claimed."""
    passages = list(view.evidence.passages.values())
    own = [*turn.quotes, *(point.quote for point in turn.points if point.quote)]
    checked = {
        text: verify_quote(text, passages, view.sources)
        for text in dict.fromkeys(quote.text for quote in own)
    }
    points = tuple(
        replace(point, quote=checked[point.quote.text]) if point.quote else point
        for point in turn.points
    )
    return replace(turn, quotes=tuple(checked[q.text] for q in turn.quotes), points=points)
