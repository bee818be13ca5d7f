"""SC-MAKS: unlike agents answer, then help and attack each other's answers; their weights decide.

n agents (one is a consensus of one) see the whole evidence, each alone at first (manner answer).
Then come R rounds, 2 unless chosen, as the paper's “typically 2-3”. In each, every agent speaks of
every other's last answer once in a cooperative phase (advise) and once in an adversarial one
(attack, with the advice appended); then all reconsider their answers. The writer's seat sums up
earlier rounds (3.4). The rounds end early where all answers take one stance and no critique of the
round holds against it. A critique is backed where our code found a quote of it in the evidence,
word for word; it holds where it also takes another stance than the answer.

Consensus (3.2): O* = argmax over labels O of Σ w_i(Q; θ) · Agreement(O, O_i, C), where w_i are the
weigher's weights, O_i is the last answer of agent i, and C are the critiques on it in the last
round. The greatest share wins, also where it is no more than half, which is then said; what half of
the agents or fewer answered is no consensus. A response that is wrong is written anew.

`without` takes one part away (4.10): `adversary` leaves the attacks out, `cooperation` the advice,
and with `weights` all answers count alike. The turns of a phase go out together, 16 at most at a
time, and a round's summary beside its reconsidering. Calls: n + R(Pn(n-1) + n) turns with P = 2
phases, 1 without one of them; R summaries, 1 revision. In a row: 1 + R(Pw + 1) + 1 with
w = ⌈n(n-1)/16⌉. n = 4, R = 3: 88 turns, 92 calls in all, 11 in a row; of one phase 52, 56 and 8.
Source: SC-MAKS 3.1 to 3.4, algorithm 1; 4.10.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core.agents.agent_runner import part_played
from core.agents.reply_parser import reason_in
from core.baseline.wording import capitalised, counted, listed_plainly, shortened, verdict_text
from core.debate.state import (
    AT_ONCE,
    Calls,
    DebateProtocol,
    DebateState,
    TurnRequest,
    judge_view,
    rounds_of,
    spoken,
    taken,
)
from core.debate.votes import MOST_SAID, barred, last_reason, nobody_voted
from core.runtime.concurrency import merged
from core.runtime.errors import ReplyError
from core.schema.events import (
    ConsensusReached,
    ConsensusWeighed,
    Event,
    JudgementReached,
    ModelCalled,
    ProblemMet,
    ResponseRevised,
    RoundSummarised,
)
from core.schema.records import Cause, Judgement, Label, Plan, Turn
from core.schema.roles import UNIFORM, JudgeView, Reviser, Roster, Summariser, Weigher
from core.schema.rosters import Manner, Part

NAME = "Consensus"
LABELS: tuple[Label, ...] = ("hallucinated", "supported", "unclear")
SAYING: dict[Label, str] = {
    "hallucinated": "it is wrong",
    "supported": "it is correct",
    "unclear": "the evidence leaves it open",
}
SAME = 1e-9  # weights are sums of floats
DIGITS = 4
HALF = 0.5 + SAME
# Without it the share is not what the agents' weights add up to.
WITH_CRITIQUES = ": where critiques of an answer quote the evidence, they count for half of it"
Shares = Mapping[Label, float]


def is_backed(critique: Turn) -> bool:
    """True where a quote of it stands in the evidence, word for word."""
    return any(quote.status == "verified" for quote in critique.quotes)


def holds(critique: Turn, answer: Turn) -> bool:
    """True for a backed critique that takes another stance on the claim than the answer."""
    return is_backed(critique) and critique.stance != answer.stance


def agreement(label: Label, answer: Turn, critiques: Sequence[Turn]) -> float:
    """Agreement(O, O_i, C) in [0, 1]: half the agent's own stance, half the backed critiques on it.

    The critiques' half is the share of them that take the label's stance; where none is backed,
    the agent's own stance counts whole. Over the three labels it sums to 1.
    """
    own = float(answer.stance == label)
    backed = [critique for critique in critiques if is_backed(critique)]
    if not backed:
        return own
    return (own + sum(critique.stance == label for critique in backed) / len(backed)) / 2


def weights_of(
    state: DebateState, weigher: Weigher, answers: Sequence[Turn]
) -> tuple[tuple[str, float], ...]:
    """The weights of those who have an answer, in order; they sum to 1."""
    known = dict(weigher.weights(state.view, state.turns))
    own = {answer.debater: known.get(answer.debater, 0.0) for answer in answers}
    whole = sum(own.values())
    if whole <= 0:  # nobody who answered counts: then all alike
        own, whole = dict.fromkeys(own, 1.0), float(len(own))
    return tuple((name, weight / whole) for name, weight in own.items())


def shares_of(
    weights: Mapping[str, float], answers: Sequence[Turn], critiques: Sequence[Turn]
) -> Shares:
    """Each label's Σ w · Agreement; they sum to 1."""
    on = {
        answer.debater: [critique for critique in critiques if critique.about == answer.debater]
        for answer in answers
    }
    return {
        label: sum(
            weights[answer.debater] * agreement(label, answer, on[answer.debater])
            for answer in answers
        )
        for label in LABELS
    }


def probability(shares: Shares) -> float:
    """P that the response is hallucinated: its share, and half of what stays open."""
    return round(shares["hallucinated"] + shares["unclear"] / 2, DIGITS)


def winner(shares: Shares) -> Label | None:
    """The label of the greatest share; None where two share it."""
    best = max(shares.values())
    found = [label for label in LABELS if best - shares[label] < SAME]
    return found[0] if len(found) == 1 else None


def weighed(
    state: DebateState, weigher: Weigher, answers: Sequence[Turn], critiques: Sequence[Turn]
) -> tuple[ConsensusWeighed, Judgement]:
    """What the last answers come to; there must be one at least."""
    weights = weights_of(state, weigher, answers)
    shares = shares_of(dict(weights), answers, critiques)
    p = probability(shares)
    rounded = tuple((name, round(weight, DIGITS)) for name, weight in weights)
    told = ConsensusWeighed(state.run.now(), weigher.method, rounded, p)
    return told, _judgement(state, shares, answers, dict(weights))


def reached(state: DebateState, judgement: Judgement) -> Iterator[Event]:
    """The judgement as an event; it takes no call of its own."""
    yield JudgementReached(state.run.now(), judgement, 0.0)


def _judgement(
    state: DebateState, shares: Shares, answers: Sequence[Turn], weights: Mapping[str, float]
) -> Judgement:
    label, p = winner(shares), probability(shares)
    views = _views(answers)
    if 2 * len(answers) <= len(state.debaters):
        there = f"only {len(answers)} of {counted(len(state.debaters), 'agent')} gave an answer"
        return _unclear("not_settled", f"{views}, and {there}", p)
    if label is None:
        return _unclear("not_settled", f"{views}, and their weights balance", p)
    if label == "unclear":
        has_none = not judge_view(state, ()).view.evidence.passages
        return _unclear("no_evidence" if has_none else "not_addressed", views, p)
    own = [answer for answer in answers if answer.stance == label]
    best = max(own, key=lambda turn: (weights[turn.debater], is_backed(turn)), default=None)
    thin = ", no more than half but more than for any other answer" if shares[label] <= HALF else ""
    share = f"{round(100 * shares[label])} % of the weight says that {SAYING[label]}"
    told = last_reason(state.progress.turns, best).text if best else ""
    reason = f" {best.debater}: “{shortened(reason_in(told), MOST_SAID)}”" if best else ""
    alone = sum(weights[turn.debater] for turn in own)
    moved = "" if abs(alone - shares[label]) < SAME else WITH_CRITIQUES
    prose = f"{capitalised(views)}. {share}{thin}{moved}.{reason}"
    # The classifier's input stays as it was measured: this sentence explains a figure to people.
    text = verdict_text(label, f"{capitalised(views)}. {share}{thin}.{reason}")
    points = dict.fromkeys(point for turn in own for point in turn.points)
    return Judgement(NAME, label, text, prose=prose, p=p, points=tuple(points))


def _views(answers: Sequence[Turn]) -> str:
    """Who says what, in one sentence without its full stop."""
    said = []
    for label in LABELS:
        names = [answer.debater for answer in answers if answer.stance == label]
        if names:
            verb = "says" if len(names) == 1 else "say"
            said.append(f"{listed_plainly(names)} {verb} that {SAYING[label]}")
    return "; ".join(said)


def _unclear(cause: Cause, words: str, p: float | None = None) -> Judgement:
    text = f"No verdict: {words}."
    return Judgement(NAME, "unclear", text, cause=cause, cause_words=f"{capitalised(words)}.", p=p)


def brief(state: DebateState, before_round: int) -> str:
    """The newest summary of rounds before that one; empty where there is none."""
    told = [said for said in state.progress.summaries if said.round < before_round]
    return max(told, key=lambda said: said.round).text if told else ""


def summarised(state: DebateState, number: int, turns: Sequence[Turn]) -> Iterator[Event]:
    """The round's turns and what stood before them in brief, unless that is there already.

    Safe beside turns that are taken at the same time. Where the reply is unusable the spare's
    writer does it; where nobody can, later turns go by the last answers alone.
    """
    writer = _summariser(state.run.roster)
    is_there = any(said.round == number for said in state.progress.summaries)
    if writer is None or is_there or not turns:
        return
    run, before = state.run, brief(state, number)
    run.stop.check()
    spare = _summariser(run.roster.spare) if run.roster.spare else None
    try:
        text = writer.summarise(state.view, turns, before, run.stop)
    except ReplyError as error:
        yield from _calls(state)
        words = f"The summary of round {number} is lost ({writer.name}): {error}"
        yield ProblemMet(run.now(), "debating", words, reply=error.reply)
        if spare is None:
            return
        writer, text = spare, spare.summarise(state.view, turns, before, run.stop)
    yield from _calls(state)
    if text:
        yield RoundSummarised(run.now(), writer.name, number, text)


def revised(state: DebateState, seen: JudgeView, judgement: Judgement) -> Iterator[Event]:
    """The response as it should read, where it is judged wrong and somebody can put it right."""
    run, roster = state.run, state.run.roster
    writer = roster.context_writer
    has_to = judgement.label == "hallucinated" and state.progress.revised is None
    if not has_to or not isinstance(writer, Reviser):
        return

    def stand_in(spare: Roster) -> str:
        other = spare.context_writer
        return other.revise(seen, judgement, run.stop) if isinstance(other, Reviser) else ""

    text, told = part_played(
        run,
        writer,
        "judging",
        lambda: writer.revise(seen, judgement, run.stop),
        stand_in,
        role="Reviser",
    )
    yield from told
    if text and text != seen.view.case.response:
        yield ResponseRevised(run.now(), writer.name, text)


def _summariser(roster: Roster) -> Summariser | None:
    writer = roster.context_writer
    return writer if isinstance(writer, Summariser) else None


def _calls(state: DebateState) -> Iterator[Event]:
    calls, _ = state.calls_made("")
    yield from (ModelCalled(state.run.now(), call) for call in calls)


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


def argue_sc_maks(state: DebateState) -> Iterator[Event]:
    """Answers, rounds, consensus, and the response as it should read."""
    if (judgement := barred(NAME, state.view)) is not None:
        yield from reached(state, judgement)
        return
    names = state.debaters
    alone = [TurnRequest(number, name, 0, "answer") for number, name in enumerate(names, 1)]
    yield from spoken(state, alone)
    last = _Round(0, names, _phases(state.plan))
    for number in range(1, rounds_of(state.plan) + 1):
        if len(names) < 2 or not answers_before(state, last.answers + len(names)):
            break
        last = replace(last, number=number)
        yield from _held(state, last)
        if (answer := _settled(state, last)) is not None:
            if not state.progress.reached_consensus:
                turns = len(state.progress.turns)
                yield ConsensusReached(state.run.now(), answer.stance, turns)
            break
    yield from _concluded(state, last)


def calls(debaters: int, plan: Plan) -> Calls:
    """As the head of this file says."""
    pairs, phases = debaters * (debaters - 1), len(_phases(plan))
    rounds = rounds_of(plan) if debaters > 1 else 0
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


def answers_before(state: DebateState, number: int) -> dict[str, Turn]:
    """Each agent's last answer among the turns before that number, in the agents' order."""
    last = {t.debater: t for t in state.turns_before(number) if t.manner in ANSWERS}
    return {name: last[name] for name in state.debaters if name in last}


def _phases(plan: Plan) -> tuple[Manner, ...]:
    """The phases of a round in their order."""
    return tuple(manner for part, manner in PHASES if part != plan.options.without)


def _held(state: DebateState, at: _Round) -> Iterator[Event]:
    """One round: advice, attacks, then answers anew with the round in brief beside them."""
    answers, summary = answers_before(state, at.first), brief(state, at.number)
    said: tuple[Turn, ...] = ()
    for place, manner in enumerate(at.phases):
        first = at.first + place * len(at.pairs)
        critiques = _critiques(at, first, manner, answers, said, summary)
        yield from spoken(state, critiques)
        said += taken(state, critiques)
    anew = [
        TurnRequest(
            at.answers + place,
            name,
            at.number,
            "reconsider",
            (*answers.values(), *(turn for turn in said if turn.about == name)),
            summary=summary,
        )
        for place, name in enumerate(at.names)
    ]
    beside = [lambda: spoken(state, anew), lambda: summarised(state, at.number, said)]
    yield from merged(beside, workers=len(beside))


def _critiques(
    at: _Round,
    first: int,
    manner: Manner,
    answers: dict[str, Turn],
    given: Sequence[Turn],
    summary: str,
) -> list[TurnRequest]:
    """A phase in which all speak of every other's answer; `given` was said of it before."""
    return [
        TurnRequest(
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


def _settled(state: DebateState, at: _Round) -> Turn | None:
    """One of the answers, where after the round all are the same and no critique holds."""
    answers = list(answers_before(state, at.answers + len(at.names)).values())
    if len({answer.stance for answer in answers}) != 1:
        return None
    said = _said_in(state, at)
    return None if any(holds(c, answers[0]) for c in said) else answers[0]


def _said_in(state: DebateState, at: _Round) -> list[Turn]:
    """The critiques of that round."""
    within = range(at.first, at.answers) if at.number else range(0)
    return [turn for turn in state.turns if turn.number in within]


def _concluded(state: DebateState, last: _Round) -> Iterator[Event]:
    """The consensus over the last answers, the revision, the judgement."""
    answers = answers_before(state, last.answers + len(last.names))
    if not answers:
        yield from reached(state, nobody_voted(NAME, state.view, 0))
        return
    said = _said_in(state, last)
    weigher = UNIFORM if state.plan.options.without == "weights" else state.run.roster.weigher
    told, judgement = weighed(state, weigher, list(answers.values()), said)
    if state.progress.weighed is None:
        yield told
    seen = judge_view(state, tuple(answers.values()), summary=brief(state, last.number + 1))
    yield from revised(state, seen, judgement)
    yield from reached(state, judgement)


SC_MAKS = DebateProtocol(
    "sc_maks",
    argue_sc_maks,
    calls,
    manners=("answer", "advise", "attack", "reconsider"),
    options=("rounds", "without"),
    writing=("summary", "corrected"),
    is_weighed=True,
)
