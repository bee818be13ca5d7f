"""Answers given independently: a single judge, an ensemble, and a debate only when unsure.

Single: one judge over the evidence, which nobody argues about. It is asked plainly, for its chain
of thought, or by examples; of several samples the label counts that more than half give
(self-consistency). By default one plain judgement.
Source: HaluAgent 3.2 and fig. 6, CEDA A.2, SC-MAKS 4.4.
Calls: as many judgements as samples, all at once.

Ensemble: each debater answers alone, all at once, and the answers are counted. Two who agree give
the label; where they differ a coin does, and is said to be one. Of more than two most decide, and
a coin where all gave a label and as many give each. A coin makes no label of an open or lost
answer: then nothing is settled. There is no judge. The coin is thrown by the seed and what the
case says and rests on, so that it falls the same again, here and elsewhere: ids of cases are new
each time. Source: ColMAD 4.1 (the baseline “Ensemble”, which has two). Calls: one turn of each
debater, all at once.

Adaptive: a single judge first, and a debate only where its judgement is not sure enough. A debate
is held where the judge leaves it open, where p (its own, or the share of its samples) is near one
half, or where the built-in readers contradict it: most of those that it weighed, or, of a
language model, the built-in judge that stands beside it. No debate brings evidence that is
missing or reads an image, so none is held for want of these. `then` names the debate: ColMAD, if
nothing is said. Its own options are `samples` and `style`; those of the debate hold for the
debate. Source: SC-MAKS 2.2 (conditional debate, its reference 12). Calls: as many judgements as
samples, all at once; then those of the debate, if it is held.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from core.agents.agent_runner import judged
from core.baseline.wording import counted, verdict_text
from core.debate.state import (
    Calls,
    DebateProtocol,
    DebateState,
    TurnRequest,
    concluded,
    judge_view,
    spoken,
    taken,
)
from core.debate.votes import (
    barred,
    drawn,
    nobody_voted,
    possible,
    said_once,
    samples_of,
    tally,
    told,
    vote_of,
    without_majority,
)
from core.schema.events import DebateDecided, Event
from core.schema.records import Case, Judgement, Label, Plan, Turn
from core.schema.roles import EvidenceReader, JudgeView

AGENT = "Ensemble"


def argue_ensemble(state: DebateState) -> Iterator[Event]:
    """The answers, then what they come to."""
    began = state.run.now()
    judgement = barred(AGENT, state.view)
    if judgement is None:
        requests = [TurnRequest(n, name, 1, "answer") for n, name in enumerate(state.debaters, 1)]
        yield from spoken(state, requests)
        judgement = _counted(state, taken(state, requests))
    yield from concluded(state, judgement, began)


def coin(seed: int, case: Case) -> Label:
    """Heads or tails: each label for half of all cases, and always the same for one of them."""
    told = (seed, case.response, case.question, case.documents, case.images)
    thrown = hashlib.sha256(repr(told).encode()).digest()[0]
    return "hallucinated" if thrown % 2 else "supported"


def _counted(state: DebateState, turns: Sequence[Turn]) -> Judgement:
    """What the answers come to, with the words of the first who gave that label."""
    votes = tally((turn.stance for turn in turns), len(state.debaters))
    if not votes.cast:
        return nobody_voted(AGENT, state.view, len(turns))
    label = votes.label
    if votes.is_tie:
        label = coin(state.plan.options.seed, state.view.case)
        reason = f"They cancel out, so a coin was thrown: {label}."
    elif label == "unclear":
        return without_majority(AGENT, votes, "debater")
    else:
        reason = told(next(turn for turn in turns if turn.stance == label))
    prose = f"{votes.words('debater')} {reason}"
    return Judgement(AGENT, label, verdict_text(label, prose), prose=prose, p=votes.p)


ENSEMBLE = DebateProtocol(
    *("ensemble", argue_ensemble, lambda debaters, _: Calls(debaters, 0, chain=1)),
    manners=("answer",),
    options=("seed",),
)


def argue_single(state: DebateState) -> Iterator[Event]:
    """One judgement, or the vote of several, by what the evidence says alone."""
    wanted = max(1, state.plan.options.samples)
    yield from said_once(state, wanted)
    views = asked_alone(state, possible(state, wanted))
    if len(views) == 1:
        yield from judged(state.run, views[0])
        return
    began = state.run.now()
    yield from drawn(state, views, "sample")
    yield from concluded(state, vote_of(samples_of(state, views)), began)


def asked_alone(state: DebateState, count: int, first: int = 1) -> list[JudgeView]:
    """So many views of a judge who hears no debate, numbered from `first`."""
    manner = state.plan.options.style or "plain"
    is_sampled = count > 1
    return [
        judge_view(state, (), manner=manner, number=number, is_sampled=is_sampled)
        for number in range(first, first + count)
    ]


SINGLE = DebateProtocol(
    *("single", argue_single, lambda _, plan: Calls(0, max(1, plan.options.samples), chain=1)),
    judging=("plain", "thought", "examples"),
    options=("samples", "style"),
)


NEAR = 0.2  # a p of 0.3 to 0.7: below that its own words for the degree are “rather”
USUAL = ("colmad", "ceda")  # the first of these that there is
# What is missing there, nobody can argue into being.
BEYOND_DEBATE = ("no_evidence", "image_not_readable")
OTHER: Mapping[Label, Label] = {"supported": "hallucinated", "hallucinated": "supported"}
NOTE = "before any debate"
ENOUGH = "The single judge left nothing open that a debate could settle."


def over(debates: Mapping[str, DebateProtocol]) -> DebateProtocol:
    """The protocol that may go on to any of these debates."""
    return DebateProtocol(
        "adaptive",
        partial(argue_adaptive, debates),
        partial(count_adaptive_calls, debates),
        judging=SINGLE.judging,
        options=("samples", "style", "then"),
    )


def next_of(debates: Mapping[str, DebateProtocol], plan: Plan) -> DebateProtocol:
    """The debate that it goes on to."""
    names = (plan.options.then, *USUAL, *debates)
    return next(debates[name] for name in names if name in debates)


def argue_adaptive(debates: Mapping[str, DebateProtocol], state: DebateState) -> Iterator[Event]:
    """The single judgement, whether it is enough, and the debate where it is not."""
    then, began = next_of(debates, state.plan), state.run.now()
    wanted = max(1, state.plan.options.samples)
    yield from said_once(state, wanted)
    # Numbered after those of the debate, so that neither takes the other's for its own.
    first = then.calls(len(state.debaters), state.plan).judgements + 1
    views = asked_alone(state, possible(state, wanted), first)
    yield from drawn(state, views, NOTE)
    judgement = vote_of(samples_of(state, views))
    decided = state.progress.decided
    if decided is None:
        why = " ".join(reasons(judgement, *_contradiction(state, views[0], judgement)))
        decided = DebateDecided(state.run.now(), bool(why), why or ENOUGH, then.name)
        yield decided
    if decided.is_needed:
        yield from then.argue(state)
    else:
        yield from concluded(state, judgement, began)


def count_adaptive_calls(debates: Mapping[str, DebateProtocol], debaters: int, plan: Plan) -> Calls:
    """The calls that a check asks for at most, as the head of this file counts them."""
    asked = next_of(debates, plan).calls(debaters, plan)
    own = max(1, plan.options.samples)
    return replace(asked, judgements=own + asked.judgements, chain=1 + asked.chain)


def reasons(judgement: Judgement, *against: str) -> tuple[str, ...]:
    """Why a debate is needed, a sentence each; none where the judgement is enough."""
    if judgement.cause in BEYOND_DEBATE:
        return ()
    if judgement.label == "unclear":
        return (f"{judgement.agent} left it open: {judgement.cause_words or judgement.text}",)
    if judgement.p is not None and abs(judgement.p - 0.5) <= NEAR:
        near = f"p = {judgement.p:.2f} of {judgement.agent} is near one half."
        return (near, *against)
    return against


def _contradiction(state: DebateState, seen: JudgeView, judgement: Judgement) -> tuple[str, ...]:
    """That the built-in readers contradict the judgement, where they do."""
    from core.baseline.debaters import overall  # a page that only counts calls needs no rules

    other = OTHER.get(judgement.label)
    if other is None:
        return ()
    if judgement.readers:
        stances: dict[str, list[Label]] = {}
        for view in judgement.readers:
            stances.setdefault(view.reader, []).append(view.stance)
        against = sum(overall(own) == other for own in stances.values())
        words = f"{against} of {counted(len(stances), 'built-in reader')} call it {other}."
        return (words,) if 2 * against > len(stances) else ()
    spare = state.run.roster.spare
    if spare is None or not isinstance(spare.judge, EvidenceReader):
        return ()
    read = spare.judge.read(seen, state.run.stop)
    return (f"{spare.judge.name} calls it {other}.",) if read.label == other else ()
