"""A single judge over the evidence, which nobody argues about: the baseline of every debate.

It is asked plainly, for its chain of thought, or by examples; of several samples the label counts
that more than half give (self-consistency). By default one plain judgement.
Source: HaluAgent 3.2 and fig. 6, CEDA A.2, SC-MAKS 4.4.
Calls: as many judgements as samples, all at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.agents.agent_runner import judged
from core.debate.floor import Calls, DebateProtocol, Floor
from core.debate.turns import judge_view
from core.debate.votes import drawn, possible, said_once, samples_of, vote_of
from core.events import Event, JudgementReached
from core.records import Plan
from core.roles import JudgeView


def argue(floor: Floor) -> Iterator[Event]:
    """One judgement, or the vote of several, by what the evidence says alone."""
    wanted = max(1, floor.plan.options.samples)
    yield from said_once(floor, wanted)
    views = asked_alone(floor, possible(floor, wanted))
    if len(views) == 1:
        yield from judged(floor.play, views[0])
        return
    began = floor.play.now()
    yield from drawn(floor, views, "sample")
    judgement, _ = vote_of(samples_of(floor, views))
    now = floor.play.now()
    yield JudgementReached(now, judgement, now - began)


def asked_alone(floor: Floor, count: int, first: int = 1) -> list[JudgeView]:
    """So many views of a judge who hears no debate, numbered from `first`."""
    manner = floor.plan.options.style or "plain"
    is_sampled = count > 1
    return [
        judge_view(floor, (), manner=manner, number=number, is_sampled=is_sampled)
        for number in range(first, first + count)
    ]


def calls(debaters: int, plan: Plan) -> Calls:
    """As the head of this file says."""
    return Calls(0, max(1, plan.options.samples), chain=1)


PROTOCOL = DebateProtocol(
    "single",
    argue,
    calls,
    judging=("plain", "thought", "examples"),
    options=("samples", "style"),
)
