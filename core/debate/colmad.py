"""Two debates that a judge concludes: ColMAD, which is collaborative, and CopMAD, which is not.

ColMAD: debaters share one goal, the truth, and complete each other's answers. All answer alone and
in parallel, each with its reasons (2.1). R rounds follow, in which they speak in turn and read
everything said before: they add what the others missed instead of competing (2.3). Code verifies
every quotation before anybody is shown it (i); a turn states one failure mode of its own claim (ii)
and its confidence (iii), and the page says where it does not. The judge reads the transcript with
the verification marks (C.1); it is the first debater's model unless the roster names another (4.3).
`is_swapped`: the last debater begins. With more than two debaters all answer and all speak (2.1).
Our text of 4.3 lacks the number of rounds; R = 2 unless chosen. Temperatures are those of the
agents' configurations, 0 by default as in 4.1.
Calls: n answers, n·R turns, 1 judgement; 1 + n·R + 1 of them in sequence.

CopMAD: two debaters are assigned opposing answers and argue to win; a judge concludes. The first
argues that the claim is correct, the second that it is wrong, whatever they believe: a zero-sum
game over R rounds in which they speak in turn and each reads all turns before (ColMAD 2.2, after
Kenton et al.). R = 2 unless chosen, as in ColMAD. `is_swapped`: a second debate is held in parallel
in which both argue the other side, in the same speaking order, so that each side begins once. The
judge rules on each debate; equal findings count, different ones give `not_settled` naming both. A
side without a usable turn leaves its debate undecided: nobody wins because the other was not heard.
With more than two debaters only the first two take part. The judge is the first debater's model
unless the roster names another (4.3). Calls: 2R turns and 1 judgement, 2R + 1 in sequence; both
twice when swapped, with the same number in sequence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from core.agents.agent_runner import run_judge
from core.baseline.wording import SIDE_NAMES, join_names
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
    take_turns,
)
from core.debate.votes import draw_sample, make_undecided
from core.runtime.concurrency import merge_streams
from core.schema.events import Event, JudgementSampled
from core.schema.records import Judgement, Plan, Stance, Turn, UnclearCause

SIDE_COUNT = 2
NO_USABLE_REPLY = "no debater gave a reply that could be used"
TOO_FEW_DEBATERS = "opposing sides need two debaters, and the roster has fewer"


@dataclass(frozen=True)
class _Debate:
    """A debate with assigned sides; its `length` turns are numbered from `first`."""

    number: int
    sides: tuple[tuple[str, Stance], ...]
    first: int
    length: int

    @property
    def note(self) -> str:
        return ", ".join(f"{name} argues {SIDE_NAMES[side]}" for name, side in self.sides)

    def turns(self, state: DebateState, *, until: int = 0) -> tuple[Turn, ...]:
        """Return the turns taken so far, or only those before turn number `until` if given."""
        end = until or self.first + self.length
        return tuple(turn for turn in state.turns_before(end) if turn.number >= self.first)

    def request(self, state: DebateState, step: int) -> TurnRequest:
        """Return the request for turn `step`, from 0; a second debate counts its rounds on."""
        number = self.first + step
        name, side = self.sides[step % SIDE_COUNT]
        hears = self.turns(state, until=number)
        turn_round = (number - 1) // SIDE_COUNT + 1
        return TurnRequest(number, name, turn_round, "compete", hears, assigned=side)


def argue_copmad(state: DebateState) -> Iterator[Event]:
    """Hold the debate, or both in parallel, then have the judge decide."""
    names = tuple(state.run.roster.debaters)
    if len(names) < SIDE_COUNT:
        yield from conclude_debate(state, _leave_open(state, "not_settled", TOO_FEW_DEBATERS))
        return
    if len(names) > SIDE_COUNT:
        verb = "is" if len(names) == SIDE_COUNT + 1 else "are"
        two, rest = f"{names[0]} and {names[1]}", join_names(names[SIDE_COUNT:])
        yield from add_debate_note(
            state, f"CopMAD has two sides: {two} argue, {rest} {verb} not seated."
        )
    debates = _plan_debates(state)
    for step in range(debates[0].length):
        state.run.stop.check()
        before = range(step - SIDE_COUNT, step) if step and step % SIDE_COUNT == 0 else ()
        asked = [debate.first + each for debate in debates for each in before]
        if asked and (yield from end_lost_round(state, asked)):
            break
        yield from take_turns(state, [debate.request(state, step) for debate in debates])
    if len(debates) > 1:
        began, samples = state.run.now(), state.progress.samples
        pending = [debate for debate in debates if debate.number not in samples]
        yield from merge_streams(
            [partial(_judge_one, state, each) for each in pending], workers=SIDE_COUNT
        )
        judged_debates = [samples[debate.number] for debate in debates]
        yield from conclude_debate(state, combine_judgements(state, judged_debates), began)
    elif missing := _find_silent_side(state, debates[0]):
        yield from conclude_debate(state, missing)
    else:
        yield from state.heard()
        yield from run_judge(
            state.run, build_judge_view(state, debates[0].turns(state), mode="compete")
        )


def count_copmad_calls(debaters: int, plan: Plan) -> ProtocolCalls:
    """Return the most calls that a check makes, by the formula in the module docstring."""
    if debaters < SIDE_COUNT:
        return ProtocolCalls(0, 0, chain=0)
    length, times = SIDE_COUNT * count_rounds(plan), 1 + plan.options.is_swapped
    return ProtocolCalls(length * times, times, chain=length + 1, heard=times * sum(range(length)))


def _plan_debates(state: DebateState) -> list[_Debate]:
    first, second = tuple(state.run.roster.debaters)[:SIDE_COUNT]
    length = SIDE_COUNT * count_rounds(state.plan)
    debates = [_Debate(1, ((first, "supported"), (second, "hallucinated")), 1, length)]
    if state.plan.options.is_swapped:
        swapped: tuple[tuple[str, Stance], ...] = ((first, "hallucinated"), (second, "supported"))
        debates.append(_Debate(2, swapped, 1 + length, length))
    return debates


def _leave_open(state: DebateState, cause: UnclearCause, words: str) -> Judgement:
    return make_undecided(state.run.roster.judge.name, cause, words)


def _find_silent_side(state: DebateState, debate: _Debate) -> Judgement | None:
    """Return an open judgement if a side has no usable turn, else None."""
    argued_sides = {turn.assigned for turn in debate.turns(state)}
    silent = [
        f"{name} for {SIDE_NAMES[side]}" for name, side in debate.sides if side not in argued_sides
    ]
    if not silent:
        return None
    return _leave_open(state, "unreadable_reply", f"nobody heard {' and '.join(silent)}")


def _judge_one(state: DebateState, debate: _Debate) -> Iterator[Event]:
    if missing := _find_silent_side(state, debate):
        yield JudgementSampled(state.run.now(), missing, debate.number, debate.note, 0.0)
        return
    turns = debate.turns(state)
    seen = build_judge_view(state, turns, mode="compete", number=debate.number)
    yield from draw_sample(state, seen, debate.note)


def combine_judgements(state: DebateState, samples: list[JudgementSampled]) -> Judgement:
    """Combine both findings: equal ones count, with the mean p; others are `not_settled`."""
    first, second = (sample.judgement for sample in samples)
    if (first.label, first.cause) != (second.label, second.cause):
        reason = "; ".join(f"{sample.note}: {sample.judgement.label}" for sample in samples)
        reason = f"the judge's finding hangs on who argues which side ({reason})"
        return _leave_open(state, "not_settled", reason)
    p = None if first.p is None or second.p is None else (first.p + second.p) / 2
    prose = "\n\n".join(f"{s.note}: {s.judgement.prose}" for s in samples if s.judgement.prose)
    return replace(first, p=p, prose=prose)


COPMAD = DebateProtocol(
    name="copmad",
    argue=argue_copmad,
    calls=count_copmad_calls,
    turn_modes=("compete",),
    judge_modes=("compete",),
    is_judged_by_first=True,
    options=("rounds", "is_swapped"),
    debater_count=SIDE_COUNT,
)


def argue_colmad(state: DebateState) -> Iterator[Event]:
    """Ask for first answers, hold the rounds, have the judge decide."""
    names = state.debaters
    count = len(names)
    yield from take_turns(
        state, [TurnRequest(n, name, 0, "answer") for n, name in enumerate(names, 1)]
    )
    for number in range(count + 1, count * (1 + count_rounds(state.plan)) + 1):
        state.run.stop.check()
        place, name = divmod(number - 1, count)
        if name == 0 and (yield from end_lost_round(state, range(number - count, number))):
            break
        hears = state.turns_before(number)
        request = TurnRequest(number, names[name], place, "collaborate", hears)
        yield from take_turns(state, [request])
    if state.progress.turns:
        yield from state.heard()
        yield from run_judge(state.run, build_judge_view(state, mode="collaborate"))
    else:
        yield from conclude_debate(state, _leave_open(state, "unreadable_reply", NO_USABLE_REPLY))


def count_colmad_calls(debaters: int, plan: Plan) -> ProtocolCalls:
    """Return the most calls that a check makes, by the formula in the module docstring."""
    turns = debaters * count_rounds(plan)
    heard = sum(range(debaters, debaters + turns))
    return ProtocolCalls(debaters + turns, 1, chain=min(debaters, 1) + turns + 1, heard=heard)


COLMAD = DebateProtocol(
    name="colmad",
    argue=argue_colmad,
    calls=count_colmad_calls,
    turn_modes=("answer", "collaborate"),
    judge_modes=("collaborate",),
    is_judged_by_first=True,
    options=("rounds", "is_swapped"),
)
