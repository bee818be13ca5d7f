"""A single judge over the evidence, which nobody argues about: the baseline of every debate.

It is asked plainly, for its chain of thought, or by examples; of several samples the most frequent
label counts (self-consistency). Source: HaluAgent 3.2 and fig. 6, CEDA A.2, SC-MAKS 4.4.
Calls: as many judgements as samples, all at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.acting import judged
from core.debate.floor import Calls, DebateProtocol, Floor
from core.debate.turns import judge_view
from core.events import Event
from core.records import Plan


def argue(floor: Floor) -> Iterator[Event]:
    """One judgement, by what the evidence says alone."""
    yield from judged(floor.play, judge_view(floor, (), manner=floor.plan.options.style or "plain"))


def calls(debaters: int, plan: Plan) -> Calls:
    """As the head of this file says."""
    return Calls(0, max(1, plan.options.samples), chain=1)


PROTOCOL = DebateProtocol("single", argue, calls, judging=("plain", "thought", "examples"))
