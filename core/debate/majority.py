"""What the last answers of several agents come to where no judge decides: the label of most.

`core/debate/votes.py` says how they are counted. Source: SC-MAKS 2.1.2 (majority voting over
rounds), table 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.agents.stated import argument_in
from core.baseline.debate_manners import PHRASE
from core.baseline.plain_verdict import verdict_text
from core.baseline.wording import shortened
from core.debate.floor import Floor
from core.debate.votes import nobody_voted, tally, without_majority
from core.records import Judgement, Label, Turn

MOST_SAID = 240  # characters of a reason


def last_answers(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Each debater's last turn, in the order of their numbers."""
    last = {turn.debater: turn for turn in sorted(turns, key=lambda turn: turn.number)}
    return tuple(sorted(last.values(), key=lambda turn: turn.number))


def all_agree(answers: Sequence[Turn], debaters: int) -> bool:
    """True when every debater has answered, and all alike; one alone agrees with nobody."""
    return len(answers) == debaters > 1 and len({turn.stance for turn in answers}) == 1


def by_majority(agent: str, floor: Floor, answers: Sequence[Turn]) -> Judgement:
    """The judgement by these answers, one of each debater; unclear with its cause where none is."""
    votes = tally((turn.stance for turn in answers), len(floor.debaters))
    if not votes.cast:
        return nobody_voted(agent, floor.view, len(answers))
    if votes.label == "unclear":
        return without_majority(agent, votes, "agent")
    prose = f"{votes.words('agent')} {_reason(floor, votes.label, answers)}"
    return Judgement(agent, votes.label, verdict_text(votes.label, prose), prose=prose, p=votes.p)


def _reason(floor: Floor, label: Label, answers: Sequence[Turn]) -> str:
    """The words of the surest of those who agree with the label; of equals the first's."""
    own = [turn for turn in answers if turn.stance == label]
    surest = max(own, key=lambda turn: turn.confidence or 0.0)
    return told(last_reason(floor.progress.turns, surest))


def last_reason(turns: Sequence[Turn], answer: Turn) -> Turn:
    """The debater's last turn that gives a reason for this answer: it may be an earlier one.

    What it said of others' answers, or wrote anew, is no reason for its own.
    """
    own = [
        turn
        for turn in sorted(turns, key=lambda turn: turn.number)
        if (turn.debater, turn.stance) == (answer.debater, answer.stance)
        and turn.number <= answer.number
        and not turn.about
        and turn.manner != "revise"
        and PHRASE not in turn.text
    ]
    return own[-1] if own else answer


def told(turn: Turn) -> str:
    """Who says so and why, in one line; the vote that was counted has told the verdict."""
    return f"{turn.debater} ({turn.agent}): {shortened(argument_in(turn.text), MOST_SAID)}"
