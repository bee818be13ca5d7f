"""Debates in which debaters answer each other turn by turn: CEDA, society of minds, tit for tat.

CEDA: debaters speak in turn until the last n turns of n debaters all agree, or for N turns (3.1,
4.4: N = 5, A.3.3: each begins with agree or deny). N = 1 is one reading that nobody answers (5.5).
Calls: one of agent C, `max_turns` turns at most and one judgement, all in sequence.

Society of minds: all answer, then in each of R rounds all reconsider, having read the others' last
answers; the debate ends early when all agree, and the majority of the last answers is the
judgement. Source: Du et al. as in SC-MAKS 2.1.2; ColMAD 2.2, 2.3. Calls: n + n·R turns at most,
1 + R in sequence. R = 2 by default.

Tit for tat: two debaters, of whom the second must oppose in the first round, and a judge who after
each round either names the answer that is clear or lets the debate go on. Source: Liang et al. as
in SC-MAKS 2.1.2. Calls: 2·R turns and R judgements at most, all in sequence. R = 3 by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.agents.agent_runner import run_judge, sample_judgement
from core.baseline.wording import join_quoted
from core.debate.state import (
    DebateProtocol,
    DebateState,
    ProtocolCalls,
    TurnRequest,
    add_debate_note,
    build_judge_view,
    conclude_debate,
    count_rounds,
    end_lost_round,
    require_context,
    take_turns,
)
from core.debate.votes import (
    check_unreadable_images,
    decide_by_majority,
    is_unanimous,
    list_last_answers,
    make_no_votes,
)
from core.schema.events import ConsensusReached, Event, JudgementReached
from core.schema.records import Plan, Stance, Turn, UnclearCause

SOCIETY_AGENT = "Majority of the agents"
MIN_CONSENSUS_TURNS = 2
MAD_ROUNDS = 3
TIT_FOR_TAT_DEBATERS = 2
OPPOSITE_STANCE: dict[Stance, Stance] = {
    "supported": "hallucinated",
    "hallucinated": "supported",
    "unclear": "hallucinated",
}
# A debate cannot change these causes.
FINAL_CAUSES: frozenset[UnclearCause | None] = frozenset({"no_evidence", "image_not_readable"})


def argue_mad(state: DebateState) -> Iterator[Event]:
    """Hold rounds until the judge sees a clear answer, at most R."""
    if others := tuple(state.run.roster.debaters)[TIT_FOR_TAT_DEBATERS:]:
        words = f"Tit for tat is between two: {join_quoted(others)} did not take part."
        yield from add_debate_note(state, words)
    last = count_rounds(state.plan, MAD_ROUNDS)
    for number in range(1, last):
        yield from _hold_round(state, number)
        first = TIT_FOR_TAT_DEBATERS * (number - 1) + 1
        if (yield from end_lost_round(state, range(first, first + TIT_FOR_TAT_DEBATERS))):
            break
        if number not in state.progress.samples:
            seen = build_judge_view(state, mode="moderate", number=number)
            yield from sample_judgement(state.run, seen, f"after round {number}")
        sample = state.progress.samples[number]
        if sample.judgement.label != "unclear" or sample.judgement.cause in FINAL_CAUSES:
            yield JudgementReached(state.run.now(), sample.judgement, sample.seconds)
            return
    else:
        yield from _hold_round(state, last)
    if state.progress.turns:
        yield from state.heard()
        yield from run_judge(state.run, build_judge_view(state, number=last))
    else:
        judge = state.run.roster.judge.name
        yield from conclude_debate(state, make_no_votes(judge, state.view, 0))


def count_mad_calls(debaters: int, plan: Plan) -> ProtocolCalls:
    """Return the most calls that a check makes, by the formula in the module docstring."""
    rounds = count_rounds(plan, MAD_ROUNDS)
    turns = min(debaters, TIT_FOR_TAT_DEBATERS) * rounds
    return ProtocolCalls(turns, rounds, chain=turns + rounds, heard=sum(range(turns)))


def _hold_round(state: DebateState, number: int) -> Iterator[Event]:
    """Take one turn of each of the roster's first two; both read all turns before theirs."""
    names = tuple(state.run.roster.debaters)[:TIT_FOR_TAT_DEBATERS]
    for place, name in enumerate(names[::-1] if state.plan.options.is_swapped else names):
        state.run.stop.check()
        turn_number = TIT_FOR_TAT_DEBATERS * (number - 1) + place + 1
        earlier = state.turns_before(turn_number)
        side = OPPOSITE_STANCE[earlier[-1].stance] if number == 1 and earlier else None
        request = TurnRequest(turn_number, name, number, "tit_for_tat", earlier, assigned=side)
        yield from take_turns(state, [request])


MAD = DebateProtocol(
    name="mad",
    argue=argue_mad,
    calls=count_mad_calls,
    turn_modes=("tit_for_tat",),
    judge_modes=("moderate", "debate"),
    options=("rounds", "is_swapped"),
    debater_count=TIT_FOR_TAT_DEBATERS,
)


def _sort_own_first(name: str, answers: Sequence[Turn]) -> tuple[Turn, ...]:
    """Sort the debater's own answer first, so that the last message is another debater's."""
    return tuple(sorted(answers, key=lambda turn: turn.debater != name))


def argue_society(state: DebateState) -> Iterator[Event]:
    """Ask for answers, hold rounds until all agree, and take the vote."""
    began, names, progress = state.run.now(), state.debaters, state.progress
    debaters, judgement = len(names), check_unreadable_images(SOCIETY_AGENT, state.view)
    if judgement is None:
        for stage in range(count_rounds(state.plan) + 1):
            first = stage * debaters + 1
            answers = list_last_answers([turn for turn in progress.turns if turn.number < first])
            if is_unanimous(answers, debaters):
                break
            if stage and (yield from end_lost_round(state, range(first - debaters, first))):
                break
            state.run.stop.check()
            requests = [
                TurnRequest(number, name, stage + 1, "reconsider", _sort_own_first(name, answers))
                if stage
                else TurnRequest(number, name, 1, "answer")
                for number, name in enumerate(names, first)
            ]
            yield from take_turns(state, requests)
        answers = list_last_answers(progress.turns)
        if is_unanimous(answers, debaters) and not progress.reached_consensus:
            yield ConsensusReached(state.run.now(), answers[0].stance, len(progress.turns))
        judgement = decide_by_majority(SOCIETY_AGENT, state, answers)
    yield from conclude_debate(state, judgement, began)


def _count_society_calls(debaters: int, plan: Plan) -> ProtocolCalls:
    stages = 1 + count_rounds(plan)
    return ProtocolCalls(debaters * stages, 0, chain=stages, heard=debaters**2 * (stages - 1))


SOCIETY = DebateProtocol(
    name="society",
    argue=argue_society,
    calls=_count_society_calls,
    turn_modes=("answer", "reconsider"),
    options=("rounds",),
)


def argue_ceda(state: DebateState) -> Iterator[Event]:
    """Hold the debate, then have the judge decide."""
    yield from run_ceda_turns(state)
    yield from state.heard()
    yield from run_judge(state.run, build_judge_view(state))


def run_ceda_turns(state: DebateState) -> Iterator[Event]:
    """Have agent C build the context and take the turns, skipping what is already done."""
    yield from require_context(state)
    names, turns = state.debaters, state.progress.turns
    number = turns[-1].number if turns else 0
    while number < state.plan.max_turns and not is_consensus(turns, len(names)):
        state.run.stop.check()
        before = range(number - len(names) + 1, number + 1)
        if number and number % len(names) == 0 and (yield from end_lost_round(state, before)):
            break
        number += 1
        place, name = divmod(number - 1, len(names))
        request = TurnRequest(number, names[name], place + 1, "debate", tuple(turns))
        yield from take_turns(state, [request])
    if is_consensus(turns, len(names)) and not state.progress.reached_consensus:
        yield ConsensusReached(state.run.now(), turns[-1].stance, len(turns))


def count_ceda_calls(debaters: int, plan: Plan) -> ProtocolCalls:
    """Return the most calls that a check makes, by the formula in the module docstring."""
    turns = plan.max_turns if debaters else 0
    return ProtocolCalls(turns, 1, chain=turns + 2, context=1)


def is_consensus(turns: Sequence[Turn], debaters: int = MIN_CONSENSUS_TURNS) -> bool:
    """Return True if all debaters, in their last turns, agree with each other and on the claim.

    Both conditions are needed: in the paper's illusion example both agree and the claim is
    false, while "agree" with opposite stances is no agreement.
    """
    size = max(MIN_CONSENSUS_TURNS, debaters)
    window = turns[-size:]
    if len(window) < size or len({turn.debater for turn in window}) < size:
        return False
    agreeing = all(turn.reply == "agree" for turn in window)
    return agreeing and len({turn.stance for turn in window}) == 1


CEDA = DebateProtocol(
    name="ceda",
    argue=argue_ceda,
    calls=count_ceda_calls,
    turn_modes=("debate",),
    judge_modes=("debate",),
    options=("turns", "is_swapped"),
)
