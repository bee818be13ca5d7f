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
from collections import defaultdict
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
    concluded,
    judge_view,
    rounds_of,
    spoken,
    taken,
)
from core.debate.votes import MOST_SAID, barred, last_reason, nobody_voted, undecided
from core.runtime.concurrency import merged
from core.runtime.errors import ReplyError
from core.schema.events import (
    ConsensusReached,
    ConsensusWeighed,
    Event,
    ProblemMet,
    ResponseRevised,
    RoundSummarised,
)
from core.schema.records import Cause, Judgement, Label, Plan, Stance, Turn
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


def shares_of(
    weights: Mapping[str, float], answers: Sequence[Turn], critiques: Sequence[Turn]
) -> Shares:
    """Each label's Σ w · Agreement; they sum to 1."""
    on: dict[str, list[Turn]] = defaultdict(list)
    for critique in critiques:
        on[critique.about].append(critique)
    return {
        label: sum(weights[a.debater] * agreement(label, a, on[a.debater]) for a in answers)
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
    known = dict(weigher.weights(state.view, state.turns))
    own = {answer.debater: known.get(answer.debater, 0.0) for answer in answers}
    whole = sum(own.values())
    if whole <= 0:  # nobody who answered counts: then all alike
        own, whole = dict.fromkeys(own, 1.0), float(len(own))
    weights = {name: weight / whole for name, weight in own.items()}
    shares = shares_of(weights, answers, critiques)
    rounded = tuple((name, round(weight, DIGITS)) for name, weight in weights.items())
    told = ConsensusWeighed(state.run.now(), weigher.method, rounded, probability(shares))
    return told, _judgement(state, shares, answers, weights)


def _judgement(
    state: DebateState, shares: Shares, answers: Sequence[Turn], weights: Mapping[str, float]
) -> Judgement:
    label, p, views = winner(shares), probability(shares), _views(answers)
    cause: Cause = "not_settled"
    words, asked = "", len(state.debaters)
    if 2 * len(answers) <= asked:
        words = f"{views}, and only {len(answers)} of {counted(asked, 'agent')} gave an answer"
    elif label is None:
        words = f"{views}, and their weights balance"
    elif label == "unclear":
        words, cause = views, "not_addressed" if state.view.evidence.passages else "no_evidence"
    if words or label is None:
        return undecided(NAME, cause, words, p)
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


def brief(state: DebateState, before_round: int) -> str:
    """The newest summary of rounds before that one; empty where there is none."""
    told = [said for said in state.progress.summaries if said.round < before_round]
    return max(told, key=lambda said: said.round).text if told else ""


def summarised(state: DebateState, number: int, turns: Sequence[Turn]) -> Iterator[Event]:
    """The round's turns and what stood before them in brief, unless that is there already.

    Safe beside turns that are taken at the same time. Where the reply is unusable the spare's
    writer does it; where nobody can, later turns go by the last answers alone.
    """
    run, before = state.run, brief(state, number)
    writer = run.roster.context_writer
    is_there = any(said.round == number for said in state.progress.summaries)
    if not isinstance(writer, Summariser) or is_there or not turns:
        return
    run.stop.check()
    try:
        name, text = writer.name, writer.summarise(state.view, turns, before, run.stop)
    except ReplyError as error:
        yield from state.told_calls()
        words = f"The summary of round {number} is lost ({writer.name}): {error}"
        yield ProblemMet(run.now(), "debating", words, reply=error.reply)
        other = run.roster.spare.context_writer if run.roster.spare else None
        if not isinstance(other, Summariser):
            return
        name, text = other.name, other.summarise(state.view, turns, before, run.stop)
    yield from state.told_calls()
    if text:
        yield RoundSummarised(run.now(), name, number, text)


def revised(state: DebateState, seen: JudgeView, judgement: Judgement) -> Iterator[Event]:
    """The response as it should read, where it is judged wrong and somebody can put it right."""
    run, writer = state.run, state.run.roster.context_writer
    has_to = judgement.label == "hallucinated" and state.progress.revised is None
    if not has_to or not isinstance(writer, Reviser):
        return

    def stand_in(spare: Roster) -> str:
        other = spare.context_writer
        return other.revise(seen, judgement, run.stop) if isinstance(other, Reviser) else ""

    text, told = part_played(
        *(run, writer, "judging"),
        lambda: writer.revise(seen, judgement, run.stop),
        stand_in,
        role="Reviser",
    )
    yield from told
    if text and text != seen.view.case.response:
        yield ResponseRevised(run.now(), writer.name, text)


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
        agents = len(self.names)
        return 1 + agents + (self.number - 1) * (len(self.phases) * len(self.pairs) + agents)

    @property
    def answers(self) -> int:
        """The number of the first turn in which answers are reconsidered."""
        return self.first + len(self.phases) * len(self.pairs)

    def critiques(self, state: DebateState) -> list[Turn]:
        within = range(self.first, self.answers) if self.number else ()
        return [turn for turn in state.turns if turn.number in within]


def argue_sc_maks(state: DebateState) -> Iterator[Event]:
    """Answers, rounds, consensus, and the response as it should read."""
    if (judgement := barred(NAME, state.view)) is not None:
        yield from concluded(state, judgement)
        return
    names, progress = state.debaters, state.progress
    alone = [TurnRequest(number, name, 0, "answer") for number, name in enumerate(names, 1)]
    yield from spoken(state, alone)
    last = _Round(0, names, _phases(state.plan))
    for number in range(1, rounds_of(state.plan) + 1):
        if len(names) < 2 or not answers_before(state, last.answers + len(names)):
            break
        last = replace(last, number=number)
        yield from _held(state, last)
        if (stance := _settled(state, last)) is not None:
            if not progress.reached_consensus:
                yield ConsensusReached(state.run.now(), stance, len(progress.turns))
            break
    yield from _concluded(state, last)


def calls(debaters: int, plan: Plan) -> Calls:
    """The calls that a check asks for at most, as the head of this file counts them."""
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
    return tuple(manner for part, manner in PHASES if part != plan.options.without)


def _held(state: DebateState, at: _Round) -> Iterator[Event]:
    """One round: advice, attacks, then answers anew with the round in brief beside them."""
    answers, summary = answers_before(state, at.first), brief(state, at.number)
    said: tuple[Turn, ...] = ()

    def on(peer: str) -> list[Turn]:
        return [turn for turn in said if turn.about == peer]

    for phase, manner in enumerate(at.phases):
        critiques = []
        for number, (critic, peer) in enumerate(at.pairs, at.first + phase * len(at.pairs)):
            if peer in answers:
                own = [answers[n] for n in at.names if n in (critic, peer) and n in answers]
                hears = (*own, *on(peer))
                request = TurnRequest(number, critic, at.number, manner, hears, peer)
                critiques.append(replace(request, summary=summary))
        yield from spoken(state, critiques)
        said += taken(state, critiques)
    anew = []
    for number, name in enumerate(at.names, at.answers):
        hears = (*answers.values(), *on(name))
        anew.append(TurnRequest(number, name, at.number, "reconsider", hears, summary=summary))
    beside = [lambda: spoken(state, anew), lambda: summarised(state, at.number, said)]
    yield from merged(beside, workers=len(beside))


def _settled(state: DebateState, at: _Round) -> Stance | None:
    """The answers' stance, where all are the same and no backed critique takes another."""
    stances = {a.stance for a in answers_before(state, at.answers + len(at.names)).values()}
    backed = {turn.stance for turn in at.critiques(state) if is_backed(turn)}
    return next(iter(stances)) if len(stances) == 1 and backed <= stances else None


def _concluded(state: DebateState, last: _Round) -> Iterator[Event]:
    answers = tuple(answers_before(state, last.answers + len(last.names)).values())
    if not answers:
        yield from concluded(state, nobody_voted(NAME, state.view, 0))
        return
    weigher = UNIFORM if state.plan.options.without == "weights" else state.run.roster.weigher
    told, judgement = weighed(state, weigher, answers, last.critiques(state))
    if state.progress.weighed is None:
        yield told
    seen = judge_view(state, answers, summary=brief(state, last.number + 1))
    yield from revised(state, seen, judgement)
    yield from concluded(state, judgement)


SC_MAKS = DebateProtocol(
    *("sc_maks", argue_sc_maks, calls),
    manners=("answer", "advise", "attack", "reconsider"),
    options=("rounds", "without"),
    writing=("summary", "corrected"),
    is_weighed=True,
)
