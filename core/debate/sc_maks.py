"""SC-MAKS: unlike agents answer, then help and attack each other's answers; their weights decide.

n agents (two at least; one is a consensus of one) see the whole evidence, each alone at first
(manner answer). Then come R rounds, 2 unless chosen, as the paper's “typically 2-3”. In each,
every agent speaks of every other's last answer once in a cooperative phase (advise) and once in an
adversarial one (attack, with the advice appended); then all reconsider their answers, so that it is
seen who moved. A summary stands for earlier rounds. The rounds end early where all answers take one
stance and no critique of the round holds against it: none that takes another stance has a quote
that our code found in the evidence, word for word. Then consensus.py weighs the last answers, and a
response that is wrong is written anew. An answer that was lost is not spoken of.

`without` takes one part away, and nothing else (4.10): `adversary` leaves the attacks out,
`cooperation` the advice, so that attacks show none, and with `weights` all answers count alike,
whatever was learned. The paper's other two need no option: models of one kind are a roster's, and
weights that PPO did not train are those that are in use. What a round no longer holds is not asked.

Batched: the turns of a phase go out together, 16 at most at a time, and a round's summary beside
its reconsidering. Calls: n + R(Pn(n-1) + n) turns with P = 2 phases, 1 without one of them;
R summaries, 1 revision. In a row: 1 + R(Pw + 1) + 1 with w = ⌈n(n-1)/16⌉. n = 4, R = 3: 88 turns,
92 calls in all, 11 in a row; of a single phase 52, 56 and 8.

Source: SC-MAKS 3.1 to 3.4, algorithm 1; 4.10.

What the writer's seat adds to a debate: rounds in brief, and the response as it should read.
Source: SC-MAKS 3.4 (a light summariser keeps prompts within their limit), 3.2 (the output O*).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from core.agents.agent_runner import part_played
from core.concurrency import merged
from core.debate import consensus
from core.debate.floor import Calls, DebateProtocol, Floor, Speech
from core.debate.turns import AT_ONCE, judge_view, spoken, taken
from core.debate.votes import barred, nobody_voted
from core.errors import ReplyError
from core.events import (
    ConsensusReached,
    Event,
    ModelCalled,
    ProblemMet,
    ResponseRevised,
    RoundSummarised,
)
from core.records import Judgement, Plan, Turn
from core.roles import UNIFORM, JudgeView, Reviser, Roster, Summariser
from core.seats import Manner, Part


def brief(floor: Floor, before_round: int) -> str:
    """The newest summary of rounds before that one; empty where there is none."""
    told = [said for said in floor.progress.summaries if said.round < before_round]
    return max(told, key=lambda said: said.round).text if told else ""


def summarised(floor: Floor, number: int, turns: Sequence[Turn]) -> Iterator[Event]:
    """The round's turns and what stood before them in brief, unless that is there already.

    Safe beside turns that are taken at the same time. Where the reply is unusable the spare's
    writer does it; where nobody can, later turns go by the last answers alone.
    """
    writer = _summariser(floor.play.roster)
    is_there = any(said.round == number for said in floor.progress.summaries)
    if writer is None or is_there or not turns:
        return
    play, before = floor.play, brief(floor, number)
    play.stop.check()
    spare = _summariser(play.roster.spare) if play.roster.spare else None
    try:
        text = writer.summarise(floor.view, turns, before, play.stop)
    except ReplyError as error:
        yield from _calls(floor)
        words = f"The summary of round {number} is lost ({writer.name}): {error}"
        yield ProblemMet(play.now(), "debating", words, reply=error.reply)
        if spare is None:
            return
        writer, text = spare, spare.summarise(floor.view, turns, before, play.stop)
    yield from _calls(floor)
    if text:
        yield RoundSummarised(play.now(), writer.name, number, text)


def revised(floor: Floor, seen: JudgeView, judgement: Judgement) -> Iterator[Event]:
    """The response as it should read, where it is judged wrong and somebody can put it right."""
    play, roster = floor.play, floor.play.roster
    writer = roster.context_writer
    has_to = judgement.label == "hallucinated" and floor.progress.revised is None
    if not has_to or not isinstance(writer, Reviser):
        return

    def stand_in(spare: Roster) -> str:
        other = spare.context_writer
        return other.revise(seen, judgement, play.stop) if isinstance(other, Reviser) else ""

    text, told = part_played(
        play,
        writer,
        "judging",
        lambda: writer.revise(seen, judgement, play.stop),
        stand_in,
        role="Reviser",
    )
    yield from told
    if text and text != seen.view.case.response:
        yield ResponseRevised(play.now(), writer.name, text)


def _summariser(roster: Roster) -> Summariser | None:
    writer = roster.context_writer
    return writer if isinstance(writer, Summariser) else None


def _calls(floor: Floor) -> Iterator[Event]:
    calls, _ = floor.calls_made("")
    yield from (ModelCalled(floor.play.now(), call) for call in calls)


ROUNDS = 2
ANSWERS: frozenset[Manner] = frozenset({"answer", "reconsider"})
PHASES: tuple[tuple[Part, Manner], ...] = (("cooperation", "advise"), ("adversary", "attack"))


@dataclass(frozen=True)
class _Round:
    """A round's place in the schedule: the numbers of its turns follow from n and its own."""

    number: int
    names: tuple[str, ...]
    phases: tuple[Manner, ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """(who speaks, of whose answer), each pair once."""
        return list(itertools.permutations(self.names, 2))

    @property
    def first(self) -> int:
        """The number of its first turn."""
        agents = len(self.names)
        return 1 + agents + (self.number - 1) * (len(self.phases) * len(self.pairs) + agents)

    @property
    def answers(self) -> int:
        """The number of the first turn in which answers are reconsidered."""
        return self.first + len(self.phases) * len(self.pairs)


def argue_sc_maks(floor: Floor) -> Iterator[Event]:
    """Answers, rounds, consensus, and the response as it should read."""
    if (judgement := barred(consensus.NAME, floor.view)) is not None:
        yield from consensus.reached(floor, judgement)
        return
    names = floor.debaters
    alone = [Speech(number, name, 0, "answer") for number, name in enumerate(names, 1)]
    yield from spoken(floor, alone)
    last = _Round(0, names, _phases(floor.plan))
    for number in range(1, _rounds(floor.plan) + 1):
        if len(names) < 2 or not answers_before(floor, last.answers + len(names)):
            break
        last = replace(last, number=number)
        yield from _held(floor, last)
        if (answer := _settled(floor, last)) is not None:
            if not floor.progress.reached_consensus:
                turns = len(floor.progress.turns)
                yield ConsensusReached(floor.play.now(), answer.stance, turns)
            break
    yield from _concluded(floor, last)


def calls(debaters: int, plan: Plan) -> Calls:
    """As the head of this file says."""
    pairs, phases = debaters * (debaters - 1), len(_phases(plan))
    rounds = _rounds(plan) if debaters > 1 else 0
    turns = debaters + rounds * (phases * pairs + debaters)
    chain = math.ceil(debaters / AT_ONCE) + 1
    chain += rounds * (phases * math.ceil(pairs / AT_ONCE) + math.ceil(debaters / AT_ONCE))
    # A critic hears two answers, after another phase what that said of one; who reconsiders hears
    # all answers and its critics.
    hears = sum(2 + before * (debaters - 1) for before in range(phases))
    heard = rounds * (pairs * hears + debaters**2 + phases * pairs)
    heard += max(0, rounds - 1) * (phases * pairs + debaters)  # a summary takes a turn's place
    revisions = 1 if debaters else 0
    return Calls(turns, 0, chain, summaries=rounds, revisions=revisions, heard=heard)


def answers_before(floor: Floor, number: int) -> dict[str, Turn]:
    """Each agent's last answer among the turns before that number, in the agents' order."""
    last = {t.debater: t for t in floor.turns_before(number) if t.manner in ANSWERS}
    return {name: last[name] for name in floor.debaters if name in last}


def _rounds(plan: Plan) -> int:
    return plan.options.rounds or ROUNDS


def _phases(plan: Plan) -> tuple[Manner, ...]:
    """The phases of a round in their order."""
    return tuple(manner for part, manner in PHASES if part != plan.options.without)


def _held(floor: Floor, at: _Round) -> Iterator[Event]:
    """One round: advice, attacks, then answers anew with the round in brief beside them."""
    answers, summary = answers_before(floor, at.first), brief(floor, at.number)
    said: tuple[Turn, ...] = ()
    for place, manner in enumerate(at.phases):
        first = at.first + place * len(at.pairs)
        critiques = _critiques(at, first, manner, answers, said, summary)
        yield from spoken(floor, critiques)
        said += taken(floor, critiques)
    anew = [
        Speech(
            at.answers + place,
            name,
            at.number,
            "reconsider",
            (*answers.values(), *(turn for turn in said if turn.about == name)),
            summary=summary,
        )
        for place, name in enumerate(at.names)
    ]
    beside = [lambda: spoken(floor, anew), lambda: summarised(floor, at.number, said)]
    yield from merged(beside, workers=len(beside))


def _critiques(
    at: _Round,
    first: int,
    manner: Manner,
    answers: dict[str, Turn],
    given: Sequence[Turn],
    summary: str,
) -> list[Speech]:
    """A phase in which all speak of every other's answer; `given` was said of it before."""
    return [
        Speech(
            first + place,
            critic,
            at.number,
            manner,
            (
                *(answers[name] for name in at.names if name in (critic, peer) and name in answers),
                *(turn for turn in given if turn.about == peer),
            ),
            about=peer,
            summary=summary,
        )
        for place, (critic, peer) in enumerate(at.pairs)
        if peer in answers
    ]


def _settled(floor: Floor, at: _Round) -> Turn | None:
    """One of the answers, where after the round all are the same and no critique holds."""
    answers = list(answers_before(floor, at.answers + len(at.names)).values())
    if len({answer.stance for answer in answers}) != 1:
        return None
    said = _said_in(floor, at)
    return None if any(consensus.holds(c, answers[0]) for c in said) else answers[0]


def _said_in(floor: Floor, at: _Round) -> list[Turn]:
    """The critiques of that round."""
    within = range(at.first, at.answers) if at.number else range(0)
    return [turn for turn in floor.turns if turn.number in within]


def _concluded(floor: Floor, last: _Round) -> Iterator[Event]:
    """The consensus over the last answers, the revision, the judgement."""
    answers = answers_before(floor, last.answers + len(last.names))
    if not answers:
        yield from consensus.reached(floor, nobody_voted(consensus.NAME, floor.view, 0))
        return
    said = _said_in(floor, last)
    weigher = UNIFORM if floor.plan.options.without == "weights" else floor.play.roster.weigher
    told, judgement = consensus.weighed(floor, weigher, list(answers.values()), said)
    if floor.progress.weighed is None:
        yield told
    seen = judge_view(floor, tuple(answers.values()), summary=brief(floor, last.number + 1))
    yield from revised(floor, seen, judgement)
    yield from consensus.reached(floor, judgement)


SC_MAKS = DebateProtocol(
    "sc_maks",
    argue_sc_maks,
    calls,
    manners=("answer", "advise", "attack", "reconsider"),
    options=("rounds", "without"),
    writing=("summary", "corrected"),
    is_weighed=True,
)
