"""Adaptive: a single judge first, and a debate only where its judgement is not sure enough.

A debate is held where the judge leaves it open, where p (its own, or the share of its samples) is
near one half, or where the built-in readers contradict it: most of those that it weighed, or, of a
language model, the built-in judge that stands beside it. No debate brings evidence that is missing
or reads an image, so none is held for want of these. `then` names the debate: ColMAD, if nothing is
said. Its own options are `samples` and `style`; those of the debate hold for the debate.
Source: SC-MAKS 2.2 (conditional debate, its reference 12).
Calls: as many judgements as samples, all at once; then those of the debate, if it is held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from core.baseline.wording import counted
from core.debate.floor import Calls, DebateProtocol, Floor
from core.debate.single import PROTOCOL as SINGLE
from core.debate.single import asked_alone
from core.debate.votes import drawn, possible, said_once, samples_of, vote_of
from core.events import DebateDecided, Event, JudgementReached
from core.records import Judgement, Label, Plan
from core.roles import EvidenceReader, JudgeView

NEAR = 0.2  # a p of 0.3 to 0.7: below that its own words for the degree are “rather”
USUAL = ("colmad", "ceda")  # the first of these that there is
# What is missing there, nobody can argue into being.
BEYOND_DEBATE = ("no_evidence", "image_not_readable")
OTHER: Mapping[Label, Label] = {"supported": "hallucinated", "hallucinated": "supported"}
NOTE = "before any debate"


def over(debates: Mapping[str, DebateProtocol]) -> DebateProtocol:
    """The protocol that may go on to any of these debates."""
    return DebateProtocol(
        "adaptive",
        partial(argue, debates),
        partial(calls, debates),
        judging=SINGLE.judging,
        options=("samples", "style", "then"),
    )


def next_of(debates: Mapping[str, DebateProtocol], plan: Plan) -> DebateProtocol:
    """The debate that it goes on to."""
    names = (plan.options.then, *USUAL, *debates)
    return next(debates[name] for name in names if name in debates)


def argue(debates: Mapping[str, DebateProtocol], floor: Floor) -> Iterator[Event]:
    """The single judgement, whether it is enough, and the debate where it is not."""
    then, began = next_of(debates, floor.plan), floor.play.now()
    wanted = max(1, floor.plan.options.samples)
    yield from said_once(floor, wanted)
    # Numbered after those of the debate, so that neither takes the other's for its own.
    first = then.calls(len(floor.debaters), floor.plan).judgements + 1
    views = asked_alone(floor, possible(floor, wanted), first)
    yield from drawn(floor, views, NOTE)
    judgement, _ = vote_of(samples_of(floor, views))
    decided = floor.progress.decided
    if decided is None:
        why = reasons(judgement, *_contradiction(floor, views[0], judgement))
        decided = _decided(floor, why, then.name)
        yield decided
    if decided.is_needed:
        yield from then.argue(floor)
        return
    now = floor.play.now()
    yield JudgementReached(now, judgement, now - began)


def calls(debates: Mapping[str, DebateProtocol], debaters: int, plan: Plan) -> Calls:
    """As the head of this file says."""
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


def _contradiction(floor: Floor, seen: JudgeView, judgement: Judgement) -> tuple[str, ...]:
    """That the built-in readers contradict the judgement, where they do."""
    other = OTHER.get(judgement.label)
    if other is None:
        return ()
    if judgement.readers:
        against = _readers_for(other, judgement)
        whole = len({view.reader for view in judgement.readers})
        is_most = 2 * len(against) > whole
        words = f"{len(against)} of {counted(whole, 'built-in reader')} call it {other}."
        return (words,) if is_most else ()
    spare = floor.play.roster.spare
    if spare is None or not isinstance(spare.judge, EvidenceReader):
        return ()
    read = spare.judge.read(seen, floor.play.stop)
    return (f"{spare.judge.name} calls it {other}.",) if read.label == other else ()


def _readers_for(label: Label, judgement: Judgement) -> Sequence[str]:
    """The readers whose stances on all statements come to that label."""
    from core.baseline.debaters import overall  # a page that only counts calls needs no rules

    stances: dict[str, list[Label]] = {}
    for view in judgement.readers:
        stances.setdefault(view.reader, []).append(view.stance)
    return [reader for reader, own in stances.items() if overall(own) == label]


def _decided(floor: Floor, why: Sequence[str], then: str) -> DebateDecided:
    enough = "The single judge left nothing open that a debate could settle."
    return DebateDecided(floor.play.now(), bool(why), " ".join(why) or enough, then)
