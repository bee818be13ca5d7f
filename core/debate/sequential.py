"""Debates in turns: CEDA's, society of minds, and tit for tat.

CEDA: debaters in turn until all agree over as many turns as they are, or N turns (3.1, 4.4: N = 5,
A.3.3: agree or deny first). N = 1 is one reading that nobody answers (5.5). Calls: one of agent C,
`max_turns` turns at most and one judgement, all in a row.

Society of minds: all answer, then in each of R rounds all reconsider in the light of the others'
last answers; all agreeing ends it early, and the majority of the last answers is the judgement.
Source: Du et al. as in SC-MAKS 2.1.2; ColMAD 2.2, 2.3. Calls: n + n·R turns at most, in chains of
1 + R. R = 2 by default.

Tit for tat: two debaters, of whom the second must oppose in the first round, and a judge who after
each round says which answer is clear, or that the debate goes on. Source: Liang et al. as in
SC-MAKS 2.1.2. Calls: 2·R turns and R judgements at most, all in a row. R = 3 by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.agents.agent_runner import judged, sampled
from core.baseline.wording import listed
from core.debate.state import (
    Calls,
    DebateProtocol,
    DebateState,
    TurnRequest,
    concluded,
    judge_view,
    noted,
    rounds_of,
    spoken,
    with_context,
)
from core.debate.votes import all_agree, barred, by_majority, last_answers, nobody_voted
from core.schema.events import ConsensusReached, Event, JudgementReached
from core.schema.records import Cause, Plan, Stance, Turn

MAD_ROUNDS = 3
SEATS = 2
OPPOSITE: dict[Stance, Stance] = {
    "supported": "hallucinated",
    "hallucinated": "supported",
    "unclear": "hallucinated",
}
# More words on it change nothing.
FINAL: frozenset[Cause | None] = frozenset({"no_evidence", "image_not_readable"})


def argue_mad(state: DebateState) -> Iterator[Event]:
    """Rounds until the judge sees a clear answer, at most R."""
    if others := tuple(state.run.roster.debaters)[SEATS:]:
        words = f"Tit for tat is between two: {listed(others)} did not take part."
        yield from noted(state, words)
    last = rounds_of(state.plan, MAD_ROUNDS)
    for number in range(1, last):
        yield from _round(state, number)
        if not state.progress.turns:  # nothing that a judge could rule on
            continue
        if number not in state.progress.samples:
            seen = judge_view(state, manner="moderate", number=number)
            yield from sampled(state.run, seen, f"after round {number}")
        sample = state.progress.samples[number]
        if sample.judgement.label != "unclear" or sample.judgement.cause in FINAL:
            yield JudgementReached(state.run.now(), sample.judgement, sample.seconds)
            return
    yield from _round(state, last)
    if state.progress.turns:
        yield from state.heard()
        yield from judged(state.run, judge_view(state, number=last))
    else:
        judge = state.run.roster.judge.name
        yield from concluded(state, nobody_voted(judge, state.view, 0))


def count_mad_calls(debaters: int, plan: Plan) -> Calls:
    """The calls that a check asks for at most, as the head of this file counts them."""
    rounds = rounds_of(plan, MAD_ROUNDS)
    turns = min(debaters, SEATS) * rounds
    return Calls(turns, rounds, chain=turns + rounds, heard=sum(range(turns)))


def _round(state: DebateState, number: int) -> Iterator[Event]:
    """One turn of the roster's first two each; both hear all that was said before."""
    names = tuple(state.run.roster.debaters)[:SEATS]
    for place, name in enumerate(names[::-1] if state.plan.options.is_swapped else names):
        state.run.stop.check()
        own = SEATS * (number - 1) + place + 1
        heard = state.turns_before(own)
        side = OPPOSITE[heard[-1].stance] if number == 1 and heard else None
        request = TurnRequest(own, name, number, "tit_for_tat", heard, assigned=side)
        yield from spoken(state, [request])


MAD = DebateProtocol(
    *("mad", argue_mad, count_mad_calls),
    manners=("tit_for_tat",),
    judging=("moderate", "debate"),
    options=("rounds", "is_swapped"),
    seats=SEATS,
)


AGENT = "Majority of the agents"


def _own_first(name: str, answers: Sequence[Turn]) -> tuple[Turn, ...]:
    """The answers, the debater's own first, so that the last message is another's."""
    return tuple(sorted(answers, key=lambda turn: turn.debater != name))


def argue_society(state: DebateState) -> Iterator[Event]:
    """Answers, rounds until all agree, and the vote."""
    began, names, progress = state.run.now(), state.debaters, state.progress
    debaters, judgement = len(names), barred(AGENT, state.view)
    if judgement is None:
        for stage in range(rounds_of(state.plan) + 1):
            first = stage * debaters + 1
            answers = last_answers([turn for turn in progress.turns if turn.number < first])
            if all_agree(answers, debaters) or (stage and not answers):  # nothing to reconsider
                break
            state.run.stop.check()
            requests = [
                TurnRequest(number, name, stage + 1, "reconsider", _own_first(name, answers))
                if stage
                else TurnRequest(number, name, 1, "answer")
                for number, name in enumerate(names, first)
            ]
            yield from spoken(state, requests)
        answers = last_answers(progress.turns)
        if all_agree(answers, debaters) and not progress.reached_consensus:
            yield ConsensusReached(state.run.now(), answers[0].stance, len(progress.turns))
        judgement = by_majority(AGENT, state, answers)
    yield from concluded(state, judgement, began)


def _society(debaters: int, stages: int) -> Calls:
    return Calls(debaters * stages, 0, chain=stages, heard=debaters**2 * (stages - 1))


SOCIETY = DebateProtocol(
    *("society", argue_society, lambda n, plan: _society(n, 1 + rounds_of(plan))),
    manners=("answer", "reconsider"),
    options=("rounds",),
)


LEAST_WINDOW = 2


def argue_ceda(state: DebateState) -> Iterator[Event]:
    """Hold the debate, then have the judge decide."""
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
    """The calls that a check asks for at most, as the head of this file counts them."""
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
    *("ceda", argue_ceda, calls),
    manners=("debate",),
    judging=("debate",),
    options=("turns", "is_swapped"),
)
