"""Several judgements of one question, all at once, and what they come to (self-consistency).

They are counted as all votes are (`core/debate/votes.py`). A built-in judge always says the same,
so it is asked once. Source: SC-MAKS 4.4, Wang et al. 2023 as cited there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from core.acting import sampled
from core.concurrency import merged
from core.debate.floor import Floor
from core.debate.turns import AT_ONCE
from core.debate.votes import Tally, tally, without_majority
from core.events import Event, ModelCalled, ProblemMet
from core.progress import total_cost
from core.records import Judgement
from core.roles import JudgeView


def drawn(floor: Floor, views: Sequence[JudgeView], note: str) -> Iterator[Event]:
    """The judgements on these views that are not there yet, all at once."""
    waiting = [seen for seen in views if seen.number not in floor.progress.samples]
    yield from merged([drawing(floor, seen, note) for seen in waiting], workers=AT_ONCE)


def drawing(floor: Floor, seen: JudgeView, note: str) -> Callable[[], Iterator[Event]]:
    """One judgement's events; its cost is that of its own calls, whoever tells of them."""
    roster = replace(floor.play.roster, calls_made=lambda: floor.calls_made("")[0])
    play = replace(floor.play, roster=roster)

    def events() -> Iterator[Event]:
        for event in sampled(play, seen, note):
            yield from _with_own_cost(floor, seen, event)

    return events


def samples_of(floor: Floor, views: Sequence[JudgeView]) -> list[Judgement]:
    """What was concluded on these views, in their order."""
    samples = floor.progress.samples
    return [samples[seen.number].judgement for seen in views if seen.number in samples]


def possible(floor: Floor, wanted: int) -> int:
    """How many of so many samples may differ: one of a judge that is built in."""
    return 1 if floor.play.roster.judge.built_in else max(1, wanted)


def said_once(floor: Floor, wanted: int) -> Iterator[Event]:
    """That fewer samples are drawn than were asked for, where that is so."""
    if possible(floor, wanted) < wanted and not floor.progress.samples:
        words = (
            f"{floor.play.roster.judge.name} always says the same about the same evidence, so it "
            f"was asked once instead of {wanted} times."
        )
        yield ProblemMet(floor.play.now(), "judging", words)


def vote_of(samples: Sequence[Judgement]) -> tuple[Judgement, Tally]:
    """The judgement that the samples come to: one of those of the label that most give."""
    votes = tally(None if s.cause == "unreadable_reply" else s.label for s in samples)
    if len(samples) == 1 or not votes.cast:
        return samples[0], votes
    if votes.label == "unclear":
        return without_majority(samples[0].agent, votes, "judgement"), votes
    chosen = next(sample for sample in samples if sample.label == votes.label)
    words = votes.words("judgement")
    prose = f"{words} One of the {votes.label} ones: {chosen.prose or chosen.text}"
    return replace(chosen, p=votes.p, prose=prose), votes


def _with_own_cost(floor: Floor, seen: JudgeView, event: Event) -> Iterator[Event]:
    if event.kind == "judgement_sampled":
        calls, own = floor.calls_made(seen.slot)
        yield from (ModelCalled(event.at, call) for call in calls)
        yield replace(event, cost=total_cost(own))
    else:
        yield event
