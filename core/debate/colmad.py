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
"""

from __future__ import annotations

from collections.abc import Iterator

from core.agents.agent_runner import judged
from core.debate.floor import Calls, DebateProtocol, Floor, Speech
from core.debate.turns import judge_view, spoken
from core.debate.votes import unheard
from core.events import Event, JudgementReached
from core.records import Plan

ROUNDS = 2
NOBODY = "no debater gave a reply that could be used"


def argue_colmad(floor: Floor) -> Iterator[Event]:
    """First answers, rounds, judgement."""
    names = floor.debaters
    yield from spoken(floor, [Speech(n, name, 0, "answer") for n, name in enumerate(names, 1)])
    for number in range(len(names) + 1, len(names) * (1 + rounds_of(floor.plan)) + 1):
        floor.play.stop.check()
        yield from spoken(floor, [_speech(floor, number)])
    if floor.progress.turns:
        yield from floor.heard()
        yield from judged(floor.play, judge_view(floor, manner="collaborate"))
    else:
        yield JudgementReached(floor.play.now(), unheard(floor, NOBODY), 0.0)


def calls(debaters: int, plan: Plan) -> Calls:
    """As the head of this file says."""
    said = debaters * rounds_of(plan)
    heard = sum(range(debaters, debaters + said))
    return Calls(debaters + said, 1, chain=min(debaters, 1) + said + 1, heard=heard)


def rounds_of(plan: Plan) -> int:
    """How many rounds follow the first answers."""
    return plan.options.rounds or ROUNDS


def _speech(floor: Floor, number: int) -> Speech:
    """The turn of that number; whoever has nobody to hear answers alone."""
    names = floor.debaters
    place, name = divmod(number - 1, len(names))
    hears = floor.turns_before(number)
    return Speech(number, names[name], place, "collaborate" if hears else "answer", hears)


COLMAD = DebateProtocol(
    "colmad",
    argue_colmad,
    calls,
    manners=("answer", "collaborate"),
    judging=("collaborate",),
    is_judged_by_first=True,
    options=("rounds", "is_swapped"),
)
