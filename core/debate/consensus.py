"""Weighs the agents' last answers, and the critiques on them, into one judgement.

O* = argmax over labels O of Σ w_i(Q; θ) · Agreement(O, O_i, C), where w_i are the weigher's
weights, O_i is the last answer of agent i, and C are the critiques on it in the last round. The
greatest share wins, also where it is no more than half, which is then said; but what half of the
agents or fewer answered is no consensus. A critique is backed where our code found a quote of it in
the evidence, word for word; it holds against an answer where it is backed and takes another stance
on the claim.
Source: SC-MAKS 3.2 (consensus phase).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from core.agents.reply_parser import reason_in
from core.baseline.wording import capitalised, counted, listed_plainly, shortened, verdict_text
from core.debate.floor import Floor
from core.debate.turns import judge_view
from core.debate.votes import MOST_SAID, last_reason
from core.events import ConsensusWeighed, Event, JudgementReached
from core.records import Cause, Judgement, Label, Turn
from core.roles import Weigher

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
    floor: Floor, weigher: Weigher, answers: Sequence[Turn]
) -> tuple[tuple[str, float], ...]:
    """The weights of those who have an answer, in order; they sum to 1."""
    known = dict(weigher.weights(floor.view, floor.turns))
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
    floor: Floor, weigher: Weigher, answers: Sequence[Turn], critiques: Sequence[Turn]
) -> tuple[ConsensusWeighed, Judgement]:
    """What the last answers come to; there must be one at least."""
    weights = weights_of(floor, weigher, answers)
    shares = shares_of(dict(weights), answers, critiques)
    p = probability(shares)
    rounded = tuple((name, round(weight, DIGITS)) for name, weight in weights)
    told = ConsensusWeighed(floor.play.now(), weigher.method, rounded, p)
    return told, _judgement(floor, shares, answers, dict(weights))


def reached(floor: Floor, judgement: Judgement) -> Iterator[Event]:
    """The judgement as an event; it takes no call of its own."""
    yield JudgementReached(floor.play.now(), judgement, 0.0)


def _judgement(
    floor: Floor, shares: Shares, answers: Sequence[Turn], weights: Mapping[str, float]
) -> Judgement:
    label, p = winner(shares), probability(shares)
    views = _views(answers)
    if 2 * len(answers) <= len(floor.debaters):
        there = f"only {len(answers)} of {counted(len(floor.debaters), 'agent')} gave an answer"
        return _unclear("not_settled", f"{views}, and {there}", p)
    if label is None:
        return _unclear("not_settled", f"{views}, and their weights balance", p)
    if label == "unclear":
        has_none = not judge_view(floor, ()).view.evidence.passages
        return _unclear("no_evidence" if has_none else "not_addressed", views, p)
    own = [answer for answer in answers if answer.stance == label]
    best = max(own, key=lambda turn: (weights[turn.debater], is_backed(turn)), default=None)
    thin = ", no more than half but more than for any other answer" if shares[label] <= HALF else ""
    share = f"{round(100 * shares[label])} % of the weight says that {SAYING[label]}"
    told = last_reason(floor.progress.turns, best).text if best else ""
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
