"""SC-MAKS: agents help and attack each other's answers; a weighted consensus decides.

n agents (one is a consensus of one) see the whole evidence, each alone at first (manner answer).
R rounds follow, 2 unless chosen (the paper: “typically 2-3”). In each, every agent comments on
every other agent's last answer once in a cooperative phase (advise) and once in an adversarial one
(attack, with the advice appended); then all reconsider their answers. The context writer sums up
earlier rounds (3.4). The rounds end early if all answers take one stance and no critique of the
round holds against it. A critique is backed if our code found one of its quotes in the evidence,
word for word; it holds if it also takes another stance than the answer.

Consensus (3.2): O* = argmax over labels O of Σ w_i(Q; θ) · Agreement(O, O_i, C), where w_i are the
weigher's weights, O_i is the last answer of agent i, and C are the critiques of it in the last
round. The greatest share wins, also if it is no more than half, which the verdict then says; if
half of the agents or fewer answered there is no consensus. A wrong response is rewritten.

`without` is the ablation (4.10): `adversary` leaves out the attacks, `cooperation` the advice, and
with `weights` all answers count alike. The turns of a phase run in parallel, at most 16 at a time,
and a round's summary runs beside its reconsidering. Calls: n + R(Pn(n-1) + n) turns with P = 2
phases, 1 without one of them; R summaries, 1 revision. In sequence: 1 + R(Pw + 1) + 1 with
w = ⌈n(n-1)/16⌉. n = 4, R = 3: 88 turns, 92 calls in all, 11 in sequence; with one phase 52, 56, 8.
Source: SC-MAKS 3.1 to 3.4, algorithm 1; 4.10.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core.agents.agent_runner import play_role
from core.agents.reply_parser import parse_reason
from core.baseline.wording import capitalise, format_count, frame_verdict, join_names, shorten
from core.debate.state import (
    MAX_PARALLEL_TURNS,
    DebateProtocol,
    DebateState,
    ProtocolCalls,
    TurnRequest,
    build_judge_view,
    collect_turns,
    conclude_debate,
    count_rounds,
    end_lost_round,
    take_turns,
)
from core.debate.votes import (
    MAX_REASON_CHARS,
    check_unreadable_images,
    find_last_reason,
    make_no_votes,
    make_undecided,
)
from core.runtime.concurrency import merge_streams
from core.runtime.errors import ReplyError
from core.schema.events import (
    ConsensusReached,
    ConsensusWeighed,
    Event,
    ProblemMet,
    ResponseRevised,
    RoundSummarised,
)
from core.schema.records import Judgement, Label, Plan, Stance, Turn, UnclearCause
from core.schema.roles import (
    UNIFORM_POLICY,
    ConsensusPolicy,
    JudgeView,
    Reviser,
    Roster,
    Summariser,
)
from core.schema.rosters import AblationPart, TurnMode

CONSENSUS_AGENT = "Consensus"
ANSWER_MODES: frozenset[TurnMode] = frozenset({"answer", "reconsider"})
CRITIQUE_PHASES: tuple[tuple[AblationPart, TurnMode], ...] = (
    ("cooperation", "advise"),
    ("adversary", "attack"),
)
CONSENSUS_LABELS: tuple[Label, ...] = ("hallucinated", "supported", "unclear")
LABEL_CLAUSES: dict[Label, str] = {
    "hallucinated": "it is wrong",
    "supported": "it is correct",
    "unclear": "the evidence leaves it open",
}
SHARE_TOLERANCE = 1e-9  # sums of floats that differ by less are equal
SHARE_DIGITS = 4
HALF_SHARE = 0.5 + SHARE_TOLERANCE
# Explains why the share differs from the sum of the agents' weights.
CRITIQUES_REMARK = ": where critiques of an answer quote the evidence, they count for half of it"
LabelShares = Mapping[Label, float]


def is_backed(critique: Turn) -> bool:
    """Return True if one of its quotes stands in the evidence, word for word."""
    return any(quote.status == "verified" for quote in critique.quotes)


def compute_agreement(label: Label, answer: Turn, critiques: Sequence[Turn]) -> float:
    """Return Agreement(O, O_i, C) in [0, 1]: half the agent's stance, half its backed critiques.

    The critiques' half is the share of them that take the label's stance; if none is backed,
    only the agent's own stance counts. Over the three labels it sums to 1.
    """
    own_vote = float(answer.stance == label)
    backed = [critique for critique in critiques if is_backed(critique)]
    if not backed:
        return own_vote
    return (own_vote + sum(critique.stance == label for critique in backed) / len(backed)) / 2


def compute_shares(
    weights: Mapping[str, float], answers: Sequence[Turn], critiques: Sequence[Turn]
) -> LabelShares:
    """Return each label's Σ w · Agreement; they sum to 1."""
    by_target: dict[str, list[Turn]] = defaultdict(list)
    for critique in critiques:
        by_target[critique.about].append(critique)
    return {
        label: sum(
            weights[a.debater] * compute_agreement(label, a, by_target[a.debater]) for a in answers
        )
        for label in CONSENSUS_LABELS
    }


def hallucination_probability(shares: LabelShares) -> float:
    """Return P(hallucinated): the share of that label and half of the share of `unclear`."""
    return round(shares["hallucinated"] + shares["unclear"] / 2, SHARE_DIGITS)


def find_winning_label(shares: LabelShares) -> Label | None:
    """Return the label of the greatest share, or None on a tie."""
    best = max(shares.values())
    leading = [label for label in CONSENSUS_LABELS if best - shares[label] < SHARE_TOLERANCE]
    return leading[0] if len(leading) == 1 else None


def weigh_answers(
    state: DebateState, weigher: ConsensusPolicy, answers: Sequence[Turn], critiques: Sequence[Turn]
) -> tuple[ConsensusWeighed, Judgement]:
    """Weigh the last answers, at least one; return the event and the judgement."""
    known = dict(weigher.weights(state.view, state.turns))
    raw = {answer.debater: known.get(answer.debater, 0.0) for answer in answers}
    total = sum(raw.values())
    if total <= 0:  # no agent that answered has a weight: count all alike
        raw, total = dict.fromkeys(raw, 1.0), float(len(raw))
    weights = {name: weight / total for name, weight in raw.items()}
    shares = compute_shares(weights, answers, critiques)
    rounded = tuple((name, round(weight, SHARE_DIGITS)) for name, weight in weights.items())
    event = ConsensusWeighed(
        state.run.now(), weigher.method, rounded, hallucination_probability(shares)
    )
    return event, _decide(state, shares, answers, weights)


def _decide(
    state: DebateState, shares: LabelShares, answers: Sequence[Turn], weights: Mapping[str, float]
) -> Judgement:
    label, p, views = (
        find_winning_label(shares),
        hallucination_probability(shares),
        _describe_stances(answers),
    )
    cause: UnclearCause = "not_settled"
    words, agent_count = "", len(state.debaters)
    if 2 * len(answers) <= agent_count:
        words = (
            f"{views}, and only {len(answers)} of {format_count(agent_count, 'agent')} gave an "
            f"answer"
        )
    elif label is None:
        words = f"{views}, and their weights balance"
    elif label == "unclear":
        words, cause = views, "not_addressed" if state.view.evidence.passages else "no_evidence"
    if words or label is None:
        return make_undecided(CONSENSUS_AGENT, cause, words, p)
    supporters = [answer for answer in answers if answer.stance == label]
    best = max(supporters, key=lambda turn: (weights[turn.debater], is_backed(turn)), default=None)
    remark = (
        ", no more than half but more than for any other answer"
        if shares[label] <= HALF_SHARE
        else ""
    )
    share = f"{round(100 * shares[label])} % of the weight says that {LABEL_CLAUSES[label]}"
    argument = find_last_reason(state.progress.turns, best).text if best else ""
    reason = (
        f" {best.debater}: “{shorten(parse_reason(argument), MAX_REASON_CHARS)}”" if best else ""
    )
    alone = sum(weights[turn.debater] for turn in supporters)
    moved = "" if abs(alone - shares[label]) < SHARE_TOLERANCE else CRITIQUES_REMARK
    prose = f"{capitalise(views)}. {share}{remark}{moved}.{reason}"
    # `moved` is for people only: the classifier reads `text`, which stays as it was measured.
    text = frame_verdict(label, f"{capitalise(views)}. {share}{remark}.{reason}")
    points = dict.fromkeys(point for turn in supporters for point in turn.points)
    return Judgement(CONSENSUS_AGENT, label, text, prose=prose, p=p, points=tuple(points))


def _describe_stances(answers: Sequence[Turn]) -> str:
    """Return who says what, in one sentence without its full stop."""
    clauses = []
    for label in CONSENSUS_LABELS:
        names = [answer.debater for answer in answers if answer.stance == label]
        if names:
            verb = "says" if len(names) == 1 else "say"
            clauses.append(f"{join_names(names)} {verb} that {LABEL_CLAUSES[label]}")
    return "; ".join(clauses)


def get_latest_summary(state: DebateState, before_round: int) -> str:
    """Return the newest summary of the rounds before this one; empty if there is none."""
    summaries = [each for each in state.progress.summaries if each.round < before_round]
    return max(summaries, key=lambda each: each.round).text if summaries else ""


def summarise_round(state: DebateState, number: int, turns: Sequence[Turn]) -> Iterator[Event]:
    """Summarise the round's turns and the summary before them, unless that is done already.

    Safe to run in parallel with turns. If the reply is unusable the fallback roster's writer does
    it; if nobody can, later turns go by the last answers alone.
    """
    run, before = state.run, get_latest_summary(state, number)
    writer = run.roster.context_writer
    is_done = any(each.round == number for each in state.progress.summaries)
    if not isinstance(writer, Summariser) or is_done or not turns:
        return
    run.stop.check()
    try:
        name, text = writer.name, writer.summarise(state.view, turns, before, run.stop)
    except ReplyError as error:
        yield from state.drain_calls()
        words = f"The summary of round {number} is lost ({writer.name}): {error}"
        yield ProblemMet(run.now(), "debating", words, reply=error.reply)
        other = run.roster.spare.context_writer if run.roster.spare else None
        if not isinstance(other, Summariser):
            return
        name, text = other.name, other.summarise(state.view, turns, before, run.stop)
    yield from state.drain_calls()
    if text:
        yield RoundSummarised(run.now(), name, number, text)


def revise_response(state: DebateState, seen: JudgeView, judgement: Judgement) -> Iterator[Event]:
    """Have the response rewritten if it is judged wrong and the writer can revise."""
    run, writer = state.run, state.run.roster.context_writer
    has_to = judgement.label == "hallucinated" and state.progress.revised is None
    if not has_to or not isinstance(writer, Reviser):
        return

    def stand_in(spare: Roster) -> str:
        other = spare.context_writer
        return other.revise(seen, judgement, run.stop) if isinstance(other, Reviser) else ""

    text, events = play_role(
        run,
        writer,
        "judging",
        lambda: writer.revise(seen, judgement, run.stop),
        stand_in,
        role="Reviser",
    )
    yield from events
    if text and text != seen.case_view.case.response:
        yield ResponseRevised(run.now(), writer.name, text)


@dataclass(frozen=True)
class _Round:
    """A round's place in the schedule, which fixes the numbers of its turns."""

    number: int
    names: tuple[str, ...]
    phases: tuple[TurnMode, ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Return each (critic, peer whose answer it criticises) once."""
        return list(itertools.permutations(self.names, 2))

    @property
    def first_turn(self) -> int:
        agents = len(self.names)
        return 1 + agents + (self.number - 1) * (len(self.phases) * len(self.pairs) + agents)

    @property
    def first_answer(self) -> int:
        """Number of the first turn in which answers are reconsidered."""
        return self.first_turn + len(self.phases) * len(self.pairs)

    def critiques(self, state: DebateState) -> list[Turn]:
        within = range(self.first_turn, self.first_answer) if self.number else ()
        return [turn for turn in state.turns if turn.number in within]


def argue_sc_maks(state: DebateState) -> Iterator[Event]:
    """Ask for answers, hold the rounds, weigh the consensus and rewrite a wrong response."""
    if (judgement := check_unreadable_images(CONSENSUS_AGENT, state.view)) is not None:
        yield from conclude_debate(state, judgement)
        return
    names, progress = state.debaters, state.progress
    alone = [TurnRequest(number, name, 0, "answer") for number, name in enumerate(names, 1)]
    yield from take_turns(state, alone)
    last = _Round(0, names, _list_phases(state.plan))
    for number in range(1, count_rounds(state.plan) + 1):
        before = range(last.first_turn, last.first_answer + len(names))
        if len(names) < 2 or (yield from end_lost_round(state, before)):
            break
        last = replace(last, number=number)
        yield from _hold_round(state, last)
        if (stance := _find_unanimous_stance(state, last)) is not None:
            if not progress.reached_consensus:
                yield ConsensusReached(state.run.now(), stance, len(progress.turns))
            break
    yield from _conclude(state, last)


def count_sc_maks_calls(debaters: int, plan: Plan) -> ProtocolCalls:
    """Return the most calls that a check makes, by the formula in the module docstring."""
    pairs, phases = debaters * (debaters - 1), len(_list_phases(plan))
    rounds = count_rounds(plan) if debaters > 1 else 0
    turns = debaters + rounds * (phases * pairs + debaters)
    chain = math.ceil(debaters / MAX_PARALLEL_TURNS) + 1
    chain += rounds * (
        phases * math.ceil(pairs / MAX_PARALLEL_TURNS) + math.ceil(debaters / MAX_PARALLEL_TURNS)
    )
    # A critic reads two answers and, after another phase, that phase's critiques of one of them;
    # an agent that reconsiders reads all answers and its critiques.
    turns_read = sum(2 + before * (debaters - 1) for before in range(phases))
    heard = rounds * (pairs * turns_read + debaters**2 + phases * pairs)
    heard += max(0, rounds - 1) * (phases * pairs + debaters)  # a summary counts as one turn
    revisions = 1 if debaters else 0
    return ProtocolCalls(turns, 0, chain, summaries=rounds, revisions=revisions, heard=heard)


def list_answers_before(state: DebateState, number: int) -> dict[str, Turn]:
    """Return each agent's last answer before turn `number`, in the agents' order."""
    last = {t.debater: t for t in state.turns_before(number) if t.manner in ANSWER_MODES}
    return {name: last[name] for name in state.debaters if name in last}


def _list_phases(plan: Plan) -> tuple[TurnMode, ...]:
    return tuple(manner for part, manner in CRITIQUE_PHASES if part != plan.options.without)


def _hold_round(state: DebateState, current: _Round) -> Iterator[Event]:
    """Hold one round: advice, attacks, then reconsidered answers beside the round's summary."""
    answers, summary = (
        list_answers_before(state, current.first_turn),
        get_latest_summary(state, current.number),
    )
    comments: tuple[Turn, ...] = ()

    def comments_on(peer: str) -> list[Turn]:
        return [turn for turn in comments if turn.about == peer]

    for phase, manner in enumerate(current.phases):
        critiques = []
        for number, (critic, peer) in enumerate(
            current.pairs, current.first_turn + phase * len(current.pairs)
        ):
            if peer in answers:
                both = [answers[n] for n in current.names if n in (critic, peer) and n in answers]
                hears = (*both, *comments_on(peer))
                request = TurnRequest(number, critic, current.number, manner, hears, peer)
                critiques.append(replace(request, summary=summary))
        yield from take_turns(state, critiques)
        comments += collect_turns(state, critiques)
    requests = []
    for number, name in enumerate(current.names, current.first_answer):
        hears = (*answers.values(), *comments_on(name))
        requests.append(
            TurnRequest(number, name, current.number, "reconsider", hears, summary=summary)
        )
    parallel = [
        lambda: take_turns(state, requests),
        lambda: summarise_round(state, current.number, comments),
    ]
    yield from merge_streams(parallel, workers=len(parallel))


def _find_unanimous_stance(state: DebateState, current: _Round) -> Stance | None:
    """Return the answers' stance if all share it and no backed critique takes another."""
    stances = {
        a.stance
        for a in list_answers_before(state, current.first_answer + len(current.names)).values()
    }
    backed = {turn.stance for turn in current.critiques(state) if is_backed(turn)}
    return next(iter(stances)) if len(stances) == 1 and backed <= stances else None


def _conclude(state: DebateState, last: _Round) -> Iterator[Event]:
    answers = tuple(list_answers_before(state, last.first_answer + len(last.names)).values())
    if not answers:
        yield from conclude_debate(state, make_no_votes(CONSENSUS_AGENT, state.view, 0))
        return
    policy = UNIFORM_POLICY if state.plan.options.without == "weights" else state.run.roster.weigher
    event, judgement = weigh_answers(state, policy, answers, last.critiques(state))
    if state.progress.weighed is None:
        yield event
    seen = build_judge_view(state, answers, summary=get_latest_summary(state, last.number + 1))
    yield from revise_response(state, seen, judgement)
    yield from conclude_debate(state, judgement)


SC_MAKS = DebateProtocol(
    name="sc_maks",
    argue=argue_sc_maks,
    calls=count_sc_maks_calls,
    turn_modes=("answer", "advise", "attack", "reconsider"),
    options=("rounds", "without"),
    writing=("summary", "corrected"),
    is_weighed=True,
)
