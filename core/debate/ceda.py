"""CEDA's debate: debaters in turn until all agree over as many turns as they are, or N turns.

Source: CEDA 3.1 (agents D and E, termination), 4.4 (N = 5), A.3.3 (agree or deny first). N = 1 is
one reading that nobody answers, which the judge turns into a verdict: a plain judge (5.5). The
paper has two debaters and a window of two turns; more are heard out, each within the window.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace

from core.concurrency import Stop, streamed
from core.errors import ReplyError
from core.events import (
    ConsensusReached,
    Event,
    ModelCalled,
    ProblemMet,
    TurnDelta,
    TurnFinished,
    TurnStarted,
)
from core.evidence.quotes import verify_quote
from core.progress import total_cost
from core.records import Context, ModelCall, Turn
from core.roles import CaseView, Debater, DebateView, Speak

LEAST_WINDOW = 2


def run_debate(
    view: CaseView,
    context: Context,
    debaters: Mapping[str, Debater],
    *,
    max_turns: int,
    stop: Stop,
    now: Callable[[], float],
    calls_made: Callable[[], tuple[ModelCall, ...]] = tuple,
    past: Sequence[Turn] = (),
    is_consensus_told: bool = False,
) -> Iterator[Event]:
    """Yield the debate's events; `past` are turns of an interrupted run, which are not redone.

    `is_consensus_told` says that the interrupted run came to tell of its consensus.
    A turn whose reply is unusable is lost and counted; the debate goes on with what was said.

    Raises:
        ModelError: a debater's service failed; the run can be resumed at this turn.
    """
    names = list(debaters)
    turns = list(past)
    number = turns[-1].number if turns else 0
    while number < max_turns and not reached_consensus(turns, len(names)):
        stop.check()
        number += 1
        name = names[(number - 1) % len(names)]
        seen = DebateView(
            view=view,
            debater=name,
            share=_share_of(name, context),
            turns=tuple(turns),
            number=number,
            round=(number - 1) // len(names) + 1,
            last_message=turns[-1].text if turns else view.case.response,
            conflicts=context.conflicts,
        )
        try:
            turns.append((yield from _one_turn(debaters[name], seen, stop, now, calls_made)))
        except ReplyError as error:
            yield from (ModelCalled(now(), call) for call in calls_made())
            message = f"{name}'s turn {number} is lost: {error}"
            yield ProblemMet(now(), "debating", message, reply=error.reply)
    if reached_consensus(turns, len(names)) and not is_consensus_told:
        yield ConsensusReached(now(), turns[-1].stance, len(turns))


def _share_of(name: str, context: Context) -> frozenset[str]:
    """The passages that a debater was given; all of them where nothing was shared out."""
    shares = {share.debater: frozenset(share.passages) for share in context.shares}
    return shares.get(name, frozenset(context.whole))


def reached_consensus(turns: Sequence[Turn], debaters: int = LEAST_WINDOW) -> bool:
    """True when all debaters, in their last turns, agree with each other and on the claim.

    Both conditions are needed: in the paper's illusion example both agree and the claim is
    false, while "agree" with opposite stances is no agreement.
    """
    size = max(LEAST_WINDOW, debaters)
    window = turns[-size:]
    if len(window) < size or len({turn.debater for turn in window}) < size:
        return False
    agreeing = all(turn.reply == "agree" for turn in window)
    return agreeing and len({turn.stance for turn in window}) == 1


def _one_turn(
    debater: Debater,
    seen: DebateView,
    stop: Stop,
    now: Callable[[], float],
    calls_made: Callable[[], tuple[ModelCall, ...]],
) -> Generator[Event, None, Turn]:
    """The events of one turn; returns the finished turn with its quotes checked."""
    started = now()
    yield TurnStarted(started, seen.debater, debater.name, seen.number, seen.round)

    def argue(speak: Speak) -> Turn:
        return debater.argue(seen, speak, stop)

    speech = streamed(argue)
    while True:
        try:
            piece = next(speech)
        except StopIteration as ended:
            turn = _with_checked_quotes(ended.value, seen.view)
            break
        stop.check()
        yield TurnDelta(now(), seen.number, piece)
    finished = now()
    calls = calls_made()
    yield from (ModelCalled(finished, call) for call in calls)
    yield TurnFinished(finished, turn, finished - started, total_cost(calls))
    return turn


def _with_checked_quotes(turn: Turn, view: CaseView) -> Turn:
    """The turn with every quote's status decided in code, whatever the debater claimed."""
    passages = list(view.evidence.passages.values())
    checked = tuple(verify_quote(quote.text, passages, view.sources) for quote in turn.quotes)
    by_text = dict(zip((quote.text for quote in turn.quotes), checked, strict=True))
    points = tuple(
        replace(
            point,
            quote=by_text.get(point.quote.text)
            or verify_quote(point.quote.text, passages, view.sources),
        )
        if point.quote
        else point
        for point in turn.points
    )
    return replace(turn, quotes=checked, points=points)
