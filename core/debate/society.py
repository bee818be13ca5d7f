"""A society of minds: all answer, then all reconsider in the light of the others' answers.

R rounds follow the first answers; in each, every debater sees its own last answer and the others',
none of the round under way. All agreeing ends it early. The majority of the last answers is the
judgement, and whose turn is lost keeps the answer before it. Source: Du et al. as in SC-MAKS 2.1.2,
tables 1 and 2 (two rounds, majority voting); ColMAD 2.2, 2.3.
Calls: n + n·R turns at most, in chains of 1 + R; nobody judges. R = 2 by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.debate.floor import Calls, DebateProtocol, Floor, Speech
from core.debate.turns import spoken
from core.debate.votes import all_agree, barred, by_majority, last_answers
from core.events import ConsensusReached, Event, JudgementReached
from core.records import Plan, Turn

AGENT = "Majority of the agents"
ROUNDS = 2


def argue(floor: Floor) -> Iterator[Event]:
    """Answers, rounds, and the vote."""
    began = floor.play.now()
    judgement = barred(AGENT, floor.view)
    if judgement is None:
        yield from _rounds(floor)
        judgement = by_majority(AGENT, floor, last_answers(floor.progress.turns))
    now = floor.play.now()
    yield JudgementReached(now, judgement, now - began)


def _rounds(floor: Floor) -> Iterator[Event]:
    """The first answers, then rounds until all agree, and that they do."""
    debaters = len(floor.debaters)
    for stage in range(rounds_of(floor.plan) + 1):
        answers = _answers_before(floor, stage)
        if all_agree(answers, debaters) or (stage and not answers):  # nothing to reconsider
            break
        floor.play.stop.check()
        yield from spoken(floor, [_speech(floor, i, stage, answers) for i in range(debaters)])
    answers = last_answers(floor.progress.turns)
    if all_agree(answers, debaters) and not floor.progress.reached_consensus:
        turns = len(floor.progress.turns)
        yield ConsensusReached(floor.play.now(), answers[0].stance, turns)


def rounds_of(plan: Plan) -> int:
    """How many rounds follow the first answers."""
    return plan.options.rounds or ROUNDS


def calls(debaters: int, plan: Plan) -> Calls:
    """As the head of this file says."""
    stages = 1 + rounds_of(plan)
    return Calls(debaters * stages, 0, chain=stages, heard=debaters**2 * (stages - 1))


def _answers_before(floor: Floor, stage: int) -> tuple[Turn, ...]:
    """Each debater's last answer from before that stage; stages count from 0, the first answers."""
    last = stage * len(floor.debaters)
    return last_answers([turn for turn in floor.progress.turns if turn.number <= last])


def _speech(floor: Floor, place: int, stage: int, answers: Sequence[Turn]) -> Speech:
    """The debater's own answer comes first, so that the last message is another's."""
    names = floor.debaters
    number = stage * len(names) + place + 1
    if not stage:
        return Speech(number, names[place], 1, "answer")
    hears = sorted(answers, key=lambda turn: turn.debater != names[place])
    return Speech(number, names[place], stage + 1, "reconsider", tuple(hears))


PROTOCOL = DebateProtocol(
    "society", argue, calls, manners=("answer", "reconsider"), options=("rounds",)
)
