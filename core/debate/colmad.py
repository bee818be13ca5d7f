"""ColMAD: debaters who share one goal, the truth, complete each other's answers; a judge concludes.

All answer alone and at once, each with its reasons (2.1). Then come R rounds in which they speak in
turn and hear everything said before: what the others missed is added, not fought over (2.3). Every
quotation is verified in code before anybody is shown it (i); a turn states one failure mode of its
own claim (ii) and its confidence (iii), and where it does not, the page says so. The judge reads
the transcript with the marks (C.1); it is the first debater's model unless the roster seats another
(4.3). `is_swapped`: the last debater begins. More than two debaters all answer and all speak (2.1).
The number of rounds is missing in the text that we have of 4.3; R = 2 unless chosen. Temperatures
are the seats' own, 0 by default as in 4.1.
Calls: n answers, n·R turns, 1 judgement; in a row 1 + n·R + 1.

CopMAD: two debaters are assigned opposing answers and argue to win; a judge concludes. The first
argues that the claim is correct, the second that it is wrong, whatever they hold themselves: a
zero-sum game over R rounds, in which they speak in turn and each hears all before (ColMAD 2.2,
after Kenton et al.). R = 2 unless chosen, as in colmad.py. `is_swapped`: there is a second
debate, beside the first, in which both argue the other side; the places are the same, so that
each side begins once. The judge hears both debates; equal findings count, others leave it
`not_settled` with both named. A side of which no turn was usable leaves its debate undecided:
nobody may win because the other was not heard. More than two debaters: the first two are seated.
The judge is the first debater's model unless the roster seats another (4.3). Calls: 2R turns and
1 judgement, 2R + 1 in a row; both twice when swapped, in the same chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from core.agents.agent_runner import judged
from core.baseline.wording import SIDES, listed_plainly
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
)
from core.debate.votes import drawing, undecided
from core.runtime.concurrency import merged
from core.schema.events import Event, JudgementSampled
from core.schema.records import Cause, Judgement, Plan, Stance, Turn
from core.schema.rosters import Manner

PAIR = 2
TOO_FEW = "opposing sides need two debaters, and the roster seats fewer"


@dataclass(frozen=True)
class _Debate:
    """One assignment of sides; its turns are numbered from `first` on, `length` of them."""

    number: int
    sides: tuple[tuple[str, Stance], ...]
    first: int
    length: int

    @property
    def note(self) -> str:
        return ", ".join(f"{name} argues {SIDES[side]}" for name, side in self.sides)

    def turns(self, state: DebateState, *, until: int = 0) -> tuple[Turn, ...]:
        """Those of its turns that were taken, before the one of number `until` where given."""
        end = until or self.first + self.length
        return tuple(turn for turn in state.turns_before(end) if turn.number >= self.first)

    def request(self, state: DebateState, step: int) -> TurnRequest:
        """Its turn of that step, from 0; rounds of a second debate go on counting."""
        number = self.first + step
        name, side = self.sides[step % PAIR]
        hears = self.turns(state, until=number)
        turn_round = (number - 1) // PAIR + 1
        return TurnRequest(number, name, turn_round, "compete", hears, assigned=side)


def argue_copmad(state: DebateState) -> Iterator[Event]:
    """The debate or both at once, then the judge."""
    names = tuple(state.run.roster.debaters)
    if len(names) < PAIR:
        yield from concluded(state, _open(state, "not_settled", TOO_FEW))
        return
    if len(names) > PAIR:
        verb = "is" if len(names) == PAIR + 1 else "are"
        two, rest = f"{names[0]} and {names[1]}", listed_plainly(names[PAIR:])
        yield from noted(state, f"CopMAD has two sides: {two} argue, {rest} {verb} not seated.")
    debates = _debates(state)
    for step in range(debates[0].length):
        state.run.stop.check()
        yield from spoken(state, [debate.request(state, step) for debate in debates])
    if len(debates) > 1:  # a judgement on each debate, then what they come to together
        began, samples = state.run.now(), state.progress.samples
        waiting = [partial(_sampled, state, own) for own in debates if own.number not in samples]
        yield from merged(waiting, workers=PAIR)
        found = [samples[debate.number] for debate in debates]
        yield from concluded(state, together(state, found), began)
    elif missing := _one_sided(state, debates[0]):
        yield from concluded(state, missing)
    else:
        yield from state.heard()
        yield from judged(state.run, judge_view(state, debates[0].turns(state), manner="compete"))


def count_copmad_calls(debaters: int, plan: Plan) -> Calls:
    """The calls that a check asks for at most, as the head of this file counts them."""
    if debaters < PAIR:
        return Calls(0, 0, chain=0)
    length, times = PAIR * rounds_of(plan), 1 + plan.options.is_swapped
    return Calls(length * times, times, chain=length + 1, heard=times * sum(range(length)))


def _debates(state: DebateState) -> list[_Debate]:
    one, other = tuple(state.run.roster.debaters)[:PAIR]
    length = PAIR * rounds_of(state.plan)
    debates = [_Debate(1, ((one, "supported"), (other, "hallucinated")), 1, length)]
    if state.plan.options.is_swapped:
        swapped: tuple[tuple[str, Stance], ...] = ((one, "hallucinated"), (other, "supported"))
        debates.append(_Debate(2, swapped, 1 + length, length))
    return debates


def _open(state: DebateState, cause: Cause, words: str) -> Judgement:
    return undecided(state.run.roster.judge.name, cause, words)


def _one_sided(state: DebateState, debate: _Debate) -> Judgement | None:
    heard = {turn.assigned for turn in debate.turns(state)}
    silent = [f"{name} for {SIDES[side]}" for name, side in debate.sides if side not in heard]
    return (
        _open(state, "unreadable_reply", f"nobody heard {' and '.join(silent)}") if silent else None
    )


def _sampled(state: DebateState, debate: _Debate) -> Iterator[Event]:
    if missing := _one_sided(state, debate):
        yield JudgementSampled(state.run.now(), missing, debate.number, debate.note, 0.0)
        return
    turns = debate.turns(state)
    seen = judge_view(state, turns, manner="compete", number=debate.number)
    yield from drawing(state, seen, debate.note)


def together(state: DebateState, found: list[JudgementSampled]) -> Judgement:
    """Equal findings count, with the mean of their p; others settle nothing."""
    first, second = (sample.judgement for sample in found)
    if (first.label, first.cause) != (second.label, second.cause):
        words = "; ".join(f"{sample.note}: {sample.judgement.label}" for sample in found)
        words = f"the judge's finding hangs on who argues which side ({words})"
        return _open(state, "not_settled", words)
    p = None if first.p is None or second.p is None else (first.p + second.p) / 2
    prose = "\n\n".join(f"{s.note}: {s.judgement.prose}" for s in found if s.judgement.prose)
    return replace(first, p=p, prose=prose)


COPMAD = DebateProtocol(
    *("copmad", argue_copmad, count_copmad_calls),
    manners=("compete",),
    judging=("compete",),
    is_judged_by_first=True,
    options=("rounds", "is_swapped"),
    seats=PAIR,
)


NOBODY = "no debater gave a reply that could be used"


def argue_colmad(state: DebateState) -> Iterator[Event]:
    """First answers, rounds, judgement; whoever has nobody to hear answers alone."""
    names = state.debaters
    count = len(names)
    yield from spoken(state, [TurnRequest(n, name, 0, "answer") for n, name in enumerate(names, 1)])
    for number in range(count + 1, count * (1 + rounds_of(state.plan)) + 1):
        state.run.stop.check()
        place, name = divmod(number - 1, count)
        hears = state.turns_before(number)
        manner: Manner = "collaborate" if hears else "answer"
        yield from spoken(state, [TurnRequest(number, names[name], place, manner, hears)])
    if state.progress.turns:
        yield from state.heard()
        yield from judged(state.run, judge_view(state, manner="collaborate"))
    else:
        yield from concluded(state, _open(state, "unreadable_reply", NOBODY))


def count_colmad_calls(debaters: int, plan: Plan) -> Calls:
    """The calls that a check asks for at most, as the head of this file counts them."""
    said = debaters * rounds_of(plan)
    heard = sum(range(debaters, debaters + said))
    return Calls(debaters + said, 1, chain=min(debaters, 1) + said + 1, heard=heard)


COLMAD = DebateProtocol(
    *("colmad", argue_colmad, count_colmad_calls),
    manners=("answer", "collaborate"),
    judging=("collaborate",),
    is_judged_by_first=True,
    options=("rounds", "is_swapped"),
)
