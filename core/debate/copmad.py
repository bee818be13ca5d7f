"""CopMAD: two debaters are assigned opposing answers and argue to win; a judge concludes.

The first argues that the claim is correct, the second that it is wrong, whatever they hold
themselves: a zero-sum game over R rounds, in which they speak in turn and each hears all before
(ColMAD 2.2, after Kenton et al.). R = 2 unless chosen, as in colmad.py. `is_swapped`: there is a
second debate, beside the first, in which both argue the other side; the places are the same, so
that each side begins once. The judge hears both debates; equal findings count, others leave it
`not_settled` with both named. A side of which no turn was usable leaves its debate undecided:
nobody may win because the other was not heard. More than two debaters: the first two are seated.
The judge is the first debater's model unless the roster seats another (4.3).
Calls: 2R turns and 1 judgement, 2R + 1 in a row; both twice when swapped, in the same chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from core.agents.agent_runner import judged
from core.baseline.wording import SIDES, listed_plainly
from core.concurrency import merged
from core.debate.colmad import rounds_of
from core.debate.floor import Calls, DebateProtocol, Floor, Speech
from core.debate.turns import judge_view, noted, spoken
from core.debate.votes import drawing, unheard
from core.events import Event, JudgementReached, JudgementSampled
from core.records import Judgement, Plan, Stance, Turn

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
        """Who argues what."""
        return ", ".join(f"{name} argues {SIDES[side]}" for name, side in self.sides)

    def turns(self, floor: Floor, *, until: int = 0) -> tuple[Turn, ...]:
        """Those of its turns that were taken, before the one of number `until` where given."""
        end = until or self.first + self.length
        return tuple(turn for turn in floor.turns_before(end) if turn.number >= self.first)

    def speech(self, floor: Floor, step: int) -> Speech:
        """Its turn of that step, from 0; rounds of a second debate go on counting."""
        number = self.first + step
        name, side = self.sides[step % PAIR]
        hears = self.turns(floor, until=number)
        turn_round = (number - 1) // PAIR + 1
        return Speech(number, name, turn_round, "compete", hears, assigned=side)


def argue_copmad(floor: Floor) -> Iterator[Event]:
    """The debate or both at once, then the judge."""
    names = tuple(floor.play.roster.debaters)
    if len(names) < PAIR:
        judgement = replace(unheard(floor, TOO_FEW), cause="not_settled")
        yield JudgementReached(floor.play.now(), judgement, 0.0)
        return
    if len(names) > PAIR:
        yield from noted(floor, _not_seated(names))
    debates = _debates(floor)
    for step in range(debates[0].length):
        floor.play.stop.check()
        yield from spoken(floor, [debate.speech(floor, step) for debate in debates])
    if len(debates) == 1:
        yield from _judged(floor, debates[0])
    else:
        yield from _judged_twice(floor, debates)


def calls(debaters: int, plan: Plan) -> Calls:
    """As the head of this file says."""
    if debaters < PAIR:
        return Calls(0, 0, chain=0)
    length, times = PAIR * rounds_of(plan), 1 + plan.options.is_swapped
    return Calls(length * times, times, chain=length + 1, heard=times * sum(range(length)))


def _debates(floor: Floor) -> list[_Debate]:
    one, other = tuple(floor.play.roster.debaters)[:PAIR]
    length = PAIR * rounds_of(floor.plan)
    debates = [_Debate(1, ((one, "supported"), (other, "hallucinated")), 1, length)]
    if floor.plan.options.is_swapped:
        swapped: tuple[tuple[str, Stance], ...] = ((one, "hallucinated"), (other, "supported"))
        debates.append(_Debate(2, swapped, 1 + length, length))
    return debates


def _not_seated(names: tuple[str, ...]) -> str:
    rest = listed_plainly(names[PAIR:])
    verb = "is" if len(names) == PAIR + 1 else "are"
    return f"CopMAD has two sides: {names[0]} and {names[1]} argue, {rest} {verb} not seated."


def _one_sided(floor: Floor, debate: _Debate) -> Judgement | None:
    """No verdict where a side was not heard."""
    heard = {turn.assigned for turn in debate.turns(floor)}
    silent = [f"{name} for {SIDES[side]}" for name, side in debate.sides if side not in heard]
    return unheard(floor, f"nobody heard {' and '.join(silent)}") if silent else None


def _judged(floor: Floor, debate: _Debate) -> Iterator[Event]:
    missing = _one_sided(floor, debate)
    if missing:
        yield JudgementReached(floor.play.now(), missing, 0.0)
        return
    yield from floor.heard()
    yield from judged(floor.play, judge_view(floor, debate.turns(floor), manner="compete"))


def _judged_twice(floor: Floor, debates: list[_Debate]) -> Iterator[Event]:
    """A judgement on each debate, then what they come to together."""
    began = floor.play.now()
    waiting = [debate for debate in debates if debate.number not in floor.progress.samples]
    work = [lambda debate=debate: _sampled(floor, debate) for debate in waiting]
    yield from merged(work, workers=PAIR)
    found = [floor.progress.samples[debate.number] for debate in debates]
    now = floor.play.now()
    yield JudgementReached(now, together(floor, found), now - began)


def _sampled(floor: Floor, debate: _Debate) -> Iterator[Event]:
    missing = _one_sided(floor, debate)
    if missing:
        now = floor.play.now()
        yield JudgementSampled(now, missing, debate.number, debate.note, 0.0)
        return
    turns = debate.turns(floor)
    seen = judge_view(floor, turns, manner="compete", number=debate.number)
    yield from drawing(floor, seen, debate.note)()


def together(floor: Floor, found: list[JudgementSampled]) -> Judgement:
    """Equal findings count, with the mean of their p; others settle nothing."""
    first, second = (sample.judgement for sample in found)
    if (first.label, first.cause) != (second.label, second.cause):
        words = "; ".join(f"{sample.note}: {sample.judgement.label}" for sample in found)
        return replace(
            unheard(floor, f"the judge's finding hangs on who argues which side ({words})"),
            cause="not_settled",
        )
    p = None if first.p is None or second.p is None else (first.p + second.p) / 2
    prose = "\n\n".join(f"{s.note}: {s.judgement.prose}" for s in found if s.judgement.prose)
    return replace(first, p=p, prose=prose)


COPMAD = DebateProtocol(
    "copmad",
    argue_copmad,
    calls,
    manners=("compete",),
    judging=("compete",),
    is_judged_by_first=True,
    options=("rounds", "is_swapped"),
    seats=PAIR,
)
