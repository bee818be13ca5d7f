"""Ensemble: each debater answers alone, all at once, and the answers are counted.

Two who agree give the label; where they differ a coin does, and is said to be one. Of more than two
most decide, and a coin where all gave a label and as many give each. A coin makes no label of an
open or lost answer: then nothing is settled. There is no judge. The coin is thrown by the seed and
what the case says and rests on, so that it falls the same again, here and elsewhere: ids of cases
are new each time.
Source: ColMAD 4.1 (the baseline “Ensemble”, which has two).
Calls: one turn of each debater, all at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from core.baseline.plain_verdict import verdict_text
from core.debate.floor import Calls, DebateProtocol, Floor, Speech
from core.debate.turns import spoken, taken
from core.debate.votes import Tally, barred, nobody_voted, tally, told, without_majority
from core.events import Event, JudgementReached
from core.records import Case, Judgement, Label, Plan, Turn

AGENT = "Ensemble"


def argue(floor: Floor) -> Iterator[Event]:
    """The answers, then what they come to."""
    began = floor.play.now()
    judgement = barred(AGENT, floor.view)
    if judgement is None:
        speeches = [
            Speech(number, name, 1, "answer") for number, name in enumerate(floor.debaters, 1)
        ]
        yield from spoken(floor, speeches)
        judgement = _counted(floor, taken(floor, speeches))
    now = floor.play.now()
    yield JudgementReached(now, judgement, now - began)


def calls(debaters: int, plan: Plan) -> Calls:
    """As the head of this file says."""
    return Calls(debaters, 0, chain=1)


def coin(seed: int, case: Case) -> Label:
    """Heads or tails: each label for half of all cases, and always the same for one of them."""
    told = (seed, case.response, case.question, case.documents, case.images)
    thrown = hashlib.sha256(repr(told).encode()).digest()[0]
    return "hallucinated" if thrown % 2 else "supported"


def _counted(floor: Floor, turns: Sequence[Turn]) -> Judgement:
    """What the answers come to."""
    votes = tally((turn.stance for turn in turns), len(floor.debaters))
    if not votes.cast:
        return nobody_voted(AGENT, floor.view, len(turns))
    label, how = votes.label, ""
    if label == "unclear" and not votes.is_tie:
        return without_majority(AGENT, votes, "debater")
    if votes.is_tie:
        label = coin(floor.plan.options.seed, floor.view.case)
        how = f" They cancel out, so a coin was thrown: {label}."
    prose = f"{votes.words('debater')}{how}{_reason(turns, label, votes)}"
    return Judgement(AGENT, label, verdict_text(label, prose), prose=prose, p=votes.p)


def _reason(turns: Sequence[Turn], label: Label, votes: Tally) -> str:
    """The words of the first who gave that label; a coin has no reason."""
    if votes.label != label:
        return ""
    first = next(turn for turn in turns if turn.stance == label)
    return f" {told(first)}"


PROTOCOL = DebateProtocol("ensemble", argue, calls, manners=("answer",), options=("seed",))
