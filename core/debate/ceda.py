"""CEDA's debate: debaters in turn until all agree over as many turns as they are, or N turns.

Source: CEDA 3.1 (agents D and E, termination), 4.4 (N = 5), A.3.3 (agree or deny first). N = 1 is
one reading that nobody answers, which the judge turns into a verdict: a plain judge (5.5). The
paper has two debaters and a window of two turns; more are heard out, each within the window.
Calls: one of agent C, `max_turns` turns at most and one judgement, all in a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.agents.agent_runner import judged
from core.debate.state import (
    Calls,
    DebateProtocol,
    DebateState,
    TurnRequest,
    judge_view,
    spoken,
    with_context,
)
from core.events import ConsensusReached, Event
from core.records import Plan, Turn

LEAST_WINDOW = 2


def argue_ceda(state: DebateState) -> Iterator[Event]:
    """The debate, then the judge."""
    yield from debate_ceda(state)
    yield from state.heard()
    yield from judged(state.run, judge_view(state))


def debate_ceda(state: DebateState) -> Iterator[Event]:
    """Agent C's part and the turns, as far as they are not there yet."""
    yield from with_context(state)
    names, turns = state.debaters, state.progress.turns
    number = turns[-1].number if turns else 0
    while number < state.plan.max_turns and not reached_consensus(turns, len(names)):
        state.run.stop.check()
        number += 1
        place, name = divmod(number - 1, len(names))
        request = TurnRequest(number, names[name], place + 1, "debate", tuple(turns))
        yield from spoken(state, [request])
    if reached_consensus(turns, len(names)) and not state.progress.reached_consensus:
        yield ConsensusReached(state.run.now(), turns[-1].stance, len(turns))


def calls(debaters: int, plan: Plan) -> Calls:
    """As the head of this file says."""
    turns = plan.max_turns if debaters else 0
    return Calls(turns, 1, chain=turns + 2, context=1)


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


CEDA = DebateProtocol(
    "ceda",
    argue_ceda,
    calls,
    manners=("debate",),
    judging=("debate",),
    options=("turns", "is_swapped"),
)
